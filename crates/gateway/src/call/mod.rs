//! The life of a call. The one place where money and traffic meet, for every modality: admit, quote, hold,
//! dispatch, meter, settle or void. No endpoint bills by itself.
//!
//! What holds at every moment (docs/life-of-a-call.md tells it as a story):
//! 1. Nothing is sent upstream before the hold was granted.
//! 2. No byte of the answer reaches the client before the hold is durable.
//! 3. The close (settle or void, with its usage row) is journalled before the last byte is handed over.
//! 4. A call that is dropped anywhere in between reports to the settler, which closes it.

mod admit;
mod conversation;
mod cover;
mod dispatch;
mod events;
mod limited;
mod meter;
mod need;
mod open;
mod pass;
mod quote;
mod refused;
mod reply;
mod short;
mod task;
mod tokens;

pub use admit::{find, needs_topup};
pub use conversation::{Conversation, Keeper, Kept, Reshape};
pub use dispatch::{Begun, Whole};
pub use events::Events;
pub use meter::{Meter, context_len};
pub use need::{Need, OpenEnd, Priced, Work};
pub use open::{Call, OpenCall};
pub use pass::{Passed, Rewrite};
pub use quote::{Quote, Terms, quote};
pub use refused::{Needed, why_refused};
pub use task::{Made, TaskAsk, create_task, look, refresh};

use crate::app::{App, Serving};
use crate::caller::Caller;
use crate::refusal::Refusal;
use axum::response::Response;
use std::sync::Arc;
use tollgate_dialects::responses::unkept;
use tollgate_store::{CallId, Ending, Held, Hold, HoldRefused, Idem};
use tollgate_wire::error::Code;

/// What a caller asks for: the work, read and checked, and the name of the call.
pub struct Ask<W> {
    pub id: CallId,
    pub endpoint: &'static str,
    pub work: W,
    pub idem: Option<Idem>,
}

/// Runs one call from admission to its reply. The stream of a streamed reply carries the rest of its life.
pub async fn run<W: Work>(app: &Arc<App>, caller: Arc<Caller>, ask: Ask<W>) -> Result<Response, Refusal> {
    let serving = app.serving.load_full();
    let (mut call, mut hold) = begin(app, &serving, caller, &ask).await?;
    if matches!(hold, Err(HoldRefused::ToppedUp)) {
        // The account topped up a moment ago, and this replica did not know: it pays the prices of one that has.
        let caller = app.keys.read_again(&app.store, &call.caller).await?;
        call.forget();
        (call, hold) = begin(app, &serving, caller, &ask).await?;
    }
    let held = match hold {
        Ok(held) => held,
        Err(HoldRefused::IdemDone { call: first, reply }) => {
            let account = call.caller.account.id;
            call.forget();
            return reply::replay(&app.store, account, first, reply).await;
        }
        Err(refused) => {
            let refusal = why_refused(&refused, Needed::of(&call.quote, &call.model), app.world.now_ms());
            call.refuse(&refusal, &refused);
            return Err(refusal);
        }
    };
    call.granted(&held);
    let goes_on_without_client = serving.bills_on_cancel(&call);
    let rest = answer(serving, call, held, ask.work);
    if goes_on_without_client {
        // This provider bills to the end whatever happens, so the call is read to its end too.
        return app.tracker.spawn(rest).await.unwrap_or_else(|_| {
            Err(Refusal::new(Code::Internal, "The call ended unexpectedly; what it cost is settled separately."))
        });
    }
    rest.await
}

