//! What a provider does wrong.

use super::{FUNDED, answered, free, paid};
use crate::dialects::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id, chat, events, streamed};
use serde_json::json;
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};

const UNREACHABLE: &str = r#"
[model."unreachable"]
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
[model."unreachable".price]
input = 1_000_000
output = 2_000_000
[[model."unreachable".route]]
provider = "nobody"
upstream_model = "sim-plain"
"#;

const FAULT: Ending = Ending::UpstreamFault;

pub async fn nobody_listens() {
    let house = House::with(Plan { catalog: UNREACHABLE, ..Plan::default() }).await;
    let mut body = chat("hi");
    body["model"] = json!("unreachable");
    let reply = house.post(&body).send().await.expect("a reply");
    let call = crate::house::call_id(&reply);
    free(&house, reply, (502, "upstream_error"), Some((FAULT, "upstream_error"))).await;
    assert!(house.row(call).await.attempts >= 1, "the row tells the attempts");
    assert!(house.sim.received().is_empty());
}

pub async fn reset_after_the_request_was_sent() {
    let house = House::new().await;
    let reply = house.ask("[[sim:cut_midstream after=0 cut=reset]]").await;
    free(&house, reply, (502, "upstream_error"), Some((FAULT, "upstream_error"))).await;
    assert_eq!(house.sim.received().len(), 1);
}

pub async fn the_provider_refuses() {
    let house = House::new().await;
    for (scenario, status, code) in [
        ("error400", 400, "invalid_request"),
        ("error422", 400, "invalid_request"),
        ("error401", 502, "upstream_error"),
        ("error402", 502, "upstream_error"),
    ] {
        let reply = house.ask(&format!("[[sim:{scenario}]]")).await;
        free(&house, reply, (status, code), Some((FAULT, code))).await;
    }
}

pub async fn the_provider_is_busy() {
    let house = House::new().await;
    let reply = house.ask("[[sim:error429]]").await;
    assert!(reply.headers().contains_key("retry-after"));
    free(&house, reply, (429, "rate_limit_exceeded"), Some((FAULT, "rate_limit_exceeded"))).await;
}

pub async fn the_provider_fails_before_output() {
    let house = House::new().await;
    for scenario in ["error500", "html500", "error_first"] {
        let reply = house.post(&streamed(&format!("[[sim:{scenario}]]"))).send().await.expect("a reply");
        free(&house, reply, (502, "upstream_error"), Some((FAULT, "upstream_error"))).await;
    }
}

pub async fn the_first_byte_is_late() {
    let house = House::with(Plan { patience: "700ms", ..Plan::default() }).await;
    let reply = house.ask("[[sim:hang]]").await;
    free(&house, reply, (504, "upstream_timeout"), Some((FAULT, "upstream_timeout"))).await;
}

pub async fn a_stream_that_breaks() {
    let house = House::new().await;
    let (call, text) = house.stream("[[sim:error_midstream after=3 tokens=9]]").await;
    assert!(events(&text).last().expect("events")["error"]["message"].is_string(), "never a silent cut: {text}");
    assert!(!text.contains("[DONE]"));
    let row = paid(&house, call).await;
    assert_eq!((row.ending, row.counters.output >= 3), (FAULT, true), "the part that came is paid");
}

pub async fn a_stream_without_usage() {
    let house = House::new().await;
    let (call, text) = house.stream("[[sim:no_usage tokens=6]]").await;
    assert!(text.trim_end().ends_with("data: [DONE]"), "a normal end: {text}");
    let row = paid(&house, call).await;
    assert!(row.estimated && row.counters.output > 0, "{row:?}");
    let metrics = tollgate_gateway::endpoints::metrics::page(&house.running().app);
    assert!(metrics.contains("tollgate_estimated_rows_total{provider=\"sim\"} 1\n"), "{metrics}");
}

