//! The price list beside its whole: one record, filters, schema, ratios as maps, compression, and
//! readers of other makes.

use crate::engine::Engine;
use crate::house::{House, Plan, error_of, second};
use serde_json::{Value, json};
use tollgate_store::{PauseChange, PauseKind};

const CATALOG: &str = r#"
auto_groups = ["partner", "default"]
[vendor."acme"]
id = 7
name = "Acme"
icon = "acme"
[group.partner]
multiplier = "0.8"
[model."org/chat"]
vendor = "acme"
description = "The Largest"
tags = ["big"]
context_window = 100_000
max_output_tokens = 5_000
input_modalities = ["text", "image"]
output_modalities = ["text"]
enable_groups = ["default", "partner"]
price = { input = 3_000_000, output = 15_000_000, cache_read = 300_000 }
paid = { input = 2_000_000, output = 10_000_000, cache_read = 200_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."picture"]
billing_unit = "per_call"
supported_endpoint_types = ["image-generation"]
price = { per_call = 40_000 }
route = [{ provider = "sim", upstream_model = "gpt-image-sim" }]
[model."members"]
login_required = true
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."partners"]
enable_groups = ["partner"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn house_with(config: &str) -> House {
    House::with(Plan { catalog: CATALOG, config: config.to_owned(), ..Plan::default() }).await
}

async fn json_of(house: &House, path: &str) -> Value {
    let reply = house.http.get(house.url(path)).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{path}");
    reply.json().await.expect("JSON")
}

fn names(page: &Value) -> Vec<&str> {
    page["data"].as_array().expect("models").iter().filter_map(|one| one["model_name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_record_is_the_one_of_the_list_and_hidden_ones_do_not_exist() {
    let house = house_with("").await;
    let page = json_of(&house, "/api/pricing").await;
    for name in names(&page) {
        let one = json_of(&house, &format!("/api/pricing/{name}")).await;
        let listed = page["data"].as_array().expect("models").iter().find(|one| one["model_name"] == name);
        assert_eq!(Some(&one), listed, "{name}");
    }
    assert!(names(&page).contains(&"org/chat"), "a name may have a slash");
    for hidden in ["members", "partners", "never-there"] {
        let reply = house.http.get(house.url(&format!("/api/pricing/{hidden}"))).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["code"]), (404, &json!("model_not_found")), "{hidden}");
        let expected = format!("The model `{hidden}` does not exist or is not offered.");
        assert_eq!(error["message"], expected, "the same words for all");
    }
    let own: Value = house.get("/api/pricing/members").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(own["login_required"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_filtered_and_paged() {
    let house = house_with("").await;
    for (query, expected) in [
        ("type=image", vec!["picture"]),
        ("endpoint_type=image-generation", vec!["picture"]),
        ("capability=image", vec!["picture"]),
        ("task=vision", vec!["org/chat"]),
        ("vendor=7", vec!["org/chat"]),
        ("vendor=acme", vec!["org/chat"]),
        ("vendor=nobody", vec![]),
        ("q=LARGEST", vec!["org/chat"]),
        ("q=big&type=llm", vec!["org/chat"]),
        ("q=big&type=image", vec![]),
        ("group=partner", vec![]),
        ("after=org/chat&limit=2", vec!["paid-only", "picture"]),
    ] {
        let page = json_of(&house, &format!("/api/pricing?{query}")).await;
        assert_eq!(names(&page), expected, "{query}");
        assert_eq!(page["success"], true, "{query}");
    }
    let pages = async |limit: usize| {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = json_of(&house, &format!("/api/pricing?limit={limit}{after}")).await;
            all.extend(names(&page).into_iter().map(str::to_owned));
            if page["has_more"] == false {
                return all;
            }
            after = format!("&after={}", all.last().expect("a name"));
        }
    };
    let whole: Vec<String> = names(&json_of(&house, "/api/pricing").await).into_iter().map(str::to_owned).collect();
    assert_eq!(pages(1).await, whole);
    assert_eq!(pages(100).await, whole);
    for (query, param, code) in [
        ("colour=red", "colour", "unknown_parameter"),
        ("type=chatbot", "type", "invalid_parameter"),
        ("limit=0", "limit", "invalid_parameter"),
        ("q=", "q", "invalid_parameter"),
        ("q=a&q=b", "q", "invalid_parameter"),
    ] {
        let reply = house.http.get(house.url(&format!("/api/pricing?{query}"))).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["param"], &error["code"]), (400, &json!(param), &json!(code)), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_compressed_for_those_who_take_it() {
    let house = house_with("").await;
    let get = |accept: &str| house.http.get(house.url("/api/pricing")).header("accept-encoding", accept.to_owned());
    let plain = get("identity").send().await.expect("a reply");
    assert!(plain.headers().get("content-encoding").is_none());
    assert_eq!(plain.headers()["cache-control"], "public, max-age=60");
    assert_eq!(plain.headers()["vary"], "authorization, x-api-key, x-goog-api-key, accept-encoding");
    let whole = plain.bytes().await.expect("bytes");
    for (accept, name) in [("gzip", "gzip"), ("gzip, br", "br")] {
        let reply = get(accept).send().await.expect("a reply");
        assert_eq!(reply.headers()["content-encoding"], name);
        let tag = reply.headers()["etag"].to_str().expect("text").to_owned();
        let packed = reply.bytes().await.expect("bytes");
        assert!(packed.len() * 2 < whole.len(), "{name}: {} of {}", packed.len(), whole.len());
        assert_eq!(unpacked(name, &packed), whole, "{name}");
        let again = get(accept).header("if-none-match", tag).send().await.expect("a reply");
        assert_eq!(again.status(), 304, "{name}");
    }
    let own = house.get("/api/pricing").send().await.expect("a reply");
    assert_eq!(own.headers()["cache-control"], "private, no-cache");
}

/// As other makes of readers unpack it.
fn unpacked(name: &str, packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match name {
        "gzip" => std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut out).expect("gzip"),
        _ => std::io::copy(&mut brotli::Decompressor::new(packed, 4_096), &mut out).expect("brotli"),
    };
    out
}

/// As new-api reads a peer: `success`, numbers that are numbers, ratios that are absent or numbers.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_copies_prices_from_a_peer_reads_the_list() {
    let house = house_with("\n[price_list]\nratio_config = true\n").await;
    let page = json_of(&house, "/api/pricing").await;
    assert_eq!(page["success"], true);
    for one in page["data"].as_array().expect("models") {
        assert!(one["model_name"].is_string() && one["quota_type"].is_u64(), "{one}");
        for member in ["model_ratio", "model_price", "completion_ratio", "cache_ratio", "create_cache_ratio"] {
            assert!(one.get(member).is_none_or(Value::is_number), "{member}: {one}");
        }
        let free = one["quota_type"] == 0 && one["model_ratio"] == 37.5;
        assert!(!free, "the sentinel of a model without a price");
        assert!(one["enable_groups"].as_array().is_some_and(|list| !list.is_empty()), "{one}");
    }
    let maps = json_of(&house, "/api/ratio_config").await;
    assert_eq!(maps["success"], true);
    assert_eq!(maps["data"]["model_ratio"]["org/chat"], 1.5);
    assert_eq!(maps["data"]["completion_ratio"]["org/chat"], 5);
    assert_eq!(maps["data"]["cache_ratio"]["org/chat"], 0.1);
    assert_eq!(maps["data"]["model_price"], json!({"picture": 0.04}));
    assert!(maps["data"]["model_ratio"].get("picture").is_none(), "by call it has a price, not a ratio");
    assert!(!maps.to_string().contains("partners") && !maps.to_string().contains("members"));
    let closed = house_with("").await;
    let reply = closed.http.get(closed.url("/api/ratio_config")).send().await.expect("a reply");
    assert_eq!(reply.status(), 404, "off unless the operator says otherwise");
}

/// As clients of OpenRouter's list read one: prices are decimal texts per token.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_openrouters_members_finds_them() {
    let house = House::with(Plan { catalog: CATALOG, usd: "0", ..Plan::default() }).await;
    let read = async || -> Value {
        house.get("/v1/models/org/chat").send().await.expect("a reply").json().await.expect("JSON")
    };
    let one = read().await;
    assert_eq!(one["owned_by"], "Acme");
    assert_eq!((&one["name"], &one["description"]), (&json!("org/chat"), &json!("The Largest")));
    assert_eq!(one["context_length"], 100_000);
    assert_eq!(one["architecture"], json!({"input_modalities": ["text", "image"], "output_modalities": ["text"]}));
    let expected = json!({"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"});
    assert_eq!(one["pricing"], expected);
    assert_eq!(one["top_provider"], json!({"context_length": 100_000, "max_completion_tokens": 5_000}));
    assert!(one["supported_parameters"].as_array().expect("a list").contains(&json!("tools")));
    house.top_up("first", "1").await;
    assert_eq!(read().await["pricing"]["prompt"], "0.000002", "as the account pays");
    let list: Value = house.get("/v1/models").send().await.expect("a reply").json().await.expect("JSON");
    for model in list["data"].as_array().expect("models") {
        let price = model["pricing"]["prompt"].as_str().expect("a text");
        assert!(price.parse::<f64>().is_ok_and(|price| price >= 0.0), "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_names_every_member() {
    let house = house_with("").await;
    let schema = json_of(&house, "/api/pricing/schema").await;
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let members = schema["$defs"]["record"]["properties"].as_object().expect("members");
    for one in json_of(&house, "/api/pricing").await["data"].as_array().expect("models") {
        for member in one.as_object().expect("an object").keys() {
            assert!(members.contains_key(member), "{member}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_and_restarts_name_the_same_list_alike() {
    let [_, postgres] = Engine::both().await;
    let mut house = House::with(Plan { catalog: CATALOG, database: postgres.url.clone(), ..Plan::default() }).await;
    let other = second(&house).await;
    let tag = async |url: String| {
        let reply = house.http.get(url).send().await.expect("a reply");
        reply.headers()["etag"].to_str().expect("text").to_owned()
    };
    let first = tag(house.url("/api/pricing")).await;
    assert_eq!(tag(format!("http://{}/api/pricing", other.address)).await, first);
    other.stop().await;
    house.restart().await;
    let reply = house.http.get(house.url("/api/pricing")).send().await.expect("a reply");
    assert_eq!(reply.headers()["etag"], first.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_that_are_paused_are_not_counted() {
    let house = House::new().await;
    let count = async |model: &str| {
        let one: Value =
            house.get(&format!("/api/pricing/{model}")).send().await.expect("a reply").json().await.expect("JSON");
        one["book_faces"]["route_count"].clone()
    };
    let app = &house.running().app;
    let pause = async |kind: PauseKind, name: &str, paused: bool| {
        let (at, actor) = (app.world.now_ms(), "ada".to_owned());
        let change = PauseChange { kind, name: name.to_owned(), paused, at, actor, reason: String::new() };
        app.store.change_pause(change).await.expect("written");
        app.routes.switches.read(&app.store, &app.metrics).await.expect("read");
    };
    assert_eq!((count("two-routes").await, count("plain").await), (json!(2), json!(1)));
    pause(PauseKind::Provider, "nobody", true).await;
    assert_eq!((count("two-routes").await, count("plain").await), (json!(1), json!(1)));
    pause(PauseKind::Model, "plain", true).await;
    assert_eq!((count("two-routes").await, count("plain").await), (json!(1), json!(0)));
    pause(PauseKind::Provider, "nobody", false).await;
    pause(PauseKind::Model, "plain", false).await;
    assert_eq!((count("two-routes").await, count("plain").await), (json!(2), json!(1)));
}
