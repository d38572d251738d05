//! Streams that outlast something: their hold, the client's patience.

use super::client::{Client, code_of};
use super::{CATALOG, UPSTREAMS};
use crate::house::{House, Plan, call_id, events};
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};
use tollgate_wire::Dialect;

/// One model per dialect of providers, without a limit of its own: the hold is made for 16,384 tokens of output.
const LONG: &str = r#"
[model."gemini-long-openai"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."gemini-long-anthropic"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]
[model."gemini-long-openai-response"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]
[model."gemini-long-gemini"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
"#;

/// Money for what is held at first and no more: the stream ends there, in its client's shape, and no word is given away.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_money_for_more_ends_with_what_is_paid_for() {
    for dialect in Dialect::ALL {
        let house = House::with(Plan { usd: "0", catalog: LONG, ..Plan::default() }).await;
        for client in Client::all() {
            let before = house.available().await;
            house.credit(&format!("{client:?}"), Pot::Paid, Money::from_nano(17_000 * 2_000 - before)).await;
            let model = format!("gemini-long-{}", dialect.word());
            let mut body = client.body(&model, "go on [[sim:ignore_max_tokens tokens=40000 chunks=400]]", true);
            if client.0 == Dialect::Anthropic {
                body["max_tokens"] = 16_384.into();
            }
            let reply = client.post(&house, &client.path(&model, true), &body).send().await.expect("a reply");
            let call = call_id(&reply);
            assert_eq!(reply.status(), 200, "{client:?} on {dialect:?}");
            let text = reply.text().await.expect("text");
            let events = events(&text);
            house.quiet().await;
            let row = house.row(call).await;
            // A client that names its limit is measured against twice of it; the others end at what is held.
            let ended = if client.0 == Dialect::Anthropic { 40_000 } else { 16_384 };
            assert!(row.counters.output <= ended, "{client:?} on {dialect:?}: {:?}", row.counters);
            if client.0 != Dialect::Anthropic {
                let error = client.error_in(&events).expect("an error event");
                let code = if client.0 == Dialect::Responses {
                    error["type"].as_str().unwrap_or_default()
                } else {
                    code_of(error)
                };
                assert!(
                    code == "insufficient_balance" || error["type"] == "billing_error",
                    "{client:?} on {dialect:?}: {error}"
                );
                assert_eq!((row.ending, row.reason.as_str()), (Ending::Refused, "insufficient_balance"));
                assert!(row.charge <= row.hold && row.charge.nano() > 10_000 * 2_000, "{client:?}: {}", row.charge);
            }
        }
    }
}

/// Case 83.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_filled_in_the_way_each_client_tolerates() {
    let plan = Plan { config: "[limits]\nheartbeat = \"200ms\"\n".to_owned(), catalog: CATALOG, ..Default::default() };
    let house = House::with(plan).await;
    for client in Client::all() {
        let model = UPSTREAMS[1];
        let text = client.ask(&house, model, "[[sim:tokens=2 delay_ms=500]]", true).await.text().await.expect("text");
        let filled = match client.0 {
            Dialect::Chat | Dialect::Responses => text.contains(": hb\n"),
            Dialect::Anthropic => text.contains("event: ping\ndata: {\"type\":\"ping\"}\n\n"),
            Dialect::Gemini => text.contains("\n\n\n") && !text.contains(": hb"),
        };
        assert!(filled, "{client:?}: {text:?}");
        assert!(client.is_whole(&text, &events(&text)), "{client:?}: {text}");
    }
}
