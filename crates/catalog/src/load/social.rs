//! `[social.PLATFORM]` tables: a platform and its cells, `[social.PLATFORM.CAPABILITY]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{models, prices};
use crate::form::Form;
use crate::social::{
    AnswerRule, Capability, Cell, Evidence, Method, More, Paging, PagingStep, Param, Platform, SocialRoute, Status,
};
use crate::{BillingUnit, Face, Group, LineInFile, Model};

mod params;

/// All platforms of all files. Their prices are built later, with the models'.
pub(super) fn read(forms: &mut [Form<'_>], groups: &BTreeMap<String, Group>) -> Vec<Platform> {
    let mut taken: BTreeMap<String, LineInFile> = BTreeMap::new();
    let mut platforms = Vec::new();
    for (key, mut form) in forms.iter_mut().flat_map(|form| form.named("social")) {
        if !key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            form.mistake_here("a platform key has lowercase letters, digits and hyphens (it is used in addresses)");
        }
        let aliases = form.texts("aliases");
        for name in aliases.iter().chain([&key]) {
            if let Some(first) = taken.insert(name.clone(), form.place()) {
                form.mistake_here(format!("{name:?} is already defined in {first}"));
            }
        }
        platforms.push(platform(key, aliases, form, groups));
    }
    platforms
}

/// What holds for all cells of a platform.
struct House {
    provider: Option<String>,
    drop: Vec<String>,
}

fn platform(key: String, aliases: Vec<String>, mut form: Form<'_>, groups: &BTreeMap<String, Group>) -> Platform {
    let mut platform = Platform {
        order: form.int_or("order", u32::MAX, 0..=u32::MAX),
        name_en: form.text("name_en"),
        name_zh: form.text_or("name_zh", ""),
        key,
        aliases,
        cells: Vec::new(),
    };
    let house = House {
        provider: form.opt_text("provider"),
        drop: form.opt_texts("drop").unwrap_or_else(|| Cell::DROP.map(str::to_owned).to_vec()),
    };
    for capability in Capability::ALL {
        if let Some(table) = form.opt_table(capability.name()) {
            platform.cells.push(Arc::new(cell(&platform, capability, &house, table, groups)));
        }
    }
    if platform.cells.is_empty() {
        form.mistake_here("has no cell: add a table such as [social.KEY.search]");
    }
    form.finish();
    platform
}

fn cell(
    platform: &Platform,
    capability: Capability,
    house: &House,
    mut form: Form<'_>,
    groups: &BTreeMap<String, Group>,
) -> Cell {
    let place = form.place();
    let params = params::read(&mut form);
    let require_one_of = params::groups(&mut form, &params);
    let book = prices::read(&mut form, BillingUnit::PerCall, &[BillingUnit::PerCall.main_face()]);
    let routes = routes(&mut form, house.provider.as_deref());
    let cost = routes.iter().map(|route| route.cost).max().unwrap_or(0);
    let dear_enough = [Some(&book.standard), book.paid.as_ref()].into_iter().flatten();
    let below = dear_enough.filter_map(|faces| faces.get(Face::PerCall)).any(|price| price < cost);
    if below && !form.flag_or("below_cost", false) {
        form.mistake("price", format!("is below the cost of a route, {cost}: say below_cost = true if that is meant"));
    }
    form.known(&["below_cost"]);
    let never_send = form.texts("never_send");
    for name in never_send.iter().filter(|name| params.iter().any(|param| param.name == **name)) {
        form.mistake("never_send", format!("{name:?} is a parameter of this cell"));
    }
    let answer = answer(&mut form);
    let paging = form.opt_table("paging").map(|table| paging(table, &params));
    let mut model = Model::per_call(
        format!("social-{}-{}", platform.key, capability.name()),
        book,
        routes.iter().map(|route| (route.provider.clone(), route.path.clone())),
        place.clone(),
    );
    model.kind = Cell::ENDPOINT_TYPE.to_owned();
    model.supported_endpoint_types = vec![Cell::ENDPOINT_TYPE.to_owned()];
    model.enable_groups = models::enabled_groups(&mut form, groups);
    model.requires_topup = true;
    form.finish();
    Cell {
        platform: platform.key.clone(),
        platform_name_en: platform.name_en.clone(),
        platform_name_zh: platform.name_zh.clone(),
        capability,
        params,
        require_one_of,
        never_send,
        drop: house.drop.clone(),
        routes,
        answer,
        paging,
        model: Arc::new(model),
        place,
    }
}

