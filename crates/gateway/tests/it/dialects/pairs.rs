//! Every client at every provider: 4 × 4 pairs, each with the ledger beside it. The house checks
//! the books when it is dropped.

use super::client::{Client, code_of};
use super::{UPSTREAMS, house};
use crate::house::{House, call_id, counted, error_of, events};
use serde_json::Value;
use tollgate_store::Ending;
use tollgate_wire::Dialect;

/// Asks in every pair.
async fn each<F: AsyncFn(&House, Client, &str)>(test: F) {
    let house = house().await;
    for client in Client::all() {
        for model in UPSTREAMS {
            test(&house, client, model).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_replies() {
    each(async |house, client, model| {
        let reply = client.ask(house, model, "say [[sim:tokens=6]]", false).await;
        let (status, call) = (reply.status(), call_id(&reply));
        let body: Value = reply.json().await.expect("JSON");
        assert_eq!(status, 200, "{client:?} {model}: {body}");
        assert_eq!(client.text(&body).split_whitespace().count(), 6, "{client:?} {model}: {body}");
        assert_eq!(
            (client.model(&body), client.usage(std::slice::from_ref(&body))),
            (model, (2, 6)),
            "{client:?} {model}: {body}"
        );
        let row = house.row(call).await;
        assert_eq!(
            (row.ending, row.counters.input, row.counters.output),
            (Ending::Answered, 2, 6),
            "{client:?} {model}"
        );
        assert_eq!((row.charge.nano(), row.estimated), (2 * 1_000 + 6 * 2_000, false));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams() {
    each(async |house, client, model| {
        let reply = client.ask(house, model, "say [[sim:tokens=6]]", true).await;
        let call = call_id(&reply);
        assert_eq!(reply.status(), 200, "{client:?} {model}: {}", reply.text().await.unwrap_or_default());
        let text = reply.text().await.expect("text");
        let events = events(&text);
        assert_eq!(client.streamed_text(&events).split_whitespace().count(), 6, "{client:?} {model}: {text}");
        assert!(client.is_whole(&text, &events) && client.error_in(&events).is_none(), "{client:?} {model}: {text}");
        assert_eq!(client.usage(&events), (2, 6), "{client:?} {model}: {text}");
        assert!(!text.contains("sim-plain") && !text.contains("sim-strict"), "the public name only: {text}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.charge.nano(), row.estimated), (Ending::Answered, 2 * 1_000 + 6 * 2_000, false));
    })
    .await;
}

/// Two calls of tools, their results, and the answer: with thoughts that their maker wants back.
#[tokio::test(flavor = "multi_thread")]
async fn tools_and_thoughts_over_two_turns() {
    each(async |house, client, model| {
        for (scenario, thinking) in [("tools", false), ("reasoning_tools", true)] {
            let body = client.body(model, &format!("weather [[sim:{scenario} calls=2 tool=weather]]"), false);
            let body = client.with_tools(body, thinking);
            let path = client.path(model, false);
            let post = async |body: &Value| -> (u16, Value) {
                let reply = client.post(house, &path, body).send().await.expect("a reply");
                (reply.status().as_u16(), reply.json().await.expect("JSON"))
            };
            let (status, first) = post(&body).await;
            assert_eq!(status, 200, "{client:?} {model} {scenario}: {first}");
            let calls = client.calls(&first);
            assert_eq!(calls.len(), 2, "{client:?} {model} {scenario}: {first}");
            assert!(calls.iter().all(|(_, name)| name == "weather"), "{calls:?}");
            assert!(!thinking || client.has_thoughts(&first), "{client:?} {model}: {first}");
            let (status, second) = post(&client.next_turn(body, &first)).await;
            assert_eq!(status, 200, "{client:?} {model} {scenario}, second turn: {second}");
            assert!(
                !client.text(&second).is_empty() && client.calls(&second).is_empty(),
                "{client:?} {model}: {second}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_before_the_answer_are_free_and_in_shape() {
    each(async |house, client, model| {
        for (scenario, status, code) in [
            ("error400", 400, "invalid_request"),
            ("error429", 429, "rate_limit_exceeded"),
            ("error401", 502, "upstream_error"),
            ("error500", 502, "upstream_error"),
            ("error529", 503, "overloaded"),
            ("garbage", 502, "upstream_invalid_reply"),
        ] {
            for stream in [false, true] {
                let reply = client.ask(house, model, &format!("[[sim:{scenario}]]"), stream).await;
                let (call, body) = (call_id(&reply), error_of(reply).await);
                assert_eq!((body.0, code_of(&body.1)), (status, code), "{client:?} {model} {scenario}: {}", body.1);
                let row = house.row(call).await;
                assert_eq!(
                    (row.ending, row.charge.nano()),
                    (Ending::UpstreamFault, 0),
                    "{client:?} {model} {scenario}"
                );
            }
        }
    })
    .await;
}

/// An error event, a reset, and an end without the mark of an end: each becomes an error event, and
/// what came is paid for.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_break_say_so_and_are_paid_for_what_came() {
    each(async |house, client, model| {
        for scenario in ["error_midstream after=3", "cut_midstream after=3 cut=reset", "cut_midstream after=3 cut=eof"]
        {
            let reply = client.ask(house, model, &format!("say [[sim:{scenario} tokens=9]]"), true).await;
            let call = call_id(&reply);
            assert_eq!(reply.status(), 200, "{client:?} {model} {scenario}");
            let text = reply.text().await.expect("text");
            let events = events(&text);
            let said = client.streamed_text(&events);
            assert_eq!(said.split_whitespace().count(), 3, "{client:?} {model} {scenario}: {text}");
            assert!(client.error_in(&events).is_some(), "{client:?} {model} {scenario}: {text}");
            assert!(!client.is_whole(&text, &events), "{client:?} {model} {scenario}: {text}");
            let row = house.row(call).await;
            // Gemini reports what was used with every fragment, the others at the end.
            let counted_by_us = model != "gemini-on-gemini";
            assert_eq!(
                (row.ending, row.estimated),
                (Ending::UpstreamFault, counted_by_us),
                "{client:?} {model} {scenario}"
            );
            assert!(
                row.charge.nano() >= 3 * 2_000 && row.counters.output <= counted(&said) + 1,
                "{:?} of {said}",
                row.counters
            );
        }
    })
    .await;
}

/// Many servers leave out the mark after the reason of the stop. A response says only in its last
/// event that it is whole.
#[tokio::test(flavor = "multi_thread")]
async fn streams_without_their_mark_are_whole_if_they_said_why_they_stopped() {
    each(async |house, client, model| {
        let reply = client.ask(house, model, "say [[sim:no_done tokens=6]]", true).await;
        let call = call_id(&reply);
        let text = reply.text().await.expect("text");
        let events = events(&text);
        let whole = model != "gemini-on-openai-response";
        assert_eq!(client.is_whole(&text, &events), whole, "{client:?} {model}: {text}");
        assert_eq!(client.error_in(&events).is_none(), whole, "{client:?} {model}: {text}");
        let row = house.row(call).await;
        let ending = if whole { (Ending::Answered, false) } else { (Ending::UpstreamFault, true) };
        assert_eq!((row.ending, row.estimated), ending, "{client:?} {model}");
    })
    .await;
}

/// Case 101.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_pay_for_what_they_got() {
    each(async |house, client, model| {
        let mut reply = client.ask(house, model, "say [[sim:tokens=60 delay_ms=30]]", true).await;
        let call = call_id(&reply);
        let mut text = String::new();
        while !text.contains("opens") {
            text.push_str(&String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("more")));
        }
        drop(reply);
        let row = house.row(call).await;
        assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, "client_gone"), "{client:?} {model}");
        assert_eq!(
            row.estimated,
            model != "gemini-on-gemini",
            "{client:?} {model}: Gemini reports with every fragment"
        );
        assert!((3..40).contains(&row.counters.output), "{client:?} {model}: {:?}", row.counters);
        assert!(row.charge.nano() > 0 && row.charge <= row.hold);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_usage_is_counted() {
    each(async |house, client, model| {
        for stream in [false, true] {
            let reply = client.ask(house, model, "say [[sim:no_usage tokens=8]]", stream).await;
            let call = call_id(&reply);
            assert_eq!(reply.status(), 200, "{client:?} {model}");
            let text = reply.text().await.expect("text");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.estimated), (Ending::Answered, true), "{client:?} {model} stream {stream}");
            assert!((8..30).contains(&row.counters.output), "{client:?} {model}: {:?}", row.counters);
            // Within a dialect the answer passes as it is; else what is charged is what is
            // reported.
            if model != UPSTREAMS[Dialect::ALL.iter().position(|one| *one == client.0).expect("a dialect")] {
                let name = match client.0 {
                    Dialect::Chat => "completion_tokens",
                    Dialect::Anthropic | Dialect::Responses => "output_tokens",
                    Dialect::Gemini => "candidatesTokenCount",
                };
                let counted = format!("\"{name}\":{}", row.counters.output);
                assert!(text.contains(&counted), "{client:?} {model} stream {stream}: {counted} in {text}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_and_hidden_thoughts_are_in_counters_of_their_own() {
    each(async |house, client, model| {
        let reply = client.ask(house, model, "say [[sim:cached prompt=100 cached=60 written=0 tokens=3]]", true).await;
        let call = call_id(&reply);
        let _ = reply.text().await;
        let row = house.row(call).await;
        assert_eq!(
            (row.counters.input, row.counters.cache_read, row.counters.output),
            (40, 60, 3),
            "{client:?} {model}"
        );
    })
    .await;
}
