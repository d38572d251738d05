//! How a stream ends: what its last report covers, what counts as the end of it, and when the end
//! is missing.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_dialects::{ReplyStream, Setup, StreamEnd, ToolNames, Voice};
use tollgate_wire::Dialect;

const C: Dialect = Dialect::Chat;
const A: Dialect = Dialect::Anthropic;
const R: Dialect = Dialect::Responses;
const G: Dialect = Dialect::Gemini;

struct Played {
    stream: ReplyStream,
    text: String,
    end: &'static str,
}

fn play(from: Dialect, to: Dialect, events: &[Value]) -> Played {
    play_choices(1, from, to, events)
}

fn play_choices(choices: u64, from: Dialect, to: Dialect, events: &[Value]) -> Played {
    let voice = Voice { id: "call_1".into(), model: "public".into(), created: 7, choices, ..Voice::default() };
    let setup = Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let mut out = Vec::new();
    for event in events {
        let event = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        out.extend_from_slice(&stream.feed(Bytes::from(format!("data: {event}\n\n"))).unwrap());
    }
    let end = match stream.finish() {
        StreamEnd::Complete { tail } => {
            out.extend_from_slice(&tail);
            "complete"
        }
        StreamEnd::Truncated { rest } => {
            out.extend_from_slice(&rest);
            "truncated"
        }
        StreamEnd::Fault(fault) => panic!("{fault:?}"),
    };
    Played { stream, text: String::from_utf8(out).unwrap(), end }
}

/// One answer whose last event says something and reports what all was used: 9 tokens in, 3 out.
fn said_with_the_report(from: Dialect) -> Vec<Vec<Value>> {
    let chat = json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12});
    let chunk = |choices: Value| json!({"id": "c", "created": 1, "model": "up", "choices": choices});
    match from {
        Dialect::Chat => {
            let mut last =
                chunk(json!([{"index": 0, "delta": {"content": "and so it ends"}, "finish_reason": "stop"}]));
            last["usage"] = chat.clone();
            // A report in the first of two choices.
            let inside = chunk(json!([
                {"index": 0, "delta": {"content": "and so it ends"}, "finish_reason": "stop", "usage": chat},
                {"index": 1, "delta": {"content": "and so does this"}, "finish_reason": "stop"}
            ]));
            // A call without arguments is made whole at the end, which is none of the provider's
            // output.
            let call = json!({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f"}}]});
            let mut open = chunk(json!([{"index": 0, "delta": call, "finish_reason": null}]));
            open["usage"] = chat;
            vec![vec![last, json!("[DONE]")], vec![inside, json!("[DONE]")], vec![open, json!("[DONE]")]]
        }
        Dialect::Anthropic => {
            let begin = json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 9, "output_tokens": 1}}});
            let call = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}});
            // The block is not closed: its input comes with the reason of the stop.
            let last =
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}});
            vec![vec![begin, call, last, json!({"type": "message_stop"})]]
        }
        Dialect::Responses => {
            let item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "and so it ends", "annotations": []}]});
            let usage = json!({"input_tokens": 9, "output_tokens": 3, "total_tokens": 12});
            vec![vec![
                json!({"type": "response.completed", "response": {"id": "r", "model": "up", "status": "completed", "output": [item], "usage": usage}}),
            ]]
        }
        Dialect::Gemini => {
            let fragment = |text: &str| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}}], "modelVersion": "up"});
            let mut last = fragment("and so it ends");
            last["candidates"][0]["finishReason"] = json!("STOP");
            last["usageMetadata"] = json!({"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12});
            vec![vec![fragment("First this"), last]]
        }
    }
}

