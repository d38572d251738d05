//! A response as OpenAI's events tell it, put together from what a provider says without such
//! order: opened with the first word, closed by its end.

use serde_json::{Value, json};

/// What has been said of the response that runs.
struct Open {
    id: String,
    done: Vec<Value>,
    message: Option<Message>,
    metadata: Value,
}

/// The message that is being said.
struct Message {
    id: String,
    said: String,
    audio: bool,
}

/// Makes events.
pub(super) struct GeminiTurn {
    /// What all ids of this session begin with.
    seed: String,
    ids: u64,
    open: Option<Open>,
    previous: Value,
    events: Vec<String>,
}

impl GeminiTurn {
    pub(super) fn new(seed: &str) -> GeminiTurn {
        GeminiTurn { seed: seed.to_string(), ids: 0, open: None, previous: Value::Null, events: Vec::new() }
    }

    pub(super) fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}_{}", self.seed, self.ids)
    }

    pub(super) fn say(&mut self, mut event: Value) {
        event["event_id"] = json!(self.new_id("event"));
        self.events.push(event.to_string());
    }

    pub(super) fn refuse(&mut self, about: &Value, param: &str, message: &str) {
        let id = self.new_id("event");
        self.events.push(super::super::ga::error(&id, about, param, message));
    }

    /// An error without a field, by its code.
    pub(super) fn error(&mut self, about: &Value, code: &str, message: &str) {
        let error = json!({
            "type": "invalid_request_error", "code": code, "message": message, "param": null,
            "event_id": about["event_id"],
        });
        self.say(json!({"type": "error", "error": error}));
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether what follows this item stands at the end. Nothing said is the end, and `root` is the
    /// beginning.
    pub(super) fn is_last(&self, id: &Value) -> bool {
        let said = self.open.as_ref().and_then(|open| open.message.as_ref());
        id.is_null()
            || *id == self.previous
            || (*id == "root" && self.previous.is_null())
            || said.is_some_and(|message| *id == message.id)
    }

    /// An item that the client has made, or the provider has heard.
    pub(super) fn item(&mut self, item: &Value) {
        let previous = std::mem::replace(&mut self.previous, item["id"].clone());
        for kind in ["conversation.item.added", "conversation.item.done"] {
            self.say(json!({"type": kind, "previous_item_id": previous, "item": item}));
        }
    }

    pub(super) fn begin(&mut self, session: &Value, metadata: Value) {
        if self.open.is_some() {
            return;
        }
        let id = self.new_id("resp");
        self.open = Some(Open { id, done: Vec::new(), message: None, metadata });
        let response = self.object(session, "in_progress", Value::Null, Value::Null);
        self.say(json!({"type": "response.created", "response": response}));
    }

    /// Begins the message if there is none.
    fn message(&mut self, audio: bool) {
        if self.open.as_ref().is_none_or(|open| open.message.is_some()) {
            return;
        }
        let id = self.new_id("item");
        let Some(open) = &mut self.open else { return };
        let (response, at) = (open.id.clone(), open.done.len());
        open.message = Some(Message { id: id.clone(), said: String::new(), audio });
        let item = json!({
            "id": id, "object": "realtime.item", "type": "message", "status": "in_progress", "role": "assistant",
            "content": [],
        });
        let part = if audio { json!({"type": "audio", "transcript": ""}) } else { json!({"type": "text", "text": ""}) };
        let previous = self.previous.clone();
        self.say(json!({
            "type": "response.output_item.added", "response_id": response, "output_index": at, "item": item,
        }));
        self.say(json!({"type": "conversation.item.added", "previous_item_id": previous, "item": item}));
        self.say(json!({
            "type": "response.content_part.added", "response_id": response, "item_id": id, "output_index": at,
            "content_index": 0, "part": part,
        }));
    }

    fn delta(&mut self, kind: &str, delta: &str, audio: bool, words: bool) {
        self.message(audio);
        let Some(open) = &mut self.open else { return };
        let (response, at) = (open.id.clone(), open.done.len());
        let Some(message) = &mut open.message else { return };
        if words {
            message.said.push_str(delta);
        }
        let item = message.id.clone();
        self.say(json!({
            "type": kind, "response_id": response, "item_id": item, "output_index": at, "content_index": 0,
            "delta": delta,
        }));
    }

    pub(super) fn text(&mut self, delta: &str) {
        self.delta("response.output_text.delta", delta, false, true);
    }

    pub(super) fn transcript(&mut self, delta: &str) {
        self.delta("response.output_audio_transcript.delta", delta, true, true);
    }

    pub(super) fn audio(&mut self, base64: &str) {
        self.delta("response.output_audio.delta", base64, true, false);
    }

    /// Ends the message; its item is `completed` or `incomplete`.
    pub(super) fn end_message(&mut self, status: &str) {
        let Some(open) = &mut self.open else { return };
        let Some(message) = open.message.take() else { return };
        let (response, at) = (open.id.clone(), open.done.len());
        let part = if message.audio {
            json!({"type": "output_audio", "transcript": message.said})
        } else {
            json!({"type": "output_text", "text": message.said})
        };
        let item = json!({
            "id": message.id, "object": "realtime.item", "type": "message", "status": status, "role": "assistant",
            "content": [part],
        });
        open.done.push(item.clone());
        let place = json!({
            "response_id": response, "item_id": message.id, "output_index": at, "content_index": 0,
        });
        let mut placed = |kind: &str, rest: Value| {
            let mut event = place.clone();
            super::super::json::merge(&mut event, &rest);
            event["type"] = json!(kind);
            self.say(event);
        };
        if message.audio {
            placed("response.output_audio.done", json!({}));
            placed("response.output_audio_transcript.done", json!({"transcript": message.said}));
            let part = json!({"type": "audio", "transcript": message.said});
            placed("response.content_part.done", json!({"part": part}));
        } else {
            placed("response.output_text.done", json!({"text": message.said}));
            placed("response.content_part.done", json!({"part": {"type": "text", "text": message.said}}));
        }
        self.item_done(&item, &response, at);
    }

    fn item_done(&mut self, item: &Value, response: &str, at: usize) {
        let previous = std::mem::replace(&mut self.previous, item["id"].clone());
        self.say(json!({"type": "conversation.item.done", "previous_item_id": previous, "item": item}));
        self.say(json!({
            "type": "response.output_item.done", "response_id": response, "output_index": at, "item": item,
        }));
    }

    /// A function that is to be called. Its item's id.
    pub(super) fn call(&mut self, call_id: &str, name: &str, arguments: &str) -> String {
        self.end_message("completed");
        let id = self.new_id("item");
        let Some(open) = &mut self.open else { return id };
        let (response, at) = (open.id.clone(), open.done.len());
        let item = |status: &str, arguments: &str| {
            json!({
                "id": id, "object": "realtime.item", "type": "function_call", "status": status, "name": name,
                "call_id": call_id, "arguments": arguments,
            })
        };
        let (first, last) = (item("in_progress", ""), item("completed", arguments));
        open.done.push(last.clone());
        let previous = self.previous.clone();
        self.say(json!({
            "type": "response.output_item.added", "response_id": response, "output_index": at, "item": first,
        }));
        self.say(json!({"type": "conversation.item.added", "previous_item_id": previous, "item": first}));
        let place = json!({"response_id": response, "item_id": id, "output_index": at, "call_id": call_id});
        let mut delta = place.clone();
        delta["type"] = json!("response.function_call_arguments.delta");
        delta["delta"] = json!(arguments);
        self.say(delta);
        let mut done = place;
        done["type"] = json!("response.function_call_arguments.done");
        (done["arguments"], done["name"]) = (json!(arguments), json!(name));
        self.say(done);
        self.item_done(&last, &response, at);
        id
    }

    /// The end of the response.
    pub(super) fn done(&mut self, session: &Value, status: &str, details: Value, usage: Value) {
        if self.open.is_none() {
            return;
        }
        self.end_message(if status == "completed" { "completed" } else { "incomplete" });
        let response = self.object(session, status, details, usage);
        self.open = None;
        self.say(json!({"type": "response.done", "response": response}));
    }

    fn object(&self, session: &Value, status: &str, details: Value, usage: Value) -> Value {
        let Some(open) = &self.open else { return Value::Null };
        json!({
            "object": "realtime.response", "id": open.id, "status": status, "status_details": details,
            "output": open.done, "conversation_id": format!("conv_{}", self.seed),
            "output_modalities": session["output_modalities"], "max_output_tokens": session["max_output_tokens"],
            "audio": {"output": {
                "format": session["audio"]["output"]["format"], "voice": session["audio"]["output"]["voice"],
            }},
            "usage": usage, "metadata": open.metadata,
        })
    }
}
