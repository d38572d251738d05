//! A call between its hold and its close. `Call` is a guard: dropped in the middle (the client
//! left, a handler panicked) it only sends what it knows to the settler, which closes it there.

use super::Till;
use super::abandoned::Abandoned;
use super::ask::CallRequest;
use super::bought::Bought;
use super::cost::{cost_of, note_cost};
use super::meter::Meter;
use super::quote::Quote;
use super::stored_refusal;
use crate::refusal::Refusal;
use crate::routes::traffic::SeenCall;
use crate::who::caller::Caller;
use crate::world::Millis;
use bytes::Bytes;
use http::HeaderValue;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;
use tollgate_catalog::{BillingUnit, Face, Model, Money, Price};
use tollgate_store::{CallId, Close, Counters, Ending, Held, MAX_STORED_REPLY, Mark, StoredReply, UsageFacts};
use tollgate_upstream::{Blame, Provider};
use tollgate_wire::Dropped;

/// All that is known of a call while it is open.
pub struct OpenCall {
    pub till: Arc<Till>,
    pub id: CallId,
    pub caller: Arc<Caller>,
    pub model: Arc<Model>,
    pub endpoint: &'static str,
    pub quote: Quote,
    pub began: Millis,
    /// When the call must be over, whatever it does: its hold lives a little longer.
    pub deadline: Instant,
    pub meter: Meter,
    pub provider: Option<Arc<Provider>>,
    pub upstream_model: String,
    pub attempts: u32,
    /// Whose fault the last failed attempt was, as long as no answer has begun.
    pub blame: Option<Blame>,
    /// It costs wherever it is begun, and the provider that is asked may have begun it.
    pub may_be_made: bool,
    /// The hold with its extensions, as far as they were made before the answer began.
    pub held: Money,
    /// How often its hold was extended before its answer began.
    pub extensions: u32,
    /// The account has less than was asked for: the provider is asked that each choice of the
    /// answer has this limit.
    pub limit: Option<u64>,
    pub first_byte_at: Option<Millis>,
    pub idempotent: bool,
    /// The whole answer, from the moment it is there: a client that leaves before it is handed over
    /// has paid for it, and its Idempotency-Key finds it.
    pub answer: Option<StoredReply>,
    /// Fields of the request that the provider did not get, and of the answer that its client has
    /// no form for.
    pub dropped: Dropped,
}

pub struct Call(Option<Box<OpenCall>>);

/// What a call costs and why.
struct Bill {
    /// What the counters come to.
    charge: Money,
    /// What of it the customer pays at most, where that is not all of it.
    most: Option<Money>,
    counters: Counters,
    estimated: bool,
    price: Arc<Price>,
}

impl Bill {
    fn nothing(quote: &Quote, reported: Counters) -> Bill {
        let counters = Counters { calls: 0, seconds: 0, ..reported };
        Bill { charge: Money::ZERO, most: None, counters, estimated: false, price: quote.price.clone() }
    }
}

impl Call {
    pub fn begin<W>(till: Arc<Till>, bought: Bought, ask: &CallRequest<W>, mut meter: Meter) -> Call {
        let Bought { caller, model, quote } = bought;
        till.running.fetch_add(1, Ordering::Relaxed);
        meter.bound(quote.need.output_ceiling);
        Call(Some(Box::new(OpenCall {
            id: ask.id,
            endpoint: ask.endpoint,
            meter,
            began: quote.at,
            deadline: Instant::now() + till.limits.stream_time,
            caller,
            model,
            quote,
            provider: None,
            upstream_model: String::new(),
            attempts: 0,
            blame: None,
            may_be_made: false,
            held: Money::ZERO,
            extensions: 0,
            limit: None,
            first_byte_at: None,
            idempotent: ask.idem.is_some(),
            answer: None,
            dropped: Dropped::default(),
            till,
        })))
    }

    /// Ends the call with what its meter shows.
    pub fn close(&mut self, ending: Ending, status: u16, reason: &str) {
        self.close_with_reply(ending, status, reason, None);
    }

    pub fn close_with_reply(
        &mut self,
        ending: Ending,
        status: u16,
        reason: &str,
        reply: Option<StoredReply>,
    ) -> Option<Money> {
        self.0.take()?.close(ending, status, reason, reply)
    }

    /// Ends the call without a charge, whatever was produced: none of it reached the client.
    pub fn close_free(&mut self, ending: Ending, status: u16, reason: &str) {
        if let Some(mut open) = self.0.take() {
            open.meter = Meter::Nothing;
            open.close(ending, status, reason, None);
        }
    }

