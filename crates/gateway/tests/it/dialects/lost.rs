//! What of an answer its client has no form for is reported: in the header where the answer is
//! whole, in the usage row always. And an answer that fails before its client saw anything of it is
//! still well-formed.

use super::client::Client;
use super::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id};
use serde_json::{Value, json};
use tollgate_store::Ending;
use tollgate_wire::Dialect;

/// A model whose provider is the script.
const SCRIPTED: &str = r#"
[model."gemini-scripted"]
context_window = 100000
max_output_tokens = 5000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 0 }
route = [{ provider = "script", upstream_model = "up" }]
"#;

async fn house(script: &Scripted, kind: &str, usd: &'static str) -> House {
    House::with(Plan { catalog: SCRIPTED, config: script.config(kind), usd, ..Plan::default() }).await
}

fn searched() -> Value {
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [
        { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "tolls" } },
        { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
        { "type": "text", "text": "A toll." }],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": { "input_tokens": 5, "output_tokens": 3 } })
}

fn searched_events() -> String {
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 5, "output_tokens": 1 } });
    let block =
        |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let all = [
        json!({ "type": "message_start", "message": message }),
        block(0, json!({ "type": "text", "text": "" })),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "A toll." } }),
        stop(0),
        block(1, json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {} })),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{}" } }),
        stop(1),
        block(2, json!({ "type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {} })),
        stop(2),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 3 } }),
        json!({ "type": "message_stop" }),
    ];
    all.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_a_providers_own_tools_are_reported() {
    let clients: Vec<Client> = Client::all().into_iter().filter(|client| client.0 != Dialect::Anthropic).collect();
    let both = |_: &Client| [Written::json(searched()), Written::events(searched_events())];
    let script = Scripted::start(clients.iter().flat_map(both).collect()).await;
    let house = house(&script, "anthropic", "10").await;
    for client in clients {
        let reply = client.ask(&house, "gemini-scripted", "search", false).await;
        // Chat has no form for a search, the others do.
        let dropped = match client.0 {
            Dialect::Chat => "answer.web_search,answer.web_search_tool_result",
            _ => "answer.web_search_tool_result",
        };
        assert_eq!(reply.headers()["x-tollgate-dropped"], dropped, "{client:?}");
        let call = call_id(&reply);
        assert_eq!(client.text(&reply.json().await.expect("JSON")), "A toll.");
        assert_eq!(house.row(call).await.dropped.as_deref(), Some(dropped), "{client:?}");

        let reply = client.ask(&house, "gemini-scripted", "run", true).await;
        let call = call_id(&reply);
        let text = reply.text().await.expect("text");
        assert!(text.contains("A toll.") && !text.contains("server_tool_use"), "{text}");
        let row = house.row(call).await;
        let dropped = "answer.server_tool_use,answer.code_execution_tool_result";
        assert_eq!((row.ending, row.dropped.as_deref()), (Ending::Answered, Some(dropped)), "{client:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn within_its_dialect_nothing_is_lost_and_nothing_reported() {
    let script = Scripted::start(vec![Written::json(searched()), Written::events(searched_events())]).await;
    let house = house(&script, "anthropic", "10").await;
    let client = Client(Dialect::Anthropic);
    let reply = client.ask(&house, "gemini-scripted", "search", false).await;
    assert!(!reply.headers().contains_key("x-tollgate-dropped"));
    let whole: Value = reply.json().await.expect("JSON");
    assert_eq!(whole["content"], searched()["content"]);
    let reply = client.ask(&house, "gemini-scripted", "run", true).await;
    let call = call_id(&reply);
    let text = reply.text().await.expect("text");
    assert_eq!(text, searched_events().replace("\"up\"", "\"gemini-scripted\""));
    assert_eq!(house.row(call).await.dropped, None);
}

/// Anthropic's tool runner goes by `details.error_code`.
#[tokio::test(flavor = "multi_thread")]
async fn details_of_a_refusal_reach_clients_of_the_providers_dialect() {
    let said = json!({ "type": "error", "request_id": "req_1", "error": { "type": "invalid_request_error", "message": "No threads.",
        "details": { "error_code": "thread_unsupported_request", "host": "https://inside.example/", "more": { "deep": 1 } } } });
    for (kind, dialect) in [("anthropic", Some(Dialect::Anthropic)), ("openai", None)] {
        let script = Scripted::start(Client::all().map(|_| Written::refusal(400, &said)).into()).await;
        let house = house(&script, kind, "10").await;
        for client in Client::all() {
            let reply = client.ask(&house, "gemini-scripted", "q", false).await;
            assert_eq!(reply.status(), 400, "{kind} to {client:?}");
            let error = reply.json::<Value>().await.expect("JSON")["error"].clone();
            assert!(error["message"].as_str().is_some_and(|text| text.contains("No threads.")), "{error}");
            if dialect == Some(client.0) {
                let details = json!({ "error_code": "thread_unsupported_request", "host": "[link]" });
                assert_eq!(error["details"], details, "{kind} to {client:?}");
            } else {
                assert!(!error.to_string().contains("thread_unsupported"), "{kind} to {client:?}: {error}");
            }
        }
    }
}

/// Gemini's programs go by the fields that are named wrong; what else it says is about the
/// operator's project.
#[tokio::test(flavor = "multi_thread")]
async fn the_fields_that_gemini_finds_wrong_reach_its_clients() {
    let violations =
        json!([{ "field": "contents[0].parts", "description": "Must not be empty; see https://inside.example/." }]);
    let said = json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT", "message": "Bad parts.", "details": [
        { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "BAD", "metadata": { "consumer": "projects/4711" } },
        { "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations },
    ] } });
    let script = Scripted::start(Client::all().map(|_| Written::refusal(400, &said)).into()).await;
    let house = house(&script, "gemini", "10").await;
    for client in Client::all() {
        let reply = client.ask(&house, "gemini-scripted", "q", false).await;
        assert_eq!(reply.status(), 400, "{client:?}");
        let error = reply.json::<Value>().await.expect("JSON")["error"].clone();
        assert!(!error.to_string().contains("4711") && !error.to_string().contains("inside.example"), "{error}");
        if client.0 == Dialect::Gemini {
            assert_eq!(error["details"][1]["fieldViolations"][0]["field"], "contents[0].parts", "{error}");
            assert_eq!(
                error["details"][1]["fieldViolations"][0]["description"], "Must not be empty; see [link].",
                "{error}"
            );
        } else {
            assert!(!error.to_string().contains("contents[0].parts"), "{client:?}: {error}");
        }
    }
}

