//! Gemini Live as a provider for clients of OpenAI's interface.
//!
//! Its session begins with one `setup` that cannot be changed afterwards, so it is sent with the
//! first event that is no `session.update`. It answers the end of a turn by itself, so what a
//! client commits is passed on with its `response.create`.

use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::super::form::{LiveFault, LiveForm, LiveFrame, LiveHearing};
use super::super::ga;
use super::super::json::{merge, parse, warn};
use super::keys::{get, set};
use super::setup::{check, dropped, to_setup};
use super::turn::GeminiTurn;
use super::usage::{GeminiUsage, Report};
use super::{CARRIED, FORM, RAW};

/// Frames that wait for the provider to be set up.
const WAITING: usize = 4 << 20;
/// Tokens of a second of audio that is heard, and said: models differ, and this is the most.
const HEARD_PER_SECOND: u64 = 32;
const SAID_PER_SECOND: u64 = 25;
/// Bytes of what was heard in one turn that are remembered.
const HEARD: usize = 1 << 20;
/// Functions whose answers may still come.
const CALLS: usize = 1_000;

/// How a session with Gemini Live is to be held.
#[derive(Clone, Debug, Default)]
pub struct GeminiProviderSettings {
    /// What ids of this session are made from.
    pub id: String,
    /// The name that Gemini knows the model by.
    pub model: String,
    pub usage: GeminiUsage,
}

/// One session with Gemini Live.
pub struct GeminiProvider {
    settings: GeminiProviderSettings,
    /// The client is Gemini's too: frames are carried through.
    carry: bool,
    session: Value,
    warnings: Vec<String>,
    turn: GeminiTurn,
    sent_setup: bool,
    is_set_up: bool,
    begun: bool,
    waiting: Vec<LiveFrame>,
    waiting_bytes: usize,
    /// Audio was sent since the last end of a turn.
    hears: bool,
    committed: bool,
    /// The `turns` of the next request.
    turns: Vec<Value>,
    outputs: Vec<Value>,
    /// Names of called functions and their items, by call id.
    calls: BTreeMap<String, (String, String)>,
    metadata: Value,
    report: Option<Report>,
    billed: Report,
    /// The response is over but for its usage.
    ending: Option<Value>,
    heard: Option<(String, String)>,
}

impl GeminiProvider {
    pub fn new(settings: GeminiProviderSettings) -> GeminiProvider {
        let turn = GeminiTurn::new(&settings.id);
        GeminiProvider {
            session: ga::session(&format!("sess_{}", settings.id), &settings.model),
            settings,
            carry: false,
            warnings: Vec::new(),
            turn,
            sent_setup: false,
            is_set_up: false,
            begun: false,
            waiting: Vec::new(),
            waiting_bytes: 0,
            hears: false,
            committed: false,
            turns: Vec::new(),
            outputs: Vec::new(),
            calls: BTreeMap::new(),
            metadata: Value::Null,
            report: None,
            billed: Report::default(),
            ending: None,
            heard: None,
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let session = self.session.clone();
            self.turn.say(json!({"type": "session.created", "session": session}));
        }
    }

    fn update(&mut self, event: &Value) {
        let update = &event["session"];
        if let Err((param, why)) = check(update) {
            self.turn.refuse(event, &param, why);
            return;
        }
        if self.sent_setup {
            let mut changed = self.session.clone();
            merge(&mut changed, update);
            if to_setup(&changed, "") != to_setup(&self.session, "") {
                self.turn.refuse(event, "session", "this model takes its settings before the first event only");
                return;
            }
        }
        let model = self.session["model"].clone();
        merge(&mut self.session, update);
        self.session["model"] = model;
        self.warnings.extend(dropped(update));
        let mut session = self.session.clone();
        warn(&mut session, &mut self.warnings);
        self.turn.say(json!({"type": "session.updated", "session": session}));
    }

