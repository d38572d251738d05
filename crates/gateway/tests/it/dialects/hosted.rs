//! Tools that run at the provider: each use has a price, one without a price is refused by its
//! name, and so many uses as are held for are what the provider is allowed.

use super::client::Client;
use super::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use tollgate_wire::Dialect;

/// A search costs 0.01 USD, code nothing; a reading of the whole context is 1,000 tokens at 1,000
/// nano-USD.
const CATALOG: &str = r#"
[model."gemini-scripted"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000, "tool:code_execution" = 0 }
route = [{ provider = "script", upstream_model = "up" }]
"#;

/// At most two searches, unless the request says otherwise.
const SEARCHING: &str = r#"
[model."searching"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["anthropic", "openai-response"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000 }
chat = { tool_uses = 2 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]

[model."searching-too"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000 }
chat = { tool_uses = 2 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]
"#;

/// A request with a search, one limited to three of them, and an answer that searched twice and
/// read 1,500 tokens for it.
fn searching(client: Client) -> (Value, Value) {
    let mut body = client.body("gemini-scripted", "what is new?", false);
    let (name, tool) = match client.0 {
        Dialect::Chat => ("web_search_options", json!({})),
        Dialect::Anthropic => ("tools", json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}])),
        Dialect::Responses => ("tools", json!([{"type": "web_search"}])),
        Dialect::Gemini => ("tools", json!([{"googleSearch": {}}])),
    };
    body[name] = tool;
    let searched = |id: &str| json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "news"}});
    let answer = match client.0 {
        Dialect::Chat => json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Much."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1_500, "completion_tokens": 3, "total_tokens": 1_503}}),
        Dialect::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up",
            "content": [{"type": "text", "text": "Much."}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1_500, "output_tokens": 3, "server_tool_use": {"web_search_requests": 2}}}),
        Dialect::Responses => {
            json!({"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "up",
            "output": [searched("w1"), searched("w2"), {"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Much.", "annotations": []}]}],
            "usage": {"input_tokens": 1_500, "output_tokens": 3, "total_tokens": 1_503}})
        }
        Dialect::Gemini => {
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Much."}]},
            "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["news", "weather"]}}],
            "usageMetadata": {"promptTokenCount": 1_500, "candidatesTokenCount": 3, "totalTokenCount": 1_503}, "modelVersion": "up"})
        }
    };
    (body, answer)
}