    /// There is no hold, so this never became a call.
    pub fn undo(mut self) -> Bought {
        let open = self.0.take().expect("a closed call is not used again");
        let OpenCall { till, caller, model, quote, .. } = *open;
        till.running.fetch_sub(1, Ordering::Relaxed);
        Bought { caller, model, quote }
    }

    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub fn take(&mut self) -> Option<Box<OpenCall>> {
        self.0.take()
    }
}

impl OpenCall {
    /// The hold is there, if with less than was asked for: then the call is made shorter.
    pub fn granted(&mut self, held: &Held) {
        self.held = held.total();
        if self.held < self.quote.amount {
            self.limit = self.quote.shorten(&self.model, self.held);
            self.meter.bound(self.quote.need.output_ceiling);
        }
    }

    /// Keeps the whole answer where it may be asked for again.
    pub fn note_answer(&mut self, content_type: &HeaderValue, body: &Bytes) {
        self.answer = self.idempotent.then(|| StoredReply {
            status: 200,
            content_type: content_type.to_str().unwrap_or("application/octet-stream").to_owned(),
            body: body.clone(),
        });
    }

    /// The only place where a call's charge is computed and handed to the ledger. Tells what the
    /// customer pays where that is certain: a charge above the hold is known only when the ledger
    /// has seen what the account still has.
    pub fn close(
        self: Box<Self>,
        ending: Ending,
        status: u16,
        reason: &str,
        reply: Option<StoredReply>,
    ) -> Option<Money> {
        let bill = self.bill();
        let (charge, most) = (bill.charge, bill.most);
        let reply = reply.or_else(|| self.lost_word(ending, most.unwrap_or(charge)));
        let reply = reply.filter(|reply| reply.body.len() <= MAX_STORED_REPLY);
        let metrics = &self.till.metrics;
        metrics.ended(self.endpoint, ending, reason);
        let now = self.till.world.now_ms();
        metrics.took(now - self.began, self.first_byte_at.map(|at| at - self.began));
        if ending != Ending::Answered {
            tracing::info!(call = %self.id, ending = ending.name(), reason, status, charge = %charge, "call ended");
        } else {
            tracing::debug!(call = %self.id, charge = %charge, "call answered");
        }
        self.note_report(ending, &bill);
        self.note_health(ending, status, now);
        if let Some(most) = most {
            self.note_excess(charge, most);
        }
        let row = self.row(status, bill, now);
        note_cost(metrics, &row, most.unwrap_or(charge));
        let closing = self.till.store.close(Close {
            call: self.id,
            account: self.caller.account.id,
            ending,
            reason: reason.to_owned(),
            charge,
            most,
            row,
            reply,
        });
        self.till.running.fetch_sub(1, Ordering::Relaxed);
        let due = most.unwrap_or(charge);
        closing.known().map(|closed| closed.captured).or((due <= self.held).then_some(due))
    }

    /// What its client is told, and whoever repeats its key, when it breaks off where it may have
    /// been made and nobody has its answer: the same as after a crash, and for the same calls.
    pub fn lost(&self) -> Option<Refusal> {
        if !self.may_be_made || !self.till.store.is_begun_once(self.endpoint) {
            return None;
        }
        Some(match self.till.shutdown.is_cutting() {
            true => stored_refusal::stopped(self.idempotent),
            false => stored_refusal::broken_off(self.idempotent),
        })
    }

    /// What is stored under the key of a call that ends so for want of an answer: what was charged
    /// keeps its key anyway.
    fn lost_word(&self, ending: Ending, charge: Money) -> Option<StoredReply> {
        if !self.idempotent || ending == Ending::Answered || !charge.is_zero() {
            return None;
        }
        self.lost().as_ref().and_then(stored_refusal::write)
    }

    /// The provider went beyond what the call may cost: the operator bears that, and is warned.
    fn note_excess(&self, charge: Money, most: Money) {
        let provider = self.provider.as_ref().map_or("", |one| one.name.as_str());
        self.till.metrics.above_quote(provider, &self.upstream_model);
        let limit = self.quote.need.output_ceiling;
        let lost = charge.checked_sub(most).unwrap_or(Money::ZERO);
        tracing::error!(call = %self.id, provider, upstream_model = self.upstream_model, limit, %lost, "a provider went beyond what a call may cost; the difference is written off");
    }

