//! /api/workflows: drafts are the operators' own, a fixed contract is public, and whatever changes
//! it takes that away.

use crate::house::{House, error_of};
use serde_json::{Value, json};
use tollgate_catalog::Mistake;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{Attribution, NewAdminKey};
use tollgate_workflows::{SCHEMA_TEXT, record_schema};

const EXAMPLE: &str = include_str!("../../../../workflows/tests/example/storyline-to-clip.json");
const SECRET: &str = "ak-fedcba9876543210fedcba9876543210fedcba9876543210";
const ONE: &str = "/api/workflows/storyline-to-clip";

/// Writes a file of workflows and takes it over.
async fn put(house: &House, name: &str, text: &str) -> Result<(), Vec<Mistake>> {
    let file = house.dir.join("catalog/workflows").join(name);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, text).expect("written");
    reload(&house.running().app, &house.source).await
}

/// The example, served as a draft.
pub async fn put_example(house: &House) {
    put(house, "storyline-to-clip.json", EXAMPLE).await.expect("taken over");
}

/// A shipped workflow, which has a fixture.
pub async fn put_narration(house: &House) {
    let name = "article-to-narration";
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/workflows");
    crate::v1::workflow_runs::copy(&shipped.join(name), &house.dir.join("catalog/workflows").join(name));
    let record = std::fs::read_to_string(shipped.join(format!("{name}.json"))).expect("read");
    put(house, &format!("{name}.json"), &record).await.expect("taken over");
}

/// The example with one value changed.
async fn put_changed(house: &House, pointer: &str, value: Value) -> Result<(), Vec<Mistake>> {
    let mut record: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    put(house, "storyline-to-clip.json", &format!("{record:#}")).await
}

async fn house() -> House {
    let house = House::new().await;
    put_example(&house).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, SECRET).await.expect("a key");
    house
}

async fn operate(house: &House, verb: &str) -> (u16, Value) {
    let url = house.url(&format!("/api/admin/workflows/storyline-to-clip/{verb}"));
    let request = house.http.post(url).bearer_auth(SECRET).json(&json!({ "reason": "a test" }));
    let reply = request.send().await.expect("a reply");
    (reply.status().as_u16(), reply.json().await.expect("JSON"))
}

/// What an operator sees of it.
async fn standing(house: &House) -> Value {
    let reply = house.http.get(house.url("/api/admin/workflows")).bearer_auth(SECRET).send().await.expect("a reply");
    reply.json::<Value>().await.expect("JSON")["data"][0].clone()
}

async fn seen(house: &House, path: &str) -> (u16, Value) {
    let reply = house.http.get(house.url(path)).send().await.expect("a reply");
    (reply.status().as_u16(), reply.json().await.expect("JSON"))
}

