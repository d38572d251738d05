//! DashScope's Qwen-Omni: the beta interface with names of its own. It hears 16 kHz where clients
//! send 24 kHz, so audio is resampled on the way; it says 24 kHz. G.711 is refused by name.

use serde_json::{Value, json};

use super::beta::BetaProvider;
use super::form::{LiveFault, LiveForm, LiveFrame, LiveHearing};
use super::json::{merge, parse, warn};
use super::resample::Resampler;
use super::scan::event_type;

/// What a model hears and says, as its session calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QwenAudio {
    pub heard_rate: u32,
    pub heard_name: String,
    pub said_name: String,
}

impl Default for QwenAudio {
    fn default() -> QwenAudio {
        QwenAudio { heard_rate: 16_000, heard_name: "pcm16".to_string(), said_name: "pcm24".to_string() }
    }
}

/// Fields of a session that it does not know. What they ask for is said to be dropped.
const UNKNOWN: &[&str] =
    &["tracing", "truncation", "include", "reasoning", "prompt", "speed", "input_audio_noise_reduction"];

/// Tokens of a second of audio: models differ, and this is the most.
const HEARD_PER_SECOND: u64 = 25;

/// A Qwen-Omni provider.
pub struct QwenProvider {
    beta: BetaProvider,
    audio: QwenAudio,
    ear: Resampler,
    /// What the client believes its session to be, as far as it has said so.
    asked: Value,
    /// What the client notes with a response, which this interface does not know: of the one that
    /// was asked for, and of the one that runs.
    asked_note: Value,
    note: Value,
    warnings: Vec<String>,
    errors: Vec<String>,
    count: u64,
}

impl QwenProvider {
    pub fn new(audio: QwenAudio) -> QwenProvider {
        let ear = Resampler::new(24_000, audio.heard_rate);
        let (warnings, errors) = (Vec::new(), Vec::new());
        let (asked_note, note) = (Value::Null, Value::Null);
        QwenProvider {
            beta: BetaProvider::new(),
            audio,
            ear,
            asked: json!({}),
            asked_note,
            note,
            warnings,
            errors,
            count: 0,
        }
    }

    fn refuse(&mut self, event: &Value, param: &str, message: &str) {
        self.count += 1;
        self.errors.push(super::ga::error(&format!("event_form_{}", self.count), event, param, message));
    }

    /// None: refused, and said so.
    fn session(&mut self, event: &mut Value) -> Option<()> {
        // Until the provider has answered each is said once, however often it was asked for.
        self.warnings.sort_unstable();
        self.warnings.dedup();
        for side in ["input", "output"] {
            let kind = &event["session"]["audio"][side]["format"]["type"];
            if kind.as_str().is_some_and(|kind| kind != "audio/pcm") {
                let param = format!("session.audio.{side}.format.type");
                let event = event.clone();
                self.refuse(&event, &param, "this model takes audio/pcm at 24000 samples a second");
                return None;
            }
        }
        merge(&mut self.asked, &event["session"]);
        super::beta::session_to_beta(&mut event["session"]);
        let session = event["session"].as_object_mut()?;
        for name in UNKNOWN {
            if session.remove(*name).is_some_and(|value| !value.is_null()) {
                self.warnings.push(format!("session.{name} is not known to this model and was left out"));
            }
        }
        if let Some(most) = session.remove("max_response_output_tokens")
            && most.is_u64()
        {
            session.insert("max_tokens".to_string(), most);
        }
        if session.remove("tool_choice").is_some_and(|choice| choice != "auto") {
            self.warnings.push("session.tool_choice is not known to this model and was left out".to_string());
        }
        for field in ["model", "parallel_tool_calls"] {
            session.remove(field);
        }
        session.insert("input_audio_format".to_string(), json!(self.audio.heard_name));
        session.insert("output_audio_format".to_string(), json!(self.audio.said_name));
        Some(())
    }
}

impl LiveForm for QwenProvider {
    fn hearing(&self) -> LiveHearing {
        LiveHearing { per_second: HEARD_PER_SECOND, answers_itself: true, ..LiveHearing::default() }
    }

    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault> {
        let events = self.beta.read(frame)?;
        let change = |event: String| -> Result<String, LiveFault> {
            match event_type(&event) {
                Some("session.created" | "session.updated") => {}
                Some("error") => {
                    // It may be about the response that was asked for: its note is no other's.
                    self.asked_note = Value::Null;
                    return Ok(event);
                }
                Some(kind @ ("response.created" | "response.done")) => {
                    if kind == "response.created" {
                        self.note = self.asked_note.take();
                    }
                    let mut event = parse(&event)?;
                    if !self.note.is_null() {
                        event["response"]["metadata"] = self.note.clone();
                    }
                    event["response"]["audio"]["output"]["format"] = json!({"type": "audio/pcm", "rate": 24_000});
                    // A form of usage with plural names; the core reads either, clients one.
                    for side in ["input", "output"] {
                        let usage = &mut event["response"]["usage"];
                        if let Some(usage) = usage.as_object_mut()
                            && let Some(details) = usage.remove(&format!("{side}_tokens_details"))
                        {
                            usage.insert(format!("{side}_token_details"), details);
                        }
                    }
                    return Ok(event.to_string());
                }
                _ => return Ok(event),
            }
            let mut event = parse(&event)?;
            let session = &mut event["session"];
            if let Some(most) = session.as_object_mut().and_then(|session| session.remove("max_tokens")) {
                session["max_output_tokens"] = most;
            }
            let pcm = json!({"type": "audio/pcm", "rate": 24_000});
            session["audio"]["input"]["format"] = pcm.clone();
            session["audio"]["output"]["format"] = pcm;
            session["object"] = json!("realtime.session");
            if event["type"] == "session.updated" {
                warn(&mut event["session"], &mut self.warnings);
            }
            Ok(event.to_string())
        };
        events.into_iter().map(change).collect()
    }

    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault> {
        match event_type(&event) {
            Some("input_audio_buffer.append") if !self.ear.is_same() => {
                let mut event = parse(&event)?;
                let audio = event["audio"].as_str().unwrap_or_default();
                event["audio"] = match self.ear.push_base64(audio) {
                    Ok(audio) => json!(audio),
                    Err(fault) => {
                        self.refuse(&event, "audio", &fault.0);
                        return Ok(Vec::new());
                    }
                };
                Ok(vec![LiveFrame::Text(event.to_string())])
            }
            Some("session.update") => {
                let mut event = parse(&event)?;
                if self.session(&mut event).is_none() {
                    return Ok(Vec::new());
                }
                Ok(vec![LiveFrame::Text(event.to_string())])
            }
            Some("response.create") => {
                let mut event = parse(&event)?;
                if let Some(response) = event["response"].as_object_mut() {
                    self.asked_note = response.remove("metadata").unwrap_or_default();
                }
                self.beta.write(event.to_string())
            }
            Some("conversation.item.create") => {
                let event = parse(&event)?;
                if event["item"]["content"].to_string().contains("\"input_audio\"") {
                    self.refuse(&event, "item.content", "this model takes audio by input_audio_buffer.append only");
                    return Ok(Vec::new());
                }
                self.beta.write(event.to_string())
            }
            _ => self.beta.write(event),
        }
    }

    fn more(&mut self) -> (Vec<String>, Vec<LiveFrame>) {
        (std::mem::take(&mut self.errors), Vec::new())
    }
}
