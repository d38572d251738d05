//! What a provider reports, and what of it is charged: hidden reasoning, reports that cannot be,
//! limits that are ignored, answers that are none. The customer pays within the bounds of the call;
//! the rest is a write-off that everybody can see.

use crate::dialects::client::Client;
use crate::dialects::scripted::{Scripted, Written};
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat, counted, events};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot, UsageRow};
use tollgate_wire::Dialect;

/// 1,000 nano-USD a token of input, 2,000 of output.
const CATALOG: &str = r#"
[model."gemini-long"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "long" }]
[model."gemini-listed"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
context_window = 10_000
max_output_tokens = 1_000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "listed" }]
"#;

/// The same prices at the simulator.
const OPEN: &str = r#"
[model."open"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

const SAID: &str = "the gate opens for every coin";

fn kind(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "openai",
        Dialect::Anthropic => "anthropic",
        Dialect::Responses => "openai-responses",
        Dialect::Gemini => "gemini",
    }
}

/// A whole answer of a provider, with words or without any answer at all.
fn whole(dialect: Dialect, said: Option<&str>, input: u64, output: u64) -> Value {
    let list = |one: Value| said.map_or_else(|| json!([]), |_| json!([one]));
    match dialect {
        Dialect::Chat => json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": list(json!({ "index": 0, "message": { "role": "assistant", "content": said }, "finish_reason": "stop" })),
            "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output },
        }),
        Dialect::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": null,
            "content": list(json!({ "type": "text", "text": said })),
            "usage": { "input_tokens": input, "output_tokens": output },
        }),
        Dialect::Responses => json!({
            "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "error": null,
            "output": list(json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": said, "annotations": [] }] })),
            "usage": { "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": output,
                "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": input + output },
        }),
        Dialect::Gemini => json!({
            "candidates": list(json!({ "content": { "role": "model", "parts": [{ "text": said }] }, "finishReason": "STOP", "index": 0 })),
            "usageMetadata": { "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output },
        }),
    }
}

/// The same as a stream, which reports at its end.
fn streamed(dialect: Dialect, said: Option<&str>, input: u64, output: u64) -> String {
    let all = whole(dialect, said, input, output);
    let named = |list: Vec<Value>| -> String {
        list.iter().map(|one| format!("event: {}\ndata: {one}\n\n", one["type"].as_str().expect("a type"))).collect()
    };
    match dialect {
        Dialect::Chat => {
            let chunk = |choices: Value, usage: Value| {
                let chunk = json!({ "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
                    "choices": choices, "usage": usage });
                format!("data: {chunk}\n\n")
            };
            let words = said.map(|said| {
                let choice =
                    json!([{ "index": 0, "delta": { "role": "assistant", "content": said }, "finish_reason": null }]);
                let end = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
                chunk(choice, Value::Null) + &chunk(end, Value::Null)
            });
            words.unwrap_or_default() + &chunk(json!([]), all["usage"].clone()) + "data: [DONE]\n\n"
        }
        Dialect::Anthropic => {
            let mut list = vec![
                json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
                "model": "m", "content": [], "stop_reason": null, "usage": { "input_tokens": input, "output_tokens": 1 } } }),
            ];
            if let Some(said) = said {
                list.push(json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }));
                list.push(json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": said } }));
                list.push(json!({ "type": "content_block_stop", "index": 0 }));
            }
            list.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": output } }));
            list.push(json!({ "type": "message_stop" }));
            named(list)
        }
        Dialect::Responses => {
            let begun = json!({ "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": [] });
            let mut list = vec![json!({ "type": "response.created", "sequence_number": 0, "response": begun })];
            if let Some(said) = said {
                let item = |status: &str, content: Value| json!({ "type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": content });
                let part = json!({ "type": "output_text", "text": said, "annotations": [] });
                list.push(json!({ "type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
                    "item": item("in_progress", json!([])) }));
                list.push(json!({ "type": "response.output_text.delta", "sequence_number": 2, "item_id": "msg_1",
                    "output_index": 0, "content_index": 0, "delta": said }));
                list.push(json!({ "type": "response.output_item.done", "sequence_number": 3, "output_index": 0,
                    "item": item("completed", json!([part])) }));
            }
            list.push(json!({ "type": "response.completed", "sequence_number": 4, "response": all }));
            named(list)
        }
        Dialect::Gemini => format!("data: {all}\n\n"),
    }
}