fn kind(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "openai",
        Dialect::Anthropic => "anthropic",
        Dialect::Responses => "openai-responses",
        Dialect::Gemini => "gemini",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_use_of_a_search_is_held_for_charged_and_shown() {
    for client in Client::all() {
        let (body, answer) = searching(client);
        let script = Scripted::start(vec![Written::json(answer)]).await;
        let config = script.config(kind(client.0));
        let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
        let path = client.path("gemini-scripted", false);
        let reply = client.post(&house, &path, &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{client:?}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        let row = house.row(call).await;
        // Chat completions show no uses: one call is one.
        let (held, used) = match client.0 {
            Dialect::Chat => (4, 1),
            Dialect::Anthropic => (3, 2),
            _ => (4, 2),
        };
        assert_eq!(row.hold.nano(), (held + 1) * 1_000_000 + 100 * 2_000 + held * 10_000_000, "{client:?}");
        assert_eq!(row.charge.nano(), 1_500 * 1_000 + 3 * 2_000 + used * 10_000_000, "{client:?}: {row:?}");
        let quoted: Value =
            house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply").json().await.expect("JSON");
        assert_eq!(quoted["usage"]["tools"], json!({"tool:web_search": used}), "{quoted}");
        let lines = quoted["calculation"]["lines"].as_array().cloned().unwrap_or_default();
        let line = lines.iter().find(|line| line["face"] == "tool:web_search").expect("a line");
        assert_eq!(
            (&line["quantity"], &line["micro_usd"], &line["unit"], &line["per"]),
            (&json!(used), &json!(10_000), &json!("use"), &json!("use")),
            "{line}"
        );
        let receipt = house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply");
        assert!(receipt.text().await.expect("a receipt").contains("tool:web_search"), "{client:?}");
    }
}

const DRAWING: &str = r#"
[model."drawing"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000, "tool:image_generation" = 40_000 }
route = [{ provider = "script", upstream_model = "up" }]
"#;

/// A picture of the tool is an event of megabytes, and the last event says it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_picture_of_the_tool_passes_in_a_stream() {
    let picture = "iVBORw0KGgo".repeat(300_000);
    let drawn = json!({"type": "image_generation_call", "id": "i1", "status": "completed", "result": picture});
    let response = |status: &str, output: Value| {
        json!({"id": "r", "object": "response", "created_at": 1, "status": status, "model": "up", "output": output,
            "usage": {"input_tokens": 50, "output_tokens": 3, "total_tokens": 53}})
    };
    let events = [
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": drawn}),
        json!({"type": "response.completed", "sequence_number": 2, "response": response("completed", json!([drawn]))}),
    ];
    let named = events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    let script = Scripted::start(vec![Written::events(named.concat())]).await;
    let house =
        House::with(Plan { catalog: DRAWING, config: script.config("openai-responses"), ..Plan::default() }).await;
    let client = Client(Dialect::Responses);
    let mut body = client.body("drawing", "a cat", true);
    body["tools"] = json!([{"type": "image_generation"}]);
    let reply = client.post(&house, &client.path("drawing", true), &body).send().await.expect("a reply");
    let call = call_id(&reply);
    let text = reply.text().await.expect("a stream");
    assert_eq!(text.matches(&picture).count(), 2, "{} bytes came", text.len());
    let row = house.row(call).await;
    assert_eq!(row.charge.nano(), 50 * 1_000 + 3 * 2_000 + 40_000_000, "{row:?}");
}

/// MM7: pictures that the tool of Responses made were not billed, or at a fixed price.
#[tokio::test(flavor = "multi_thread")]
async fn each_picture_of_the_tool_has_its_own_face_and_line() {
    let drawn =
        |id: &str| json!({"type": "image_generation_call", "id": id, "status": "completed", "result": "iVBORw0KGgo="});
    let answer = json!({"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "up",
        "output": [drawn("i1"), drawn("i2")], "usage": {"input_tokens": 50, "output_tokens": 3, "total_tokens": 53}});
    let script = Scripted::start(vec![Written::json(answer)]).await;
    let config = script.config("openai-responses");
    let house = House::with(Plan { catalog: DRAWING, config, ..Plan::default() }).await;
    let client = Client(Dialect::Responses);
    let mut body = client.body("drawing", "two cats", false);
    body["tools"] = json!([{"type": "image_generation"}]);
    let reply = client.post(&house, &client.path("drawing", false), &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let call = call_id(&reply);
    let row = house.row(call).await;
    assert_eq!(row.charge.nano(), 50 * 1_000 + 3 * 2_000 + 2 * 40_000_000, "{row:?}");
    let quoted: Value =
        house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(quoted["usage"]["tools"], json!({"tool:image_generation": 2}), "{quoted}");
}

const DRAWING_WELL: &str = r#"
[model."drawing"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000, "tool:image_generation" = 40_000 }
route = [{ provider = "script", upstream_model = "up" }]

[model."drawing-well"]
context_window = 1000
max_output_tokens = 100
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000, "tool:image_generation" = 40_000 }
chat = { one_price = ["image_generation.quality"] }
route = [{ provider = "script", upstream_model = "up" }]
"#;

/// MM7: a picture of the tool has one price, so what its provider charges more for is refused by
/// its name, before anything is held. What the operator sells for that price all the same passes.
#[tokio::test(flavor = "multi_thread")]
async fn options_of_the_tool_that_cost_more_are_refused_by_their_names() {
    let answer = json!({"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "up",
        "output": [], "usage": {"input_tokens": 50, "output_tokens": 3, "total_tokens": 53}});
    // As many answers as requests that may be sent.
    let script = Scripted::start(vec![Written::json(&answer), Written::json(&answer)]).await;
    let config = script.config("openai-responses");
    let house = House::with(Plan { catalog: DRAWING_WELL, config, ..Plan::default() }).await;
    let client = Client(Dialect::Responses);
    let asked = async |model: &str, option: &Value| {
        let mut body = client.body(model, "a cat", false);
        body["tools"] = json!([{"type": "function", "name": "f", "parameters": {}}, {"type": "image_generation"}]);
        body["tools"][1].as_object_mut().expect("a tool").extend(option.as_object().expect("options").clone());
        client.post(&house, &client.path(model, false), &body).send().await.expect("a reply")
    };
    for (option, field) in [
        (json!({"model": "gpt-image-2.5"}), "tools[1].model"),
        (json!({"quality": "high"}), "tools[1].quality"),
        (json!({"quality": "LOW", "size": "1536x1024"}), "tools[1].size"),
        (json!({"input_fidelity": "high"}), "tools[1].input_fidelity"),
        (json!({"partial_images": 3}), "tools[1].partial_images"),
    ] {
        let (status, error) = error_of(asked("drawing", &option).await).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(field)), "{option}: {error}");
    }
    let (status, error) = error_of(asked("drawing-well", &json!({"quality": "high", "size": "4K"})).await).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("tools[1].size")), "{error}");
    let usual = json!({"quality": "auto", "size": "1024x1024", "partial_images": 0, "input_fidelity": null, "background": "opaque"});
    for (model, option) in [("drawing", &usual), ("drawing-well", &json!({"quality": "high"}))] {
        let reply = asked(model, option).await;
        assert_eq!(reply.status(), 200, "{option}: {}", reply.text().await.unwrap_or_default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_a_price_is_refused_by_its_name_and_nothing_is_sent() {
    let house = super::house().await;
    for (client, model, tools, field) in [
        (Client(Dialect::Chat), "gemini-on-openai", json!([{"type": "code_interpreter"}]), "tools[0]"),
        (
            Client(Dialect::Anthropic),
            "gemini-on-anthropic",
            json!([{"type": "web_fetch_20250910", "name": "web_fetch"}]),
            "tools[0]",
        ),
        (Client(Dialect::Responses), "gemini-on-openai-response", json!([{"type": "code_interpreter"}]), "tools[0]"),
        (Client(Dialect::Gemini), "gemini-on-gemini", json!([{"googleMaps": {}}]), "tools[0].googleMaps"),
        (Client(Dialect::Responses), "gemini-on-openai-response", json!([{"type": "brand_new"}]), "tools[0]"),
    ] {
        let mut body = client.body(model, "go", false);
        body["tools"] = tools;
        let path = client.path(model, false);
        let quote = house.http.post(house.url(&format!("/v1/quote?endpoint={path}"))).bearer_auth(&house.key);
        let (status, error) = error_of(quote.json(&body).send().await.expect("a reply")).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(field)), "{client:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("tool:")), "{error}");
        let reply = client.post(&house, &path, &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 400, "{client:?}");
    }
    house.quiet().await;
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_gets_the_number_of_uses_that_are_held_for() {
    let house = House::with(Plan { catalog: SEARCHING, ..Plan::default() }).await;
    let claude = Client(Dialect::Anthropic);
    let mut body = claude.body("searching", "search", false);
    body["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let reply = claude.post(&house, &claude.path("searching", false), &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let row = house.row(call_id(&reply)).await;
    assert_eq!(row.hold.nano(), 3 * 1_000_000 + 100 * 2_000 + 2 * 10_000_000);
    let sent = house.sim.received().last().expect("a call").json();
    assert_eq!(sent["tools"][0]["max_uses"], 2, "{sent}");

    let responses = Client(Dialect::Responses);
    for (model, place) in [("searching-too", "/max_tool_calls"), ("searching", "/tools/0/max_uses")] {
        let mut body = responses.body(model, "search", false);
        body["tools"] = json!([{"type": "web_search"}]);
        let reply = responses.post(&house, &responses.path(model, false), &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        let sent = house.sim.received().last().expect("a call").json();
        assert_eq!(sent.pointer(place), Some(&json!(2)), "{model}: {sent}");
    }
}
