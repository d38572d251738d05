//! A reply as a Response, whole or as events with their sequence numbers.

use serde_json::{Map, Value, json};

use super::super::stream::{Beat, Role};
use super::super::{Dialect, Said, seal, usage};
use crate::made::Made;
use crate::refusal::Refusal;
use crate::reply::CREATED;
use crate::scenario::Scenario as S;
use crate::speech::Call;

pub(in super::super) fn object(said: &Said<'_>) -> Value {
    let output = items(said).into_iter().map(|item| item.whole).collect();
    finished(said, output)
}

pub(in super::super) fn beats(said: &Said<'_>) -> Vec<Beat> {
    let mut events = Events { beats: Vec::new() };
    let begun = response(said, "in_progress", json!([]), Value::Null);
    events.add(Role::Head, "response.created", json!({"response": begun}));
    events.add(Role::Head, "response.in_progress", json!({"response": begun}));
    let mut output = Vec::new();
    for (index, item) in items(said).into_iter().enumerate() {
        events.add(Role::Frame, "response.output_item.added", json!({"output_index": index, "item": item.start}));
        for (role, name, mut data) in item.events {
            data["output_index"] = json!(index);
            events.add(role, name, data);
        }
        events.add(Role::Frame, "response.output_item.done", json!({"output_index": index, "item": item.whole}));
        output.push(item.whole);
    }
    let whole = finished(said, output.into());
    let name = if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    // Reason and end are one event; without it the stream has neither.
    let role = if said.choice.is(S::NoFinish) { Role::Finish } else { Role::End };
    events.add(role, name, json!({"response": whole}));
    events.beats
}

/// An error in mid-stream: the `error` event, and the response that failed.
pub(in super::super) fn failures(said: &Said<'_>, refusal: &Refusal, sequence: usize) -> Vec<Beat> {
    let kind = said.choice.text("kind");
    let mut beats = Vec::new();
    if kind != Some("failed") {
        let (code, message) = (&refusal.code, &refusal.message);
        let number = sequence + beats.len();
        let data = json!({"type": "error", "code": code, "message": message, "param": null, "sequence_number": number});
        beats.push(Beat::new(Role::End, "error", data));
    }
    if kind != Some("flat") {
        let mut failed = response(said, "failed", json!([]), Value::Null);
        failed["error"] = json!({"code": refusal.code, "message": refusal.message});
        let number = sequence + beats.len();
        let data = json!({"type": "response.failed", "sequence_number": number, "response": failed});
        beats.push(Beat::new(Role::End, "response.failed", data));
    }
    beats
}

struct Events {
    beats: Vec<Beat>,
}

impl Events {
    fn add(&mut self, role: Role, name: &'static str, data: Value) {
        let mut event = Map::new();
        event.insert("type".to_string(), json!(name));
        event.insert("sequence_number".to_string(), json!(self.beats.len()));
        event.extend(data.as_object().cloned().unwrap_or_default());
        self.beats.push(Beat::new(role, name, Value::Object(event)));
    }
}

fn finished(said: &Said<'_>, output: Value) -> Value {
    let usage = usage::reported(Dialect::Responses, said).unwrap_or_default();
    let cut = said.speech.finish == "length";
    let mut response = response(said, if cut { "incomplete" } else { "completed" }, output, usage);
    if cut {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    } else {
        response["completed_at"] = json!(CREATED + 1);
    }
    response
}

fn response(said: &Said<'_>, status: &str, output: Value, usage: Value) -> Value {
    json!({
        "id": said.id("resp_"), "object": "response", "created_at": CREATED, "completed_at": null, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": said.ask.instructions,
        "max_output_tokens": said.ask.limit, "max_tool_calls": null, "model": said.model(), "output": output,
        "parallel_tool_calls": !said.ask.one_call, "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null}, "safety_identifier": null, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
        "usage": usage, "user": null, "metadata": {},
    })
}

