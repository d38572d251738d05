//! What a client says: most of it passes as it came; what would start a response, change the
//! session or add to what a response reads is looked at first.

use super::checks;
use super::context::BufferCut;
use super::ending::{LastWords, error_event};
use super::heard::{LONGEST_ID, MOST_RUNNING};
use super::talk::{AskedResponse, PromisedResponse, Talk};
use super::turns::PIECE;
use crate::refusal::Refusal;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tollgate_media::realtime::{
    AudioFormat, BadEvent, append_format, base64_bytes, event_type, split_append, strict_event_type,
};
use tollgate_wire::count::TokenCounter;
use tollgate_wire::error::Code;

/// Letters of an append that are not audio.
const AROUND_AUDIO: usize = 50;
/// Events that cannot be taken, before the session is closed.
const MOST_ERRORS: u64 = 256;
/// The longest `session.update`, and notes on a response: some of their forms remember them.
const LONGEST_SETTINGS: usize = 1 << 20;
const LONGEST_NOTES: usize = 16 << 10;
const TRANSCRIBER: &str = "session.audio.input.transcription.model";

impl Talk {
    /// An event of the client. Gives it back where it has to wait for the response before it.
    pub async fn client_said(&mut self, event: Utf8Bytes) -> Option<Utf8Bytes> {
        let kind = match strict_event_type(&event) {
            Ok(kind) => kind,
            Err(BadEvent::Shape) => {
                let refusal = Refusal::about(Code::InvalidJson, "type", "An event is a JSON object with a `type`.");
                self.refuse(&refusal, None);
                return None;
            }
            Err(BadEvent::TwoTypes) => {
                let text = "An event has one `type`, and no escapes in the names of its members.";
                self.refuse(&Refusal::about(Code::InvalidRequest, "type", text), None);
                return None;
            }
        };
        match kind {
            "input_audio_buffer.append" => return self.append(event).await,
            "input_audio_buffer.clear" => {
                self.context.cut_asked(BufferCut::Clear);
                self.to_provider.push(event);
            }
            "input_audio_buffer.commit" => {
                self.context.cut_asked(BufferCut::Commit);
                self.to_provider.push(event);
            }
            "conversation.item.create" => {
                if let Ok(read) = serde_json::from_str::<Value>(&event) {
                    self.count(&read["item"]);
                }
                if self.covers_input().await {
                    self.to_provider.push(event);
                }
            }
            "session.update" => Box::pin(self.session_update(&event)).await,
            "response.create" if self.transcription => {
                let text = "A session of type `transcription` has no responses.";
                let about = event_id(&event);
                self.refuse(&Refusal::about(Code::UnsupportedValue, "type", text), about.as_deref());
            }
            "response.create" => {
                if self.promised.is_some() {
                    return Some(event);
                }
                Box::pin(self.response_create(&event)).await;
            }
            "response.cancel"
            | "output_audio_buffer.clear"
            | "conversation.item.retrieve"
            | "conversation.item.truncate"
            | "conversation.item.delete" => {
                self.to_provider.push(event);
            }
            other => {
                let other: String = other.chars().take(64).collect();
                let text = format!("Events of type `{other}` are not known here and were not passed on.");
                let about = event_id(&event);
                self.refuse(&Refusal::about(Code::UnsupportedValue, "type", text), about.as_deref());
            }
        }
        None
    }

    /// Audio that is held for: does it pass as it is? Where it does not, nothing has happened.
    pub fn passes_audio(&mut self, event: &str, now: Instant) -> bool {
        if strict_event_type(event) != Ok("input_audio_buffer.append") {
            return false;
        }
        if !self.transcription && (self.turns.is_unsure(now) || self.turns.is_by_itself()) {
            return false;
        }
        let length = self.context.format.length(audio_bytes(event));
        self.context.append(length);
        let passes = self.is_covered();
        if !passes {
            self.context.take_back(length);
        }
        passes
    }

    /// Audio. It waits until its provider has said what it does with a turn, and for one that
    /// answers turns by itself until it may be spoken.
    async fn append(&mut self, event: Utf8Bytes) -> Option<Utf8Bytes> {
        let now = Instant::now();
        if !self.transcription && self.turns.is_unsure(now) {
            return Some(event);
        }
        let by_itself = !self.transcription && self.turns.is_by_itself();
        let format = if by_itself { append_format(&event) } else { None };
        let length = format.unwrap_or(self.context.format).length(audio_bytes(&event));
        if by_itself && !self.turns.passes(length, now) {
            return Some(event);
        }
        self.context.append(length);
        if self.covers_input().await {
            self.to_provider.push(event);
        }
        None
    }