    /// The first frame, as the client's session has it or as its own client wrote it.
    fn setup(&self, carried: Option<&Value>) -> Value {
        let Some(carried) = carried else { return to_setup(&self.session, &self.settings.model) };
        let mut setup = carried.clone();
        if let Some(object) = setup.as_object_mut() {
            set(object, "model", json!(format!("models/{}", self.settings.model)));
            if let Some(most) = self.session["max_output_tokens"].as_u64() {
                let mut generation = get(carried, "generationConfig").clone();
                if !generation.is_object() {
                    generation = json!({});
                }
                if let Some(inner) = generation.as_object_mut() {
                    set(inner, "maxOutputTokens", json!(most));
                }
                set(object, "generationConfig", generation);
            }
        }
        setup
    }

    /// Frames for the provider, behind `setup` and not before it has answered that.
    fn send(&mut self, frames: Vec<Value>) -> Result<Vec<LiveFrame>, LiveFault> {
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.sent_setup, true) {
            out.push(LiveFrame::Text(json!({"setup": self.setup(None)}).to_string()));
        }
        let frames = frames.into_iter().map(|frame| frame.to_string());
        if self.is_set_up {
            out.extend(frames.map(LiveFrame::Text));
            return Ok(out);
        }
        for frame in frames {
            self.waiting_bytes += frame.len();
            self.waiting.push(LiveFrame::Text(frame));
        }
        if self.waiting_bytes > WAITING {
            return Err(LiveFault("the provider does not take the session on".to_string()));
        }
        Ok(out)
    }

    fn append(&mut self, event: &Value) -> Result<Vec<LiveFrame>, LiveFault> {
        let Some(audio) = event["audio"].as_str() else {
            self.turn.refuse(event, "audio", "missing");
            return Ok(Vec::new());
        };
        let rate = event["gemini_mime"].as_str().unwrap_or("audio/pcm;rate=24000");
        let mut frames = Vec::new();
        if self.is_manual() && !self.hears && !self.carry {
            frames.push(json!({"realtimeInput": {"activityStart": {}}}));
        }
        self.hears = true;
        frames.push(json!({"realtimeInput": {"audio": {"data": audio, "mimeType": rate}}}));
        self.send(frames)
    }

    fn is_manual(&self) -> bool {
        self.session["audio"]["input"]["turn_detection"].is_null()
    }

    /// An item of the client: it waits for `response.create`.
    fn item(&mut self, event: &Value) {
        let mut item = event["item"].clone();
        if !self.turn.is_last(&event["previous_item_id"]) {
            self.turn.refuse(event, "previous_item_id", "this model adds items at the end only");
            return;
        }
        let mixed = match item["type"].as_str() {
            Some("message") => !self.outputs.is_empty(),
            _ => !self.turns.is_empty(),
        };
        if mixed {
            let why = "answers of functions and messages need a response.create each: one would undo the other";
            return self.turn.refuse(event, "item", why);
        }
        match item["type"].as_str() {
            Some("message") => {
                let parts = match parts(&item) {
                    Ok(parts) => parts,
                    Err((param, why)) => return self.turn.refuse(event, &param, why),
                };
                let role = if item["role"] == "assistant" { "model" } else { "user" };
                self.turns.push(json!({"role": role, "parts": parts}));
            }
            Some("function_call_output") => {
                let id = item["call_id"].as_str().unwrap_or_default();
                let Some((name, _)) = self.calls.remove(id) else {
                    return self.turn.refuse(event, "item.call_id", "no function was called by this id");
                };
                let output = item["output"].as_str().unwrap_or_default();
                let response = match serde_json::from_str(output) {
                    Ok(object @ Value::Object(_)) => object,
                    _ => json!({"output": output}),
                };
                self.outputs.push(json!({"id": id, "name": name, "response": response}));
            }
            _ => return self.turn.refuse(event, "item.type", "this model takes messages and outputs of functions"),
        }
        if item["id"].is_null() {
            item["id"] = json!(self.turn.new_id("item"));
        }
        (item["object"], item["status"]) = (json!("realtime.item"), json!("completed"));
        self.turn.item(&item);
    }

    fn create(&mut self, event: &Value) -> Result<Vec<LiveFrame>, LiveFault> {
        let asked = &event["response"];
        if self.turn.is_open() && self.ending.is_none() {
            let why = "Conversation already has an active response in progress.";
            self.turn.error(event, "conversation_already_has_active_response", why);
            return Ok(Vec::new());
        }
        for (name, value) in asked.as_object().into_iter().flatten() {
            let same = match name.as_str() {
                "metadata" | "max_output_tokens" => true,
                "conversation" => value != "none",
                name => value.is_null() || *value == self.session[name],
            };
            if !same {
                let param = format!("response.{name}");
                self.turn.refuse(event, &param, "this model takes it for the whole session only");
                return Ok(Vec::new());
            }
        }
        self.metadata = asked["metadata"].clone();
        let frames = self.request();
        self.send(frames)
    }

    /// What lets the provider answer: the end of the audio, answers of functions, or what was
    /// written.
    fn request(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        let outputs = std::mem::take(&mut self.outputs);
        let turns = std::mem::take(&mut self.turns);
        self.committed = false;
        if std::mem::take(&mut self.hears) {
            if !turns.is_empty() {
                frames.push(json!({"clientContent": {"turns": turns, "turnComplete": false}}));
            }
            let end = if self.is_manual() { "activityEnd" } else { "audioStreamEnd" };
            let value = if self.is_manual() { json!({}) } else { json!(true) };
            frames.push(json!({"realtimeInput": {end: value}}));
        } else if !outputs.is_empty() {
            frames.push(json!({"toolResponse": {"functionResponses": outputs}}));
        } else {
            frames.push(json!({"clientContent": {"turns": turns, "turnComplete": true}}));
        }
        frames
    }

    fn client_event(&mut self, event: &Value) -> Result<Vec<LiveFrame>, LiveFault> {
        match event["type"].as_str().unwrap_or_default() {
            "session.update" => self.update(event),
            "input_audio_buffer.append" => return self.append(event),
            "input_audio_buffer.commit" => {
                if !self.hears {
                    self.turn.error(event, "input_audio_buffer_commit_empty", "The input audio buffer is empty.");
                } else if !std::mem::replace(&mut self.committed, true) {
                    self.commit();
                }
            }
            "input_audio_buffer.clear" if self.hears => {
                self.turn.refuse(event, "type", "this model hears audio as it is sent; it cannot be taken back");
            }
            "input_audio_buffer.clear" => self.turn.say(json!({"type": "input_audio_buffer.cleared"})),
            "conversation.item.create" => self.item(event),
            "conversation.item.truncate" => self.turn.say(json!({
                "type": "conversation.item.truncated", "item_id": event["item_id"],
                "content_index": event["content_index"], "audio_end_ms": event["audio_end_ms"],
            })),
            "response.create" => return self.create(event),
            "response.cancel" if self.turn.is_open() && self.ending.is_none() => {
                self.ending = Some(json!({"type": "cancelled", "reason": "client_cancelled"}));
                // Anything of the client interrupts what is being said.
                return self.send(vec![json!({"clientContent": {"turns": [], "turnComplete": false}})]);
            }
            "response.cancel" => {
                self.turn.error(event, "response_cancel_not_active", "Cancellation failed: no active response found");
            }
            _ => self.turn.refuse(event, "type", "this model knows no such event"),
        }
        Ok(Vec::new())
    }

    /// What was said becomes an item.
    fn commit(&mut self) {
        let id = self.heard.take().map_or_else(|| self.turn.new_id("item"), |(id, _)| id);
        self.turn.say(json!({"type": "input_audio_buffer.committed", "previous_item_id": null, "item_id": id}));
        let item = json!({
            "id": id, "object": "realtime.item", "type": "message", "status": "completed", "role": "user",
            "content": [{"type": "input_audio", "transcript": null}],
        });
        self.turn.item(&item);
    }

    fn message(&mut self, message: &Value) {
        if !get(message, "usageMetadata").is_null() {
            self.report = Some(Report::read(get(message, "usageMetadata")));
        }
        self.content(get(message, "serverContent"));
        let calls = get(get(message, "toolCall"), "functionCalls").as_array();
        if let Some(calls) = calls {
            self.open();
            for call in calls {
                self.call(call);
            }
            self.end("completed", Value::Null);
        }
        for id in get(get(message, "toolCallCancellation"), "ids").as_array().into_iter().flatten() {
            if let Some((_, item)) = id.as_str().and_then(|id| self.calls.remove(id)) {
                self.turn.say(json!({"type": "conversation.item.deleted", "item_id": item}));
            }
        }
        if let Some(left) = get(get(message, "goAway"), "timeLeft").as_str() {
            let why = format!("The provider ends this session in {left}.");
            self.turn.error(&Value::Null, "session_ending", &why);
        }
    }

    fn content(&mut self, content: &Value) {
        if let Some(text) = get(content, "inputTranscription")["text"].as_str() {
            self.transcribed(text);
        }
        if *get(content, "interrupted") == true && self.turn.is_open() && self.ending.is_none() {
            let id = self.turn.new_id("item");
            self.turn.say(json!({
                "type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": id,
            }));
            self.heard = Some((id, String::new()));
            self.turn.end_message("incomplete");
            self.ending = Some(json!({"type": "cancelled", "reason": "turn_detected"}));
        }
        let parts = get(get(content, "modelTurn"), "parts").as_array();
        let cancelled = self.ending.as_ref().is_some_and(|ending| ending["reason"] == "client_cancelled");
        for part in parts.into_iter().flatten().filter(|part| part["thought"] != true && !cancelled) {
            self.open();
            let data = get(part, "inlineData");
            match (part["text"].as_str(), data["data"].as_str()) {
                (Some(text), _) => self.turn.text(text),
                (None, Some(audio)) => self.turn.audio(audio),
                _ => {}
            }
        }
        if let Some(text) = get(content, "outputTranscription")["text"].as_str()
            && self.ending.is_none()
        {
            self.open();
            self.turn.transcript(text);
        }
        if *get(content, "turnComplete") == true {
            match self.ending.take() {
                Some(details) => self.end("cancelled", details),
                None => self.end("completed", Value::Null),
            }
            self.billed = Report::default();
        }
    }

    /// What the client said, as the provider writes it down bit by bit.
    fn transcribed(&mut self, text: &str) {
        if self.heard.is_none() {
            self.heard = Some((self.turn.new_id("item"), String::new()));
        }
        let Some((id, heard)) = &mut self.heard else { return };
        if heard.len() + text.len() > HEARD {
            return;
        }
        heard.push_str(text);
        let event = json!({
            "type": "conversation.item.input_audio_transcription.delta", "item_id": id, "content_index": 0,
            "delta": text, "logprobs": null,
        });
        self.turn.say(event);
    }

    /// The response begins, with what was heard before it.
    fn open(&mut self) {
        if let Some(details) = self.ending.take() {
            self.end("cancelled", details);
        }
        if self.turn.is_open() {
            return;
        }
        let by_voice = std::mem::take(&mut self.hears) && !self.committed;
        self.committed = false;
        let heard = self.heard.clone();
        if by_voice || heard.is_some() {
            self.commit();
        }
        if let Some((id, text)) = heard.filter(|(_, text)| !text.is_empty()) {
            // The response has all of it in its own usage.
            let usage = json!({
                "type": "tokens", "total_tokens": 0, "input_tokens": 0, "output_tokens": 0,
                "input_token_details": {"text_tokens": 0, "audio_tokens": 0},
            });
            self.turn.say(json!({
                "type": "conversation.item.input_audio_transcription.completed", "item_id": id, "content_index": 0,
                "transcript": text, "usage": usage, "logprobs": null,
            }));
        }
        let metadata = std::mem::take(&mut self.metadata);
        self.turn.begin(&self.session, metadata);
    }

    fn call(&mut self, call: &Value) {
        let name = call["name"].as_str().unwrap_or_default().to_string();
        let id = match call["id"].as_str() {
            Some(id) => id.to_string(),
            None => self.turn.new_id("call"),
        };
        let arguments = if call["args"].is_null() { "{}".to_string() } else { call["args"].to_string() };
        let item = self.turn.call(&id, &name, &arguments);
        if self.calls.len() < CALLS {
            self.calls.insert(id, (name, item));
        }
    }

    fn end(&mut self, status: &str, details: Value) {
        let report = self.report.take();
        let usage = report.map_or(Value::Null, |report| match self.settings.usage {
            GeminiUsage::EachResponse => report.json(),
            GeminiUsage::WholeTurn => report.since(std::mem::replace(&mut self.billed, report)).json(),
        });
        self.turn.done(&self.session, status, details, usage);
    }
}

