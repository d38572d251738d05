//! What a provider says: output is counted as it passes, the beginning and the end of a response
//! are the beginning and the end of its call, and what shows the operator's affairs is left out.

use super::ending::LastWords;
use super::talk::{LAST_RESPONSE, OWN_LIMIT, OWN_UPDATE, RunningResponse, TURN_DETECTION, Talk, cancel};
use crate::call::Covered;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tollgate_media::realtime::{AudioFormat, EventParts, OutputCount, event_parts, event_type, live_usage};
use tollgate_store::{Counters, Ending};
use tollgate_upstream::safe_text;
use tollgate_wire::error::Code;

/// Responses that run at once, and items of each that are remembered.
pub const MOST_RUNNING: usize = 16;
const MOST_ITEMS: usize = 256;
/// The longest name of an event, a response or an item.
pub const LONGEST_ID: usize = 512;
/// What a provider says to a second response in a conversation that has one.
const ACTIVE: &str = "conversation_already_has_active_response";
const TRANSCRIPT: &str = "conversation.item.input_audio_transcription.";

/// Output that has to wait for money: its response, and the event.
type Withheld = Option<(String, Utf8Bytes)>;

impl Talk {
    /// An event of the provider. An error is the end of the session.
    pub async fn provider_said(&mut self, event: Utf8Bytes) -> Result<Withheld, LastWords> {
        let garbage = || LastWords::fault(Code::UpstreamInvalidReply, "The provider sent what is no event.");
        let kind = event_type(&event).ok_or_else(garbage)?;
        let read = || serde_json::from_str::<Value>(&event).map_err(|_| garbage());
        match kind {
            "rate_limits.updated" => {}
            "session.created" | "session.updated" => self.session_said(kind == "session.updated", read()?),
            "response.created" => {
                let read = read()?;
                if read["response"]["id"].as_str().is_some_and(|id| id.len() > LONGEST_ID) {
                    return Err(garbage());
                }
                Box::pin(self.response_created(&read, event)).await;
            }
            "response.done" => {
                let read = read()?;
                Box::pin(self.response_done(read, event)).await;
            }
            "error" => self.provider_error(read()?),
            "input_audio_buffer.speech_stopped" => {
                if let Some(end) = read()?["audio_end_ms"].as_u64() {
                    self.context.turn_heard(end);
                }
                self.turns.turn_ended();
                self.to_client.push(event);
            }
            "input_audio_buffer.timeout_triggered" => {
                self.turns.turn_ended();
                self.to_client.push(event);
            }
            "input_audio_buffer.cleared" => {
                self.context.cleared();
                self.to_client.push(event);
            }
            "input_audio_buffer.committed" => {
                let read = read()?;
                let item = read["item_id"].as_str().unwrap_or_default();
                if item.len() > LONGEST_ID {
                    return Err(garbage());
                }
                Box::pin(self.committed(item)).await;
                self.turns.committed();
                self.to_client.push(event);
            }
            _ if kind.starts_with("response.") => {
                let id = event_parts(&event).ok_or_else(garbage)?.response_id.to_owned();
                return Ok(self.pass_output(&id, event));
            }
            _ if kind.starts_with("conversation.item.") => {
                let what = kind.strip_prefix(TRANSCRIPT);
                if what.is_some() || !self.unpaid_items.is_empty() {
                    self.item_said(what, &read()?, event.clone());
                } else {
                    self.to_client.push(event);
                }
            }
            _ => self.to_client.push(event),
        }
        Ok(None)
    }

    /// Something about an item. What nobody pays for is not passed on. `transcript`: what became of
    /// its transcript.
    fn item_said(&mut self, transcript: Option<&str>, read: &Value, event: Utf8Bytes) {
        let item = read["item_id"].as_str().or_else(|| read["item"]["id"].as_str()).unwrap_or_default();
        if self.unpaid_items.contains(item) {
            return;
        }
        match transcript {
            Some("completed") => self.listening.completed(item, &read["usage"], self.context.appended()),
            Some("failed") => self.listening.failed(item),
            Some(_) => self.listening.begun(item),
            None => {}
        }
        self.to_client.push(event);
    }

    fn session_said(&mut self, updated: bool, read: Value) {
        if updated {
            self.confirmed(&read["session"]);
            if std::mem::take(&mut self.own_update) {
                return;
            }
        } else if !self.transcription
            && let Some(detection) = self.turns.began(read["session"].pointer(TURN_DETECTION))
        {
            let session = json!({ "type": "realtime", "audio": { "input": { "turn_detection": detection } } });
            self.to_provider.push(json!({ "type": "session.update", "session": session }).to_string().into());
        }
        let named = self.named_here(read, updated);
        self.to_client.push(named.to_string().into());
    }

