//! A session without its sockets: what is held, what runs, and what each side is to hear next.
//!
//! What a client asks for is believed once its provider says so, where believing it earlier would
//! cost the operator: until then the dearer of two readings holds.

use super::checks::ModelNames;
use super::context::InputEstimate;
use super::ending::LastWords;
use super::listening::Listening;
use super::turns::TurnTaking;
use crate::call::{SessionCall, SessionTerms};
use crate::settings::RealtimeSettings;
use crate::who::caller::Caller;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tollgate_media::realtime::{AudioFormat, OutputCount};
use tollgate_store::{Ending, ids};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;

/// A response that was cancelled because nobody pays for it is given so long to say what it used.
pub const CANCELLED: Duration = Duration::from_secs(3);
/// Responses that end by themselves before a session is closed have so long.
pub const LAST_RESPONSE: Duration = Duration::from_secs(60);
/// The names of our own first event, and of the one that follows where it is not taken.
pub const OWN_UPDATE: &str = "event_gateway_limit";
pub const OWN_LIMIT: &str = "event_gateway_limit_only";
/// Where a session says how turns are heard.
pub const TURN_DETECTION: &str = "/audio/input/turn_detection";
/// Items of responses that nobody pays for, of which the client hears nothing.
const MOST_UNPAID: usize = 1_024;

/// What all calls of a session share.
pub struct Shared {
    pub terms: SessionTerms,
    pub caller: Arc<Caller>,
    pub ids: Arc<ids::Maker>,
    pub settings: RealtimeSettings,
}

/// A response that runs.
pub struct RunningResponse {
    pub call: SessionCall,
    pub count: OutputCount,
    /// It is to stop: nothing more of it goes out.
    pub cancelled: bool,
    /// How its audio is written.
    pub spoken: AudioFormat,
    /// It reads the conversation, and is not asked something of its own.
    pub in_conversation: bool,
    /// What it has added to the conversation.
    pub items: Vec<String>,
}

/// A response that was asked for and has not begun: the hold is its.
pub struct PromisedResponse {
    /// Our own `event_id`, which nobody else can name, and the client's.
    pub id: String,
    pub about: Option<String>,
    pub at: Instant,
    /// It answers a turn, and nobody has asked for it by an event.
    pub of_turn: bool,
}

/// What the response that was asked for last is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskedResponse {
    /// The most output.
    pub limit: Option<u64>,
    pub spoken: Option<AudioFormat>,
}

pub struct Talk {
    pub shared: Shared,
    pub names: ModelNames,
    pub provider: Arc<Provider>,
    pub session_id: Arc<str>,
    /// The hold for the next response.
    pub standing: Option<SessionCall>,
    /// A small one more, where a provider may begin a response while none can be had.
    pub reserve: Option<SessionCall>,
    pub promised: Option<PromisedResponse>,
    pub turns: TurnTaking,
    pub asked: AskedResponse,
    pub running: BTreeMap<String, RunningResponse>,
    /// Items of responses that nobody pays for.
    pub unpaid_items: HashSet<String>,
    pub context: InputEstimate,
    pub spoken: AudioFormat,
    /// Tokens of a second that the provider says.
    pub said_per_second: u64,
    /// The most output of a response of this session, and of any.
    pub limit: u64,
    pub most_output: u64,
    pub listening: Listening,
    /// The model of the session writes down what it hears, at no price of its own.
    pub hears_itself: bool,
    /// There are no responses, only transcripts.
    pub transcription: bool,
    /// Our own configuration, which the client did not ask for, is not answered yet.
    pub own_update: bool,
    /// What was left out of the session, for its next `session.updated`.
    pub warnings: Vec<&'static str>,
    /// What goes to each side.
    pub to_client: Vec<Utf8Bytes>,
    pub to_provider: Vec<Utf8Bytes>,
    pub errors: u64,
    /// The session ends when the last response has.
    pub ending: Option<(LastWords, Instant)>,
}

