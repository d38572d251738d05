//! POST /mcp: the messages of the Model Context Protocol as they go over the wire. The official SDK
//! is in tests/sdk.

use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use tollgate_catalog::social::SHIPPED;

async fn house() -> House {
    let cells: &'static str = Box::leak(SHIPPED.map(|(_, text)| text).join("\n").into_boxed_str());
    House::with(Plan { catalog: cells, ..Plan::default() }).await
}

async fn say(house: &House, path: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let answer: Value = reply.json().await.expect("JSON");
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&"2.0".into(), &7.into()));
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_hello_lists_and_filters() {
    let house = house().await;
    let hello = say(&house, "/mcp", "initialize", json!({ "protocolVersion": "2025-06-18" })).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    let newer = say(&house, "/mcp", "initialize", json!({ "protocolVersion": "2099-01-01" })).await;
    assert_eq!(newer["result"]["protocolVersion"], "2025-11-25", "the newest this one speaks");
    assert_eq!(say(&house, "/mcp", "ping", json!({})).await["result"], json!({}));
    let count = async |path: &str| {
        let listed = say(&house, path, "tools/list", json!({})).await;
        listed["result"]["tools"].as_array().expect("tools").len()
    };
    assert_eq!(count("/mcp").await, 101);
    assert_eq!(count("/mcp?platform=douyin,weibo").await, 12);
    assert_eq!(count("/mcp?platform=douyin,weibo&capability=search,user").await, 4);
    house.running().app.social.change("social-weibo-user", true, "ada", "test").await.expect("paused");
    assert_eq!(count("/mcp?platform=weibo").await, 5, "a paused cell is not offered");
    let listed = say(&house, "/mcp?platform=youtube&capability=search", "tools/list", json!({})).await;
    let tool = &listed["result"]["tools"][0];
    assert_eq!(tool["name"], "social-youtube-search");
    assert_eq!(tool["inputSchema"]["properties"]["keyword"]["maxLength"], 200);
    assert!(
        tool["description"]
            .as_str()
            .is_some_and(|text| text.contains("0.004 USD") && text.contains("keyword, continuation_token"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_is_a_social_call() {
    let house = house().await;
    let before = house.available().await;
    let call = async |name: &str, arguments: Value| {
        say(&house, "/mcp", "tools/call", json!({ "name": name, "arguments": arguments })).await
    };
    let answer = call("social-bilibili-user-posts", json!({ "uid": "7", "pn": 2, "order": null })).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("\"object\":\"social.result\"") && text.contains("7411193113223371"), "{text}");
    assert_eq!(before - house.available().await, 2_000_000);
    let id = answer["result"]["_meta"]["call_id"].as_str().expect("an id").parse().expect("a call id");
    assert_eq!(house.row(id).await.model, "social-bilibili-user-posts");

    let refused = call("social-bilibili-user-posts", json!({ "uid": "7", "pn": 101 })).await;
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(refused["result"]["content"][0]["text"], "invalid_parameter: `pn` is a number from 1 to 100.");
    let list = call("social-bilibili-user", json!({ "uid": ["7"] })).await;
    assert_eq!(list["result"]["isError"], true);
    assert_eq!(call("social-nothing", json!({})).await["error"]["code"], -32602);
    assert_eq!(house.sim.received().len(), 1);
    assert_eq!(before - house.available().await, 2_000_000, "refusals are free");
}

/// That there is nothing costs nothing and is not stored: the same key asks again, and finds what
/// is there by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_found_nothing_asks_again() {
    let house = house().await;
    let before = house.available().await;
    let call = async || {
        let params = json!({ "name": "social-bilibili-user", "arguments": { "uid": "7" } });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let post = house.http.post(house.url("/mcp")).bearer_auth(&house.key).header("idempotency-key", "k");
        post.json(&body).send().await.expect("a reply").json::<Value>().await.expect("JSON")
    };
    house.sim.social_order("", "empty");
    for _ in 0..2 {
        let answer = call().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("social_data_no_result"), "{answer}");
        house.quiet().await;
    }
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_request_is_handled() {
    let house = house().await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let reply = house.http.post(house.url("/mcp")).bearer_auth(&house.key).json(&note).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), reply.bytes().await.expect("read").len()), (202, 0));
    assert_eq!(house.get("/mcp").send().await.expect("a reply").status(), 405, "no stream of its own");
    assert_eq!(say(&house, "/mcp", "resources/list", json!({})).await["error"]["code"], -32601);
    let broken =
        house.http.post(house.url("/mcp")).bearer_auth(&house.key).header("content-type", "application/json").body("{");
    assert_eq!(error_of(broken.send().await.expect("a reply")).await.0, 400);
}