#[test]
fn a_report_covers_all_that_came_with_it() {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            for events in said_with_the_report(from) {
                let played = play(from, to, &events);
                let (usage, estimated) = played.stream.best_usage(1_000);
                let billed = (usage.input_total(), usage.output_total(), estimated);
                assert_eq!(billed, (9, 3, false), "{from:?} to {to:?}: {}", played.text);
                assert_eq!(played.end, "complete", "{from:?} to {to:?}: {}", played.text);
                assert!(played.stream.has_output(), "{from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn a_report_does_not_cover_what_comes_after_it() {
    let chat = |text: &str| json!({"id": "c", "model": "up", "choices": [{"index": 0, "delta": {"content": text}}]});
    let gemini = |text: &str| json!({"candidates": [{"index": 0, "content": {"parts": [{"text": text}]}}]});
    let with = |mut event: Value, name: &str, usage: Value| {
        event[name] = usage;
        event
    };
    let counted = json!({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10});
    let used = json!({"promptTokenCount": 9, "candidatesTokenCount": 1, "totalTokenCount": 10});
    for to in Dialect::ALL {
        let early = [with(chat("First"), "usage", counted.clone()), chat(" and then much more"), json!("[DONE]")];
        assert!(play(C, to, &early).stream.best_usage(1_000).1, "chat to {to:?}");
        let early = [with(gemini("First"), "usageMetadata", used.clone()), gemini(" and then much more")];
        assert!(play(G, to, &early).stream.best_usage(1_000).1, "Gemini to {to:?}");
    }
}

fn chunk(index: u64, text: &str, reason: Value) -> Value {
    let delta = if text.is_empty() { json!({}) } else { json!({"content": text}) };
    json!({"id": "c", "created": 1, "model": "up", "choices": [{"index": index, "delta": delta, "finish_reason": reason}]})
}

fn fragment(index: u64, text: &str, reason: Value) -> Value {
    let mut candidate = json!({"index": index, "content": {"role": "model", "parts": [{"text": text}]}});
    if !reason.is_null() {
        candidate["finishReason"] = reason;
    }
    json!({"candidates": [candidate], "modelVersion": "up"})
}

/// Case 93, and its border: many servers leave out the mark after the reason of the stop.
#[test]
fn a_stream_without_its_mark_is_whole_if_it_said_why_it_stopped() {
    let begin = json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 9, "output_tokens": 1}}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "said"}});
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}});
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": "said"});
    let closed = json!({"type": "response.output_text.done", "output_index": 0, "item_id": "i", "text": "said"});
    let (said, over) = (chunk(0, "said", Value::Null), chunk(0, "", json!("stop")));
    let (part, last) = (fragment(0, "said", Value::Null), fragment(0, " all", json!("STOP")));
    for (from, events, whole) in [
        (C, vec![said.clone()], false),
        (C, vec![said, over], true),
        (A, vec![begin.clone(), block.clone()], false),
        (A, vec![begin, block, stop], true),
        // A response says in its last event only how it ended.
        (R, vec![delta, closed], false),
        (G, vec![part.clone()], false),
        (G, vec![part, last], true),
    ] {
        for to in Dialect::ALL {
            let Played { text, end, stream } = play(from, to, &events);
            assert_eq!(end, if whole { "complete" } else { "truncated" }, "{from:?} to {to:?}: {text}");
            assert!(text.contains("said"), "{from:?} to {to:?}: {text}");
            let mark = match to {
                Dialect::Chat => "data: [DONE]",
                Dialect::Anthropic => "event: message_stop",
                Dialect::Responses => "event: response.completed",
                Dialect::Gemini => "finishReason",
            };
            assert_eq!(text.contains(mark), whole, "{from:?} to {to:?}: {text}");
            // What was asked for and did not come is counted, and reported as counted.
            assert_eq!(stream.best_usage(1_000).1, from != A || !whole, "{from:?} to {to:?}");
        }
    }
}

/// One of two choices ends, the other one is cut in the middle or never comes.
#[test]
fn every_choice_that_was_asked_for_must_end() {
    let none = Value::Null;
    for to in [C, G] {
        for (from, one, other, over) in [
            (
                C,
                [chunk(0, "one", none.clone()), chunk(0, "", json!("stop"))],
                chunk(1, "two", none.clone()),
                chunk(1, "", json!("stop")),
            ),
            (
                G,
                [fragment(0, "one", none.clone()), fragment(0, " all", json!("STOP"))],
                fragment(1, "two", none.clone()),
                fragment(1, " all", json!("STOP")),
            ),
        ] {
            let [first, stop] = one;
            let cut = [first.clone(), other.clone(), stop.clone()];
            assert_eq!(play_choices(2, from, to, &cut).end, "truncated", "{from:?} to {to:?}");
            let alone = [first.clone(), stop.clone()];
            assert_eq!(play_choices(2, from, to, &alone).end, "truncated", "{from:?} to {to:?}: one never came");
            assert_eq!(play_choices(1, from, to, &alone).end, "complete", "{from:?} to {to:?}");
            let both = [first, other, stop, over];
            assert_eq!(play_choices(2, from, to, &both).end, "complete", "{from:?} to {to:?}");
        }
        // The provider says itself that it is over: what it left open is closed.
        let call = json!({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}]});
        let mut calls = chunk(1, "", none.clone());
        calls["choices"][0]["delta"] = call;
        let done = [chunk(0, "one", none.clone()), calls, chunk(0, "", json!("length")), json!("[DONE]")];
        let played = play_choices(2, C, to, &done);
        assert_eq!(played.end, "complete", "{to:?}");
        if to == C {
            assert!(played.text.contains(r#"{"index":1,"delta":{},"finish_reason":"tool_calls"}"#), "{}", played.text);
            assert_eq!(played.text.matches("\"finish_reason\":\"").count(), 2, "{}", played.text);
        }
    }
    // A refused prompt is the end of all choices.
    let blocked = [json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "up"})];
    for to in [C, G] {
        assert_eq!(play_choices(2, G, to, &blocked).end, "complete", "{to:?}");
    }
}