async fn slugs(house: &House) -> Vec<String> {
    let (status, list) = seen(house, "/api/workflows").await;
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    let data = list["data"].as_array().expect("a list");
    data.iter().map(|record| record["slug"].as_str().expect("a slug").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_shown_to_operators_only() {
    let house = house().await;
    assert!(slugs(&house).await.is_empty());
    for path in [ONE, "/api/workflows/storyline-to-clip.json", "/api/workflows/moon", "/api/workflows/.json"] {
        let (status, error) = error_of(house.http.get(house.url(path)).send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("not_found")), "{path}");
    }
    let standing = standing(&house).await;
    assert_eq!((&standing["stage"], &standing["cannot_be_locked"]), (&json!("draft"), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_published_as_it_is_written() {
    let house = House::new().await;
    let get = || house.http.get(house.url("/api/workflows/schema"));
    let reply = get().send().await.expect("a reply");
    let etag = reply.headers()["etag"].clone();
    assert_eq!(reply.text().await.expect("text"), SCHEMA_TEXT);
    for (known, status) in [(etag.to_str().expect("text"), 304), ("W/\"x\"", 200), ("*", 304)] {
        let again = get().header("if-none-match", known).send().await.expect("a reply");
        assert_eq!((again.status().as_u16(), &again.headers()["etag"]), (status, &etag), "{known}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_contract_is_public_with_its_evidence() {
    let house = house().await;
    let (status, moved) = operate(&house, "lock").await;
    assert_eq!(status, 200, "{moved}");
    assert_eq!(slugs(&house).await, ["storyline-to-clip"]);
    let (status, record) = seen(&house, ONE).await;
    assert_eq!(status, 200);
    assert_eq!(record_schema().violations(&record), [], "what is shown is a record too");
    let binding = &record["runtime_binding"];
    assert_eq!(record["contract_status"], "contract_locked_not_executable");
    assert_eq!(binding["openapi_path"], "/openapi.json#/paths/~1v1~1videos/post");
    assert!(binding["contract_version"].as_str().is_some_and(|version| version.ends_with(".1")), "{binding}");
    assert_eq!(binding["workflow_version"], binding["contract_version"]);
    assert_eq!(binding["semantic_digest_sha256"], standing(&house).await["semantic_digest_sha256"]);
    assert_eq!(seen(&house, "/api/workflows/storyline-to-clip.json").await, (200, record));

    let reply = house.http.get(house.url(ONE)).send().await.expect("a reply");
    let etag = reply.headers()["etag"].clone();
    let again = house.http.get(house.url(ONE)).header("if-none-match", &etag).send().await.expect("a reply");
    assert_eq!(again.status(), 304);

    let (status, _) = operate(&house, "unlock").await;
    assert_eq!(status, 200);
    assert_eq!(seen(&house, ONE).await.0, 404);
    let (_, moved) = operate(&house, "lock").await;
    let evidence: Value = serde_json::from_str(moved["evidence"].as_str().expect("text")).expect("JSON");
    assert!(evidence["contract_version"].as_str().is_some_and(|version| version.ends_with(".2")), "{evidence}");
}

async fn sitemap(house: &House) -> String {
    let reply = house.http.get(house.url("/sitemap.xml")).send().await.expect("a reply");
    assert_eq!(reply.headers()["content-type"], "application/xml");
    reply.text().await.expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn locales_and_sitemap_go_by_the_record() {
    let house = house().await;
    assert!(!sitemap(&house).await.contains("<url>"), "a draft");
    operate(&house, "lock").await;
    for (query, count) in [("", 1), ("?locale=de", 1), ("?locale=fr", 0), ("?locale=de-at", 0)] {
        let (status, list) = seen(&house, &format!("/api/workflows{query}")).await;
        assert_eq!((status, list["data"].as_array().map(Vec::len)), (200, Some(count)), "{query}");
    }
    for (query, code) in [
        ("locale=DE", "invalid_parameter"),
        ("locale=", "invalid_parameter"),
        ("locale=de&locale=en", "invalid_parameter"),
        ("locale=%ff", "invalid_parameter"),
        ("moon=1", "unknown_parameter"),
    ] {
        let request = house.http.get(house.url(&format!("/api/workflows?{query}")));
        let (status, error) = error_of(request.send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (400, Some(code)), "{query}");
    }
    let place = house.url(ONE);
    let line = format!("<url><loc>{place}</loc><lastmod>2026-11-16</lastmod></url>");
    assert!(sitemap(&house).await.contains(&line), "{}", sitemap(&house).await);
    put_changed(&house, "/discovery/sitemap", json!(false)).await.expect("taken over");
    assert!(!sitemap(&house).await.contains("<url>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_the_contract_takes_it_away_and_words_do_not() {
    let house = house().await;
    operate(&house, "lock").await;
    put_changed(&house, "/title", json!("Another title")).await.expect("taken over");
    assert_eq!(seen(&house, ONE).await.1["title"], "Another title");
    for (pointer, value) in [
        ("/inputs/0/description", json!("What happens in the clip!")),
        ("/runtime_binding/request_field_map/picture", json!("image")),
        ("/privacy_preflight/retention", json!("Forever.")),
    ] {
        put_changed(&house, pointer, value).await.expect("taken over");
        assert_eq!(seen(&house, ONE).await.0, 404, "{pointer}");
        let standing = standing(&house).await;
        assert_eq!(standing["stage"], "draft", "{pointer}");
        assert_eq!(standing["blocked"], "the contract has changed since it was locked", "{pointer}");
    }
    put_example(&house).await;
    assert_eq!(seen(&house, ONE).await.0, 200, "as it was locked");
    put_changed(&house, "/discovery/indexable", json!(false)).await.expect("taken over");
    assert!(slugs(&house).await.is_empty() && !sitemap(&house).await.contains("storyline"));
    assert_eq!(seen(&house, ONE).await.0, 200, "found by its name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_cannot_declare_itself_verified() {
    let house = house().await;
    let mut record: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    record["contract_status"] = json!("verified");
    record["runtime_binding"]["status"] = json!("verified");
    record["runtime_binding"]["last_verified_at"] = json!("2026-11-16T00:00:00Z");
    record["runtime_binding"]["capability_evidence"] = json!("run_1");
    record["provenance"]["runtime_evidence"] = json!("verified");
    put(&house, "storyline-to-clip.json", &record.to_string()).await.expect("taken over");
    let standing = standing(&house).await;
    assert_eq!((&standing["claimed"], &standing["stage"]), (&json!("verified"), &json!("draft")));
    assert_eq!(seen(&house, ONE).await.0, 404);
    operate(&house, "lock").await;
    let (_, shown) = seen(&house, ONE).await;
    assert_eq!(shown["contract_status"], "contract_locked_not_executable");
    assert_eq!(shown["runtime_binding"]["last_verified_at"], Value::Null);
    assert_eq!(shown["runtime_binding"]["capability_evidence"], Value::Null);
    assert_eq!(shown["runtime_binding"]["blocking_reason"], "its fixture has not been run");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_build_does_not_serve_cannot_be_locked() {
    let house = house().await;
    for (pointer, value, reason) in [
        ("/runtime_binding/endpoint", json!("/v1/moon"), "POST /v1/moon is not an endpoint of this build"),
        ("/runtime_binding/endpoint", json!(null), "runtime_binding.endpoint is null"),
        ("/runtime_binding/operation_id", json!("other"), "runtime_binding.operation_id must be \"post_v1_videos\""),
        ("/runtime_binding/request_field_map/seconds", json!("moons"), "the operation takes no \"moons\""),
        (
            "/executor_query/selection_policy",
            json!("by the moon"),
            "executor_query.selection_policy is \"by the moon\"",
        ),
        ("/runtime_binding/known_unimplemented_fields", json!(["storyline"]), "the required input \"storyline\""),
    ] {
        put_changed(&house, pointer, value).await.expect("a warning, no mistake");
        let (status, error) = operate(&house, "lock").await;
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 409 && message.contains(reason), "{pointer}: {status} {error}");
        let warnings = house.source.load().map_err(|mistakes| format!("{mistakes:?}")).expect("loaded").warnings(0);
        assert!(warnings.iter().any(|warning| warning.contains(reason)), "{warnings:?}");
        assert!(slugs(&house).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_record_keeps_the_whole_configuration_back() {
    let house = house().await;
    operate(&house, "lock").await;
    let broken = EXAMPLE.replace("\"locales\": [", "\"surplus\": 1, \"locales\": [");
    assert_ne!(broken, EXAMPLE);
    let line = 1 + EXAMPLE.lines().position(|line| line.contains("\"locales\"")).expect("a line");
    let mistakes = put(&house, "storyline-to-clip.json", &broken).await.expect_err("a mistake");
    let file = house.dir.join("catalog/workflows/storyline-to-clip.json");
    let expected = format!("{}:{line}: discovery.surplus: is not a field of this object", file.display());
    assert_eq!(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    assert_eq!(house.running().app.metrics.catalog_stale.get(), 1);
    assert_eq!(seen(&house, ONE).await.0, 200, "the old one stays");

    put_example(&house).await;
    let mistakes = put(&house, "storyline-to-clip/package.toml", "version = 1\n").await.expect_err("mistakes");
    let text: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert!(text.iter().any(|one| one.contains("package.toml:1: version: must be a text")), "{text:?}");
    assert!(text.iter().any(|one| one.contains("runtime_binding.endpoint: must be /v1/workflows/")), "{text:?}");
    std::fs::remove_dir_all(house.dir.join("catalog/workflows/storyline-to-clip")).expect("removed");
    let mistakes = put(&house, "moon/package.toml", "").await.expect_err("a mistake");
    assert!(mistakes[0].reason.starts_with("belongs to no workflow"), "{mistakes:?}");
    std::fs::remove_dir_all(house.dir.join("catalog/workflows/moon")).expect("removed");
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(256 * 1024));
    let mistakes = put(&house, "large.json", &large).await.expect_err("a mistake");
    assert_eq!(mistakes[0].reason, "is larger than 262144 bytes");
}