/// Admission, quote and hold.
async fn begin<W: Work>(
    app: &Arc<App>,
    serving: &Serving,
    caller: Arc<Caller>,
    ask: &Ask<W>,
) -> Result<(Call, Result<Held, HoldRefused>), Refusal> {
    let again;
    let mut caller = &caller;
    let admitted = match admit::admit(app, serving, caller, &ask.work) {
        Err(Refusal { code: Code::ModelRequiresTopup, .. }) => {
            // It may have topped up since its key was last read.
            again = app.keys.read_again(&app.store, caller).await?;
            caller = &again;
            admit::admit(app, serving, caller, &ask.work)
        }
        admitted => admitted,
    };
    let (model, group) = admitted?;
    ask.work.fits(app, serving, &model)?;
    let stream_hold = app.settings.limits.stream_hold;
    let terms = Terms { at: app.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let quote = quote(terms, &model, &ask.work)?;
    let call = Call::begin(app.clone(), caller.clone(), model, quote, ask);
    let held = hold(&call, ask.idem).await;
    Ok((call, held))
}

async fn hold(call: &Call, idem: Option<Idem>) -> Result<Held, HoldRefused> {
    call.app
        .store
        .hold(Hold {
            call: call.id,
            account: call.caller.account.id,
            key: call.caller.key.id,
            amount: call.quote.amount,
            least: call.quote.least(&call.model),
            price: call.quote.price.clone(),
            model: call.model.name.clone(),
            endpoint: call.endpoint,
            paid_only: call.model.requires_topup,
            topped_up: call.quote.topped_up,
            expires_at: call.app.world.steady_ms() + call.app.settings.limits.hold_life().as_millis() as i64,
            at: call.began,
            idem,
        })
        .await
}

async fn answer(serving: Arc<Serving>, mut call: Call, mut held: Held, work: impl Work) -> Result<Response, Refusal> {
    if let Err(refusal) = work.before(&call).await {
        call.close(ending(&refusal, Ending::Refused), refusal.code.status(), refusal.code.code());
        return Err(refusal);
    }
    let cut = call.app.cut.clone();
    let begun = tokio::select! {
        biased;
        begun = dispatch::dispatch(&serving, &mut call, &work) => begun,
        () = cut.cancelled() => Err(Refusal::new(Code::ServerDraining, "The server is stopping; send the request again.").after(1)),
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(refusal) => {
            // What no route could be asked at all is no fault of a provider's.
            let refused = call.attempts == 0 && refusal.code != Code::NoRouteAvailable;
            let otherwise = if refused { Ending::Refused } else { Ending::UpstreamFault };
            call.close(ending(&refusal, otherwise), refusal.code.status(), refusal.code.code());
            return Err(refusal);
        }
    };
    if let Begun::Whole(whole) = &begun {
        call.note_answer(&whole.content_type, &whole.body);
    }
    if held.durable().await.is_err() {
        call.close_free(Ending::UpstreamFault, Code::LedgerUnavailable.status(), "hold_not_durable");
        return Err(Refusal::new(
            Code::LedgerUnavailable,
            "The hold for this call could not be made durable; nothing was charged.",
        )
        .after(2));
    }
    Ok(match begun {
        Begun::Whole(whole) => {
            let whole = kept(&mut call, whole).await?;
            reply::whole(call, whole)
        }
        Begun::Passing(passed) => reply::passing(call, *passed),
        Begun::Stream(stream) => {
            let head = reply::Head::of(&call, stream.content_type.clone());
            reply::stream(head, Events::new(call, *stream))
        }
    })
}

/// An answer in one piece goes out when it is kept, or says that it is not.
async fn kept(call: &mut Call, mut whole: Whole) -> Result<Whole, Refusal> {
    let Some(keeper) = whole.keeper.take() else { return Ok(whole) };
    match keeper.keep(whole.body.clone()).await {
        Kept::Yes => {}
        Kept::No => {
            whole.body = unkept(&whole.body);
            call.note_answer(&whole.content_type, &whole.body);
        }
        Kept::Failed => {
            call.close_free(Ending::UpstreamFault, Code::LedgerUnavailable.status(), "not_kept");
            return Err(Refusal::new(Code::LedgerUnavailable, conversation::NOT_KEPT).after(2));
        }
    }
    Ok(whole)
}

/// That there is nothing is an answer too.
fn ending(refusal: &Refusal, otherwise: Ending) -> Ending {
    if refusal.code == Code::SocialDataNoResult { Ending::Answered } else { otherwise }
}
