//! What a client says: most of it passes as it came; what would start a response, change the
//! session or add to what a response reads is looked at first.

use super::checks;
use super::ending::{LastWords, error_event};
use super::session::Talk;
use crate::refusal::Refusal;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tollgate_media::realtime::{AudioFormat, BadEvent, base64_bytes, strict_event_type};
use tollgate_wire::error::Code;

/// Letters of an append that are not audio.
const AROUND_AUDIO: usize = 50;
/// Events that cannot be taken, before the session is closed.
const MOST_ERRORS: u64 = 256;

impl Talk {
    /// An event of the client. Gives it back where it has to wait for the response before it.
    pub async fn client_said(&mut self, event: Utf8Bytes) -> Option<Utf8Bytes> {
        let kind = match strict_event_type(&event) {
            Ok(kind) => kind,
            Err(BadEvent::Shape) => {
                self.refuse(
                    &Refusal::about(Code::InvalidJson, "type", "An event is a JSON object with a `type`."),
                    None,
                );
                return None;
            }
            Err(BadEvent::TwoTypes) => {
                let text = "An event has one `type`, and no escapes in the names of its members.";
                self.refuse(&Refusal::about(Code::InvalidRequest, "type", text), None);
                return None;
            }
        };
        match kind {
            "input_audio_buffer.append" => {
                self.context.audio(base64_bytes(event.len().saturating_sub(AROUND_AUDIO)));
                if self.covers_input().await {
                    self.to_provider.push(event);
                }
            }
            "input_audio_buffer.clear" => {
                self.context.cleared();
                self.to_provider.push(event);
            }
            "conversation.item.create" => {
                self.count_item(&event);
                if self.covers_input().await {
                    self.to_provider.push(event);
                }
            }
            "session.update" => Box::pin(self.session_update(&event)).await,
            "response.create" if self.transcription => {
                let text = "A session of type `transcription` has no responses.";
                self.refuse(&Refusal::about(Code::UnsupportedValue, "type", text), None);
            }
            "response.create" => {
                if self.promised.is_some() {
                    return Some(event);
                }
                Box::pin(self.response_create(&event)).await;
            }
            "input_audio_buffer.commit"
            | "response.cancel"
            | "output_audio_buffer.clear"
            | "conversation.item.retrieve"
            | "conversation.item.truncate"
            | "conversation.item.delete" => {
                self.to_provider.push(event);
            }
            other => {
                let other: String = other.chars().take(64).collect();
                let text = format!("Events of type `{other}` are not known here and were not passed on.");
                self.refuse(&Refusal::about(Code::UnsupportedValue, "type", text), None);
            }
        }
        None
    }

    /// Tells the client what was not done.
    pub fn refuse(&mut self, refusal: &Refusal, about: Option<&str>) {
        self.errors += 1;
        self.to_client.push(error_event(self.errors, refusal, about).to_string().into());
        self.shared.terms.till.metrics.refused(refusal.code.code());
        if self.errors == MOST_ERRORS {
            self.end_soon(
                LastWords::fault(Code::InvalidRequest, "Too many events could not be taken."),
                Duration::ZERO,
            );
        }
    }

    /// The session ends when what runs has ended, or when this time is over.
    pub fn end_soon(&mut self, words: LastWords, within: Duration) {
        if self.ending.is_none() {
            self.ending = Some((words, Instant::now() + within));
        }
    }

    /// Is what the next response would read held for? If not, and there is no more money, the
    /// session ends.
    pub async fn covers_input(&mut self) -> bool {
        let seconds = self.context.uncommitted().div_ceil(self.context.format.bytes_per_second);
        if let Err(refusal) = self.listening.cover(seconds).await {
            self.end_soon(LastWords::refused(refusal), super::session::LAST_RESPONSE);
            return false;
        }
        let Some(standing) = self.standing.as_mut() else { return self.ending.is_none() };
        let (needed, held) = (self.context.needed(), standing.input_held());
        if needed <= held {
            return true;
        }
        let more = self.context.with_room().saturating_sub(held);
        match Box::pin(standing.cover_input(more)).await {
            Ok(()) => true,
            Err(refusal) => {
                self.end_soon(LastWords::refused(refusal), super::session::LAST_RESPONSE);
                false
            }
        }
    }

    fn count_item(&mut self, event: &str) {
        let Ok(read) = serde_json::from_str::<Value>(event) else { return };
        self.count_one(&read["item"]);
    }

    fn count_one(&mut self, item: &Value) {
        for name in ["arguments", "output", "name"] {
            self.context.text(item[name].as_str().unwrap_or_default().as_bytes());
        }
        for part in item["content"].as_array().map(Vec::as_slice).unwrap_or_default() {
            for name in ["text", "transcript"] {
                self.context.text(part[name].as_str().unwrap_or_default().as_bytes());
            }
            if let Some(audio) = part["audio"].as_str() {
                self.context.audio(base64_bytes(audio.len()));
                self.context.committed();
            }
            if !part["image_url"].is_null() {
                self.context.image();
            }
        }
    }

