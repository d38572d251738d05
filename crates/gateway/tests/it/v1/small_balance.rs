//! A call whose caller names no limit, on an account that has little: a short answer instead of a
//! refusal. And what a refusal for want of money says.

use crate::dialects::client::Client;
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat, error_of, events};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};
use tollgate_wire::Dialect;

/// One model per dialect of providers; 1,000 nano-USD a token of output, the prompt costs next to
/// nothing.
const CATALOG: &str = r#"
[model."gemini-openai"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."gemini-old"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1, output = 1_000_000 }
chat = { current_chat = false, stream_hold_tokens = 1000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."gemini-anthropic"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]
[model."gemini-openai-response"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]
[model."gemini-gemini"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
"#;

const LIMIT: &str = "x-tollgate-output-limit";

/// What a provider of each model was sent.
fn limit_in(model: &str, sent: &Value) -> Option<u64> {
    match model {
        "gemini-openai" => &sent["max_completion_tokens"],
        "gemini-old" | "gemini-anthropic" => &sent["max_tokens"],
        "gemini-openai-response" => &sent["max_output_tokens"],
        _ => &sent["generationConfig"]["maxOutputTokens"],
    }
    .as_u64()
}

async fn house(database: &str, nano: i64) -> House {
    let plan = Plan { usd: "0", catalog: CATALOG, database: database.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    if nano > 0 {
        house.credit("all", Pot::Paid, Money::from_nano(nano)).await;
    }
    house
}

fn limit_header(reply: &Response) -> Option<u64> {
    reply.headers().get(LIMIT).map(|value| value.to_str().expect("text").parse().expect("a number"))
}

/// Every client that may leave its limit out (Anthropic's may not), at every provider, whole and
/// streamed.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_balance_buys_a_short_answer() {
    let house = house("sqlite", 0).await;
    for client in [Dialect::Chat, Dialect::Responses, Dialect::Gemini].map(Client) {
        for model in ["gemini-openai", "gemini-old", "gemini-anthropic", "gemini-openai-response", "gemini-gemini"] {
            for stream in [false, true] {
                let name = format!("{client:?} of {model}, streamed: {stream}");
                let before = house.available().await;
                house.credit(&name, Pot::Paid, Money::from_nano(600_000 - before)).await;
                let reply = client.ask(&house, model, "go on [[sim:tokens=3000 chunks=30]]", stream).await;
                assert_eq!(reply.status(), 200, "{name}: {}", reply.text().await.unwrap_or_default());
                let (call, limit) =
                    (call_id(&reply), limit_header(&reply).unwrap_or_else(|| panic!("{name}: no header")));
                let text = reply.text().await.expect("an answer");
                assert!((550..=600).contains(&limit), "{name}: {limit}");
                let sent = house.sim.received().last().expect("a request").json();
                assert_eq!(limit_in(model, &sent), Some(limit), "{name}: {sent}");
                house.quiet().await;
                let row = house.row(call).await;
                assert_eq!((row.hold.nano(), row.counters.output), (600_000, limit), "{name}");
                assert_eq!((row.ending, row.write_off.nano()), (Ending::Answered, 0), "{name}: {text}");
                if stream {
                    // One that reached its limit is incomplete for a client of Responses.
                    let ended = client.is_whole(&text, &events(&text)) || text.contains("event: response.incomplete");
                    assert!(ended, "{name}: it ends as an answer does: {text}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_money_nothing_is_limited_and_a_stream_begins_small() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 1_000_000_000).await;
        for (model, stream, held) in [
            ("gemini-openai", false, 16_384),
            ("gemini-openai", true, 4_096),
            ("gemini-old", false, 16_384),
            ("gemini-old", true, 1_000),
        ] {
            let mut body = chat("[[sim:tokens=20]]");
            (body["model"], body["stream"]) = (json!(model), json!(stream));
            let reply = house.post(&body).send().await.expect("a reply");
            assert_eq!((reply.status().as_u16(), limit_header(&reply)), (200, None));
            let call = call_id(&reply);
            reply.bytes().await.expect("an answer");
            assert_eq!(limit_in(model, &house.sim.received().last().expect("a request").json()), None);
            house.quiet().await;
            assert_eq!(house.row(call).await.hold.nano() / 1_000, held, "{} {model} {stream}", engine.name);
        }
    }
}

/// 256 tokens are the least; what is needed and what there is stands in the refusal, in the shape
/// of each client.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_what_is_needed_and_what_there_is() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 255_000).await;
        for client in Client::all() {
            for stream in [false, true] {
                let reply = client.ask(&house, "gemini-openai", "hello", stream).await;
                assert_eq!(reply.status(), 402, "{client:?}");
                let body: Value = reply.json().await.expect("JSON");
                let (error, message) = (&body["error"], body["error"]["message"].as_str().expect("a message"));
                let number = |name: &str| match client.0 {
                    Dialect::Gemini => {
                        error["details"][0]["metadata"][name].as_str().and_then(|text| text.parse().ok())
                    }
                    _ => error[name].as_i64(),
                };
                let needed: i64 = number("needed_nano_usd").unwrap_or_else(|| panic!("{client:?}: {body}"));
                // Anthropic's clients name their limit: 1,000 tokens here.
                let tokens = if client.0 == Dialect::Anthropic { 1_000 } else { 256 };
                assert_eq!(
                    (needed / 1_000, number("available_nano_usd")),
                    (tokens, Some(255_000)),
                    "{client:?}: {body}"
                );
                assert!(
                    message.contains(&Money::from_nano(needed).to_string()) && message.contains("0.000255 USD"),
                    "{message}"
                );
                assert_eq!(message.contains("`max_tokens`"), client.0 == Dialect::Anthropic, "{message}");
            }
        }
        assert!(house.sim.received().is_empty(), "{}", engine.name);
    }
}

/// Money for one short answer: of many calls at once one takes it all, and the others are refused.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_calls_of_a_small_balance_do_not_share_it_twice() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 500_000).await;
        let mut body = chat("[[sim:tokens=3000]]");
        body["model"] = json!("gemini-openai");
        // Who has the money keeps it until all the others have asked.
        house.sim.shut("/v1/chat/completions");
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let request = house.post(&body);
            set.spawn(async move { request.send().await.expect("a reply").status().as_u16() });
        }
        let mut statuses = Vec::new();
        while let Some(status) = set.join_next().await {
            statuses.push(status.expect("a status"));
            if statuses.len() == 19 {
                house.sim.open();
            }
        }
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{}: {statuses:?}", engine.name);
        assert_eq!(statuses.iter().filter(|status| **status == 402).count(), 19, "{}: {statuses:?}", engine.name);
        assert_eq!(house.sim.received().len(), 1);
        house.quiet().await;
        assert!(house.available().await >= 0);
    }
}

