//! A provider that speaks Responses itself: it is asked to store nothing, since what it stored
//! could not be erased here; and what of its answers is ours to say is said by us.

use super::{MODELS, create, get, house, id, last_sent, next, send};
use crate::dialects::scripted::{Scripted, Written};
use crate::house::{House, Plan, events};
use reqwest::Method;
use serde_json::{Value, json};

const MODEL: &str = MODELS[2];

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_stores_nothing() {
    let house = house().await;
    let body = r#"{"model":"does-not-think", "input" : "apples","temperature":0.50}"#;
    let post = |body: &'static str| {
        house
            .http
            .post(house.url("/v1/responses"))
            .bearer_auth(&house.key)
            .header("content-type", "application/json")
            .body(body)
    };
    let made: Value = post(body).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(last_sent(&house), r#"{"store":false,"model":"sim-plain", "input" : "apples","temperature":0.50}"#);
    assert_eq!(made["store"], true, "it is stored, by us");
    assert_eq!(get(&house, &format!("/v1/responses/{}", id(&made))).await, made);
    let unstored = r#"{"store":false,"model":"does-not-think","input":"x"}"#;
    let made: Value = post(unstored).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(last_sent(&house), unstored.replace("does-not-think", "sim-plain"), "every byte but the name");
    assert_eq!(made["store"], false);
    create(&house, json!({ "model": MODEL, "input": "x", "reasoning": { "effort": "low" }, "include": ["message.output_text.logprobs"] })).await;
    let sent: Value = serde_json::from_str(&last_sent(&house)).expect("JSON");
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content", "message.output_text.logprobs"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_63_thoughts_go_back_without_ids() {
    let house = house().await;
    let ask = json!({ "model": MODEL, "input": "weather? [[sim:reasoning tokens=3]]", "max_output_tokens": 900,
                      "reasoning": { "effort": "low", "summary": "auto" } });
    let first = create(&house, ask).await;
    let thought = &first["output"][0];
    assert!(thought["type"] == "reasoning" && thought["id"].is_string(), "{first}");
    create(&house, next(&first, MODEL, "and now?")).await;
    let sent: Value = serde_json::from_str(&last_sent(&house)).expect("JSON");
    let again =
        sent["input"].as_array().expect("items").iter().find(|item| item["type"] == "reasoning").expect("the thought");
    assert_eq!((&again["id"], &again["encrypted_content"]), (&Value::Null, &thought["encrypted_content"]));
    // A client that sends it back itself, without its seal: the provider does not find it, and goes
    // on without.
    let input = json!([{ "role": "user", "content": "weather?" }, { "type": "reasoning", "id": "rs_gone", "summary": [] },
        { "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": "Sun.", "annotations": [] }] },
        { "role": "user", "content": "sure?" }]);
    let reply = send(&house, Method::POST, "/v1/responses", Some(&json!({ "model": MODEL, "input": input }))).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
        (200, &"reasoning".parse().expect("a value"))
    );
}

const SCRIPTED: &str = r#"
[model."short"]
context_window = 100000
max_output_tokens = 5000
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "short" }]
"#;

fn short(text: &str) -> Value {
    json!({ "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "short", "conversation": null,
        "output": [{ "id": "msg_0", "type": "message", "status": "completed", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] }],
        "usage": { "input_tokens": 5, "output_tokens": 3, "total_tokens": 8 } })
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_a_provider_repeats_lose_nothing() {
    let streamed = |text: &str| {
        let created = json!({ "type": "response.created", "sequence_number": 0, "response": { "id": "resp_1", "object": "response", "status": "in_progress", "output": [] } });
        let delta = json!({ "type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_0", "output_index": 0, "content_index": 0, "delta": text });
        let done = json!({ "type": "response.completed", "sequence_number": 2, "response": short(text) });
        Written::events(format!("data: {created}\n\ndata: {delta}\n\ndata: {done}\n\n"))
    };
    let answers = vec![
        Written::json(short("one")),
        Written::json(short("two")),
        streamed("three"),
        Written::json(short("four")),
        Written::json(short("five")),
    ];
    let script = Scripted::start(answers).await;
    let config = script.config("openai-responses");
    let house = House::with(Plan { catalog: SCRIPTED, config, ..Plan::default() }).await;
    let ask = |text: &str| json!({ "model": "short", "input": text });
    let (one, two) = (create(&house, ask("a")).await, create(&house, ask("b")).await);
    let mut body = ask("c");
    body["stream"] = json!(true);
    let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
    let shown = events(&text);
    let three = shown.last().expect("events")["response"].clone();
    assert_eq!(shown[0]["response"]["id"], three["id"], "one id from the first event to the last");
    for (made, said) in [(&one, "one"), (&two, "two"), (&three, "three")] {
        let stored = get(&house, &format!("/v1/responses/{}", id(made))).await;
        assert_eq!((&stored, &stored["output"][0]["content"][0]["text"]), (made, &json!(said)));
    }
    let made: Value =
        send(&house, Method::POST, "/v1/conversations", Some(&json!({}))).await.json().await.expect("JSON");
    for text in ["d", "e"] {
        let mut body = ask(text);
        body["conversation"] = json!(id(&made));
        let refusal = create(&house, body).await;
        assert_eq!(refusal["conversation"], json!({ "id": id(&made) }));
    }
    let listed = get(&house, &format!("/v1/conversations/{}/items?order=asc", id(&made))).await.to_string();
    let places: Vec<_> = ["\"d\"", "four", "\"e\"", "five"].iter().map(|said| listed.find(said)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{listed}");
}
