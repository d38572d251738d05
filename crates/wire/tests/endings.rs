//! How a stream ends: what its last report covers, what counts as the end of it, and when the end is missing.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_wire::{Dialect, Names, Setup, Stream, StreamEnd, Voice};

const C: Dialect = Dialect::Chat;
const G: Dialect = Dialect::Gemini;

struct Played {
    stream: Stream,
    text: String,
    end: &'static str,
}

fn play(from: Dialect, to: Dialect, events: &[Value]) -> Played {
    let voice = Voice { id: "call_1".into(), model: "public".into(), created: 7, ..Voice::default() };
    let setup = Setup { from, to, voice, names: Names::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = Stream::new(setup);
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
            // A call without arguments is made whole at the end, which is none of the provider's output.
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
