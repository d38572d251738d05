//! OpenAI's beta interface: other names for the same things. [`BetaClient`] serves a client that
//! speaks it, [`BetaProvider`] a provider (Azure's preview, and DashScope with its own ways, see
//! [`crate::realtime::QwenProvider`]).

use serde_json::{Map, Value, json};

use super::form::{LiveFault, LiveForm, LiveFrame};
use super::json::{moved, parse, put, text, warn, with_type};
use super::scan::event_type;

/// Server events that differ in their type alone: beta, GA.
const NAMES: &[(&str, &str)] = &[
    ("response.text.delta", "response.output_text.delta"),
    ("response.text.done", "response.output_text.done"),
    ("response.audio.delta", "response.output_audio.delta"),
    ("response.audio.done", "response.output_audio.done"),
    ("response.audio_transcript.delta", "response.output_audio_transcript.delta"),
    ("response.audio_transcript.done", "response.output_audio_transcript.done"),
];

/// Fields of a session that moved: beta, and the path in GA.
const SESSION: &[(&str, &[&str])] = &[
    ("voice", &["audio", "output", "voice"]),
    ("speed", &["audio", "output", "speed"]),
    ("turn_detection", &["audio", "input", "turn_detection"]),
    ("input_audio_transcription", &["audio", "input", "transcription"]),
    ("input_audio_noise_reduction", &["audio", "input", "noise_reduction"]),
    ("max_response_output_tokens", &["max_output_tokens"]),
];

/// Names of audio formats: beta, GA.
const FORMATS: &[(&str, &str)] = &[("pcm16", "audio/pcm"), ("g711_ulaw", "audio/pcmu"), ("g711_alaw", "audio/pcma")];

/// A client of the beta interface.
#[derive(Default)]
pub struct BetaClient {
    warnings: Vec<String>,
    /// What it asked for and nobody has in GA, shown to it as it asked.
    temperature: Option<Value>,
}

impl BetaClient {
    pub fn new() -> BetaClient {
        BetaClient::default()
    }
}

impl LiveForm for BetaClient {
    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault> {
        let event = text(frame)?;
        let kind = event_type(&event).unwrap_or_default();
        let field = match kind {
            "session.update" | "transcription_session.update" => "session",
            "response.create" => "response",
            "conversation.item.create" => "item",
            _ => return Ok(vec![event]),
        };
        let mut event = parse(&event)?;
        let transcribes = event["type"] == "transcription_session.update";
        let inner = &mut event[field];
        match field {
            "item" => item_to_ga(inner),
            "session" => {
                if let Some(asked) = inner.as_object_mut().and_then(|session| session.remove("temperature")) {
                    self.temperature = Some(asked);
                    self.warnings = vec!["session.temperature is not part of this interface any more".to_string()];
                }
                session_to_ga(inner, transcribes);
            }
            _ => {
                if let Some(asked) = inner.as_object_mut() {
                    asked.remove("temperature");
                    for item in asked.get_mut("input").and_then(Value::as_array_mut).into_iter().flatten() {
                        item_to_ga(item);
                    }
                }
                common_to_ga(inner, "");
            }
        }
        event["type"] = json!(if transcribes { "session.update" } else { event["type"].as_str().unwrap_or_default() });
        Ok(vec![event.to_string()])
    }

    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault> {
        let kind = event_type(&event).unwrap_or_default();
        if let Some((beta, _)) = NAMES.iter().find(|row| row.1 == kind) {
            return Ok(vec![LiveFrame::Text(with_type(&event, beta))]);
        }
        let event = match kind {
            // The beta interface says it once, when the item is there.
            "conversation.item.done" => return Ok(Vec::new()),
            "session.created" | "session.updated" => {
                let mut event = parse(&event)?;
                let transcribes = event["session"]["type"] == "transcription";
                session_to_beta(&mut event["session"]);
                event["session"]["temperature"] = self.temperature.clone().unwrap_or(json!(0.8));
                if event["type"] == "session.updated" {
                    warn(&mut event["session"], &mut self.warnings);
                }
                if transcribes {
                    let kind = event["type"].as_str().unwrap_or_default();
                    event["type"] = json!(format!("transcription_{kind}"));
                }
                event
            }
            "conversation.item.added" => {
                let mut event = parse(&event)?;
                event["type"] = json!("conversation.item.created");
                item_to_beta(&mut event["item"]);
                event
            }
            "conversation.item.retrieved" | "response.output_item.added" | "response.output_item.done" => {
                let mut event = parse(&event)?;
                item_to_beta(&mut event["item"]);
                event
            }
            "response.created" | "response.done" => {
                let mut event = parse(&event)?;
                response_to_beta(&mut event["response"]);
                event
            }
            _ => return Ok(vec![LiveFrame::Text(event)]),
        };
        Ok(vec![LiveFrame::Text(event.to_string())])
    }
}

