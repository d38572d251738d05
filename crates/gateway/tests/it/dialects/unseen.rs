//! What the gateway cannot see of a request is held for at the model's context, or refused by its
//! name: a quote is a bound, and what an account without money can cost the operator is nothing.

use super::client::Client;
use crate::house::{House, MODEL, Plan, call_id, chat, error_of};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::Pot;
use tollgate_wire::Dialect;

const CATALOG: &str = r#"
[model."gemini-listed"]
context_window = 100000
max_output_tokens = 1000
input_modalities = ["text", "image"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."gemini-no-window"]
max_output_tokens = 1000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."measured"]
context_window = 100000
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
chat = { unseen_tokens = 7_000, image_tokens = 300 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

async fn house() -> House {
    let catalog = Box::leak(format!("{}\n{CATALOG}", super::CATALOG).into_boxed_str());
    House::with(Plan { catalog, ..Plan::default() }).await
}

/// A document that only its provider can read, and its name.
fn document(client: Client) -> (Value, &'static str) {
    let link = "https://files.example/report.pdf";
    match client.0 {
        Dialect::Chat => (json!({"type": "file", "file": {"file_id": "file-1"}}), "messages[0].content[1].file"),
        Dialect::Anthropic => {
            (json!({"type": "document", "source": {"type": "url", "url": link}}), "messages[0].content[1].source")
        }
        Dialect::Responses => (json!({"type": "input_file", "file_url": link}), "input[0].content[1].file_url"),
        Dialect::Gemini => {
            (json!({"fileData": {"mimeType": "application/pdf", "fileUri": link}}), "contents[0].parts[1].fileData")
        }
    }
}

/// A request with a part beside its text.
fn beside(client: Client, model: &str, text: &str, part: Value) -> Value {
    let mut body = client.body(model, text, false);
    match client.0 {
        Dialect::Gemini => body["contents"][0]["parts"].as_array_mut().expect("parts").push(part),
        Dialect::Responses => {
            body["input"] = json!([{"role": "user", "content": [{"type": "input_text", "text": text}, part]}]);
        }
        _ => body["messages"][0]["content"] = json!([{"type": "text", "text": text}, part]),
    }
    body
}

fn quote(house: &House, client: Client, model: &str, body: &Value) -> RequestBuilder {
    let path = client.path(model, false);
    let path = path.split('?').next().expect("a path");
    house.http.post(house.url(&format!("/v1/quote?endpoint={path}"))).bearer_auth(&house.key).json(body)
}

async fn quoted_input(house: &House, client: Client, model: &str, body: &Value) -> u64 {
    let reply = quote(house, client, model, body).send().await.expect("a reply");
    let status = reply.status();
    let quoted: Value = reply.json().await.expect("JSON");
    assert_eq!((status.as_u16(), &quoted["kind"]), (200, &json!("upper_bound")), "{client:?}: {quoted}");
    assert_eq!(quoted["lines"][0]["face"], "input", "{quoted}");
    quoted["lines"][0]["quantity"].as_u64().expect("a number")
}

/// The model whose provider speaks the client's own dialect.
fn own(client: Client) -> &'static str {
    match client.0 {
        Dialect::Chat => "gemini-on-openai",
        Dialect::Anthropic => "gemini-on-anthropic",
        Dialect::Responses => "gemini-on-openai-response",
        Dialect::Gemini => "gemini-on-gemini",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_not_seen_is_quoted_at_the_context_in_every_dialect() {
    let house = house().await;
    for client in Client::all() {
        let plain = quoted_input(&house, client, own(client), &client.body(own(client), "read this", false)).await;
        assert!(plain < 100, "{client:?}: {plain}");
        let body = beside(client, own(client), "read this", document(client).0);
        assert_eq!(quoted_input(&house, client, own(client), &body).await, 100_000, "{client:?}");
    }
    let unchanged = |client: Client, name: &str, value: Value| {
        let mut body = client.body(own(client), "go on", false);
        body[name] = value;
        (client, body)
    };
    for (client, body) in [
        unchanged(Client(Dialect::Chat), "thread", json!({"id": "thread-1"})),
        unchanged(Client(Dialect::Anthropic), "container", json!("container-1")),
        unchanged(Client(Dialect::Responses), "prompt", json!({"id": "pmpt_1"})),
        unchanged(Client(Dialect::Gemini), "cachedContent", json!("cachedContents/1")),
    ] {
        assert_eq!(quoted_input(&house, client, own(client), &body).await, 100_000, "{client:?}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_says_how_much_is_read_of_a_picture_and_of_what_is_not_seen() {
    let house = house().await;
    let client = Client(Dialect::Chat);
    let body = beside(client, "measured", "read this", document(client).0);
    assert_eq!(quoted_input(&house, client, "measured", &body).await, 7_000);
    let picture = json!({"type": "image_url", "image_url": {"url": "https://files.example/a.png", "detail": "low"}});
    let body = beside(client, "measured", "look", picture.clone());
    let input = quoted_input(&house, client, "measured", &body).await;
    assert!((300..400).contains(&input), "{input}");
    let body = beside(client, own(client), "look", picture);
    let input = quoted_input(&house, client, own(client), &body).await;
    assert!((5_000..5_100).contains(&input), "{input}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modality_that_is_not_listed_is_refused_by_name_and_free() {
    let house = house().await;
    for client in Client::all() {
        let (part, field) = document(client);
        let body = beside(client, "gemini-listed", "read this", part);
        let refusal = quote(&house, client, "gemini-listed", &body).send().await.expect("a reply");
        let (status, error) = error_of(refusal).await;
        // What cannot be translated for its provider is refused for that reason, by the same name
        // or a part of it.
        assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_value")), "{client:?}: {error}");
        if client.0 == Dialect::Chat {
            assert_eq!(error["param"], field, "{error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains("file")), "{error}");
        }
        let reply = client.post(&house, &client.path("gemini-listed", false), &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 400, "{client:?}");
    }
    let video = json!({"type": "video_url", "video_url": {"url": "https://files.example/v.mp4"}});
    let chat = Client(Dialect::Chat);
    let body = beside(chat, "gemini-listed", "watch", video);
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("messages[0].content[1].video_url")), "{error}");
    let picture = json!({"type": "image_url", "image_url": {"url": "https://files.example/a.png"}});
    let body = beside(chat, "gemini-listed", "look", picture);
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200, "what is listed is taken");
    house.quiet().await;
    assert_eq!(house.sim.received().len(), 1, "nothing else was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_bounds_is_refused_by_name() {
    let house = house().await;
    let client = Client(Dialect::Chat);
    let (part, field) = document(client);
    let body = beside(client, "gemini-no-window", "read this", part);
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_value")), "{error}");
    assert_eq!(error["param"], field);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("context_window")), "{error}");
    assert!(house.sim.received().is_empty());
}

/// 0.01 USD of trial credit, 40 calls at once, each of which the provider would report 90,000
/// tokens of.
#[tokio::test(flavor = "multi_thread")]
async fn forty_calls_with_a_video_link_cost_the_operator_nothing() {
    let house = House::with(Plan { catalog: super::CATALOG, usd: "0", ..Plan::default() }).await;
    house.credit("trial", Pot::Trial, "0.01".parse::<Money>().expect("money")).await;
    let body = |number: usize| {
        let text = format!("[[sim:prompt=90000 tokens=2]] watch {number}");
        let link = json!({"type": "video_url", "video_url": {"url": "https://files.example/film.mp4"}});
        beside(Client(Dialect::Chat), MODEL, &text, link)
    };
    let calls = (0..40).map(|number| house.post(&body(number)).send());
    for reply in futures_util::future::join_all(calls).await {
        let (status, error) = error_of(reply.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")), "{error}");
    }
    house.quiet().await;
    assert!(house.sim.received().is_empty(), "nothing was sent");
    assert_eq!(house.available().await, 10_000_000);
    // With money for one, one is served and charged in full.
    house.credit("more", Pot::Trial, "0.12".parse::<Money>().expect("money")).await;
    let calls = (0..40).map(|number| house.post(&body(number)).send());
    let mut served = Vec::new();
    for reply in futures_util::future::join_all(calls).await {
        let reply = reply.expect("a reply");
        match reply.status().as_u16() {
            200 => served.push(call_id(&reply)),
            status => assert_eq!(status, 402),
        }
    }
    assert!(!served.is_empty(), "somebody is served");
    for call in served {
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.write_off.nano()), (90_000 * 1_000 + 2 * 2_000, 0), "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_prompt_beside_what_is_not_seen_is_still_held_for() {
    let house = house().await;
    let client = Client(Dialect::Chat);
    let mut body = chat(&"word ".repeat(120_000));
    body["model"] = json!("gemini-on-openai");
    let alone = quoted_input(&house, client, "gemini-on-openai", &body).await;
    assert!(alone > 100_000, "{alone}");
    body["thread"] = json!("thread-1");
    assert_eq!(quoted_input(&house, client, "gemini-on-openai", &body).await, alone);
}
