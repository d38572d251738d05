//! POST /v1/chat/completions when the provider fails: the caller's answer, the charge, the ending.

use crate::house::{House, Plan, call_id, chat, error_of, events, streamed};
use serde_json::json;
use tollgate_store::Ending;

/// Case 94 is `error_first`: a stream that begins with its error keeps the status of one.
#[tokio::test(flavor = "multi_thread")]
async fn provider_errors_are_translated_and_free() {
    let house = House::new().await;
    for (scenario, status, code) in [
        ("error400", 400, "invalid_request"),
        ("error401", 502, "upstream_error"),
        ("error403", 502, "upstream_error"),
        ("error404", 502, "upstream_error"),
        ("error429", 429, "rate_limit_exceeded"),
        ("error500", 502, "upstream_error"),
        ("error503", 503, "overloaded"),
        ("html500", 502, "upstream_error"),
        ("error_first", 502, "upstream_error"),
        ("garbage", 502, "upstream_invalid_reply"),
    ] {
        for streams in [false, true] {
            if scenario == "error_first" && !streams {
                continue;
            }
            let text = format!("[[sim:{scenario}]]");
            let body = if streams { streamed(&text) } else { chat(&text) };
            let reply = house.post(&body).send().await.expect("a reply");
            let call = call_id(&reply);
            let retry_after = reply.headers().get("retry-after").cloned();
            let (got, error) = error_of(reply).await;
            assert_eq!((got, &error["code"]), (status, &json!(code)), "{scenario} streams={streams}: {error}");
            if scenario == "error429" {
                assert!(retry_after.is_some());
            }
            let message = error["message"].as_str().expect("a message");
            assert!(!message.contains("127.0.0.1") && !message.contains('<'), "{scenario}: {message}");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0), "{scenario}");
        }
    }
    house.quiet().await;
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_break_in_mid_stream_is_reported_and_the_part_is_paid() {
    let house = House::with(Plan { patience: "1500ms", ..Plan::default() }).await;
    for scenario in [
        "error_midstream after=3 tokens=9",
        "cut_midstream after=3 cut=reset tokens=9",
        "cut_midstream after=3 cut=eof tokens=9",
        "cut_midstream after=3 cut=fin tokens=9",
        "hang_midstream after=3 tokens=9",
    ] {
        let (call, text) = house.stream(&format!("[[sim:{scenario}]]")).await;
        let events = events(&text);
        let last = events.last().expect("events");
        assert!(last["error"]["message"].is_string(), "{scenario}: {text}");
        assert!(!text.contains("[DONE]"), "{scenario}: a broken stream must not look complete");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.estimated), (Ending::UpstreamFault, true), "{scenario}");
        assert!(row.counters.output >= 3, "{scenario}: {:?}", row.counters);
        assert!(row.charge.nano() > 0 && row.charge <= row.hold, "{scenario}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_line_is_cut() {
    let house = House::new().await;
    let (call, text) = house.stream("[[sim:huge_line mib=0 after=2 tokens=4]]").await;
    let events = events(&text);
    assert_eq!(events.last().expect("events")["error"]["code"], "upstream_invalid_reply");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "event_too_long"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_is_a_504_and_free() {
    let house = House::with(Plan { patience: "1500ms", ..Plan::default() }).await;
    let reply = house.ask("[[sim:hang]]").await;
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (504, &json!("upstream_timeout")));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_gives_way_to_the_next_route() {
    let house = House::new().await;
    let mut body = chat("hello");
    body["model"] = json!("two-routes");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.attempts, row.provider.as_deref()), (2, Some("sim")));
    assert_eq!(row.charge.nano(), 1_000 + 12 * 2_000, "only the one that answered counts");
}