/// The limit is not the caller's: the key knows the request as it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_knows_nothing_of_the_limit() {
    let house = house("sqlite", 500_000).await;
    let mut body = chat("[[sim:tokens=3000]]");
    body["model"] = json!("gemini-openai");
    let post = || house.post(&body).header("idempotency-key", "one").send();
    let first = post().await.expect("a reply");
    let call = call_id(&first);
    assert!(limit_header(&first).is_some());
    let first = first.text().await.expect("text");
    house.top_up("more", "1").await;
    let second = post().await.expect("a reply");
    assert_eq!((second.status().as_u16(), call_id(&second)), (200, call));
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    assert_eq!(second.text().await.expect("text"), first);
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_tells_the_limit_that_the_balance_leaves() {
    let house = house("sqlite", 500_000).await;
    let mut body = chat("[[sim:tokens=3000]]");
    body["model"] = json!("gemini-openai");
    let quoted = || async {
        let request = house.http.post(house.url("/v1/quote?endpoint=/v1/chat/completions")).bearer_auth(&house.key);
        request.json(&body).send().await.expect("a quote").json::<Value>().await.expect("JSON")
    };
    let quote = quoted().await;
    assert_eq!((&quote["kind"], &quote["most_nano_usd"]), (&json!("open"), &Value::Null), "{quote}");
    assert_eq!(quote["would_be_refused"], Value::Null, "{quote}");
    let limit = quote["output_limit"].as_u64().expect("a limit");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(limit_header(&reply), Some(limit));
    reply.bytes().await.expect("an answer");
    house.quiet().await;
    assert!(house.available().await < 200_000);
    let refused = &quoted().await["would_be_refused"];
    assert_eq!(refused["code"], "insufficient_balance");
    house.top_up("enough", "1").await;
    assert_eq!(quoted().await["output_limit"], Value::Null);
}

/// A key's limit leaves what it leaves, like a balance.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_key_leaves_a_short_answer_too() {
    let mut house = house("sqlite", 1_000_000_000).await;
    house.key = house.new_key(|key| key.limits.total = Some(Money::from_nano(400_000))).await;
    let mut body = chat("[[sim:tokens=3000]]");
    body["model"] = json!("gemini-openai");
    let reply = house.post(&body).send().await.expect("a reply");
    let limit = limit_header(&reply).expect("a limit");
    assert!((350..=400).contains(&limit), "{limit}");
    reply.bytes().await.expect("an answer");
    house.quiet().await;
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (402, &json!("key_spend_cap_reached")));
    assert_eq!(error["needed_nano_usd"].as_i64().map(|nano| nano / 1_000), Some(256));
}

/// What is not made of tokens gets no limit of tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a_video_is_refused_with_its_amounts() {
    for engine in Engine::both().await {
        let plan = Plan { usd: "0", videos: true, database: engine.url.clone(), ..Plan::default() };
        let house = House::with(plan).await;
        house.credit("little", Pot::Paid, Money::from_nano(1_500_000)).await;
        for path in ["/v1/videos", "/v1/video/generations"] {
            let request = house.http.post(house.url(path)).bearer_auth(&house.key);
            let reply = request.json(&json!({ "model": "wan2.7-t2v", "prompt": "p" })).send().await.expect("a reply");
            let (status, error) = error_of(reply).await;
            assert_eq!((status, &error["code"]), (402, &json!("insufficient_balance")), "{error}");
            // Five seconds at 0.0834 USD.
            let amounts = (error["needed_nano_usd"].as_i64(), error["available_nano_usd"].as_i64());
            assert_eq!(amounts, (Some(417_000_000), Some(1_500_000)), "{error}");
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("0.417 USD") && message.contains("0.0015 USD"), "{message}");
            assert!(message.contains("`duration`") && !message.contains("token"), "{message}");
        }
    }
}
