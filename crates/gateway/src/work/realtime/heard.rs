//! What a provider says: output is counted as it passes, the beginning and the end of a response
//! are the beginning and the end of its call, and what shows the operator's affairs is left out.

use super::ending::LastWords;
use super::needs::NextResponse;
use super::session::{CANCELLED, OWN_UPDATE, RunningResponse, Talk};
use crate::call::Covered;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tollgate_media::realtime::{OutputCount, event_parts, event_type, live_usage};
use tollgate_store::{Counters, Ending};
use tollgate_upstream::safe_text;
use tollgate_wire::error::Code;

/// Responses that run at once.
const MOST_RUNNING: usize = 16;
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
            "session.created" | "session.updated" => {
                let own = kind == "session.updated" && std::mem::take(&mut self.own_update);
                if !own {
                    let read = self.named_here(read()?);
                    self.to_client.push(read.to_string().into());
                }
            }
            "response.created" => {
                let read = read()?;
                Box::pin(self.response_created(&read, event)).await?;
            }
            "response.done" => {
                let read = read()?;
                Box::pin(self.response_done(&read, event)).await;
            }
            "error" => self.provider_error(read()?),
            "input_audio_buffer.committed" => {
                let read = read()?;
                Box::pin(self.committed(read["item_id"].as_str().unwrap_or_default())).await;
                self.to_client.push(event);
            }
            _ if kind.starts_with("response.") => {
                let id = event_parts(&event).ok_or_else(garbage)?.response_id.to_owned();
                return Ok(self.pass_output(&id, event));
            }
            _ => {
                if let Some(what) = kind.strip_prefix(TRANSCRIPT) {
                    let read = read()?;
                    let item = read["item_id"].as_str().unwrap_or_default();
                    match what {
                        "completed" => self.listening.completed(item, &read["usage"]),
                        "failed" => self.listening.failed(item),
                        _ => {}
                    }
                }
                self.to_client.push(event);
            }
        }
        Ok(None)
    }

    /// Output of a response, if it is held for; else it is given back.
    pub fn pass_output(&mut self, id: &str, event: Utf8Bytes) -> Withheld {
        if id.is_empty() {
            self.to_client.push(event);
            return None;
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
        let (text, audio) = one.count.tokens(self.spoken);
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

    /// Our own names of session and models; the provider's id of the session is nobody's business.
    fn named_here(&self, mut event: Value) -> Value {
        let session = &mut event["session"];
        if session.is_object() {
            session["id"] = json!(&*self.session_id);
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
    async fn response_created(&mut self, read: &Value, event: Utf8Bytes) -> Result<(), LastWords> {
        self.promised = None;
        let id = read["response"]["id"].as_str().unwrap_or_default().to_owned();
        let Some(mut call) = self.standing.take().filter(|_| self.running.len() < MOST_RUNNING) else {
            // There is no money for it: it is stopped before it has said anything.
            self.to_provider.push(cancel(&id));
            return Ok(());
        };
        let asked = self.asked_limit.take().unwrap_or(self.limit);
        let stated = read["response"]["max_output_tokens"].as_u64();
        let limit = stated.filter(|stated| *stated <= self.most_output).unwrap_or(asked);
        let heard = self.context.new_audio();
        let input = self.context.estimate().saturating_sub(heard);
        call.bind(Some(id.clone()), Counters { input, audio_input: heard, ..Counters::default() }, limit);
        self.running.insert(id, RunningResponse { call, count: OutputCount::default(), cancelled: false });
        self.to_client.push(event);
        self.stand(self.shared.settings.first_hold).await;
        Ok(())
    }

    /// Holds for the next response, which may read so much more than is known now. Without money
    /// the session ends with the response that runs.
    async fn stand(&mut self, more: u64) {
        let next = NextResponse {
            model: self.names.public.clone(),
            input: self.context.with_room().saturating_add(more),
            output: self.shared.settings.first_hold,
            ceiling: self.limit,
        };
        let shared = &self.shared;
        let held = shared.terms.next(
            shared.caller.clone(),
            shared.ids.call(),
            next,
            self.provider.clone(),
            &self.names.upstream,
        );
        match held.await {
            Ok(call) => self.standing = Some(call),
            Err(refusal) => self.end_soon(LastWords::refused(refusal), super::session::LAST_RESPONSE),
        }
    }

    /// The response is over: its call is closed by what it used.
    async fn response_done(&mut self, read: &Value, event: Utf8Bytes) {
        let response = &read["response"];
        let id = response["id"].as_str().unwrap_or_default();
        let Some(RunningResponse { mut call, count, .. }) = self.running.remove(id) else {
            // One that was never begun here, because nobody could pay for it.
            return;
        };
        let usage = &response["usage"];
        let used = live_usage(usage);
        let (text, audio) = count.tokens(self.spoken);
        match used {
            Some(used) => self.context.reported(used.input_total().saturating_add(used.output_total())),
            None => self.context.made(text.saturating_add(audio)),
        }
        let status = response["status"].as_str().unwrap_or_default();
        if status == "failed" && count.is_empty() {
            call.let_go(Ending::UpstreamFault, "response_failed");
        } else {
            call.report(used, usage.to_string());
            match status {
                "failed" => call.settle(Ending::UpstreamFault, "response_failed"),
                "cancelled" => call.settle(Ending::Answered, "cancelled"),
                "incomplete" => call.settle(Ending::Answered, "incomplete"),
                _ => call.settle(Ending::Answered, "completed"),
            }
        }
        self.to_client.push(match status {
            "failed" => without_ids(read.clone()),
            _ => event,
        });
        // What the next one reads is known now.
        if self.ending.is_none() {
            self.covers_input().await;
        }
    }

    async fn committed(&mut self, item: &str) {
        let seconds = self.context.committed().div_ceil(self.context.format.bytes_per_second);
        let committed = self.listening.committed(&self.shared, &self.provider, item, seconds).await;
        if let Err(refusal) = committed {
            self.end_soon(LastWords::refused(refusal), super::session::LAST_RESPONSE);
        }
    }

    /// An error of the provider's, in its words but without its ids and addresses.
    fn provider_error(&mut self, mut event: Value) {
        self.promised = None;
        let error = &mut event["error"];
        if error["event_id"] == OWN_UPDATE {
            // It does not know the limit that we set; the client did not ask for it.
            self.own_update = false;
            tracing::warn!(provider = self.provider.name, "a provider does not take a limit of its output");
            return;
        }
        if let Some(message) = error["message"].as_str() {
            error["message"] = json!(safe_text(message, 1_024));
        }
        self.to_client.push(event.to_string().into());
    }

    /// Tells a response to stop.
    pub fn cancel(&mut self, id: &str) {
        if let Some(one) = self.running.get_mut(id) {
            one.cancelled = true;
            self.to_provider.push(cancel(id));
        }
    }

    /// A response is stopped, and the session ends with it.
    pub fn stop_response(&mut self, id: &str, words: LastWords) {
        self.cancel(id);
        self.end_soon(words, CANCELLED);
    }

    /// All calls are closed: what was produced is charged, what only waited is not.
    pub fn close_calls(&mut self, ending: Ending, reason: &str) {
        for (_, RunningResponse { call, count, .. }) in self.running.drain() {
            if count.is_empty() {
                call.let_go(ending, reason);
            } else {
                call.settle(ending, reason);
            }
        }
        if let Some(call) = self.standing.take() {
            call.let_go(Ending::ClientLeft, "no_response");
        }
        self.listening.end("session_ended");
    }
}

/// A response that failed, in the provider's words but without its ids and addresses.
fn without_ids(mut event: Value) -> Utf8Bytes {
    if let Some(message) = event.pointer_mut("/response/status_details/error/message") {
        *message = json!(safe_text(message.as_str().unwrap_or_default(), 1_024));
    }
    event.to_string().into()
}

fn cancel(id: &str) -> Utf8Bytes {
    json!({ "type": "response.cancel", "response_id": id }).to_string().into()
}