struct Item {
    whole: Value,
    start: Value,
    events: Vec<(Role, &'static str, Value)>,
}

fn items(said: &Said<'_>) -> Vec<Item> {
    let speech = said.speech;
    let mut items = Vec::new();
    if !speech.reasoning.is_empty() {
        items.push(thought(said));
    }
    items.extend(drawn(said));
    if !speech.pieces.is_empty() {
        items.push(message(said));
    }
    items.extend(speech.calls.iter().enumerate().map(|(place, call)| called(said, place, call)));
    items
}

/// The seal is bound to the item's id.
fn thought(said: &Said<'_>) -> Item {
    let id = said.id("rs_");
    let text = said.thoughts();
    let sealed = format!("{id}.{}", seal::of("openai", &id));
    let part = json!({"type": "summary_text", "text": text});
    let shown = said.ask.shows_thoughts;
    let summary = if shown { json!([part]) } else { json!([]) };
    let mut events = Vec::new();
    if shown {
        let place = json!({"item_id": id, "summary_index": 0});
        let with = |name: &str, value: Value| with(&place, name, value);
        let empty = json!({"type": "summary_text", "text": ""});
        events.push((Role::Frame, "response.reasoning_summary_part.added", with("part", empty)));
        for (at, word) in said.speech.reasoning.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            let delta = with("delta", json!(format!("{space}{word}")));
            events.push((Role::Piece, "response.reasoning_summary_text.delta", delta));
        }
        events.push((Role::Frame, "response.reasoning_summary_text.done", with("text", json!(text))));
        events.push((Role::Frame, "response.reasoning_summary_part.done", with("part", part)));
    }
    Item {
        whole: json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": sealed}),
        // What is sealed so far; only the end has all of it.
        start: json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": "incomplete"}),
        events,
    }
}

/// The picture, where its tool was offered.
fn drawn(said: &Said<'_>) -> Option<Item> {
    let made = &said.speech.made;
    if *made != Made::Picture {
        return None;
    }
    let id = said.id("ig_");
    let item = |status: &str, result: Value| {
        json!({
            "id": id, "type": "image_generation_call", "status": status, "result": result, "output_format": "png",
            "revised_prompt": "a gate", "size": "1024x1024", "quality": "medium", "background": "opaque",
        })
    };
    let at = json!({"item_id": id});
    let events = ["in_progress", "generating", "completed"].map(|step| {
        let name = match step {
            "in_progress" => "response.image_generation_call.in_progress",
            "generating" => "response.image_generation_call.generating",
            _ => "response.image_generation_call.completed",
        };
        (Role::Frame, name, at.clone())
    });
    Some(Item {
        whole: item("completed", json!(made.letters())),
        start: item("in_progress", Value::Null),
        events: events.into(),
    })
}

fn message(said: &Said<'_>) -> Item {
    let speech = said.speech;
    let id = said.id("msg_");
    let (kind, field, delta, done) = if speech.refused {
        ("refusal", "refusal", "response.refusal.delta", "response.refusal.done")
    } else {
        ("output_text", "text", "response.output_text.delta", "response.output_text.done")
    };
    let part = |text: &str| {
        let mut part = json!({"type": kind, field: text});
        if !speech.refused {
            part["annotations"] = json!([]);
            part["logprobs"] = json!([]);
        }
        part
    };
    let mut place = json!({"item_id": id, "content_index": 0});
    let opening = with(&place, "part", part(""));
    let closing = with(&place, "part", part(&speech.text()));
    if !speech.refused {
        place["logprobs"] = json!([]);
    }
    let mut events = vec![(Role::Frame, "response.content_part.added", opening)];
    events.extend(speech.pieces.iter().map(|piece| (Role::Piece, delta, with(&place, "delta", json!(piece)))));
    events.push((Role::Frame, done, with(&place, field, json!(speech.text()))));
    events.push((Role::Frame, "response.content_part.done", closing));
    let status = if speech.finish == "length" { "incomplete" } else { "completed" };
    let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
    Item { whole: item(status, json!([part(&speech.text())])), start: item("in_progress", json!([])), events }
}

fn called(said: &Said<'_>, place: usize, call: &Call) -> Item {
    // A call that came of a thought says so in its id, and cannot be sent back without it.
    let thought = if said.speech.reasoning.is_empty() { "" } else { "thought_" };
    let prefix = if call.free { "ctc_" } else { "fc_" };
    let id = format!("{}_{place}", said.id(&format!("{prefix}{thought}")));
    let (kind, field, delta, done) = if call.free {
        let (delta, done) = ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done");
        ("custom_tool_call", "input", delta, done)
    } else {
        let (delta, done) = ("response.function_call_arguments.delta", "response.function_call_arguments.done");
        ("function_call", "arguments", delta, done)
    };
    let at = json!({"item_id": id});
    let mut events: Vec<_> =
        call.pieces().into_iter().map(|piece| (Role::Piece, delta, with(&at, "delta", json!(piece)))).collect();
    let whole = with(&at, field, json!(call.arguments));
    // Clients of one major version insist on the name.
    let whole = if call.free { whole } else { with(&whole, "name", json!(call.name)) };
    events.push((Role::Frame, done, whole));
    let item = |status: &str, text: &str| json!({"id": id, "type": kind, "status": status, "call_id": call.id, "name": call.name, field: text});
    Item { whole: item("completed", &call.arguments), start: item("in_progress", ""), events }
}

fn with(place: &Value, name: &str, value: Value) -> Value {
    let mut data = place.clone();
    data[name] = value;
    data
}
