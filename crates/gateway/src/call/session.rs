//! Calls of a session: each response is a call of its own, but nobody asks for it by a request.
//!
//! Before a response may begin there is a call that waits for it, held and durable. The response
//! that begins is bound to it; its output is counted as it passes, the hold grows with it
//! (`cover.rs`), and what it used closes it. A session that ends lets its waiting call go, free. As
//! everywhere, one that is dropped in the middle reports to the settler.

use super::ask::CallRequest;
use super::begin::{Beginning, Begins, begin};
use super::bought::Bought;
use super::cover::{Cover, Covered};
use super::dispatch::{Attempts, dispatch};
use super::meter::{Meter, counters};
use super::need::Priced;
use super::open::Call;
use super::refused::{Needed, why_refused};
use super::tokens::Tokens;
use super::{Till, held_for, why_uncovered};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_catalog::{Model, Money};
use tollgate_store::{CallId, Counters, Ending, Held, HoldRefused};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;

/// As of a stream: evidence of what was produced is written down at its beginning, and then so
/// often.
const MARK_EVERY: Duration = Duration::from_secs(5);
const MARK_TOKENS: u64 = 4_096;

/// A session whose responses are calls.
#[derive(Clone)]
pub struct SessionTerms {
    pub till: Arc<Till>,
    /// Names it in the usage row of each of its calls.
    pub session: Arc<str>,
    pub endpoint: &'static str,
    /// The longest that a call may wait for its response and run.
    pub life: Duration,
}

/// Something that is held for and sent by nobody.
struct Unsent<P> {
    ask: CallRequest<P>,
    life: Duration,
}

/// A call of a session, from its hold to its close.
pub struct SessionCall {
    call: Call,
    /// From the moment its response has begun.
    cover: Option<Cover>,
    session: Arc<str>,
    /// The provider's name for the response.
    response: Option<String>,
    /// Input as estimated and output as counted: what is charged when nobody reports.
    counted: Counters,
    report: Option<(Option<Usage>, String)>,
    /// The client has stopped it: what it has read is charged, whether or not it said anything.
    stopped: bool,
    marked_at: Option<Instant>,
    marked_tokens: u64,
}

impl SessionTerms {
    /// Holds for the first response of a session and finds the provider of all of them.
    pub async fn first<P: Priced, A: Attempts>(
        &self,
        caller: Arc<Caller>,
        id: CallId,
        priced: P,
        dial: &A,
    ) -> Result<(SessionCall, A::Begun), Refusal> {
        let serving = self.till.serving.load_full();
        let mut held = self.open(&serving, caller, id, priced).await?;
        let cut = self.till.shutdown.cut.clone();
        let begun = tokio::select! {
            biased;
            begun = dispatch(&serving, &mut held.call, dial) => begun,
            () = cut.cancelled() => Err(Refusal::new(Code::ServerDraining, "The server is stopping; open the session again.").after(1)),
        };
        match begun {
            Ok(begun) => Ok((held, begun)),
            Err(refusal) => {
                let unasked = held.call.attempts == 0 && refusal.code != Code::NoRouteAvailable;
                let ending = if unasked { Ending::Refused } else { Ending::UpstreamFault };
                held.call.close_free(ending, refusal.code.status(), refusal.code.code());
                Err(refusal)
            }
        }
    }

    /// Holds for the next response of a session that has its provider.
    pub async fn next<P: Priced>(
        &self,
        caller: Arc<Caller>,
        id: CallId,
        priced: P,
        provider: Arc<Provider>,
        upstream_model: &str,
    ) -> Result<SessionCall, Refusal> {
        let serving = self.till.serving.load_full();
        let mut held = self.open(&serving, caller, id, priced).await?;
        held.call.provider = Some(provider);
        upstream_model.clone_into(&mut held.call.upstream_model);
        held.call.attempts = 1;
        Ok(held)
    }

