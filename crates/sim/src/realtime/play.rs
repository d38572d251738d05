//! One response, event by event, in the order of the provider: `response.created`, its item, its
//! part, deltas, all the ends, `response.done`. Each step is asked for when the last one is out, so
//! that an event of the client gets in between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;

use super::scenario::Choice;
use super::sound::Coding;
use super::talk::{Tokens, words};

/// The model's audio comes in pieces of so many milliseconds, a word in each.
const PIECE_MS: u64 = 100;

/// What a response does next.
pub(super) enum Act {
    Say(Vec<Value>),
    /// The item is finished: it belongs to the conversation from now on.
    Keep(Value, Tokens, Vec<Value>),
    Wait(Duration),
    /// Where a test may hold it.
    Gate,
    /// Nothing until the client does something.
    Stay,
    Raw(Raw),
    Over,
}

/// What it waits for before its next step.
pub(super) type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) async fn waited(pause: &mut Option<Pause>) {
    if let Some(pause) = pause {
        pause.await;
    }
}

/// Frames that are no events, and ends of the connection.
pub(super) enum Raw {
    Text(String),
    Binary(Vec<u8>),
    BadText(Vec<u8>),
    Close(u16, &'static str),
    Cut { reset: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Created,
    Gate,
    Think,
    Item,
    Deltas,
    Ends,
    Done,
    Over,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Text,
    Audio,
    Call { name: String, arguments: String },
}

pub(super) struct Play {
    pub id: String,
    pub choice: Choice,
    pub watch: crate::record::Watch,
    pub usage: Value,
    kind: Kind,
    coding: Coding,
    voice: Value,
    most: Value,
    metadata: Value,
    conversation: Value,
    previous: Value,
    input: (Tokens, Tokens),
    stage: Stage,
    total: u64,
    sent: u64,
    waited: bool,
    faulted: bool,
    calls: u64,
    made: u64,
    status: (&'static str, Value),
    done: Vec<Value>,
}

/// What a response is made of.
pub(super) struct Order<'a> {
    pub id: String,
    pub choice: Choice,
    pub watch: crate::record::Watch,
    pub session: &'a Value,
    pub response: &'a Value,
    pub coding: Coding,
    pub conversation: Value,
    pub previous: Value,
    pub input: (Tokens, Tokens),
}

impl Play {
    pub(super) fn new(order: Order<'_>) -> Play {
        let Order { id, choice, watch, session, response, coding, conversation, previous, input } = order;
        let asked = |name: &str| if response[name].is_null() { &session[name] } else { &response[name] };
        let call = called(&choice, asked("tools"), asked("tool_choice"));
        let kind = match call {
            Some((name, arguments)) => Kind::Call { name, arguments },
            None if *asked("output_modalities") == json!(["text"]) => Kind::Text,
            None => Kind::Audio,
        };
        let voice = match &response["audio"]["output"]["voice"] {
            Value::Null => session["audio"]["output"]["voice"].clone(),
            voice => voice.clone(),
        };
        let most = asked("max_output_tokens").clone();
        let calls = choice.number("calls").unwrap_or(1);
        let mut play = Play {
            id,
            kind,
            coding,
            voice,
            most,
            metadata: response["metadata"].clone(),
            conversation,
            previous,
            input,
            stage: Stage::Created,
            total: 0,
            sent: 0,
            waited: false,
            faulted: false,
            calls,
            made: 0,
            status: ("completed", Value::Null),
            done: Vec::new(),
            choice,
            watch,
            usage: Value::Null,
        };
        play.total = play.length();
        play
    }

    /// Deltas in all; fewer where `max_output_tokens` says so.
    fn length(&mut self) -> u64 {
        let wanted = match &self.kind {
            Kind::Call { arguments, .. } => u64::try_from(arguments.len().div_ceil(8)).unwrap_or(1),
            Kind::Audio => {
                let ms = self.choice.number("ms");
                ms.map(|ms| ms.div_ceil(PIECE_MS)).or(self.choice.number("tokens")).unwrap_or(8)
            }
            Kind::Text => self.choice.number("tokens").unwrap_or(8),
        };
        let each = if self.kind == Kind::Audio { 1 + PIECE_MS / 50 } else { 1 };
        let room = self.most.as_u64().map_or(u64::MAX, |most| most / each);
        if wanted > room && !self.choice.is("ignore_max") && !matches!(self.kind, Kind::Call { .. }) {
            self.status = ("incomplete", json!({"type": "incomplete", "reason": "max_output_tokens"}));
            return room;
        }
        wanted
    }

    pub(super) fn is_audio(&self) -> bool {
        self.kind == Kind::Audio
    }

    fn item_id(&self) -> String {
        format!("item_{}_{}", self.id, self.made)
    }

    fn call_id(&self) -> String {
        format!("call_{}_{}", self.id, self.made)
    }

    fn word(at: u64) -> String {
        const WORDS: [&str; 8] = ["the", "toll", "is", "paid", "and", "the", "gate", "opens"];
        let word = WORDS[usize::try_from(at).unwrap_or(0) % WORDS.len()];
        if at == 0 { word.to_string() } else { format!(" {word}") }
    }

    fn said(&self) -> String {
        (0..self.sent).map(Self::word).collect()
    }

    /// All of it is said.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    pub(super) fn step(&mut self) -> Act {
        match self.stage {
            Stage::Created => {
                self.stage = Stage::Gate;
                let limits = json!([
                    {"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60.0},
                    {"name": "tokens", "limit": 50_000, "remaining": 45_000, "reset_seconds": 6.0},
                ]);
                Act::Say(vec![
                    json!({"type": "response.created", "response": self.object("in_progress", &Value::Null)}),
                    json!({"type": "rate_limits.updated", "rate_limits": limits}),
                ])
            }
            Stage::Gate => {
                self.stage = Stage::Think;
                Act::Gate
            }
            Stage::Think => {
                self.stage = if self.choice.is("failed") { Stage::Done } else { Stage::Item };
                Act::Wait(Duration::from_millis(self.choice.number("think_ms").unwrap_or(0)))
            }
            Stage::Item => {
                self.stage = Stage::Deltas;
                Act::Say(self.opening())
            }
            Stage::Deltas => self.delta(),
            Stage::Ends => self.finish_item(if self.status.0 == "completed" { "completed" } else { "incomplete" }),
            Stage::Done => {
                self.stage = Stage::Over;
                self.close()
            }
            Stage::Over => Act::Over,
        }
    }

    fn delta(&mut self) -> Act {
        if !self.faulted && self.sent >= self.choice.number("after").unwrap_or(3).min(self.total) {
            let again = self.choice.is("hold") || self.choice.is("hang");
            self.faulted = !again;
            if let Some(act) = self.fault() {
                return act;
            }
        }
        if self.sent >= self.total {
            self.stage = Stage::Ends;
            return self.step();
        }
        if let Some(ms) = self.choice.number("delay_ms")
            && !std::mem::replace(&mut self.waited, true)
        {
            return Act::Wait(Duration::from_millis(ms));
        }
        self.waited = false;
        let at = self.sent;
        self.sent += 1;
        let (id, item) = (&self.id, self.item_id());
        let place = |kind: &str, delta: String| {
            json!({
                "type": kind, "response_id": id, "item_id": item, "output_index": self.made, "content_index": 0,
                "delta": delta,
            })
        };
        Act::Say(match &self.kind {
            Kind::Text => vec![place("response.output_text.delta", Self::word(at))],
            Kind::Audio => vec![
                place("response.output_audio_transcript.delta", Self::word(at)),
                place("response.output_audio.delta", STANDARD.encode(self.coding.tone(at * PIECE_MS, PIECE_MS))),
            ],
            Kind::Call { arguments, .. } => {
                let from = usize::try_from(at * 8).unwrap_or(0).min(arguments.len());
                let piece = arguments[from..(from + 8).min(arguments.len())].to_string();
                vec![json!({
                    "type": "response.function_call_arguments.delta", "response_id": id, "item_id": item,
                    "output_index": self.made, "call_id": self.call_id(), "delta": piece,
                })]
            }
        })
    }

    /// What the scenario does in the middle.
    fn fault(&self) -> Option<Act> {
        let text = |text: &str| Act::Raw(Raw::Text(text.to_string()));
        let code = || self.choice.number("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(1011);
        Some(match self.choice.name {
            "hold" | "hang" => Act::Stay,
            "cut" => Act::Raw(Raw::Cut { reset: self.choice.text("cut") != Some("fin") }),
            "close" => Act::Raw(Raw::Close(code(), "sim-edge-7.internal is going away")),
            "unknown_event" => {
                let kind = self.choice.text("kind").unwrap_or("response.telepathy.delta");
                Act::Say(vec![json!({"type": kind, "delta": "?"})])
            }
            "error_midway" => Act::Say(vec![json!({"type": "error", "error": leaky(&self.choice)})]),
            "huge" => {
                let mib = usize::try_from(self.choice.number("mib").unwrap_or(20)).unwrap_or(20);
                let delta = "A".repeat(mib << 20);
                Act::Say(vec![json!({
                    "type": "response.output_audio.delta", "response_id": self.id, "item_id": self.item_id(),
                    "output_index": 0, "content_index": 0, "delta": delta,
                })])
            }
            "garbage" => match self.choice.text("kind").unwrap_or("text") {
                "json" => text("{\"type\": \"response.output_text.delta\", \"delta\": \"cut"),
                "binary" => Act::Raw(Raw::Binary(vec![0, 159, 146, 150])),
                "utf8" => Act::Raw(Raw::BadText(vec![0x7b, 0xff, 0xfe, 0x7d])),
                "type" => text("{\"type\": 7}"),
                "empty" => text(""),
                _ => text("<html>502 Bad Gateway</html>"),
            },
            _ => return None,
        })
    }

    fn opening(&self) -> Vec<Value> {
        let item = self.item("in_progress", false);
        let (id, item_id) = (&self.id, self.item_id());
        let mut events = vec![
            json!({"type": "response.output_item.added", "response_id": id, "output_index": self.made, "item": item}),
            json!({"type": "conversation.item.added", "previous_item_id": self.previous, "item": item}),
        ];
        let part = match self.kind {
            Kind::Text => json!({"type": "text", "text": ""}),
            Kind::Audio => json!({"type": "audio", "transcript": ""}),
            Kind::Call { .. } => return events,
        };
        events.push(json!({
            "type": "response.content_part.added", "response_id": id, "item_id": item_id, "output_index": self.made,
            "content_index": 0, "part": part,
        }));
        events
    }

    /// The ends of the item that is being said.
    fn finish_item(&mut self, status: &str) -> Act {
        let item = self.item(status, true);
        let (id, item_id) = (self.id.clone(), self.item_id());
        let place = |kind: &str, rest: Value| {
            let mut event = json!({
                "type": kind, "response_id": id, "item_id": item_id, "output_index": self.made, "content_index": 0,
            });
            super::config::merge(&mut event, &rest);
            event
        };
        let mut events = match &self.kind {
            Kind::Text => vec![
                place("response.output_text.done", json!({"text": self.said()})),
                place("response.content_part.done", json!({"part": {"type": "text", "text": self.said()}})),
            ],
            Kind::Audio => vec![
                place("response.output_audio.done", json!({})),
                place("response.output_audio_transcript.done", json!({"transcript": self.said()})),
                place("response.content_part.done", json!({"part": {"type": "audio", "transcript": self.said()}})),
            ],
            Kind::Call { name, arguments } => vec![json!({
                "type": "response.function_call_arguments.done", "response_id": id, "item_id": item_id,
                "output_index": self.made, "call_id": self.call_id(), "name": name, "arguments": arguments,
            })],
        };
        events.push(json!({"type": "conversation.item.done", "previous_item_id": self.previous, "item": item}));
        events.push(json!({
            "type": "response.output_item.done", "response_id": id, "output_index": self.made, "item": item,
        }));
        self.previous = item["id"].clone();
        self.done.push(item.clone());
        let tokens = self.item_tokens();
        self.made += 1;
        self.stage = if self.made < self.calls && matches!(self.kind, Kind::Call { .. }) && status == "completed" {
            self.sent = 0;
            Stage::Item
        } else {
            Stage::Done
        };
        Act::Keep(item, tokens, events)
    }

    fn item_tokens(&self) -> Tokens {
        match &self.kind {
            Kind::Text => Tokens { text: self.sent, ..Tokens::default() },
            Kind::Audio => Tokens { text: self.sent, audio: self.sent * PIECE_MS / 50, image: 0 },
            Kind::Call { arguments, .. } => Tokens { text: 1 + words(arguments), ..Tokens::default() },
        }
    }

    fn close(&mut self) -> Act {
        match self.choice.name {
            "failed" => {
                self.status = ("failed", json!({"type": "failed", "error": leaky(&self.choice)}));
            }
            "incomplete" => {
                let reason = self.choice.text("reason").unwrap_or("content_filter");
                self.status = ("incomplete", json!({"type": "incomplete", "reason": reason}));
            }
            "no_done" => return Act::Over,
            _ => {}
        }
        self.usage = self.count();
        let usage = if self.choice.is("no_usage") { Value::Null } else { self.usage.clone() };
        let event = json!({"type": "response.done", "response": self.object(self.status.0, &usage)});
        let times = if self.choice.is("twice") { 2 } else { 1 };
        Act::Say(vec![event; times])
    }

    /// Ends it before its time. The events, and the item if it had begun.
    pub(super) fn cancel(&mut self, reason: &str) -> Vec<Act> {
        if self.choice.is("ignore_cancel") || self.choice.is("hang") {
            return Vec::new();
        }
        self.status = ("cancelled", json!({"type": "cancelled", "reason": reason}));
        let mut acts = Vec::new();
        if matches!(self.stage, Stage::Deltas | Stage::Ends) {
            acts.push(self.finish_item("incomplete"));
        }
        acts.push(self.close());
        self.stage = Stage::Over;
        acts
    }

    pub(super) fn is_out_of_band(&self) -> bool {
        self.conversation.is_null()
    }

    fn count(&self) -> Value {
        let delivered = if self.made == 0 { Tokens::default() } else { self.item_tokens() };
        let mut out = match self.kind {
            Kind::Call { .. } => Tokens { text: delivered.text * self.made, ..Tokens::default() },
            _ => delivered,
        };
        out.text = self.choice.number("text_out").unwrap_or(out.text);
        out.audio = self.choice.number("audio_out").unwrap_or(out.audio);
        let (input, cached) = self.input;
        let mut usage = json!({
            "total_tokens": input.all() + out.all(), "input_tokens": input.all(), "output_tokens": out.all(),
            "input_token_details": {
                "text_tokens": input.text, "audio_tokens": input.audio, "image_tokens": input.image,
                "cached_tokens": cached.all(),
                "cached_tokens_details": {
                    "text_tokens": cached.text, "audio_tokens": cached.audio, "image_tokens": cached.image,
                },
            },
            "output_token_details": {"text_tokens": out.text, "audio_tokens": out.audio},
        });
        if self.choice.is("wrong_usage") {
            match self.choice.text("kind").unwrap_or("sum") {
                "negative" => usage["output_tokens"] = json!(-5),
                "huge" => usage["input_tokens"] = json!(u64::MAX),
                "cached" => usage["input_token_details"]["cached_tokens"] = json!(input.all() + 1),
                "text" => usage["input_tokens"] = json!("many"),
                _ => usage["input_tokens"] = json!(input.all() + 1),
            }
        }
        usage
    }

    fn item(&self, status: &str, whole: bool) -> Value {
        let id = self.item_id();
        match &self.kind {
            Kind::Call { name, arguments } => json!({
                "id": id, "object": "realtime.item", "type": "function_call", "status": status, "name": name,
                "call_id": self.call_id(), "arguments": if whole { arguments.as_str() } else { "" },
            }),
            kind => {
                let part = if *kind == Kind::Text {
                    json!({"type": "output_text", "text": self.said()})
                } else {
                    json!({"type": "output_audio", "transcript": self.said()})
                };
                let content = if whole { vec![part] } else { Vec::new() };
                json!({
                    "id": id, "object": "realtime.item", "type": "message", "status": status, "role": "assistant",
                    "content": content,
                })
            }
        }
    }

    fn object(&self, status: &str, usage: &Value) -> Value {
        let modality = if self.kind == Kind::Text { "text" } else { "audio" };
        let format = match self.coding {
            Coding::Pcm(rate) => json!({"type": "audio/pcm", "rate": rate}),
            Coding::Ulaw => json!({"type": "audio/pcmu"}),
            Coding::Alaw => json!({"type": "audio/pcma"}),
        };
        let details = if status == self.status.0 { self.status.1.clone() } else { Value::Null };
        json!({
            "object": "realtime.response", "id": self.id, "status": status, "status_details": details,
            "output": self.done, "conversation_id": self.conversation, "output_modalities": [modality],
            "max_output_tokens": self.most, "audio": {"output": {"format": format, "voice": self.voice}},
            "usage": usage, "metadata": self.metadata,
        })
    }
}

/// The function to call, and with what.
fn called(choice: &Choice, tools: &Value, tool_choice: &Value) -> Option<(String, String)> {
    let first = tools.as_array().and_then(|tools| tools.iter().find(|tool| tool["type"] == "function"));
    let named = if tool_choice["type"] == "function" { tool_choice["name"].as_str() } else { None };
    let asked = choice.is("tool") || *tool_choice == "required" || named.is_some();
    if !asked || *tool_choice == "none" {
        return None;
    }
    let name = choice.text("tool").or(named).or(first.and_then(|tool| tool["name"].as_str())).unwrap_or("lookup");
    Some((name.to_string(), choice.text("args").unwrap_or(r#"{"city":"Oslo"}"#).to_string()))
}

/// An error with all that careless providers put into it.
pub(super) fn leaky(choice: &Choice) -> Value {
    let code = choice.text("code").unwrap_or("server_error");
    json!({
        "type": "server_error", "code": code, "param": null, "event_id": null,
        "message": "The server had an error on sim-worker-3.internal for org-sim-12345 \
                    (request id req_0123456789abcdef). Session sess_sim_secret.",
    })
}
