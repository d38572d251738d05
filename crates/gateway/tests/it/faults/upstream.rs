//! What a provider does wrong.

use super::{FUNDED, answered, free, paid};
use crate::house::{House, Plan, chat, events, streamed};
use serde_json::json;
use tollgate_store::Ending;

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
    let metrics = tollgate_gateway::metrics::page(&house.running().app);
    assert!(metrics.contains("tollgate_estimated_rows_total{provider=\"sim\"} 1\n"), "{metrics}");
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