impl LiveForm for GeminiProvider {
    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault> {
        let message = match &frame {
            LiveFrame::Text(text) => parse(text)?,
            LiveFrame::Binary(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| LiveFault("the frame is not text".to_string()))?;
                parse(text)?
            }
        };
        if !get(&message, "setupComplete").is_null() {
            self.is_set_up = true;
        }
        self.message(&message);
        let mut events = self.turn.take();
        // Handles of sessions are the operator's.
        if self.carry && get(&message, "sessionResumptionUpdate").is_null() {
            let last = match events.pop() {
                Some(last) => parse(&last)?,
                None => json!({"type": RAW}),
            };
            events.push(carrying(last, message));
        }
        Ok(events)
    }

    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault> {
        self.begin();
        let mut event = parse(&event)?;
        if !self.carry {
            return self.client_event(&event);
        }
        let carried = event.as_object_mut().and_then(|event| event.remove(CARRIED));
        let ours = matches!(event["type"].as_str(), Some("input_audio_buffer.append" | "response.cancel"));
        let setup = carried.as_ref().map(|frame| get(frame, "setup").clone()).filter(Value::is_object);
        if event["type"] == "session.update" {
            merge(&mut self.session, &event["session"]);
        }
        match (setup, carried) {
            (Some(setup), _) => {
                self.sent_setup = true;
                Ok(vec![LiveFrame::Text(json!({"setup": self.setup(Some(&setup))}).to_string())])
            }
            (None, Some(frame)) => self.send(vec![frame]),
            (None, None) if ours => self.client_event(&event),
            (None, None) => Ok(Vec::new()),
        }
    }

    fn hearing(&self) -> LiveHearing {
        LiveHearing {
            per_second: HEARD_PER_SECOND,
            said_per_second: SAID_PER_SECOND,
            writes_down: true,
            answers_itself: true,
        }
    }

    fn kind(&self) -> &'static str {
        FORM
    }

    fn pair(&mut self) {
        self.carry = true;
    }

    fn more(&mut self) -> (Vec<String>, Vec<LiveFrame>) {
        self.begin();
        let frames = if self.is_set_up { std::mem::take(&mut self.waiting) } else { Vec::new() };
        (self.turn.take(), frames)
    }
}

pub(super) fn carrying(mut event: Value, frame: Value) -> String {
    event[CARRIED] = frame;
    event.to_string()
}

/// The parts of a message.
fn parts(item: &Value) -> Result<Vec<Value>, (String, &'static str)> {
    let mut out = Vec::new();
    for (index, part) in item["content"].as_array().into_iter().flatten().enumerate() {
        let param = |name: &str| format!("item.content[{index}].{name}");
        out.push(match part["type"].as_str() {
            Some("input_text" | "output_text") => json!({"text": part["text"]}),
            Some("input_audio") if part["audio"].is_string() => {
                json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": part["audio"]}})
            }
            Some("input_image") => {
                let url = part["image_url"].as_str().unwrap_or_default();
                let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
                let (kind, data) = data.ok_or_else(|| (param("image_url"), "a data: link in base64 is needed"))?;
                json!({"inlineData": {"mimeType": kind, "data": data}})
            }
            Some("output_audio") if part["transcript"].is_string() => json!({"text": part["transcript"]}),
            _ => return Err((param("type"), "this model takes no such part")),
        });
    }
    if out.is_empty() { Err(("item.content".to_string(), "there is nothing in it")) } else { Ok(out) }
}