    async fn open<P: Priced>(
        &self,
        serving: &Serving,
        caller: Arc<Caller>,
        id: CallId,
        priced: P,
    ) -> Result<SessionCall, Refusal> {
        let ask = CallRequest { id, endpoint: self.endpoint, work: priced, idem: None };
        let unsent = Unsent { ask, life: self.life };
        let (mut call, mut held) = match begin(&self.till, serving, caller, &unsent).await? {
            Beginning::Held(call, held) => (call, held),
            Beginning::Refused(bought, refused) => return Err(bought.refuse(&self.till, &unsent.ask, &refused)),
        };
        call.granted(&held);
        if held.durable().await.is_err() {
            call.close_free(Ending::UpstreamFault, Code::LedgerUnavailable.status(), "hold_not_durable");
            let text = "The hold for this response could not be made durable; nothing was charged.";
            return Err(Refusal::new(Code::LedgerUnavailable, text).after(2));
        }
        Ok(SessionCall {
            call,
            cover: None,
            session: self.session.clone(),
            response: None,
            counted: Counters::default(),
            report: None,
            stopped: false,
            marked_at: None,
            marked_tokens: 0,
        })
    }
}

impl<P: Priced> Begins for Unsent<P> {
    type Open = Call;
    type Held = Held;

    fn priced(&self) -> &dyn Priced {
        &self.ask.work
    }

    async fn hold(&self, till: &Arc<Till>, bought: Bought) -> (Call, Result<Held, HoldRefused>) {
        held_for(till, bought, &self.ask, Meter::Nothing, self.life).await
    }

    fn undo(call: Call) -> Bought {
        call.undo()
    }
}

impl SessionCall {
    pub fn id(&self) -> CallId {
        self.call.id
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.call.model
    }

    /// The provider of the session and its name for the model.
    pub fn provider(&self) -> Option<(Arc<Provider>, &str)> {
        Some((self.call.provider.clone()?, self.call.upstream_model.as_str()))
    }

    /// Tokens of input that it is held for.
    pub fn input_held(&self) -> u64 {
        self.call.quote.need.most.input
    }

    /// Holds for so many input tokens more, before the response begins.
    pub async fn cover_input(&mut self, tokens: u64) -> Result<(), Refusal> {
        let covered = self.call.cover_input(tokens).await;
        covered.map_err(|(refused, more)| self.refused(&refused, more))
    }

    /// The response has begun: from here on it is charged for. `input` is our estimate of what it
    /// reads, `limit` the most that it may produce.
    pub fn bind(&mut self, response: Option<String>, input: Counters, limit: u64) {
        let call = &mut self.call;
        call.quote.need.output_ceiling = limit.max(1);
        call.first_byte_at = Some(call.till.world.now_ms());
        self.cover = Some(Cover::new(call));
        self.response = response;
        self.counted = Counters { calls: 1, ..input };
    }

    /// So much was produced by now: text and audio. May it go out? More is asked for when it is
    /// time.
    pub fn produced(&mut self, text: u64, audio: u64) -> Covered {
        let all = text.saturating_add(audio);
        let covered = self.cover.as_mut().map_or(Covered::Never, |cover| cover.check(all, all, &self.call));
        if covered == Covered::Yes {
            // What is withheld is not charged for.
            (self.counted.output, self.counted.audio_output) = (text, audio);
            self.mark_when_due(all);
        }
        covered
    }

    /// The answer to what was asked for; pending for ever when nothing was.
    pub fn poll_extended(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let Some(cover) = self.cover.as_mut() else { return Poll::Pending };
        let answer = ready!(cover.poll(cx));
        Poll::Ready(answer.map_err(|refused| {
            let refusal = self.refused(&refused, Money::ZERO);
            Refusal { message: why_uncovered(refusal.code).to_owned(), ..refusal }
        }))
    }

    fn refused(&self, refused: &HoldRefused, more: Money) -> Refusal {
        self.call.caller.falls_short();
        why_refused(refused, Needed { amount: more, lower: "" }, self.call.till.world.now_ms())
    }