    /// Output that is held for and needs no more than its count: does it pass as it is? Where it
    /// does not, nothing has happened.
    pub fn passes_output(&mut self, event: &str) -> bool {
        let Some(EventParts { kind, response_id, delta }) = event_parts(event) else { return false };
        if delta.is_empty() || !kind.starts_with("response.") || !kind.ends_with(".delta") {
            return false;
        }
        let Some(one) = self.running.get_mut(response_id).filter(|one| !one.cancelled) else { return false };
        let before = one.count.clone();
        one.count.delta(kind, delta.as_bytes());
        let (text, audio) = one.count.tokens(one.spoken, self.said_per_second);
        let passes = one.call.produced(text, audio) == Covered::Yes;
        if !passes {
            one.count = before;
        }
        passes
    }

    /// Output of a response, if it is held for; else it is given back.
    pub fn pass_output(&mut self, id: &str, event: Utf8Bytes) -> Withheld {
        if id.is_empty() {
            self.to_client.push(event);
            return None;
        }
        if event_type(&event) == Some("response.output_item.added") {
            self.item_added(id, &event);
        }
        // What belongs to no response that is paid for is not passed on.
        let one = self.running.get_mut(id).filter(|one| !one.cancelled)?;
        let parts = event_parts(&event).unwrap_or_default();
        if parts.delta.is_empty() {
            self.to_client.push(event);
            return None;
        }
        let before = one.count.clone();
        one.count.delta(event_type(&event).unwrap_or_default(), parts.delta.as_bytes());
        let (text, audio) = one.count.tokens(one.spoken, self.said_per_second);
        match one.call.produced(text, audio) {
            Covered::Yes => {
                self.to_client.push(event);
                None
            }
            Covered::NotYet => {
                one.count = before;
                Some((id.to_owned(), event))
            }
            Covered::Never => {
                let text = "The provider went on beyond the limit of this response and was stopped.";
                self.stop_response(id, LastWords::fault(Code::UpstreamInvalidReply, text));
                None
            }
        }
    }

    /// A response has an item, of which events speak that do not name the response.
    fn item_added(&mut self, id: &str, event: &str) {
        let Ok(read) = serde_json::from_str::<Value>(event) else { return };
        let item = read["item"]["id"].as_str().filter(|id| id.len() <= LONGEST_ID).map(str::to_owned);
        let Some(item) = item else { return };
        match self.running.get_mut(id).filter(|one| !one.cancelled) {
            Some(one) if one.items.len() < MOST_ITEMS => one.items.push(item),
            Some(_) => {}
            None => self.unpaid_item(item),
        }
    }

    /// Our own names of session and models; the provider's id of the session is nobody's business.
    fn named_here(&mut self, mut event: Value, updated: bool) -> Value {
        let session = &mut event["session"];
        if session.is_object() {
            if updated && !self.warnings.is_empty() {
                let mut warnings = session["warnings"].as_array().cloned().unwrap_or_default();
                warnings.extend(self.warnings.drain(..).map(Value::from));
                session["warnings"] = Value::Array(warnings);
            }
            session["id"] = json!(&*self.session_id);
            if let Some(Value::Object(detection)) = session.pointer_mut(TURN_DETECTION) {
                self.turns.show(detection);
            }
            if !self.transcription {
                session["model"] = json!(self.names.public);
            }
            let listens = session.pointer_mut("/audio/input/transcription/model");
            if let Some(model) = listens
                && let Some(public) = model.as_str().and_then(|name| self.listening.public_name(name))
            {
                *model = json!(public);
            }
        }
        event
    }

    /// The standing hold is this response's, and the next one is taken at once: a provider that
    /// listens by itself may begin again at any time.
    async fn response_created(&mut self, read: &Value, event: Utf8Bytes) {
        let response = &read["response"];
        let id = response["id"].as_str().unwrap_or_default().to_owned();
        if self.running.contains_key(&id) {
            // It has begun before.
            return;
        }
        self.promised = None;
        let asked = std::mem::take(&mut self.asked);
        let call = if self.running.len() < MOST_RUNNING { self.take_hold().await } else { None };
        let Some((mut call, stop)) = call else {
            // There is no money for it: it is stopped before it has said anything.
            self.to_provider.push(cancel(&id));
            if self.turns.is_by_itself() {
                self.end_unpaid();
            }
            return;
        };
        let stated = response["max_output_tokens"].as_u64();
        let limit = stated.filter(|stated| *stated <= self.most_output).unwrap_or(asked.limit.unwrap_or(self.limit));
        let format = &response["audio"]["output"]["format"];
        let spoken = match format["type"].as_str() {
            Some(kind) => AudioFormat::named(kind, format["rate"].as_u64()),
            None => asked.spoken.map_or(self.spoken, |asked| asked.longer(self.spoken)),
        };
        let audio_input = self.context.new_audio();
        let input = self.context.estimate().saturating_sub(audio_input);
        call.bind(Some(id.clone()), Counters { input, audio_input, ..Counters::default() }, limit);
        let in_conversation = response["conversation_id"].is_string();
        if in_conversation {
            self.turns.answered();
        }
        let running = RunningResponse {
            call,
            count: OutputCount::default(),
            cancelled: false,
            spoken,
            in_conversation,
            items: Vec::new(),
        };
        self.running.insert(id.clone(), running);
        self.to_client.push(event);
        if stop {
            // It began by itself with audio that came when there was money.
            self.cancel(&id);
        }
        self.stand_again().await;
    }

