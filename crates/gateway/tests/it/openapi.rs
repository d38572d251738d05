//! GET /openapi.json.

use crate::house::House;
use serde_json::Value;
use tollgate_gateway::endpoints::rows;

#[tokio::test(flavor = "multi_thread")]
async fn the_description_has_every_path_and_resolves() {
    let house = House::new().await;
    let reply = house.http.get(house.url("/openapi.json")).send().await.expect("a reply");
    let text = reply.text().await.expect("text");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    for row in rows() {
        let (method, path) = (row.method.as_str(), row.path);
        let operation = &document["paths"][path][method.to_ascii_lowercase()];
        let done = ["200", "101", "202", "303"].iter().any(|status| operation["responses"][status].is_object());
        assert!(done, "{method} {path}");
    }
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().expect("an end");
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
}

/// Each operation says what it gives and how it refuses, in the dialect of whoever asks there.
#[tokio::test(flavor = "multi_thread")]
async fn operations_are_described_by_method_and_dialect() {
    let house = House::new().await;
    let document: Value =
        house.http.get(house.url("/openapi.json")).send().await.expect("a reply").json().await.expect("JSON");
    let place = |path: &str, method: &str, rest: &str| {
        let path = path.replace('/', "~1");
        document.pointer(&format!("/paths/{path}/{method}/{rest}")).cloned().unwrap_or(Value::Null)
    };
    for (path, method, status, name) in [
        ("/v1/chat/completions", "post", "402", "Error"),
        ("/v1/messages", "post", "402", "AnthropicError"),
        ("/v1/messages/count_tokens", "post", "415", "AnthropicError"),
        ("/v1beta/models/{model}:generateContent", "post", "402", "GeminiError"),
        ("/v1/models/{model}:countTokens", "post", "400", "GeminiError"),
        ("/v1/video/generations/{id}", "get", "404", "LegacyVideoError"),
        ("/v1/video/generations/{id}", "get", "200", "LegacyVideo"),
        ("/v1/videos", "post", "200", "Video"),
        ("/v1/videos", "get", "200", "VideoList"),
        ("/v1/videos/{id}", "get", "200", "Video"),
        ("/v1/videos/{id}", "delete", "200", "VideoDeleted"),
        ("/v1/videos", "post", "415", "Error"),
    ] {
        let schema = place(path, method, &format!("responses/{status}/content/application~1json/schema/$ref"));
        assert_eq!(schema, format!("#/components/schemas/{name}"), "{method} {path} {status}");
    }
    let names = |path: &str, method: &str| {
        let all = place(path, method, "parameters");
        let names = all.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str().map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("/v1/videos", "get"), ["limit", "after", "order"]);
    assert_eq!(names("/v1/videos", "post"), ["Idempotency-Key"]);
    assert_eq!(place("/mcp", "post", "responses/202/description"), "done");
    let mut seen = std::collections::BTreeSet::new();
    for row in rows() {
        let (method, path) = (row.method.as_str(), row.path);
        let id = place(path, &method.to_ascii_lowercase(), "operationId");
        assert!(seen.insert(id.to_string()), "{method} {path}: {id} is there twice");
    }
}