/// One call at a provider that answers like this, with so much money.
async fn one(database: &str, dialect: Dialect, body: &Value, answer: Written, nano: i64) -> (House, String, UsageRow) {
    let script = Scripted::start(vec![answer]).await;
    let config = script.config(kind(dialect));
    let plan = Plan { usd: "0", catalog: CATALOG, config, database: database.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    house.credit("all", Pot::Paid, Money::from_nano(nano)).await;
    let reply = house.post(body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{dialect:?}: {}", reply.text().await.unwrap_or_default());
    let call = call_id(&reply);
    let text = reply.text().await.expect("an answer");
    house.quiet().await;
    let row = house.row(call).await;
    (house, text, row)
}

fn ask(model: &str, stream: bool) -> Value {
    json!({ "model": model, "stream": stream, "messages": [{ "role": "user", "content": "think hard" }] })
}

/// Few words, many thoughts that nobody sees before the last report: 300 million nano-USD of them.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_reasoning_is_paid_as_far_as_there_is_money() {
    for engine in Engine::both().await {
        for dialect in Dialect::ALL {
            let answer = || Written::events(streamed(dialect, Some(SAID), 9, 150_000));
            let (house, text, row) =
                one(&engine.url, dialect, &ask("gemini-long", true), answer(), 1_000_000_000).await;
            let name = format!("{} {dialect:?}", engine.name);
            assert!(text.contains("[DONE]"), "{name}: {text}");
            assert_eq!((row.charge.nano(), row.write_off.nano()), (9_000 + 300_000_000, 0), "{name}");
            drop(house);
            let (house, text, row) = one(&engine.url, dialect, &ask("gemini-long", true), answer(), 20_000_000).await;
            let error = events(&text).last().map(|last| last["error"]["code"].clone());
            assert_eq!(error, Some(json!("insufficient_balance")), "{name}: {text}");
            assert_eq!((row.ending, row.counters.output), (Ending::Refused, 150_000), "{name}");
            assert_eq!(
                (row.charge.nano(), row.write_off.nano()),
                (20_000_000, 280_009_000),
                "{name}: all that there was"
            );
            assert_eq!(house.available().await, 0);
        }
    }
}

/// The same while nothing can be written to the ledger: what was reported is settled when it can.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_reasoning_is_paid_when_the_ledger_is_away_too() {
    for (nano, paid, lost) in [(1_000_000_000, 300_009_000, 0), (20_000_000, 20_000_000, 280_009_000)] {
        let locked = Arc::new(Notify::new());
        let answer = Written::events(streamed(Dialect::Chat, Some(SAID), 9, 150_000));
        let script = Scripted::start(vec![answer.waits_after("\n\n", locked.clone())]).await;
        let config = script.config("openai");
        let house = House::with(Plan { usd: "0", catalog: CATALOG, config, ..Plan::impatient() }).await;
        house.credit("all", Pot::Paid, Money::from_nano(nano)).await;
        let mut reply = house.post(&ask("gemini-long", true)).send().await.expect("a reply");
        let call = call_id(&reply);
        reply.chunk().await.expect("a chunk");
        let database = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the database");
        database.execute_batch("BEGIN IMMEDIATE").expect("locked");
        locked.notify_one();
        while let Ok(Some(_)) = reply.chunk().await {}
        database.execute_batch("ROLLBACK").expect("unlocked");
        house.quiet().await;
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.write_off.nano()), (paid, lost), "{row:?}");
    }
}

/// An extension takes what there is: the words that it pays for are delivered.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_as_far_as_the_money_does() {
    for engine in Engine::both().await {
        let plan = Plan { usd: "0", catalog: OPEN, database: engine.url.clone(), ..Plan::default() };
        let house = House::with(plan).await;
        // The first hold is for 4,096 tokens; this is for some 5,000.
        house.credit("all", Pot::Paid, Money::from_nano(10_100_000)).await;
        let mut body = ask("open", true);
        body["messages"][0]["content"] = json!("go on [[sim:tokens=20000 chunks=400]]");
        let reply = house.post(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        let text = reply.text().await.expect("a stream");
        let events = events(&text);
        assert_eq!(events.last().expect("events")["error"]["code"], "insufficient_balance", "{}", engine.name);
        house.quiet().await;
        let row = house.row(call).await;
        let got = counted(&crate::house::text_of(&events));
        assert!(got > 4_800 && got <= 5_050, "{}: {got}", engine.name);
        assert_eq!((row.hold.nano(), row.counters.output), (10_100_000, got), "{}", engine.name);
        assert!(row.charge <= row.hold && row.write_off.is_zero());
    }
}

/// A report of more than the model is listed with: up to a few times as much the catalog may be
/// behind and the customer pays up to what was quoted; beyond that it is nonsense and we count
/// ourselves.
#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_report_makes_nothing_free() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let answer = |input, output| match stream {
                true => Written::events(streamed(dialect, Some(SAID), input, output)),
                false => Written::json(whole(dialect, Some(SAID), input, output)),
            };
            let name = format!("{dialect:?}, streamed: {stream}");
            let (_house, _, row) =
                one("sqlite", dialect, &ask("gemini-listed", stream), answer(9, 1_000_000), 1_000_000_000).await;
            assert_eq!((row.counters.output, row.estimated), (counted(SAID), true), "{name}: what was delivered");
            assert_eq!(row.charge.nano(), 9_000 + i64::try_from(counted(SAID)).expect("fits") * 2_000, "{name}");
            let (_house, _, row) =
                one("sqlite", dialect, &ask("gemini-listed", stream), answer(900_000, 6), 1_000_000_000).await;
            assert!(row.estimated && row.counters.output >= 6, "{name}: {:?}", row.counters);
            assert!(row.charge.nano() > 12_000 && row.charge.nano() < 100_000, "{name}: {}", row.charge);
            let (_house, _, row) =
                one("sqlite", dialect, &ask("gemini-listed", stream), answer(9, 1_500), 1_000_000_000).await;
            assert_eq!((row.counters.output, row.estimated), (1_500, false), "{name}");
            assert_eq!((row.charge.nano(), row.write_off.nano()), (9_000 + 2_000_000, 1_000_000), "{name}");
        }
    }
}

