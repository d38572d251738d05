//! How everything that costs money begins, a call as well as a task: admission, quote and hold, or
//! a refusal that leaves a row.

use super::ask::CallRequest;
use super::bought::Bought;
use super::need::Priced;
use super::quote::{Quote, Terms, quote};
use super::refused::{Needed, why_refused};
use super::{Till, admit};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::{Model, Money};
use tollgate_store::{Counters, Ending, Hold, HoldRefused, UsageFacts};
use tollgate_wire::error::Code;

/// The reason of a refusal for want of confirmed money.
pub const OVER_CONFIRMED: &str = "over_confirmed";

/// Something that is begun with a hold.
pub(super) trait Begins: Sync {
    /// What is open from just before the hold on: whoever is dropped while waiting for it has said
    /// somebody.
    type Open: Send;
    type Held: Send;

    fn priced(&self) -> &dyn Priced;

    /// What else may refuse it before it is priced.
    fn fits(&self, _: &Serving, _: &Model) -> Result<(), Refusal> {
        Ok(())
    }

    /// Opens it and sets its money aside.
    fn hold(
        &self,
        till: &Arc<Till>,
        bought: Bought,
    ) -> impl Future<Output = (Self::Open, Result<Self::Held, HoldRefused>)> + Send;

    /// There is no hold, so nothing was opened.
    fn undo(open: Self::Open) -> Bought;
}

/// How it began.
pub(super) enum Beginning<B: Begins> {
    Held(B::Open, B::Held),
    Refused(Box<Bought>, HoldRefused),
}

pub(super) async fn begin<B: Begins>(
    till: &Arc<Till>,
    serving: &Serving,
    caller: Arc<Caller>,
    begins: &B,
) -> Result<Beginning<B>, Refusal> {
    let bought = match once(till, serving, caller, begins).await? {
        Beginning::Refused(bought, HoldRefused::ToppedUp) => bought,
        other => return Ok(other),
    };
    // The account topped up a moment ago, and this replica did not know: it pays the prices of one
    // that has.
    let caller = till.keys.read_again(&till.store, &bought.caller).await?;
    once(till, serving, caller, begins).await
}

async fn once<B: Begins>(
    till: &Arc<Till>,
    serving: &Serving,
    caller: Arc<Caller>,
    begins: &B,
) -> Result<Beginning<B>, Refusal> {
    let bought = buy(till, serving, caller, begins).await?;
    let (open, held) = begins.hold(till, bought).await;
    Ok(match held {
        Ok(held) => Beginning::Held(open, held),
        Err(refused) => Beginning::Refused(Box::new(B::undo(open)), refused),
    })
}

/// Admission and quote.
async fn buy<B: Begins>(till: &Till, serving: &Serving, caller: Arc<Caller>, begins: &B) -> Result<Bought, Refusal> {
    let priced = begins.priced();
    let again;
    let mut caller = &caller;
    let admitted = match admit::admit(till, serving, caller, priced) {
        Err(Refusal { code: Code::ModelRequiresTopup, .. }) => {
            // It may have topped up since its key was last read.
            again = till.keys.read_again(&till.store, caller).await?;
            caller = &again;
            admit::admit(till, serving, caller, priced)
        }
        admitted => admitted,
    };
    let (model, group) = admitted?;
    begins.fits(serving, &model)?;
    let stream_hold = till.limits.stream_hold;
    let terms = Terms { at: till.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let quote = quote(terms, &model, priced)?;
    within_cap(caller, &quote, &model)?;
    Ok(Bought { caller: caller.clone(), model, quote })
}

/// The model that a call like this would be sold now, if by what is known here it would be let in
/// and its money held. For whoever has to know before all of a request is there; nothing is
/// promised by it.
pub fn would_begin(till: &Till, serving: &Serving, caller: &Caller, priced: &dyn Priced) -> Option<Arc<Model>> {
    let (model, group) = admit::admit(till, serving, caller, priced).ok()?;
    let stream_hold = till.limits.stream_hold;
    let terms = Terms { at: till.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let quote = quote(terms, &model, priced).ok()?;
    within_cap(caller, &quote, &model).ok()?;
    caller.could_hold(quote.amount, model.requires_topup, quote.at).then_some(model)
}

/// A step of a run costs no more than is left of what was confirmed. It is decided with the hold,
/// which no charge exceeds; a run has one step at a time.
fn within_cap(caller: &Caller, quote: &Quote, model: &Model) -> Result<(), Refusal> {
    let Some(cap) = caller.cap() else { return Ok(()) };
    let most = quote.most(model).map_or(Money::MAX, |bound| bound.amount.max(quote.amount));
    if most <= cap {
        return Ok(());
    }
    let text = format!("This step may cost {most} USD, and {cap} USD are left of what was confirmed for its run.");
    Err(Refusal::new(Code::Conflict, text).because(OVER_CONFIRMED))
}

/// The hold for what was bought, which lives for so long.
pub(super) fn hold<W>(
    till: &Till,
    ask: &CallRequest<W>,
    caller: &Caller,
    model: &Model,
    quote: &Quote,
    life: Duration,
) -> Hold {
    Hold {
        call: ask.id,
        account: caller.account.id,
        key: caller.key.id,
        amount: quote.amount,
        least: quote.least(model),
        price: quote.price.clone(),
        model: model.name.clone(),
        endpoint: ask.endpoint,
        paid_only: model.requires_topup,
        topped_up: quote.topped_up,
        expires_at: till.world.steady_ms().saturating_add(i64::try_from(life.as_millis()).unwrap_or(i64::MAX)),
        at: quote.at,
        idem: ask.idem,
    }
}

impl Bought {
    /// The hold was refused: there is nothing to close, only something to note.
    pub(super) fn refuse<W>(&self, till: &Till, ask: &CallRequest<W>, refused: &HoldRefused) -> Refusal {
        let refusal = why_refused(refused, Needed::of(&self.quote, &self.model), till.world.now_ms());
        till.metrics.ended(ask.endpoint, Ending::Refused, refusal.code.code());
        if matches!(refused, HoldRefused::Insufficient { .. } | HoldRefused::Limit(_)) {
            self.caller.falls_short();
            let row = self.facts_of_refusal(till, ask.endpoint, refusal.code.status());
            till.store.note_refusal(ask.id, self.caller.account.id, refusal.code.code().to_owned(), row);
        }
        refusal
    }

    /// The usage row of what nobody served.
    pub(super) fn facts_of_refusal(&self, till: &Till, endpoint: &'static str, status: u16) -> UsageFacts {
        UsageFacts {
            key: self.caller.key.id,
            at: self.quote.at,
            ended_at: till.world.now_ms(),
            endpoint: endpoint.into(),
            model: self.model.name.clone(),
            provider: None,
            upstream_model: None,
            status,
            counters: Counters::default(),
            estimated: false,
            raw_usage: None,
            attempts: 0,
            first_byte_ms: None,
            tier: self.quote.price.tier.clone(),
            dropped: None,
            cost: None,
            price: None,
        }
    }
}
