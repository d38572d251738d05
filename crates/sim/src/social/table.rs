//! The published table of cells, read in the simulator's own way.

use std::sync::OnceLock;

macro_rules! files {
    ($($name:literal)*) => { [$(include_str!(concat!("../../../../catalog/social/", $name, ".toml")),)*] };
}

const FILES: [&str; 20] = files!(
    "bilibili" "douyin" "instagram" "kuaishou" "lemon8" "linkedin" "pipixia" "reddit" "threads" "tiktok"
    "toutiao" "twitter" "wechat-channels" "wechat-mp" "wechat-search" "weibo" "xiaohongshu" "xigua" "youtube" "zhihu"
);

/// One upstream route and the cells behind it.
#[derive(Debug)]
pub struct Route {
    pub path: String,
    pub post: bool,
    /// One thing and not a list.
    pub single: bool,
    pub params: Vec<Param>,
    /// Places that hold something when there is data.
    pub items: Vec<String>,
    pub ok: Vec<Status>,
    /// Texts that mark an empty page.
    pub marks: Vec<String>,
    /// Parameter and rule of each step to the next page.
    pub next: Vec<(String, String)>,
    pub more: Option<String>,
    pub end: Option<String>,
}

/// A status field, with values that mean success and that there is no such thing.
#[derive(Debug)]
pub struct Status {
    pub at: String,
    pub good: String,
    pub not_found: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub kind: String,
    pub required: bool,
    /// Where counting starts.
    pub start: Option<String>,
}

pub fn route(path: &str) -> Option<&'static Route> {
    routes().iter().find(|route| route.path == path)
}

fn routes() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let mut all: Vec<Route> = Vec::new();
        for route in FILES.iter().flat_map(|text| read(text)) {
            // Two cells may lead to one route: it takes the parameters of both.
            match all.iter_mut().find(|other| other.path == route.path) {
                None => all.push(route),
                Some(other) => {
                    for param in route.params {
                        if other.params.iter().all(|known| known.name != param.name) {
                            other.params.push(param);
                        }
                    }
                }
            }
        }
        all
    })
}

fn read(text: &str) -> Vec<Route> {
    let file: toml::Table = text.parse().expect("the table is TOML");
    let mut routes = Vec::new();
    for platform in file["social"].as_table().expect("platforms").values() {
        for (capability, cell) in platform.as_table().expect("a platform").iter().filter(|(_, cell)| cell.is_table()) {
            for entry in cell["route"].as_array().expect("routes") {
                let alternatives = texts(entry.get("alternatives"));
                for path in std::iter::once(plain(&entry["path"])).chain(alternatives) {
                    routes.push(one(capability, cell, entry, path));
                }
            }
        }
    }
    routes
}

fn one(capability: &str, cell: &toml::Value, entry: &toml::Value, path: String) -> Route {
    let answer = cell.get("answer");
    let paging = cell.get("paging");
    let list = |value: Option<&toml::Value>| value.and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let mut params: Vec<Param> = list(cell.get("param")).iter().map(param).collect();
    let fixed = entry.get("fixed").and_then(toml::Value::as_table);
    params.extend(fixed.into_iter().flat_map(toml::Table::keys).map(|name| Param {
        name: name.clone(),
        kind: "string".to_owned(),
        required: false,
        start: None,
    }));
    let next = paging.and_then(|paging| paging["next"].as_table().cloned()).unwrap_or_default();
    Route {
        path,
        post: entry.get("method").is_some_and(|method| plain(method) == "POST"),
        single: matches!(capability, "post" | "user"),
        params,
        items: texts(answer.and_then(|answer| answer.get("items"))),
        ok: list(answer.and_then(|answer| answer.get("ok")))
            .iter()
            .map(|status| Status {
                at: plain(&status["at"]),
                good: plain(&status["is"][0]),
                not_found: texts(status.get("not_found")).into_iter().next(),
            })
            .collect(),
        marks: texts(answer.and_then(|answer| answer.get("marks_empty"))),
        next: next.into_iter().map(|(name, step)| (name, plain(&step))).collect(),
        more: paging.and_then(|paging| paging.get("more")).map(plain),
        end: texts(paging.and_then(|paging| paging.get("end"))).into_iter().next(),
    }
}

fn param(value: &toml::Value) -> Param {
    let start = ["default", "upstream_default", "min"].iter().find_map(|key| value.get(key));
    Param {
        name: plain(&value["name"]),
        kind: plain(&value["type"]),
        required: value.get("required").is_some_and(|required| required.as_bool() == Some(true)),
        start: start.map(plain),
    }
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(value: Option<&toml::Value>) -> Vec<String> {
    value.and_then(toml::Value::as_array).into_iter().flatten().map(plain).collect()
}