pub async fn the_provider_ignores_the_limit() {
    let house = House::new().await;
    for stream in [false, true] {
        let before = house.available().await;
        let mut body = chat("[[sim:ignore_max_tokens tokens=900 chunks=9]]");
        (body["max_tokens"], body["stream"]) = (json!(300), json!(stream));
        let reply = house.post(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        let call = call_id(&reply);
        reply.bytes().await.expect("the answer");
        house.quiet().await;
        let row = house.row(call).await;
        assert_eq!((row.ending, row.counters.output), (Ending::Answered, 900), "all that was used");
        let input = i64::try_from(row.counters.input).expect("fits") * 1_000;
        assert_eq!((row.charge.nano(), row.write_off.nano()), (input + 300 * 2_000, 600 * 2_000));
        assert_eq!(house.available().await, before - row.charge.nano());
    }
    let metrics = tollgate_gateway::endpoints::metrics::page(&house.running().app);
    let line = "tollgate_calls_above_quote_total{provider=\"sim\",model=\"sim-plain\"} 2\n";
    assert!(metrics.contains(line), "{metrics}");
}

pub async fn hidden_reasoning_beyond_the_money() {
    // Nothing of it is seen before the report: 100,000 tokens at 2,000 nano-USD.
    let chunk = |rest: &str| {
        format!("data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",{rest}}}\n\n")
    };
    let events_sent = [
        chunk(r#""choices":[{"index":0,"delta":{"role":"assistant","content":"so"},"finish_reason":null}]"#),
        chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#),
        chunk(
            r#""choices":[],"usage":{"prompt_tokens":9,"completion_tokens":100000,"completion_tokens_details":{"reasoning_tokens":99999},"total_tokens":100009}"#,
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    let script = Scripted::start(vec![Written::events(events_sent.concat())]).await;
    let catalog = "[model.\"thinks\"]\nprice = { input = 1_000_000, output = 2_000_000 }\nroute = [{ provider = \"script\", upstream_model = \"m\" }]\n";
    let plan = Plan { usd: "0", catalog, config: script.config("openai"), ..Plan::default() };
    let house = House::with(plan).await;
    house.credit("some", Pot::Paid, Money::from_nano(50_000_000)).await;
    let mut body = streamed("think");
    body["model"] = json!("thinks");
    let reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    let text = reply.text().await.expect("events");
    assert_eq!(events(&text).last().expect("events")["error"]["code"], "insufficient_balance");
    assert!(!text.contains("[DONE]"));
    house.quiet().await;
    let row = house.row(call).await;
    assert_eq!((row.ending, row.counters.output + row.counters.reasoning), (Ending::Refused, 100_000));
    assert_eq!((row.charge.nano(), row.write_off.nano()), (50_000_000, 150_009_000));
    assert_eq!(house.available().await, 0);
}

pub async fn garbage_and_endless_lines() {
    let house = House::new().await;
    let (call, text) = house.stream("[[sim:huge_line mib=0 after=2 tokens=4]]").await;
    assert_eq!(events(&text).last().expect("events")["error"]["code"], "upstream_invalid_reply");
    let row = paid(&house, call).await;
    assert_eq!((row.ending, row.reason.as_str()), (FAULT, "event_too_long"), "what was produced is paid");
    let before = house.available().await;
    let reply = house.ask("[[sim:garbage]]").await;
    assert_eq!(reply.status(), 502);
    house.quiet().await;
    assert_eq!(house.available().await, before, "garbage alone is free");
    drop(house);
    let house = House::new().await;
    answered(&house, house.ask("and the next call works").await).await;
    assert!(house.available().await < FUNDED);
}

const LINKS: &str = r#"
[model."of-gemini"]
max_output_tokens = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
"#;

/// Nobody listens there.
pub async fn a_link_that_cannot_be_fetched() {
    let config = "[fetch]\nprivate = [\"127.0.0.1/32\"]\n".to_owned();
    let house = House::with(Plan { catalog: LINKS, config, ..Plan::default() }).await;
    let mut body = chat("hi");
    body["model"] = json!("of-gemini");
    body["messages"][0]["content"] =
        json!([{ "type": "image_url", "image_url": { "url": "http://127.0.0.1:1/a.png" } }]);
    let reply = house.post(&body).send().await.expect("a reply");
    free(&house, reply, (400, "invalid_parameter"), Some((Ending::Refused, "invalid_parameter"))).await;
    assert!(house.sim.received().is_empty());
}

pub async fn a_compressed_answer() {
    let (url, asked) = crate::dialects::packed::provider(200).await;
    let house = crate::dialects::packed::house(&url).await;
    let mut body = chat("hi");
    body["model"] = json!("gemini-packed");
    let reply = house.post(&body).send().await.expect("a reply");
    free(&house, reply, (502, "upstream_invalid_reply"), Some((FAULT, "upstream_invalid_reply"))).await;
    assert_eq!(asked.lock().expect("a lock").len(), 1);
}