/// Case 100: the connection breaks after the provider has said that all was said.
#[tokio::test(flavor = "multi_thread")]
async fn a_break_after_the_end_is_none() {
    let chat = |finish: Value, content: &str| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up",
            "choices": [{ "index": 0, "delta": { "content": content }, "finish_reason": finish }] })
    };
    let said =
        format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", chat(Value::Null, "A toll."), chat(json!("stop"), ""));
    for (kind, events) in [("anthropic", searched_events()), ("openai", said)] {
        let script = Scripted::start(Client::all().map(|_| Written::events(events.clone()).cut()).into()).await;
        let house = house(&script, kind, "10").await;
        for client in Client::all() {
            let reply = client.ask(&house, "gemini-scripted", "run", true).await;
            let call = call_id(&reply);
            let text = reply.text().await.expect("a whole stream");
            assert!(client.is_whole(&text, &crate::house::events(&text)), "{kind} to {client:?}: {text}");
            assert_eq!(house.row(call).await.ending, Ending::Answered, "{kind} to {client:?}");
        }
    }
}

/// One of two choices ends, the other one is cut in the middle of a sentence: the clean end of the
/// connection is no end of the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_is_cut_is_reported() {
    let chat = |index: u64, content: &str, finish: Value| {
        let event = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up",
            "choices": [{ "index": index, "delta": { "content": content }, "finish_reason": finish }] });
        format!("data: {event}\n\n")
    };
    let said = [chat(0, "A toll.", Value::Null), chat(1, "Half a", Value::Null), chat(0, "", json!("stop"))].concat();
    let clients = [Client(Dialect::Chat), Client(Dialect::Gemini)];
    let script = Scripted::start(clients.iter().map(|_| Written::events(said.clone())).collect()).await;
    let house = house(&script, "openai", "10").await;
    for client in clients {
        let mut body = client.body("gemini-scripted", "say it twice", true);
        match client.0 {
            Dialect::Chat => body["n"] = json!(2),
            _ => body["generationConfig"]["candidateCount"] = json!(2),
        }
        let path = client.path("gemini-scripted", true);
        let reply = client.post(&house, &path, &body).send().await.expect("a reply");
        let call = call_id(&reply);
        let text = reply.text().await.expect("text");
        let events = crate::house::events(&text);
        assert!(client.error_in(&events).is_some() && !client.is_whole(&text, &events), "{client:?}: {text}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.estimated), (Ending::UpstreamFault, true), "{client:?}");
        assert!(row.charge.nano() > 0, "what came is paid for");
    }
}

/// The first piece costs more than the balance covers, so that nothing of it may go out: what goes
/// out instead is a whole array of one error, from a provider of the same dialect and of another.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_whose_first_piece_is_withheld_is_still_an_array() {
    let words = "every coin opens the gate ".repeat(400);
    let gemini = json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": [{ "text": words }] } }], "modelVersion": "up" });
    let chat = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up",
        "choices": [{ "index": 0, "delta": { "role": "assistant", "content": words }, "finish_reason": null }] });
    for (kind, event) in [("gemini", gemini), ("openai", chat)] {
        let script = Scripted::start(vec![Written::events(format!("data: {event}\n\n"))]).await;
        let house = house(&script, kind, "0.0001").await;
        let client = Client(Dialect::Gemini);
        let mut body = client.body("", "go", true);
        body["generationConfig"] = json!({ "maxOutputTokens": 2 });
        let path = "/v1beta/models/gemini-scripted:streamGenerateContent";
        let reply = client.post(&house, path, &body).send().await.expect("a reply");
        let call = call_id(&reply);
        assert_eq!(reply.status(), 200);
        let text = reply.text().await.expect("text");
        let list: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{kind}: {error}: {text}"));
        assert_eq!((list.len(), &list[0]["error"]["code"]), (1, &json!(502)), "{kind}: {text}");
        assert_eq!(house.row(call).await.reason, "limit_ignored", "{kind}");
    }
}

/// A tool that runs at the provider makes it read the conversation again and again, and what it
/// reports is the sum: more than the window, and true. Without such a tool it is nonsense.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_providers_own_tools_read_is_believed() {
    let mut answer = searched();
    answer["usage"]["input_tokens"] = json!(250_000);
    let script = Scripted::start(vec![Written::json(&answer), Written::json(&answer)]).await;
    let house = house(&script, "anthropic", "10").await;
    let client = Client(Dialect::Anthropic);
    for searches in [true, false] {
        let mut body = client.body("gemini-scripted", "tolls", false);
        if searches {
            body["tools"] = json!([{ "type": "web_search_20250305", "name": "web_search" }]);
        }
        let reply = client.post(&house, "/v1/messages", &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        let row = house.row(call_id(&reply)).await;
        assert_eq!(row.estimated, !searches, "{row:?}");
        assert_eq!(row.charge.nano() == 250_000 * 1_000 + 3 * 2_000, searches, "{row:?}");
    }
}
