//! Reading and erasing what was stored, counting and compacting.

use super::{MODELS, create, get, house, id, next, refused, send, times};
use crate::dialects::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id, error_of};
use reqwest::Method;
use serde_json::{Value, json};
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_read_and_erased() {
    let house = house().await;
    let made = create(&house, json!({ "model": MODELS[0], "input": "hello", "metadata": { "a": "b" } })).await;
    let path = format!("/v1/responses/{}", id(&made));
    assert_eq!(get(&house, &path).await, made);
    let refusal = refused(&house, Method::GET, &format!("{path}?stream=true"), None).await;
    assert_eq!((refusal.0, refusal.2.as_str()), (400, "stream"));
    let refusal = refused(&house, Method::POST, &format!("{path}/cancel"), None).await;
    assert_eq!((refusal.0, refusal.1.as_str()), (400, "invalid_request"));
    let gone: Value = send(&house, Method::DELETE, &path, None).await.json().await.expect("JSON");
    assert_eq!(gone, json!({ "id": id(&made), "object": "response", "deleted": true }));
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/cancel")),
        (Method::GET, format!("{path}/input_items")),
    ] {
        assert_eq!(refused(&house, method, &path, None).await.0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_items_are_paged() {
    let house = house().await;
    let input = json!([
        { "role": "user", "content": "one" },
        { "type": "message", "id": "msg_own", "role": "assistant", "content": [{ "type": "output_text", "text": "two" }] },
        { "role": "user", "content": "three" },
    ]);
    let made = create(&house, json!({ "model": MODELS[0], "input": input })).await;
    let path = format!("/v1/responses/{}/input_items", id(&made));
    let all = get(&house, &format!("{path}?order=asc")).await;
    let ids: Vec<_> = all["data"].as_array().expect("a list").iter().map(|item| id(item).to_owned()).collect();
    assert_eq!((ids.len(), ids[1].as_str(), &all["has_more"]), (3, "msg_own", &json!(false)));
    assert_eq!(all["data"][0]["content"], json!([{ "type": "input_text", "text": "one" }]));
    assert_eq!((&all["first_id"], &all["last_id"]), (&json!(ids[0]), &json!(ids[2])));
    let page = get(&house, &format!("{path}?limit=2")).await;
    assert_eq!((&page["data"][0]["id"], &page["has_more"]), (&json!(ids[2]), &json!(true)), "newest first");
    let rest = get(&house, &format!("{path}?limit=2&after={}", page["last_id"].as_str().expect("an id"))).await;
    assert_eq!((&rest["data"][0]["id"], &rest["has_more"]), (&json!(ids[0]), &json!(false)));
    for (query, param) in [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order")] {
        assert_eq!(refused(&house, Method::GET, &format!("{path}?{query}"), None).await.2, param);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_counted_with_what_it_continues() {
    let house = house().await;
    let count = async |body: Value| {
        let reply = send(&house, Method::POST, "/v1/responses/input_tokens", Some(&body)).await;
        let listed: Value = reply.json().await.expect("JSON");
        assert_eq!(listed["object"], "response.input_tokens", "{listed}");
        listed["input_tokens"].as_u64().expect("a number")
    };
    let alone = count(json!({ "model": MODELS[0], "input": "pears" })).await;
    let first = create(&house, json!({ "model": MODELS[0], "input": "apples ".repeat(50) })).await;
    let whole = count(next(&first, MODELS[0], "pears")).await;
    assert!(whole >= alone + 50, "{alone} {whole}");
    assert_eq!(house.sim.received().len(), 1, "counting sends nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_pressed_into_one_item() {
    let house = house().await;
    for model in MODELS {
        let first = create(&house, json!({ "model": model, "input": "apples" })).await;
        let body = json!({ "model": model, "previous_response_id": id(&first), "input": "more [[sim:tokens=4]]" });
        let reply = send(&house, Method::POST, "/v1/responses/compact", Some(&body)).await;
        assert!(reply.headers().contains_key("x-tollgate-charge-usd"), "{model}: a paid call");
        let pressed: Value = reply.json().await.expect("JSON");
        assert_eq!(
            (&pressed["object"], &pressed["output"][0]["type"]),
            (&json!("response.compaction"), &json!("compaction"))
        );
        assert!(pressed["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{model}: {pressed}");
        assert_eq!((times(&house, "apples"), times(&house, "Write a summary")), (1, 1));
        let mut input = pressed["output"].as_array().expect("items").clone();
        input.push(json!({ "role": "user", "content": "go on" }));
        let second = create(&house, json!({ "model": model, "input": input })).await;
        assert_eq!((times(&house, "so far, in short"), times(&house, "apples")), (1, 0), "{model}");
        create(&house, next(&second, model, "and on")).await;
        assert_eq!(times(&house, "so far, in short"), 1, "{model}: it is stored as the item it is");
    }
    let body = json!({ "model": MODELS[0], "input": "x" });
    let once = |path: &str| {
        house.http.post(house.url(path)).bearer_auth(&house.key).header("idempotency-key", "k").json(&body)
    };
    let first: Value = once("/v1/responses/compact").send().await.expect("a reply").json().await.expect("JSON");
    house.quiet().await;
    let again: Value = once("/v1/responses/compact").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((&again["object"], &again), (&json!("response.compaction"), &first), "paid once, and the same again");
    assert_eq!(once("/v1/responses").send().await.expect("a reply").status(), 409, "another path is another request");
    let refusal = refused(&house, Method::POST, "/v1/responses/compact", Some(&json!({ "input": "x" }))).await;
    assert_eq!((refusal.0, refusal.2.as_str()), (400, "model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_a_text_whatever_the_request_asks_for() {
    let house = house().await;
    for model in MODELS {
        let tools = json!([{ "type": "function", "name": "look", "strict": false, "parameters": { "type": "object", "properties": {} } }]);
        let input = json!([{ "role": "user", "content": "apples" },
            { "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "red" }]);
        let format = json!({ "format": { "type": "json_schema", "name": "f", "strict": true, "schema": {
            "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false } } });
        for input in [input, json!("pears")] {
            let body =
                json!({ "model": model, "input": input, "tools": tools, "tool_choice": "required", "text": format });
            let reply = send(&house, Method::POST, "/v1/responses/compact", Some(&body)).await;
            let status = reply.status();
            let pressed: Value = reply.json().await.expect("JSON");
            assert_eq!(
                (status.as_u16(), &pressed["output"][0]["type"]),
                (200, &json!("compaction")),
                "{model}: {pressed}"
            );
            assert_eq!(times(&house, "json_schema"), 0, "{model}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_is_none_costs_nothing() {
    let call = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [{ "index": 0,
        "message": { "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "look", "arguments": "{}" } }] },
        "finish_reason": "tool_calls" }], "usage": { "prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80 } });
    // What was cut off would stand for everything that was said.
    let mut half = call.clone();
    half["choices"][0] =
        json!({ "index": 0, "message": { "role": "assistant", "content": "First, the" }, "finish_reason": "length" });
    let script = Scripted::start(vec![Written::json(&call), Written::json(&half)]).await;
    let catalog = r#"
[model."short"]
context_window = 100000
max_output_tokens = 5000
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "up" }]
"#;
    let house = House::with(Plan { catalog, config: script.config("openai"), ..Plan::default() }).await;
    for key in ["a", "b"] {
        let body = json!({ "model": "short", "input": "apples" });
        let ask =
            house.http.post(house.url("/v1/responses/compact")).bearer_auth(&house.key).header("idempotency-key", key);
        let reply = ask.json(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (502, Some("upstream_invalid_reply")), "{error}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0), "{row:?}");
        house.quiet().await;
        assert_eq!(house.available().await, 10_000_000_000, "nothing was charged");
    }
}

/// `input` may be left out where a request names what it goes on from.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_continued_may_be_all_that_is_said() {
    let house = house().await;
    for model in MODELS {
        let first = create(&house, json!({ "model": model, "input": "apples [[sim:tokens=4]]" })).await;
        let alone = json!({ "model": model, "previous_response_id": id(&first) });
        let reply = send(&house, Method::POST, "/v1/responses/input_tokens", Some(&alone)).await;
        assert_eq!(reply.status(), 200, "{model}");
        let pressed = send(&house, Method::POST, "/v1/responses/compact", Some(&alone)).await;
        assert_eq!((pressed.status().as_u16(), times(&house, "apples")), (200, 1), "{model}");
        let item = json!({ "type": "message", "role": "user", "content": "pears [[sim:tokens=4]]" });
        let said = json!({ "items": [item] });
        let made: Value =
            send(&house, Method::POST, "/v1/conversations", Some(&said)).await.json().await.expect("JSON");
        let answer = create(&house, json!({ "model": model, "conversation": made["id"] })).await;
        assert_eq!((&answer["status"], times(&house, "pears")), (&json!("completed"), 1), "{model}");
    }
    for body in [json!({ "model": MODELS[0] }), json!({ "model": MODELS[0], "previous_response_id": null })] {
        let refusal = refused(&house, Method::POST, "/v1/responses", Some(&body)).await;
        assert_eq!((refusal.0, refusal.2.as_str()), (400, "input"), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_counts_what_is_continued() {
    let house = house().await;
    let model = MODELS[0];
    let first = create(&house, json!({ "model": model, "input": "apples ".repeat(2_000) })).await;
    for endpoint in ["/v1/responses", "/v1/responses/compact"] {
        let body = next(&first, model, "pears");
        let quoted = send(&house, Method::POST, &format!("/v1/quote?endpoint={endpoint}"), Some(&body)).await;
        let quoted: Value = quoted.json().await.expect("JSON");
        let reply = send(&house, Method::POST, endpoint, Some(&body)).await;
        assert_eq!(reply.status(), 200, "{endpoint}");
        let row = house.row(call_id(&reply)).await;
        assert_eq!(quoted["hold_nano_usd"], row.hold.nano(), "{endpoint}: {quoted}");
        assert!(quoted["hold_nano_usd"].as_i64() >= quoted["total_nano_usd"].as_i64(), "{endpoint}: {quoted}");
        let unknown = json!({ "model": model, "input": "x", "previous_response_id": "resp_nobody" });
        let refusal = refused(&house, Method::POST, &format!("/v1/quote?endpoint={endpoint}"), Some(&unknown)).await;
        assert_eq!(refusal.1, "previous_response_not_found", "{endpoint}");
    }
}
