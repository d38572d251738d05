//! A reply as a message, whole or as events.

use serde_json::{Value, json};

use super::super::stream::{Beat, Role};
use super::super::{Dialect, Said, seal, usage};
use crate::scenario::Scenario as S;

pub(in super::super) fn object(said: &Said<'_>) -> Value {
    let blocks: Vec<_> = blocks(said).into_iter().map(|block| block.whole).collect();
    let mut message = message(said, Value::from(blocks));
    let stop = stop(said);
    message["stop_reason"] = stop["stop_reason"].clone();
    message["stop_sequence"] = stop["stop_sequence"].clone();
    if let Some(details) = stop.get("stop_details") {
        message["stop_details"] = details.clone();
    }
    if let Some(usage) = usage::reported(Dialect::Anthropic, said) {
        message["usage"] = usage;
    }
    message
}

pub(in super::super) fn beats(said: &Said<'_>) -> Vec<Beat> {
    let mut start = message(said, json!([]));
    if !said.choice.is(S::NoUsage) {
        start["usage"] = usage::of(Dialect::Anthropic, said, 1.min(said.speech.completion_tokens));
    }
    let mut beats = vec![
        Beat::new(Role::Head, "message_start", json!({"type": "message_start", "message": start})),
        Beat::new(Role::Head, "ping", json!({"type": "ping"})),
    ];
    for (index, block) in blocks(said).into_iter().enumerate() {
        let name = "content_block_start";
        let data = json!({"type": name, "index": index, "content_block": block.start});
        beats.push(Beat::new(Role::Frame, name, data));
        for delta in block.deltas {
            let name = "content_block_delta";
            // A signature is no content; neither is the empty piece in front of arguments.
            let piece = delta["type"] != "signature_delta" && delta["partial_json"] != "";
            let role = if piece { Role::Piece } else { Role::Frame };
            beats.push(Beat::new(role, name, json!({"type": name, "index": index, "delta": delta})));
        }
        let name = "content_block_stop";
        beats.push(Beat::new(Role::Frame, name, json!({"type": name, "index": index})));
    }
    if said.choice.is(S::TwoUsages) {
        let running = usage::of(Dialect::Anthropic, said, said.speech.completion_tokens / 2);
        beats.push(finish(json!({"stop_reason": null, "stop_sequence": null}), Some(running)));
    }
    beats.push(finish(stop(said), usage::reported(Dialect::Anthropic, said)));
    beats.push(Beat::new(Role::End, "message_stop", json!({"type": "message_stop"})));
    beats
}

fn finish(delta: Value, usage: Option<Value>) -> Beat {
    let mut data = json!({"type": "message_delta", "delta": delta});
    if let Some(usage) = usage {
        data["usage"] = usage;
    }
    Beat::new(Role::Finish, "message_delta", data)
}

fn message(said: &Said<'_>, content: Value) -> Value {
    json!({
        "id": said.id("msg_"), "type": "message", "role": "assistant", "model": said.model(), "content": content,
        "stop_reason": null, "stop_sequence": null,
    })
}

fn stop(said: &Said<'_>) -> Value {
    let speech = said.speech;
    if speech.refused {
        let details = json!({"type": "refusal", "category": null, "explanation": "The simulator was told to refuse."});
        return json!({"stop_reason": "refusal", "stop_sequence": null, "stop_details": details});
    }
    let reason = match speech.finish {
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        _ if speech.stopped_by.is_some() => "stop_sequence",
        _ => "end_turn",
    };
    json!({"stop_reason": reason, "stop_sequence": speech.stopped_by})
}

struct Block {
    whole: Value,
    start: Value,
    deltas: Vec<Value>,
}

fn blocks(said: &Said<'_>) -> Vec<Block> {
    let speech = said.speech;
    let mut blocks = Vec::new();
    if !speech.reasoning.is_empty() {
        blocks.push(thought(said));
    }
    if !speech.pieces.is_empty() {
        blocks.push(Block {
            whole: json!({"type": "text", "text": speech.text()}),
            start: json!({"type": "text", "text": ""}),
            deltas: speech.pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
        });
    }
    for call in &speech.calls {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let id = call.id.replace("call_", "toolu_");
        let piece = |text: String| json!({"type": "input_json_delta", "partial_json": text});
        let empty = input.as_object().is_some_and(serde_json::Map::is_empty);
        let pieces = if empty { Vec::new() } else { call.pieces() };
        blocks.push(Block {
            whole: json!({"type": "tool_use", "id": id, "name": call.name, "input": input}),
            start: json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}),
            deltas: std::iter::once(String::new()).chain(pieces).map(piece).collect(),
        });
    }
    blocks
}

fn thought(said: &Said<'_>) -> Block {
    if said.choice.text("kind") == Some("redacted") {
        let whole = json!({"type": "redacted_thinking", "data": seal::of("redacted", "")});
        return Block { start: whole.clone(), whole, deltas: Vec::new() };
    }
    let text = said.thoughts();
    let signature = seal::of("anthropic", &text);
    let words = said.speech.reasoning.iter().enumerate();
    let piece = |(at, word): (usize, &String)| {
        let space = if at == 0 { "" } else { " " };
        json!({"type": "thinking_delta", "thinking": format!("{space}{word}")})
    };
    let end = json!({"type": "signature_delta", "signature": signature});
    Block {
        whole: json!({"type": "thinking", "thinking": text, "signature": signature}),
        start: json!({"type": "thinking", "thinking": "", "signature": ""}),
        deltas: words.map(piece).chain([end]).collect(),
    }
}