/// A provider of the beta interface.
#[derive(Default)]
pub struct BetaProvider {
    /// The function that is being called: its item and its name, which is said at its beginning
    /// only.
    calls: Option<(Value, Value)>,
}

impl BetaProvider {
    pub fn new() -> BetaProvider {
        BetaProvider::default()
    }
}

impl LiveForm for BetaProvider {
    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault> {
        let event = text(frame)?;
        let kind = event_type(&event).unwrap_or_default();
        if let Some((_, ga)) = NAMES.iter().find(|row| row.0 == kind) {
            return Ok(vec![with_type(&event, ga)]);
        }
        let event = match kind {
            "session.created"
            | "session.updated"
            | "transcription_session.created"
            | "transcription_session.updated" => {
                let mut event = parse(&event)?;
                let kind = event["type"].as_str().unwrap_or_default();
                let name = kind.strip_prefix("transcription_").unwrap_or(kind).to_string();
                let transcribes = kind.len() != name.len();
                session_to_ga(&mut event["session"], transcribes);
                event["type"] = json!(name);
                event
            }
            "conversation.item.created" => {
                let mut event = parse(&event)?;
                item_to_ga(&mut event["item"]);
                event["type"] = json!("conversation.item.added");
                let mut events = vec![event.to_string()];
                if event["item"]["status"] != "in_progress" {
                    event["type"] = json!("conversation.item.done");
                    events.push(event.to_string());
                }
                return Ok(events);
            }
            "response.output_item.done" => {
                let mut event = parse(&event)?;
                item_to_ga(&mut event["item"]);
                let done = json!({
                    "type": "conversation.item.done", "event_id": event["event_id"], "previous_item_id": null,
                    "item": event["item"],
                });
                return Ok(vec![done.to_string(), event.to_string()]);
            }
            "conversation.item.retrieved" | "response.output_item.added" => {
                let mut event = parse(&event)?;
                item_to_ga(&mut event["item"]);
                if event["item"]["type"] == "function_call" {
                    self.calls = Some((event["item"]["id"].clone(), event["item"]["name"].clone()));
                }
                event
            }
            "response.function_call_arguments.done" => {
                let mut event = parse(&event)?;
                if let Some((item, name)) = &self.calls
                    && event["name"].is_null()
                    && *item == event["item_id"]
                {
                    event["name"] = name.clone();
                }
                event
            }
            "response.created" | "response.done" => {
                let mut event = parse(&event)?;
                common_to_ga(&mut event["response"], "");
                for item in event["response"]["output"].as_array_mut().into_iter().flatten() {
                    item_to_ga(item);
                }
                event
            }
            _ => return Ok(vec![event]),
        };
        Ok(vec![event.to_string()])
    }

    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault> {
        let mut event = match event_type(&event) {
            Some("session.update" | "response.create" | "conversation.item.create") => parse(&event)?,
            _ => return Ok(vec![LiveFrame::Text(event)]),
        };
        if event["type"] == "session.update" {
            let transcribes = event["session"]["type"] == "transcription";
            session_to_beta(&mut event["session"]);
            if transcribes {
                event["type"] = json!("transcription_session.update");
            }
        } else if event["type"] == "response.create" {
            if event["response"].is_object() {
                response_to_beta(&mut event["response"]);
            }
        } else {
            item_to_beta(&mut event["item"]);
        }
        Ok(vec![LiveFrame::Text(event.to_string())])
    }
}