impl Talk {
    /// The session ends when what runs has ended, or when this time is over.
    pub fn end_soon(&mut self, words: LastWords, within: Duration) {
        if self.ending.is_none() {
            self.ending = Some((words, Instant::now() + within));
        }
    }

    /// Nobody pays for what the provider begins: the session ends as soon as those that are paid
    /// for have said what they used.
    pub fn end_unpaid(&mut self) {
        let words = LastWords::fault(Code::InsufficientBalance, "There is no money for what the provider has begun.");
        let until = Instant::now() + CANCELLED;
        self.ending = match self.ending.take() {
            Some((words, before)) => Some((words, before.min(until))),
            None => Some((words, until)),
        };
    }

    /// The key was revoked, or the account suspended.
    pub fn key_is_gone(&mut self) -> Option<LastWords> {
        let till = &self.shared.terms.till;
        let known = till.keys.known(&self.shared.caller.key.hash)?;
        let gone = !known.works_at(till.world.now_ms()) || known.account.suspended_at.is_some();
        self.shared.caller = known;
        gone.then(|| LastWords::fault(Code::InvalidApiKey, "The API key of this session does not work any more."))
    }

    /// Something runs whose cost is not known yet, or was asked for and may have begun.
    pub fn owes(&self, now: Instant) -> bool {
        !self.running.is_empty() || self.listening.is_pending() || self.promised.is_some() || self.may_begin(now)
    }

    /// A response may begin by itself, with audio that is on its way.
    pub fn may_begin(&self, now: Instant) -> bool {
        !self.transcription && self.turns.may_begin_until().is_some_and(|until| now < until)
    }

    /// Tells a response to stop.
    pub fn cancel(&mut self, id: &str) {
        let Some(one) = self.running.get_mut(id) else { return };
        one.cancelled = true;
        let items = std::mem::take(&mut one.items);
        items.into_iter().for_each(|item| self.unpaid_item(item));
        self.to_provider.push(cancel(id));
    }

    /// Nothing of this item is passed on any more. One that would be forgotten ends the session.
    pub fn unpaid_item(&mut self, item: String) {
        if self.unpaid_items.len() < MOST_UNPAID {
            self.unpaid_items.insert(item);
        } else {
            self.end_soon(LastWords::fault(Code::UpstreamInvalidReply, "The provider does not stop."), Duration::ZERO);
        }
    }

    /// A response is stopped, and the session ends with it.
    pub fn stop_response(&mut self, id: &str, words: LastWords) {
        self.cancel(id);
        self.end_soon(words, CANCELLED);
    }

    /// All calls are closed: what was produced is charged, what only waited is not.
    pub fn close_calls(&mut self, ending: Ending, reason: &str) {
        for (_, RunningResponse { call, count, .. }) in std::mem::take(&mut self.running) {
            if count.is_empty() {
                call.let_go(ending, reason);
            } else {
                call.settle(ending, reason);
            }
        }
        self.let_holds_go();
        self.listening.end("session_ended");
    }

    /// Takes over what the provider says that the session is.
    pub fn confirmed(&mut self, session: &Value) {
        let format = |side: &str| {
            let format = &session["audio"][side]["format"];
            Some(AudioFormat::named(format["type"].as_str()?, format["rate"].as_u64()))
        };
        self.context.format = format("input").unwrap_or(self.context.format);
        self.spoken = format("output").unwrap_or(self.spoken);
        if let Some(limit) = session["max_output_tokens"].as_u64() {
            self.limit = limit.clamp(1, self.most_output);
        }
        self.turns.confirmed(session.pointer(TURN_DETECTION));
        if !session["audio"]["input"]["transcription"].is_object() {
            self.listening.confirm_stop();
        }
    }
}

pub fn cancel(id: &str) -> Utf8Bytes {
    json!({ "type": "response.cancel", "response_id": id }).to_string().into()
}
