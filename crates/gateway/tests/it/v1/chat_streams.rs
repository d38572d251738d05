//! POST /v1/chat/completions, streamed replies that go well.

use crate::house::{House, Plan, events, streamed, text_of};
use serde_json::{Value, json};
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_forwarded_whole_and_metered_in_secret() {
    let house = House::new().await;
    let (call, text) = house.stream("say something [[sim:tokens=6]]").await;
    let events = events(&text);
    assert_eq!(text_of(&events).split_whitespace().count(), 6);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(events.iter().all(|event| event["usage"].is_null()), "this client did not ask for usage: {text}");
    assert!(events.iter().all(|event| event["choices"].as_array().is_some_and(|list| !list.is_empty())));
    assert!(events.iter().all(|event| event["model"] == "plain"));
    let sent: Value = serde_json::from_slice(&house.sim.received()[0].body).expect("JSON");
    assert_eq!(sent["stream_options"]["include_usage"], true, "we ask the provider for usage");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.counters.output, row.estimated), (Ending::Answered, 6, false));
    assert_eq!(row.charge.nano(), 3 * 1_000 + 6 * 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_usage_gets_it() {
    let house = House::new().await;
    let mut body = streamed("hello [[sim:tokens=2]]");
    body["stream_options"] = json!({ "include_usage": true });
    let text = house.post(&body).send().await.expect("a reply").text().await.expect("text");
    let all = events(&text);
    let last = all.last().expect("events");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 2);
    // What the client wrote reaches the provider as it is.
    assert_eq!(house.sim.received()[0].body.as_ref(), serde_json::to_vec(&with_model(body)).expect("JSON"));
}

fn with_model(mut body: Value) -> Value {
    body["model"] = json!("sim-plain");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_not_held_back_for_the_next_one() {
    // Nobody gives up on a provider that has fallen silent before this test does.
    let house = House::with(Plan { patience: "10m", ..Plan::default() }).await;
    for words in 1..=4 {
        let prompt = format!("[[sim:hang_midstream after={words} tokens=9]]");
        let mut reply = house.post(&streamed(&prompt)).send().await.expect("a reply");
        let mut text = String::new();
        // There is no next event: all that were sent have to come without one.
        let coming = async {
            while text.matches("\"content\":\"").count() < words {
                let chunk = reply.chunk().await.expect("a chunk").expect("the stream goes on");
                text.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        let come = tokio::time::timeout(std::time::Duration::from_secs(60), coming).await;
        assert!(come.is_ok(), "of {words} words these came: {text}");
        assert_eq!(text.matches("\"content\":\"").count(), words, "{text}");
    }
}

/// Case 81 is among them: a stream that does not say it is one.
#[tokio::test(flavor = "multi_thread")]
async fn odd_framing_from_the_provider_reaches_the_client_clean() {
    let house = House::new().await;
    for scenario in [
        "crlf",
        "comments",
        "no_content_type",
        "no_done",
        "after_done",
        "split_utf8",
        "u2028",
        "usage_on_content_chunk",
        "two_usages",
        "zero_usage_last",
    ] {
        let (call, text) = house.stream(&format!("[[sim:{scenario} tokens=5]]")).await;
        assert!(text.trim_end().ends_with("data: [DONE]"), "{scenario}: {text}");
        assert!(!text.contains('\u{FFFD}'), "{scenario}: {text}");
        assert_eq!(text.matches("[DONE]").count(), 1, "{scenario}: {text}");
        let row = house.row(call).await;
        assert_eq!(row.ending, Ending::Answered, "{scenario}");
        assert!(row.charge.nano() > 0, "{scenario}");
        assert!(!row.estimated, "{scenario}: the provider did report");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_usage_is_counted_and_says_so() {
    let house = House::new().await;
    let (call, _) = house.stream("[[sim:no_usage tokens=8]]").await;
    let row = house.row(call).await;
    assert_eq!((row.ending, row.estimated), (Ending::Answered, true));
    assert!(row.counters.output >= 8, "at least a token for each word: {:?}", row.counters);
    assert!(row.charge.nano() >= 8 * 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_usage_is_not_believed() {
    let house = House::new().await;
    for kind in ["huge", "negative", "string", "cached"] {
        let (call, _) = house.stream(&format!("[[sim:wrong_usage kind={kind} tokens=4]]")).await;
        let row = house.row(call).await;
        assert!(row.charge.nano() < 1_000_000, "{kind}: {:?}", row.counters);
        assert!(row.charge.nano() > 0, "{kind}");
    }
    house.quiet().await;
    assert!(house.available().await > 9_990_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_free() {
    let house = House::new().await;
    let (call, _) = house.stream("[[sim:empty]]").await;
    assert_eq!(house.row(call).await.charge.nano(), 0);
    let reply = house.ask("[[sim:empty]]").await;
    assert_eq!(reply.status(), 200);
    house.quiet().await;
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_reasoning_and_cache_reads_are_metered() {
    let house = House::new().await;
    let (call, _) = house.stream("[[sim:reasoning tokens=3 reasoning=20]]").await;
    let row = house.row(call).await;
    assert_eq!((row.counters.output, row.counters.reasoning), (3, 20));
    let (call, _) = house.stream("[[sim:cached prompt=100 cached=60 written=10 tokens=3]]").await;
    let row = house.row(call).await;
    assert_eq!((row.counters.input, row.counters.cache_read, row.counters.cache_write_5m), (30, 60, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_carries_heartbeats() {
    let plan = crate::house::Plan { config: "[limits]\nheartbeat = \"20ms\"\n".to_owned(), ..Default::default() };
    let house = House::with(plan).await;
    house.sim.shut("/_door");
    let mut reply = house.post(&crate::house::streamed("[[sim:tokens=2 door=2]]")).send().await.expect("a reply");
    let mut text = String::new();
    while !text.contains(": hb\n") {
        let piece = tokio::time::timeout(crate::watch::HANG, reply.chunk()).await.expect("a heartbeat");
        text.push_str(&String::from_utf8_lossy(&piece.expect("a piece").expect("not the end")));
    }
    house.sim.open();
    text.push_str(&reply.text().await.expect("the rest"));
    assert!(text.ends_with("data: [DONE]\n\n"));
}