    /// Audio in pieces, where its provider is not to have it all at once.
    pub fn in_pieces(&self, event: &str) -> Option<Vec<String>> {
        if self.transcription || !self.turns.is_by_itself() || event_type(event) != Some("input_audio_buffer.append") {
            return None;
        }
        let format = append_format(event).unwrap_or(self.context.format);
        split_append(event, format, PIECE)
    }

    /// Answers a turn that was heard, unless that is done already.
    pub async fn answer_turn(&mut self) {
        if !self.turns.is_due() || self.transcription || self.promised.is_some() || self.ending.is_some() {
            return;
        }
        self.turns.answered();
        // As with a provider that does it by itself: a model that speaks is not asked once more.
        if self.running.values().any(|one| one.in_conversation && !one.cancelled) || !self.covers_input().await {
            return;
        }
        self.asked = AskedResponse::default();
        let promised = self.promise(None, true);
        self.to_provider.push(json!({ "type": "response.create", "event_id": promised }).to_string().into());
    }

    /// A response is asked for under a name that no other event can have: an error about something
    /// else frees no hold.
    fn promise(&mut self, about: Option<String>, of_turn: bool) -> String {
        let id = self.shared.ids.call().to_string().replacen("call_", "event_", 1);
        self.promised = Some(PromisedResponse { id: id.clone(), about, at: Instant::now(), of_turn });
        id
    }

    /// Tells the client what was not done.
    pub fn refuse(&mut self, refusal: &Refusal, about: Option<&str>) {
        self.errors += 1;
        self.to_client.push(error_event(self.errors, refusal, about).to_string().into());
        self.shared.terms.till.metrics.refused(refusal.code.code());
        if self.errors >= MOST_ERRORS {
            let words = LastWords::fault(Code::InvalidRequest, "Too many events could not be taken.");
            self.end_soon(words, Duration::ZERO);
        }
    }

