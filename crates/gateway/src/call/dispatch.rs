//! Routes in order, until one begins to answer. A fault says whose it is and whether another route
//! may be tried; once output has begun there is no second try. How one route is asked is the work's
//! affair.

use super::Till;
use super::begun::Begun;
use super::open::Call;
use super::work::Work;
use crate::refusal::Refusal;
use crate::routes::order::ordered;
use crate::routes::traffic::SeenCall;
use crate::sale::Serving;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::Route;
use tollgate_store::{AccountId, CallId};
use tollgate_upstream::{Blame, Fault, Provider};
use tollgate_wire::error::Code;

/// One call is sent to at most this many routes.
const TRIES: u32 = 3;

impl Serving {
    /// May this call go to a provider that goes on billing when it is cancelled?
    pub fn bills_on_cancel(&self, call: &Call) -> bool {
        let mut providers = call.model.routes.iter().filter_map(|route| self.providers.get(&route.provider));
        providers.any(|one| one.settings.bill_on_cancel)
    }
}

/// What is tried at one route after the other.
pub trait Attempts: Sync {
    /// What there is when a route has begun to answer.
    type Begun: Send;

    /// It costs money wherever it is begun: see [`Work::once`].
    fn costs_at_once(&self) -> bool {
        false
    }

    /// Tries one route.
    fn attempt_at(
        &self,
        call: &mut Call,
        provider: &Arc<Provider>,
        route: &Route,
    ) -> impl Future<Output = Result<Self::Begun, Fault>> + Send;
}

impl<W: Work> Attempts for W {
    type Begun = Begun;

    fn costs_at_once(&self) -> bool {
        self.once()
    }

    fn attempt_at(
        &self,
        call: &mut Call,
        provider: &Arc<Provider>,
        route: &Route,
    ) -> impl Future<Output = Result<Begun, Fault>> + Send {
        self.attempt(call, provider, route)
    }
}

pub async fn dispatch<A: Attempts>(serving: &Serving, call: &mut Call, work: &A) -> Result<A::Begun, Refusal> {
    let mut last = None;
    let mut tried: Option<(&Arc<Provider>, &Route)> = None;
    let mut out_of_service = false;
    let model = call.model.clone();
    for at in ordered(&call.till.world, &model) {
        let route = &model.routes[at];
        let Some(provider) = serving.providers.get(&route.provider) else { continue };
        if !call.till.routes.take(provider, route, call.till.world.steady_ms()) {
            out_of_service = true;
            continue;
        }
        call.provider = Some(provider.clone());
        call.upstream_model.clone_from(&route.upstream_model);
        call.attempts += 1;
        call.may_be_made = work.costs_at_once();
        match work.attempt_at(call, provider, route).await {
            Ok(begun) => {
                call.blame = None;
                return Ok(begun);
            }
            // Nothing was sent: the route cannot take this request, and neither counts nor is to
            // blame for that.
            Err(fault) if fault.is_refusal() => {
                tracing::debug!(call = %call.id, provider = provider.name, code = fault.code.code(), "a route cannot take a request");
                call.attempts -= 1;
                call.may_be_made = false;
                call.provider = tried.map(|(provider, _)| provider.clone());
                call.upstream_model = tried.map(|(_, route)| route.upstream_model.clone()).unwrap_or_default();
                // What a provider said of it weighs more.
                last = last.or(Some(fault));
            }
            Err(fault) => {
                tried = Some((provider, route));
                note(&call.till, call.id, provider, &fault);
                call.blame = counted(&fault);
                call.may_be_made = work.costs_at_once() && may_have_begun(&fault);
                note_attempt(&call.till, call.caller.account.id, &model.name, (&provider.name, route), &fault);
                let may = call.attempts < TRIES && Instant::now() < call.deadline;
                let go_on = may && fault.try_other && !fault.maybe_charged;
                last = Some(fault);
                if !go_on {
                    break;
                }
            }
        }
    }
    // A route that is out of service may be able to take what the others cannot.
    let last = last.filter(|fault: &Fault| !(fault.is_refusal() && out_of_service));
    Err(last.map_or_else(
        || Refusal::new(Code::NoRouteAvailable, "No route to this model is available at the moment.").after(5),
        |fault| {
            let begun = work.costs_at_once() && may_have_begun(&fault);
            let refusal = Refusal::from(fault);
            if begun { refusal.once() } else { refusal }
        },
    ))
}

/// Whether nobody shall try again: what is broken here is broken for the next try as well.
pub fn may_have_begun(fault: &Fault) -> bool {
    fault.may_have_begun() || fault.code == Code::Internal
}

/// Whose fault it is, as far as it says something about the route: not what is broken here, nor a
/// turn that was not to be had.
fn counted(fault: &Fault) -> Option<Blame> {
    let ours = match fault.code {
        Code::Internal | Code::StorageFull => true,
        // No turn, or no room for the answer: a provider that is busy says so itself.
        Code::RateLimitExceeded => !fault.sent || fault.blame == Blame::Network,
        Code::Overloaded => fault.blame == Blame::Network,
        _ => false,
    };
    (!ours).then_some(fault.blame)
}

/// Counts an attempt that failed, unless that was the caller's fault.
pub fn note_attempt(till: &Till, account: AccountId, model: &str, (provider, route): (&str, &Route), fault: &Fault) {
    if counted(fault).is_some_and(|blame| blame != Blame::Caller) {
        let seen = SeenCall { account, good: false, first_byte_ms: 0, at: till.world.now_ms() };
        till.routes.traffic.attempt(model, provider, &route.upstream_model, seen);
    }
}

/// Counts a call that no route took, unless that was the caller's fault.
pub fn note_untaken(till: &Till, account: AccountId, model: &str, fault: &Fault) {
    if counted(fault).is_some_and(|blame| blame != Blame::Caller) {
        let seen = SeenCall { account, good: false, first_byte_ms: 0, at: till.world.now_ms() };
        till.routes.traffic.call(model, seen);
    }
}

pub fn note(till: &Till, id: CallId, provider: &Provider, fault: &Fault) {
    till.metrics.fault(&provider.name, fault.code.code());
    if fault.blame == Blame::Operator {
        tracing::error!(call = %id, provider = provider.name, status = fault.upstream_status, "the provider refuses our account or key");
    } else {
        tracing::info!(call = %id, provider = provider.name, code = fault.code.code(), status = fault.upstream_status, "provider fault");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_here_says_nothing_of_a_route() {
        for code in [Code::StorageFull, Code::RateLimitExceeded, Code::Overloaded, Code::Internal] {
            let no_room = Fault { code, ..Fault::cut() };
            assert_eq!(counted(&no_room), None, "{code:?}");
        }
        for ours in [Fault::no_turn(), Fault::own_file()] {
            assert_eq!(counted(&ours), None, "{ours}");
        }
        let busy = Fault { code: Code::RateLimitExceeded, sent: true, ..Fault::no_turn() };
        for theirs in [busy.clone(), Fault { code: Code::Overloaded, ..busy }, Fault::late(), Fault::garbage()] {
            assert_eq!(counted(&theirs), Some(Blame::Provider), "{theirs}");
        }
        assert_eq!(counted(&Fault::cut()), Some(Blame::Network));
    }
}