/// What sessions and responses have in common.
fn common_to_ga(object: &mut Value, side: &str) {
    let Some(object) = object.as_object_mut() else { return };
    if let Some(modalities) = object.remove("modalities") {
        let audio = modalities.as_array().is_some_and(|list| list.iter().any(|word| word == "audio"));
        let asked = if modalities.is_array() { json!([if audio { "audio" } else { "text" }]) } else { modalities };
        object.insert("output_modalities".to_string(), asked);
    }
    for (from, path) in SESSION {
        moved(object, from, path);
    }
    for side in ["input", "output"] {
        if let Some(name) = object.remove(&format!("{side}_audio_format")) {
            put(object, &["audio", side, "format"], format_to_ga(&name));
        }
    }
    if !side.is_empty() {
        object.entry("type").or_insert_with(|| json!(side));
    }
}

fn session_to_ga(session: &mut Value, transcribes: bool) {
    common_to_ga(session, if transcribes { "transcription" } else { "realtime" });
}

fn format_to_ga(name: &Value) -> Value {
    match FORMATS.iter().find(|row| *name == row.0) {
        Some((_, "audio/pcm")) => json!({"type": "audio/pcm", "rate": 24_000}),
        Some((_, ga)) => json!({"type": ga}),
        // The provider refuses what it does not know, and names it.
        None => json!({"type": name}),
    }
}

fn format_to_beta(format: &Value) -> Value {
    let row = FORMATS.iter().find(|row| format["type"] == row.1);
    row.map_or_else(|| format["type"].clone(), |row| json!(row.0))
}

pub(super) fn session_to_beta(session: &mut Value) {
    let Some(object) = session.as_object_mut() else { return };
    object.remove("type");
    common_to_beta(object);
}

fn common_to_beta(object: &mut Map<String, Value>) {
    if let Some(modalities) = object.remove("output_modalities") {
        let audio = modalities.as_array().is_some_and(|list| list.iter().any(|word| word == "audio"));
        object.insert("modalities".to_string(), if audio { json!(["audio", "text"]) } else { json!(["text"]) });
    }
    if let Some(audio) = object.remove("audio") {
        for side in ["input", "output"] {
            let format = &audio[side]["format"];
            if !format.is_null() {
                object.insert(format!("{side}_audio_format"), format_to_beta(format));
            }
        }
        for (beta, path) in SESSION {
            if let ["audio", side, name] = path
                && let Some(value) = audio[*side].as_object().and_then(|inner| inner.get(*name))
            {
                object.insert((*beta).to_string(), value.clone());
            }
        }
    }
    moved(object, "max_output_tokens", &["max_response_output_tokens"]);
}

fn response_to_beta(response: &mut Value) {
    if let Some(object) = response.as_object_mut() {
        common_to_beta(object);
        moved(object, "max_response_output_tokens", &["max_output_tokens"]);
    }
    for list in ["output", "input"] {
        for item in response[list].as_array_mut().into_iter().flatten() {
            item_to_beta(item);
        }
    }
    for list in ["output", "input"] {
        // Looking at a field that is not there makes one.
        if response[list].is_null()
            && let Some(object) = response.as_object_mut()
        {
            object.remove(list);
        }
    }
}

/// What the assistant says has other names, what the user says has not.
const PARTS: &[(&str, &str)] = &[("text", "output_text"), ("audio", "output_audio")];

fn item_to_ga(item: &mut Value) {
    rename_parts(item, |part| PARTS.iter().find(|row| row.0 == part).map(|row| row.1));
}

pub(super) fn item_to_beta(item: &mut Value) {
    rename_parts(item, |part| PARTS.iter().find(|row| row.1 == part).map(|row| row.0));
}

fn rename_parts(item: &mut Value, name: impl Fn(&str) -> Option<&'static str>) {
    if item["role"] != "assistant" {
        return;
    }
    for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(new) = part["type"].as_str().and_then(&name) {
            part["type"] = json!(new);
        }
    }
}