    /// Evidence is left also while nothing more comes.
    pub fn look(&mut self) {
        self.mark_when_due(self.counted.output.saturating_add(self.counted.audio_output));
    }

    fn mark_when_due(&mut self, produced: u64) {
        let now = Instant::now();
        let old = |at| now - at >= MARK_EVERY && produced > self.marked_tokens;
        if produced > 0 && (self.marked_at.is_none_or(old) || produced >= self.marked_tokens + MARK_TOKENS) {
            self.sync();
            self.call.mark();
            (self.marked_at, self.marked_tokens) = (Some(now), produced);
        }
    }

    /// What the provider says of the response, and in which words. No usage: it says nothing that
    /// can be true.
    pub fn report(&mut self, usage: Option<Usage>, raw: String) {
        self.report = Some((usage, raw));
    }

    /// It was stopped before its end. Else a client could let a provider read for nothing, again
    /// and again.
    pub fn stopped(&mut self) {
        self.stopped = true;
    }

    /// It is charged for this, whatever passed.
    pub fn measured(&mut self, item: &str, used: Counters, estimated: bool, raw: &str) {
        self.response = Some(item.to_owned());
        let raw_usage = Some(self.labelled(Some(raw)));
        self.call.first_byte_at = Some(self.call.till.world.now_ms());
        self.call.meter = Meter::Known { used, estimated, raw_usage };
    }

    /// Holds for all that this needs, if that is more than was held for.
    pub async fn cover_all(&mut self, priced: &impl Priced) -> Result<(), Refusal> {
        let need = priced.need(&self.call.model)?;
        let covered = self.call.cover_all(need).await;
        covered.map_err(|(refused, more)| self.refused(&refused, more))
    }

    /// The usage as the row keeps it: with the names of session and response.
    fn labelled(&self, raw: Option<&str>) -> String {
        let usage = raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or(serde_json::Value::Null);
        serde_json::json!({ "session_id": &*self.session, "response_id": self.response, "usage": usage }).to_string()
    }

    /// Brings the meter up to what is known: the report where it can be true, our own count
    /// otherwise.
    fn sync(&mut self) {
        if self.cover.is_none() || !self.call.is_open() {
            return;
        }
        let raw = self.labelled(self.report.as_ref().map(|(_, raw)| raw.as_str()));
        let used = self.counted;
        let produced = used.output.saturating_add(used.audio_output);
        let mut tokens = Tokens {
            raw_usage: Some(raw.clone()),
            report_is_whole: true,
            counted_output: produced,
            has_output: produced > 0,
            has_answer: true,
            ..Tokens::new(&self.call.model, used.input.saturating_add(used.audio_input), 1, false)
        };
        let reported = self.report.as_ref().and_then(|(usage, _)| *usage);
        tokens.reported = reported;
        let silent = reported.filter(|usage| usage.output_total() == 0 && produced == 0);
        if let Some(usage) = silent.filter(|usage| self.stopped && usage.input_total() <= tokens.input_limit) {
            self.call.meter = Meter::Known { used: counters(&usage), estimated: false, raw_usage: Some(raw) };
            return;
        }
        self.call.meter = if tokens.believes(reported.as_ref()) || silent.is_some() {
            Meter::Tokens(tokens)
        } else if produced == 0 {
            Meter::Nothing
        } else {
            Meter::Known { used, estimated: true, raw_usage: Some(raw) }
        };
    }

    /// The response is over: what it used is charged.
    pub fn settle(mut self, ending: Ending, reason: &str) {
        self.sync();
        self.call.close(ending, SWITCHED, reason);
    }

    /// Nothing of it is charged, whatever was produced.
    pub fn let_go(mut self, ending: Ending, reason: &str) {
        self.call.close_free(ending, SWITCHED, reason);
    }
}

/// The status that the client of a session got.
const SWITCHED: u16 = 101;

impl Drop for SessionCall {
    fn drop(&mut self) {
        // The call's own guard reports it, with this.
        if self.call.is_open() {
            self.sync();
        }
    }
}
