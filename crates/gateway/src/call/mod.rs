//! The life of a call. The one place where money and traffic meet, for every modality: admit,
//! quote, hold, dispatch, meter, settle or void. No endpoint bills by itself.
//!
//! What holds at every moment (docs/life-of-a-call.md tells it as a story):
//! 1. Nothing that a provider could begin with is sent before the hold was granted; of a large
//!    recording all but its end may be there earlier (`Work::is_under_way`).
//! 2. No byte of the answer reaches the client before the hold is durable.
//! 3. The close (settle or void, with its usage row) is journalled before the last byte is handed
//!    over.
//! 4. A call that is dropped anywhere in between reports to the settler, which closes it.

mod abandoned;
mod admit;
mod ask;
mod begin;
mod begun;
mod bought;
mod complete;
mod cost;
mod cover;
mod dispatch;
mod elsewhere;
mod events;
mod limited;
mod meter;
mod need;
mod open;
mod pass;
mod quote;
mod reader;
mod refused;
mod reply;
mod session;
mod short;
mod stored_refusal;
pub mod task;
mod till;
mod tokens;
mod waits;
mod work;

pub use abandoned::Abandoned;
pub use admit::{find, may_begin, needs_topup};
pub use ask::CallRequest;
pub use begin::{OVER_CONFIRMED, would_begin};
pub use begun::{Begun, Started, WholeAnswer};
pub use complete::{Completed, Completion};
pub use cover::Covered;
pub use dispatch::{Attempts, may_have_begun, note};
pub use elsewhere::{read as found_elsewhere, write as stored_elsewhere};
pub use meter::{Meter, context_len, fitted};
pub use need::{Need, OpenEnd, Priced};
pub use open::{Call, OpenCall};
pub use pass::{BrokenOff, CLIENT_CLOSED, HELD, Passed, Rewrite};
pub use quote::{Quote, Terms, quote};
pub use reader::{BrokenEvents, EventReader, EventsEnd};
pub use refused::{Needed, why_refused};
pub use reply::{AnswerBody, CallAnswer, StoredPieces};
pub use session::{SessionCall, SessionTerms};
pub use stored_refusal::lost_refusal;
pub use till::Till;
pub use tokens::Tokens;
pub use work::Work;

use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use begin::{Beginning, Begins, begin};
use bought::Bought;
use cover::why_uncovered;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_store::{Ending, Held, HoldRefused};
use tollgate_wire::error::Code;

/// Runs one call from admission to its answer. What is not whole carries the rest of its life.
pub async fn run<W: Work>(till: &Arc<Till>, caller: Arc<Caller>, ask: CallRequest<W>) -> Result<CallAnswer, Refusal> {
    let serving = till.serving.load_full();
    let (mut call, held) = match begin(till, &serving, caller, &ask).await? {
        Beginning::Held(call, held) => (call, held),
        Beginning::Refused(bought, HoldRefused::IdemDone { call: first, reply }) => {
            return reply::replay(&till.store, bought.caller.account.id, first, reply, &ask.work).await;
        }
        Beginning::Refused(bought, refused) => return Err(bought.refuse(till, &ask, &refused)),
    };
    call.granted(&held);
    let once = ask.work.once();
    let goes_on_without_client = ask.work.goes_on(&serving, &call.model) || serving.bills_on_cancel(&call);
    if goes_on_without_client {
        // This provider bills to the end whatever happens, so the call is read to its end too.
        // Boxed, because a task is moved several times before it begins.
        let answering = Box::pin(answer(serving, call, held, ask.work));
        return till.tracker.spawn(answering).await.unwrap_or_else(|_| {
            let text = "The call ended unexpectedly; what it cost is settled separately.";
            let refusal = Refusal::new(Code::Internal, text);
            Err(if once { refusal.once() } else { refusal })
        });
    }
    answer(serving, call, held, ask.work).await
}

impl<W: Work> Begins for CallRequest<W> {
    type Open = Call;
    type Held = Held;

    fn priced(&self) -> &dyn Priced {
        self.work.priced()
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.work.fits(serving, model)
    }

    async fn hold(&self, till: &Arc<Till>, bought: Bought) -> (Call, Result<Held, HoldRefused>) {
        let meter = self.work.meter(&bought.model);
        held_for(till, bought, self, meter, Duration::ZERO).await
    }