    async fn session_update(&mut self, event: &str) {
        let Ok(Value::Object(mut whole)) = serde_json::from_str(event) else {
            return self.refuse(&Refusal::new(Code::InvalidJson, "The event is not JSON."), None);
        };
        let about = id_of(&whole);
        let Some(Value::Object(session)) = whole.get_mut("session") else {
            let refusal = Refusal::about(Code::MissingParameter, "session", "`session` is an object.");
            return self.refuse(&refusal, about.as_deref());
        };
        match self.checked_session(session).await {
            Ok(()) => {
                if self.covers_input().await {
                    self.to_provider.push(Value::Object(whole).to_string().into());
                }
            }
            Err(refusal) => self.refuse(&refusal, about.as_deref()),
        }
    }

    async fn checked_session(&mut self, session: &mut Map<String, Value>) -> Result<(), Refusal> {
        let own = if self.transcription { "transcription" } else { "realtime" };
        if session.get("type").is_some_and(|kind| kind != own) {
            let text = format!("This is a session of type `{own}`.");
            return Err(Refusal::about(Code::UnsupportedValue, "session.type", text));
        }
        checks::check(session, "session", &self.names)?;
        let limit = checks::limit(session, "session", self.most_output)?;
        self.listens(session).await?;
        if let Some(limit) = limit {
            self.limit = limit;
        }
        let format = |side: &str| {
            let format = session.get("audio")?.get(side)?.get("format")?;
            Some(AudioFormat::named(format["type"].as_str()?, format["rate"].as_u64()))
        };
        self.context.format = format("input").unwrap_or(self.context.format);
        self.spoken = format("output").unwrap_or(self.spoken);
        self.context.text(session.get("instructions").and_then(Value::as_str).unwrap_or_default().as_bytes());
        if let Some(tools) = session.get("tools").filter(|tools| !tools.is_null()) {
            self.context.text(tools.to_string().as_bytes());
        }
        Ok(())
    }

    /// Who writes down what is said: a model that has a price, under the provider's name for it.
    async fn listens(&mut self, session: &mut Map<String, Value>) -> Result<(), Refusal> {
        let asked = session.get_mut("audio").and_then(|audio| audio.get_mut("input"));
        let Some(asked) = asked.and_then(|input| input.get_mut("transcription")) else { return Ok(()) };
        if asked.is_null() {
            self.listening.stop();
            return Ok(());
        }
        let param = "session.audio.input.transcription.model";
        let Some(name) = asked["model"].as_str().map(str::to_owned) else {
            return Err(Refusal::about(Code::MissingParameter, param, "`transcription` names the model that listens."));
        };
        let upstream = self.listening.begin(&self.shared, &self.provider, &name).await;
        let upstream = upstream.map_err(|refusal| Refusal { param: Some(param.to_owned()), ..refusal })?;
        asked["model"] = Value::from(upstream);
        Ok(())
    }

    async fn response_create(&mut self, event: &str) {
        let Ok(Value::Object(mut whole)) = serde_json::from_str(event) else {
            return self.refuse(&Refusal::new(Code::InvalidJson, "The event is not JSON."), None);
        };
        let about = id_of(&whole);
        let mut limit = None;
        if let Some(response) = whole.get_mut("response").filter(|response| !response.is_null()) {
            let Value::Object(response) = response else {
                let refusal = Refusal::about(Code::InvalidParameter, "response", "`response` is an object.");
                return self.refuse(&refusal, about.as_deref());
            };
            let checked = checks::check(response, "response", &self.names)
                .and_then(|()| checks::limit(response, "response", self.most_output));
            limit = match checked {
                Ok(limit) => limit,
                Err(refusal) => return self.refuse(&refusal, about.as_deref()),
            };
            self.context.text(response.get("instructions").and_then(Value::as_str).unwrap_or_default().as_bytes());
            for item in response.get("input").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default() {
                self.count_one(item);
            }
        }
        if self.standing.is_none() || !self.covers_input().await {
            return;
        }
        self.asked_limit = limit;
        self.promised = Some(Instant::now());
        self.to_provider.push(Value::Object(whole).to_string().into());
    }

    /// The key was revoked, or the account suspended.
    pub fn key_is_gone(&mut self) -> Option<LastWords> {
        let till = &self.shared.terms.till;
        let known = till.keys.known(&self.shared.caller.key.hash)?;
        let gone = !known.works_at(till.world.now_ms()) || known.account.suspended_at.is_some();
        self.shared.caller = known;
        gone.then(|| LastWords::fault(Code::InvalidApiKey, "The API key of this session does not work any more."))
    }
}

fn id_of(event: &Map<String, Value>) -> Option<String> {
    event.get("event_id").and_then(Value::as_str).map(str::to_owned)
}
