//! What a stream keeps does not grow with its length, for any pair of dialects. Every field of a
//! stream shows in its debug text, so that is measured, and names what grew; what does not show
//! there (room reserved in vain) is measured by `resident.rs`. Only a client of Responses needs the
//! whole answer again at the end.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_dialects::{ReplyStream, Setup, ToolNames, Voice};
use tollgate_wire::{Dialect, StreamFault};

fn stream(from: Dialect, to: Dialect) -> ReplyStream {
    let voice =
        Voice { id: "call_1".into(), model: "public".into(), created: 7, wants_usage: true, ..Voice::default() };
    ReplyStream::new(Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 })
}

/// What comes before the text, and one piece of text or of a thought.
fn events(from: Dialect, thought: bool, text: &str) -> (Vec<Value>, Value) {
    match (from, thought) {
        (Dialect::Chat, _) => {
            let name = if thought { "reasoning_content" } else { "content" };
            (
                vec![],
                json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": [{"index": 0, "delta": {name: text}, "finish_reason": null}]}),
            )
        }
        (Dialect::Anthropic, _) => {
            let kind = if thought { "thinking" } else { "text" };
            (
                vec![
                    json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}}),
                ],
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": format!("{kind}_delta"), kind: text}}),
            )
        }
        (Dialect::Responses, _) => {
            let kind = if thought { "response.reasoning_text.delta" } else { "response.output_text.delta" };
            (
                vec![json!({"type": "response.created", "sequence_number": 0, "response": {"id": "r", "model": "up"}})],
                json!({"type": kind, "item_id": "i", "output_index": 0, "content_index": 0, "delta": text}),
            )
        }
        (Dialect::Gemini, _) => (
            vec![],
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text, "thought": thought}]}}], "modelVersion": "up"}),
        ),
    }
}

fn framed(from: Dialect, event: &Value) -> String {
    match from {
        Dialect::Anthropic | Dialect::Responses => {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
        }
        _ => format!("data: {event}\n\n"),
    }
}

/// Bytes held after so many pieces.
fn held(from: Dialect, to: Dialect, thought: bool, pieces: usize) -> usize {
    let mut stream = stream(from, to);
    let (before, piece) = events(from, thought, &"opens the gate ".repeat(1_000));
    for event in &before {
        stream.feed(Bytes::from(framed(from, event))).unwrap();
    }
    let piece = Bytes::from(framed(from, &piece));
    for _ in 0..pieces {
        stream.feed(piece.clone()).unwrap();
    }
    assert!(stream.counted_output() as usize > pieces * 1_000);
    format!("{stream:?}").len()
}

/// Pieces of 15,000 bytes. Where text is buffered for the places of citations, both lengths lie
/// beyond what is buffered of it (4 MiB).
const FEW: [usize; 2] = [20, 60];
const MANY: [usize; 2] = [290, 400];

#[test]
fn what_is_buffered_does_not_grow_with_the_stream() {
    for from in Dialect::ALL {
        for to in Dialect::ALL.into_iter().filter(|to| *to != Dialect::Responses || from == Dialect::Responses) {
            for thought in [false, true] {
                let places = !thought
                    && matches!(
                        (from, to),
                        (Dialect::Gemini, Dialect::Chat)
                            | (Dialect::Chat | Dialect::Anthropic | Dialect::Responses, Dialect::Gemini)
                    );
                let (lengths, most) = if places { (MANY, 5 << 20) } else { (FEW, 16 << 10) };
                let [short, long] = lengths.map(|pieces| held(from, to, thought, pieces));
                // The counters themselves have more digits.
                assert!(long.abs_diff(short) < 200, "{from:?} to {to:?}: {short} bytes, then {long}");
                assert!(long < most, "{from:?} to {to:?} holds {long} bytes");
            }
        }
    }
}

/// The last event of a Responses stream repeats all of it: what is buffered is the text once, not a
/// multiple of it.
#[test]
fn a_responses_client_costs_its_text_once() {
    let text = 15_000 * FEW[1];
    for from in [Dialect::Chat, Dialect::Anthropic, Dialect::Gemini] {
        let held = held(from, Dialect::Responses, false, FEW[1]);
        // Once more for the places of Gemini's citations.
        let times = if from == Dialect::Gemini { 2 } else { 1 };
        assert!((text * times..text * times + (64 << 10)).contains(&held), "{from:?}: {held} bytes for {text}");
    }
}

/// Arguments that wait for their turn have a bound, and beyond it the stream ends rather than lose
/// any.
#[test]
fn what_has_to_wait_is_bounded() {
    let call = |index: u64, args: &str| json!({"id": "c", "model": "up", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": args}}]}, "finish_reason": null}]});
    let long = "x".repeat(512 << 10);
    for to in [Dialect::Anthropic, Dialect::Responses, Dialect::Gemini] {
        let mut stream = stream(Dialect::Chat, to);
        let feed = |stream: &mut ReplyStream, event: &Value| stream.feed(Bytes::from(format!("data: {event}\n\n")));
        feed(&mut stream, &call(0, "{\"a\":\"")).unwrap();
        let ended = (0..80).find_map(|_| feed(&mut stream, &call(1, &long)).err());
        assert_eq!(ended.map(|broken| broken.fault), Some(StreamFault::TooLong), "{to:?}");
    }
}