    fn undo(call: Call) -> Bought {
        call.undo()
    }
}

/// Opens a call and sets its money aside. `waits` is how long it may stand before it is sent.
async fn held_for<W>(
    till: &Arc<Till>,
    bought: Bought,
    ask: &CallRequest<W>,
    meter: Meter,
    waits: Duration,
) -> (Call, Result<Held, HoldRefused>) {
    let call = Call::begin(till.clone(), bought, ask, meter);
    let life = till.limits.hold_life() + waits;
    let hold = begin::hold(till, ask, &call.caller, &call.model, &call.quote, life);
    let held = till.store.hold(hold).await;
    (call, held)
}

async fn answer(serving: Arc<Serving>, mut call: Call, mut held: Held, work: impl Work) -> Result<CallAnswer, Refusal> {
    if let Err(refusal) = work.before(&call).await {
        call.close(work.ending(&refusal).unwrap_or(Ending::Refused), refusal.code.status(), refusal.code.code());
        return Err(refusal);
    }
    if work.is_under_way() && held.durable().await.is_err() {
        return Err(unconfirmed(&mut call));
    }
    let cut = call.till.shutdown.cut.clone();
    let begun = {
        let mut sending = pin!(dispatch::dispatch(&serving, &mut call, &work));
        // Once it waits the request is on its way, and the hold becomes durable meanwhile.
        let sending = poll_fn(|cx| {
            let polled = sending.as_mut().poll(cx);
            held.make_durable();
            polled
        });
        tokio::select! {
            biased;
            begun = sending => Some(begun),
            () = cut.cancelled() => None,
        }
    };
    let begun = match begun.unwrap_or_else(|| Err(cut_off(&call))) {
        Ok(begun) => begun,
        Err(refusal) => {
            // What no route could be asked at all is no fault of a provider's.
            let refused = call.attempts == 0 && refusal.code != Code::NoRouteAvailable;
            let otherwise = if refused { Ending::Refused } else { Ending::UpstreamFault };
            let ending = work.ending(&refusal).unwrap_or(otherwise);
            let stored = stored_refusal::write(&refusal).filter(|_| call.idempotent);
            call.close_with_reply(ending, refusal.code.status(), refusal.code.code(), stored);
            return Err(refusal);
        }
    };
    if let Begun::Whole(whole) = &begun {
        call.note_answer(&whole.content_type, &whole.body);
    }
    if held.durable().await.is_err() {
        return Err(unconfirmed(&mut call));
    }
    Ok(match begun {
        Begun::Whole(whole) => {
            let whole = completed(&mut call, whole).await?;
            reply::whole(call, whole)
        }
        Begun::Passing(passed) => reply::passing(call, *passed),
        Begun::Stream(started) => reply::stream(call, *started),
    })
}

/// The stop waits no longer.
fn cut_off(call: &Call) -> Refusal {
    let again = || Refusal::new(Code::ServerDraining, "The server is stopping; send the request again.").after(1);
    call.lost().unwrap_or_else(again)
}

/// The ledger did not say in time that the hold would survive a crash.
fn unconfirmed(call: &mut Call) -> Refusal {
    let text = "The hold for this call could not be made durable; nothing was charged.";
    let again = || Refusal::new(Code::LedgerUnavailable, text).after(2);
    let refusal = call.lost().unwrap_or_else(again);
    call.close_free(Ending::UpstreamFault, refusal.code.status(), "hold_not_durable");
    refusal
}

/// An answer in one piece goes out when its last step is taken, or says that it is not.
async fn completed(call: &mut Call, mut whole: WholeAnswer) -> Result<WholeAnswer, Refusal> {
    let Some(step) = whole.completion.take() else { return Ok(whole) };
    match step.complete(whole.body.clone()).await {
        Completed::AsItIs => {}
        Completed::Changed => {
            whole.body = step.changed(&whole.body);
            call.note_answer(&whole.content_type, &whole.body);
        }
        Completed::Failed => {
            let (message, reason) = step.failure();
            call.close_free(Ending::UpstreamFault, Code::LedgerUnavailable.status(), reason);
            return Err(Refusal::new(Code::LedgerUnavailable, message).after(2));
        }
    }
    Ok(whole)
}