    /// Did a completed call come with the provider's report, where the charge depends on one?
    fn note_report(&self, ending: Ending, bill: &Bill) {
        let sold = &bill.price.faces;
        // Characters and seconds are counted here, whatever a provider says of them.
        let by_tokens = bill.price.unit == BillingUnit::Tokens && (sold.has(Face::Input) || sold.has(Face::Output));
        let expected = by_tokens && !matches!(self.meter, Meter::Counted(_));
        if let (Ending::Answered, false, true, Some(provider)) =
            (ending, self.meter.is_empty(), expected, &self.provider)
        {
            let (till, now) = (&self.till, self.till.world.steady_ms());
            till.routes.pauses.note(provider, &self.upstream_model, bill.estimated, now, &till.metrics);
        }
    }

    /// Counts the call as its customer saw it, and its route by how the answer went that it began.
    /// Not counted are refusals of ours, faults of the caller, and clients that left before the
    /// first byte.
    fn note_health(&self, ending: Ending, status: u16, at: Millis) {
        let begun = self.blame.is_none();
        let good = match ending {
            Ending::Answered => true,
            Ending::ClientLeft if self.first_byte_at.is_some() => true,
            // An answer that had begun broke off; any other status is an error of ours.
            Ending::UpstreamFault if begun && matches!(status, 101 | 200) => false,
            Ending::UpstreamFault if self.blame.is_some_and(|blame| blame != Blame::Caller) => false,
            _ => return,
        };
        let Some(provider) = self.provider.as_ref().filter(|_| self.attempts > 0) else { return };
        let traffic = &self.till.routes.traffic;
        let first_byte_ms = self.first_byte_at.map_or(0, |first| first - self.began);
        let seen = SeenCall { account: self.caller.account.id, good, first_byte_ms, at };
        traffic.call(&self.model.name, seen);
        if begun {
            traffic.attempt(&self.model.name, &provider.name, &self.upstream_model, seen);
        }
    }

    /// Takes over what an answer lost on its way.
    pub fn note_dropped(&mut self, dropped: Option<&Dropped>) {
        if let Some(dropped) = dropped {
            self.dropped.extend(dropped);
        }
    }

    /// Evidence for the case that this process dies in mid-stream.
    pub fn mark(&self) {
        let bill = Bill { estimated: true, ..self.bill() };
        let (charge, most) = (bill.charge, bill.most);
        let row = self.row(0, bill, self.till.world.now_ms());
        self.till.store.mark(Mark { call: self.id, account: self.caller.account.id, charge, most, row });
    }

    /// What the meter comes to at the frozen price.
    fn bill(&self) -> Bill {
        if self.meter.is_empty() {
            return Bill::nothing(&self.quote, self.meter.reported());
        }
        let (used, estimated) = self.meter.measured();
        let (price, counters, charge) = self.quote.charge(&self.model, used);
        match charge {
            Ok(charge) => Bill { charge, most: self.quote.due(&self.model, used, charge), counters, estimated, price },
            // Cannot happen with plausible counters; never free and never more than was held.
            Err(_) => Bill { charge: self.quote.amount, most: None, counters, estimated: true, price },
        }
    }

    fn row(&self, status: u16, bill: Bill, ended_at: Millis) -> UsageFacts {
        let Bill { counters, estimated, price, .. } = bill;
        let row = UsageFacts {
            key: self.caller.key.id,
            at: self.began,
            ended_at,
            endpoint: Cow::Borrowed(self.endpoint),
            model: self.model.name.clone(),
            provider: self.provider.as_ref().map(|one| one.name.clone()),
            upstream_model: self.provider.is_some().then(|| self.upstream_model.clone()),
            status,
            counters,
            estimated,
            raw_usage: self.meter.raw_usage().map(str::to_owned),
            attempts: self.attempts,
            first_byte_ms: self.first_byte_at.map(|at| u32::try_from(at - self.began).unwrap_or(0)),
            tier: price.tier.clone(),
            dropped: (!self.dropped.is_empty()).then(|| self.dropped.to_string()),
            cost: None,
            price: (price.id() != self.quote.price.id()).then_some(price),
        };
        let quirks = self.provider.as_ref().map(|provider| &provider.settings.quirks);
        UsageFacts { cost: cost_of(&self.model, &row, quirks, self.quote.at), ..row }
    }
}

/// A call is reached through its guard as long as it is open; using a closed one is a mistake of
/// ours.
impl Deref for Call {
    type Target = OpenCall;
    fn deref(&self) -> &OpenCall {
        self.0.as_deref().expect("a closed call is not used again")
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut OpenCall {
        self.0.as_deref_mut().expect("a closed call is not used again")
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let to = open.till.abandoned.clone();
            // Fails only when the settler is gone, at the very end of the process: recovery finds
            // the hold.
            let _ = to.send(Abandoned::Call(open));
        }
    }
}