/// `[[…route]]`: each with its alternatives after it.
fn routes(form: &mut Form<'_>, provider: Option<&str>) -> Vec<SocialRoute> {
    let mut routes = Vec::new();
    for mut table in form.tables("route") {
        let own = table.opt_text("provider").or_else(|| provider.map(str::to_owned));
        if own.is_none() {
            table.mistake("provider", "is missing: name a provider here or for the whole platform");
        }
        let method = table.choice_or("method", Method::Get, &[("GET", Method::Get), ("POST", Method::Post)]);
        let paths: Vec<String> = [table.text("path")].into_iter().chain(table.texts("alternatives")).collect();
        for path in paths.iter().filter(|path| !fits_path(path) && !path.is_empty()) {
            table.mistake("path", format!("{path:?} must begin with / and have no ?, # or blank"));
        }
        let mut fixed_table = table.table("fixed");
        let names: Vec<String> = fixed_table.keys().map(str::to_owned).collect();
        let fixed: Vec<(String, String)> = names
            .into_iter()
            .map(|name| {
                let value = fixed_table.text(&name);
                (name, value)
            })
            .collect();
        fixed_table.finish();
        let cost = table.int("cost", 0..=1_000_000_000);
        for path in paths {
            let provider = own.clone().unwrap_or_default();
            routes.push(SocialRoute { provider, method, path, fixed: fixed.clone(), cost });
        }
        table.finish();
    }
    if routes.is_empty() {
        form.mistake("route", "is missing: a cell needs at least one [[…route]]");
    }
    routes
}

fn fits_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['?', '#']) && path.bytes().all(|byte| byte.is_ascii_graphic())
}

fn answer(form: &mut Form<'_>) -> AnswerRule {
    let mut table = form.table("answer");
    let mut answer = AnswerRule {
        evidence: table.choice_or("evidence", Evidence::Inferred, &Evidence::ALL),
        ok: Vec::new(),
        items: pointers(&mut table, "items"),
        marks_empty: pointers(&mut table, "marks_empty"),
    };
    for mut status in table.tables("ok") {
        let at = status.text("at");
        if !at.is_empty() && !at.starts_with('/') {
            status.mistake("at", "is a place in the answer such as \"/status_code\"");
        }
        let is = status.texts("is");
        if is.is_empty() {
            status.mistake("is", "is missing: the values that mean success");
        }
        let not_found = status.texts("not_found");
        answer.ok.push(Status { at, is, not_found, optional: status.flag_or("optional", false) });
        status.finish();
    }
    table.finish();
    answer
}

fn pointers(form: &mut Form<'_>, key: &str) -> Vec<String> {
    let list = form.texts(key);
    if list.iter().any(|at| !at.is_empty() && !at.starts_with('/')) {
        form.mistake(key, "must be places in the answer such as \"/data/items\"");
    }
    list
}

fn paging(mut form: Form<'_>, params: &[Param]) -> Paging {
    let mut next = Vec::new();
    let mut table = form.table("next");
    let names: Vec<String> = table.keys().map(str::to_owned).collect();
    for name in names {
        let step = PagingStep::parse(&table.text(&name));
        match (params.iter().position(|param| param.name == name), step) {
            (Some(at), Some(step)) => next.push((at, step)),
            (None, _) => table.mistake(&name, "is not a parameter of this cell"),
            (_, None) => table.mistake(&name, "must be a place such as \"/cursor\", or \"+1\", \"+count\" or \"*\""),
        }
    }
    if next.is_empty() {
        form.mistake("next", "is missing: which parameters change from page to page?");
    }
    table.finish();
    let more = form.opt_text("more").and_then(|text| {
        let more = More::parse(&text);
        if more.is_none() {
            form.mistake("more", "must be a place such as \"/has_more\" or \"!/is_end\"");
        }
        more
    });
    let paging = Paging {
        evidence: form.choice_or("evidence", Evidence::Inferred, &Evidence::ALL),
        next,
        more,
        end: form.texts("end"),
    };
    form.finish();
    paging
}