/// Whatever a provider does with the limit, the call costs no more than its quote said, and not
/// more output than was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_ignores_the_limit_costs_the_operator() {
    let house = House::with(Plan { catalog: OPEN, ..Plan::default() }).await;
    for (number, (stream, choices)) in [(false, 1), (false, 3), (true, 1), (true, 3)].into_iter().enumerate() {
        let mut body = chat("go on [[sim:ignore_max_tokens tokens=3000 chunks=50]]");
        body.as_object_mut().expect("an object").extend(
            json!({ "model": "open", "stream": stream, "n": choices, "max_tokens": 1_000 })
                .as_object()
                .expect("an object")
                .clone(),
        );
        let quote: Value = house
            .http
            .post(house.url("/v1/quote?endpoint=/v1/chat/completions"))
            .bearer_auth(&house.key)
            .json(&body)
            .send()
            .await
            .expect("a quote")
            .json()
            .await
            .expect("JSON");
        let before = house.available().await;
        let reply = house.post(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        let (call, said) = (call_id(&reply), reply.headers().get("x-tollgate-charge-usd").cloned());
        reply.bytes().await.expect("an answer");
        house.quiet().await;
        let row = house.row(call).await;
        let input = i64::try_from(row.counters.input).expect("fits");
        assert_eq!(row.counters.output, 3_000 * choices, "streamed: {stream}");
        let limit = i64::try_from(choices).expect("fits") * 2_000_000;
        assert_eq!(row.charge.nano(), input * 1_000 + limit, "streamed: {stream}, {choices}");
        assert_eq!(row.write_off.nano(), limit * 2, "streamed: {stream}, {choices}");
        assert!(quote["most_nano_usd"].as_i64().expect("a bound") >= row.charge.nano(), "{quote}");
        assert_eq!(house.available().await, before - row.charge.nano());
        if let Some(said) = said {
            assert_eq!(said.to_str().expect("text"), row.charge.to_string());
        }
        let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
        let line = format!("tollgate_calls_above_quote_total{{provider=\"sim\",model=\"sim-plain\"}} {}\n", number + 1);
        assert!(page.contains(&line), "{line} is missing in\n{page}");
    }
}

/// The provider counts more input than anybody could have quoted: that is borne by the operator,
/// too.
#[tokio::test(flavor = "multi_thread")]
async fn input_beyond_the_quote_is_not_charged() {
    for engine in Engine::both().await {
        for dialect in Dialect::ALL {
            let mut body = ask("gemini-long", false);
            body["max_tokens"] = json!(20);
            let answer = Written::json(whole(dialect, Some(SAID), 50_000, 6));
            let (house, _, row) = one(&engine.url, dialect, &body, answer, 1_000_000_000).await;
            assert_eq!(row.charge, row.hold, "{} {dialect:?}", engine.name);
            let total = 50_000 * 1_000 + 6 * 2_000;
            assert_eq!(row.charge.nano() + row.write_off.nano(), total, "{} {dialect:?}", engine.name);
            assert_eq!(house.available().await, 1_000_000_000 - row.charge.nano());
        }
    }
}

/// No choice, no block, no item, no candidate: there is no answer, whatever is reported for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_there_is_free() {
    for dialect in Dialect::ALL {
        let (house, _, row) = one(
            "sqlite",
            dialect,
            &ask("gemini-long", false),
            Written::json(whole(dialect, None, 500, 300)),
            1_000_000_000,
        )
        .await;
        assert_eq!((row.charge.nano(), row.reason.as_str()), (0, "empty_answer"), "{dialect:?}");
        assert_eq!(house.available().await, 1_000_000_000);
        // One that is there and says nothing has thought until its limit.
        let answer = Written::json(whole(dialect, Some(""), 500, 300));
        let (_house, _, row) = one("sqlite", dialect, &ask("gemini-long", false), answer, 1_000_000_000).await;
        assert_eq!((row.charge.nano(), row.counters.output), (500_000 + 600_000, 300), "{dialect:?}");
    }
}

/// The same in a stream, as its own client sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_answer_that_is_not_there_is_free() {
    for dialect in Dialect::ALL {
        let script = Scripted::start(vec![Written::events(streamed(dialect, None, 500, 300))]).await;
        let config = script.config(kind(dialect));
        let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
        let reply = Client(dialect).ask(&house, "gemini-long", "hello", true).await;
        let (status, call) = (reply.status(), call_id(&reply));
        let text = reply.text().await.expect("text");
        house.quiet().await;
        let row = house.row(call).await;
        assert_eq!(row.charge.nano(), 0, "{dialect:?} {status}: {text}");
    }
}