    /// The response is over: its call is closed by what it used.
    async fn response_done(&mut self, read: Value, event: Utf8Bytes) {
        let response = &read["response"];
        let id = response["id"].as_str().unwrap_or_default();
        let Some(RunningResponse { mut call, count, cancelled, spoken, in_conversation, .. }) = self.running.remove(id)
        else {
            // One that was never begun here, because nobody could pay for it.
            return;
        };
        let usage = &response["usage"];
        let used = live_usage(usage);
        let (text, audio) = count.tokens(spoken, self.said_per_second);
        match used {
            Some(used) => {
                self.context.reported(used.input_total().saturating_add(used.output_total()), in_conversation);
            }
            None => self.context.made(text.saturating_add(audio)),
        }
        let status = response["status"].as_str().unwrap_or_default();
        if status == "failed" && count.is_empty() {
            call.let_go(Ending::UpstreamFault, "response_failed");
        } else {
            call.report(used, usage.to_string());
            if status == "cancelled" {
                call.stopped();
            }
            match status {
                "failed" => call.settle(Ending::UpstreamFault, "response_failed"),
                "cancelled" => call.settle(Ending::Answered, "cancelled"),
                "incomplete" => call.settle(Ending::Answered, "incomplete"),
                _ => call.settle(Ending::Answered, "completed"),
            }
        }
        let failed = status == "failed";
        self.to_client.push(match (cancelled, failed) {
            (true, _) => without_output(read),
            (false, true) => without_ids(read),
            (false, false) => event,
        });
        // What the next one reads is known now.
        if self.ending.is_none() {
            self.covers_input().await;
        }
    }

    async fn committed(&mut self, item: &str) {
        let length = self.context.committed();
        let left = self.context.uncommitted();
        let committed = self.listening.committed(&self.shared, &self.provider, item, length, left).await;
        if let Err(refusal) = committed {
            self.end_soon(LastWords::refused(refusal), LAST_RESPONSE);
        }
    }

    /// The provider does not take what we set, which the client did not ask for. The limit of the
    /// output is tried alone.
    fn own_setting_refused(&mut self, both: bool) {
        let with_turns = both && !self.transcription && self.turns.own_setting().is_some();
        self.turns.not_told();
        self.own_update = with_turns;
        if with_turns {
            let session = json!({ "type": "realtime", "max_output_tokens": self.limit });
            let update = json!({ "type": "session.update", "event_id": OWN_LIMIT, "session": session });
            self.to_provider.push(update.to_string().into());
        }
        tracing::warn!(provider = self.provider.name, "a provider does not take the settings of its sessions");
    }

    /// An error of the provider's, in its words but without its ids and addresses.
    fn provider_error(&mut self, mut event: Value) {
        let error = &mut event["error"];
        let about = error["event_id"].take();
        if about == OWN_UPDATE || about == OWN_LIMIT {
            self.own_setting_refused(about == OWN_UPDATE);
            return;
        }
        self.turns.refused(&about);
        let promised = self.promised.take_if(|promised| about.is_null() || about == promised.id.as_str());
        error["event_id"] = match promised {
            Some(promised) if promised.of_turn && error["code"] == ACTIVE => return,
            Some(promised) => json!(promised.about),
            None => about,
        };
        if let Some(message) = error["message"].as_str() {
            error["message"] = json!(safe_text(message, 1_024));
        }
        self.to_client.push(event.to_string().into());
    }
}

/// A response that was stopped because nobody paid for more of it: what it has said is not told.
fn without_output(mut event: Value) -> Utf8Bytes {
    event["response"]["output"] = json!([]);
    without_ids(event)
}

/// A response that failed, in the provider's words but without its ids and addresses.
fn without_ids(mut event: Value) -> Utf8Bytes {
    if let Some(message) = event.pointer_mut("/response/status_details/error/message") {
        *message = json!(safe_text(message.as_str().unwrap_or_default(), 1_024));
    }
    event.to_string().into()
}