    /// Everything in it is read by the next response: names and texts, pictures, audio.
    fn count(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        (_, Value::Null) => {}
                        ("audio", Value::String(audio)) => self.context.audio_item(base64_bytes(audio.len())),
                        ("image_url", _) => self.context.image(),
                        _ => {
                            self.context.text(name.as_bytes());
                            self.count(value);
                        }
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|one| self.count(one)),
            Value::String(text) => self.context.text(text.as_bytes()),
            Value::Bool(_) | Value::Number(_) => self.context.text(b"0"),
            Value::Null => {}
        }
    }

    async fn session_update(&mut self, event: &str) {
        if event.len() > LONGEST_SETTINGS {
            let text = format!("The settings of a session have at most {LONGEST_SETTINGS} bytes.");
            return self.refuse(&Refusal::about(Code::InvalidParameter, "session", text), None);
        }
        let Ok(Value::Object(mut whole)) = serde_json::from_str(event) else {
            return self.refuse(&Refusal::new(Code::InvalidJson, "The event is not JSON."), None);
        };
        let about = match id_of(&whole) {
            Ok(about) => about,
            Err(refusal) => return self.refuse(&refusal, None),
        };
        let Some(Value::Object(session)) = whole.get_mut("session") else {
            let refusal = Refusal::about(Code::MissingParameter, "session", "`session` is an object.");
            return self.refuse(&refusal, about.as_deref());
        };
        match self.checked_session(session, about.as_deref()).await {
            Ok(()) => {
                if self.covers_input().await {
                    self.to_provider.push(Value::Object(whole).to_string().into());
                }
            }
            Err(refusal) => self.refuse(&refusal, about.as_deref()),
        }
    }

    async fn checked_session(&mut self, session: &mut Map<String, Value>, about: Option<&str>) -> Result<(), Refusal> {
        let own = if self.transcription { "transcription" } else { "realtime" };
        if session.get("type").is_some_and(|kind| kind != own) {
            let text = format!("This is a session of type `{own}`.");
            return Err(Refusal::about(Code::UnsupportedValue, "session.type", text));
        }
        checks::check(session, "session", &self.names)?;
        let limit = checks::limit(session, "session", self.most_output)?;
        self.listens(session).await?;
        for text in checks::leave_out(session) {
            // Until the provider has answered it is said once, however often it was asked for.
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
        let input = session.get_mut("audio").and_then(|audio| audio.get_mut("input"));
        let detection = input.and_then(|input| input.get_mut("turn_detection"));
        if let Some(detection) = detection.filter(|_| !self.transcription) {
            self.turns.asked(detection, about);
        }
        // The provider may refuse the event: until it has answered, the dearer of both holds.
        self.limit = self.limit.max(limit.unwrap_or(0));
        self.context.format = self.context.format.longer(format_of(session, "input").unwrap_or(self.context.format));
        self.spoken = self.spoken.longer(format_of(session, "output").unwrap_or(self.spoken));
        for name in ["instructions", "tools", "tool_choice"] {
            self.count(session.get(name).unwrap_or(&Value::Null));
        }
        Ok(())
    }

    /// Who writes down what is said: a model that has a price, under the provider's name for it.
    async fn listens(&mut self, session: &mut Map<String, Value>) -> Result<(), Refusal> {
        let asked = session.get_mut("audio").and_then(|audio| audio.get_mut("input"));
        let Some(asked) = asked.and_then(|input| input.get_mut("transcription")) else { return Ok(()) };
        if self.hears_itself {
            return Ok(());
        }
        if asked.is_null() {
            self.listening.ask_to_stop();
            return Ok(());
        }
        let Some(name) = asked["model"].as_str().map(str::to_owned) else {
            let text = "`transcription` names the model that listens.";
            return Err(Refusal::about(Code::MissingParameter, TRANSCRIBER, text));
        };
        let mut prompt = TokenCounter::default();
        prompt.json(asked["prompt"].as_str().unwrap_or_default().as_bytes());
        let upstream = self.listening.begin(&self.shared, &self.provider, &name, prompt.tokens()).await;
        let upstream = upstream.map_err(|refusal| Refusal { param: Some(TRANSCRIBER.to_owned()), ..refusal })?;
        asked["model"] = Value::from(upstream);
        Ok(())
    }

    async fn response_create(&mut self, event: &str) {
        let Ok(Value::Object(mut whole)) = serde_json::from_str(event) else {
            return self.refuse(&Refusal::new(Code::InvalidJson, "The event is not JSON."), None);
        };
        let about = match id_of(&whole) {
            Ok(about) => about,
            Err(refusal) => return self.refuse(&refusal, None),
        };
        let mut asked = AskedResponse::default();
        if let Some(response) = whole.get_mut("response").filter(|response| !response.is_null()) {
            let Value::Object(response) = response else {
                let refusal = Refusal::about(Code::InvalidParameter, "response", "`response` is an object.");
                return self.refuse(&refusal, about.as_deref());
            };
            let checked = notes(response)
                .and_then(|()| checks::check(response, "response", &self.names))
                .and_then(|()| checks::limit(response, "response", self.most_output));
            asked = match checked {
                Ok(limit) => AskedResponse { limit, spoken: format_of(response, "output") },
                Err(refusal) => return self.refuse(&refusal, about.as_deref()),
            };
            for name in ["instructions", "tools", "tool_choice", "input"] {
                self.count(response.get(name).unwrap_or(&Value::Null));
            }
        }
        if self.running.len() >= MOST_RUNNING {
            let text = format!("{MOST_RUNNING} responses of this session run at once; wait for one of them.");
            let refusal = Refusal::new(Code::RateLimitExceeded, text).because("responses");
            return self.refuse(&refusal, about.as_deref());
        }
        if !self.covers_input().await {
            return;
        }
        self.asked = asked;
        let promised = self.promise(about, false);
        whole.insert("event_id".to_owned(), Value::from(promised));
        self.to_provider.push(Value::Object(whole).to_string().into());
    }
}

/// The client's own notes on a response.
fn notes(response: &Map<String, Value>) -> Result<(), Refusal> {
    match response.get("metadata") {
        Some(notes) if notes.to_string().len() > LONGEST_NOTES => {
            let text = format!("`metadata` has at most {LONGEST_NOTES} bytes.");
            Err(Refusal::about(Code::InvalidParameter, "response.metadata", text))
        }
        _ => Ok(()),
    }
}

/// The audio of an append, by its length.
fn audio_bytes(event: &str) -> u64 {
    base64_bytes(event.len().saturating_sub(AROUND_AUDIO))
}

/// The `event_id` of an event that is not read otherwise.
fn event_id(event: &str) -> Option<String> {
    let Ok(Value::Object(read)) = serde_json::from_str(event) else { return None };
    id_of(&read).ok().flatten()
}

/// It is remembered until the provider has answered.
fn id_of(event: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    match event.get("event_id").and_then(Value::as_str) {
        Some(id) if id.len() > LONGEST_ID => {
            let text = format!("An `event_id` has at most {LONGEST_ID} bytes.");
            Err(Refusal::about(Code::InvalidParameter, "event_id", text))
        }
        id => Ok(id.map(str::to_owned)),
    }
}

/// How audio of one side is to be written, where that is said.
fn format_of(object: &Map<String, Value>, side: &str) -> Option<AudioFormat> {
    let format = object.get("audio")?.get(side)?.get("format")?;
    Some(AudioFormat::named(format["type"].as_str()?, format["rate"].as_u64()))
}
