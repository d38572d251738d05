//! Routes in order, until one begins to answer. A fault says whose it is and whether another route may be
//! tried; once output has begun there is no second try. How one route is asked is the work's affair.

use super::conversation::Keeper;
use super::need::Work;
use super::open::Call;
use super::pass::Passed;
use crate::app::{App, Serving};
use crate::refusal::Refusal;
use bytes::Bytes;
use http::HeaderValue;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{Model, Route};
use tollgate_dialects::Stream;
use tollgate_store::CallId;
use tollgate_upstream::{Blame, Body, Fault, Provider};
use tollgate_wire::StreamFault;
use tollgate_wire::error::Code;

/// One call is sent to at most this many routes.
const TRIES: u32 = 3;

/// The answer has begun.
pub enum Begun {
    Whole(Whole),
    Passing(Box<Passed>),
    Stream(Box<Started>),
}

/// An answer in one piece, metered and ready to go out.
pub struct Whole {
    pub content_type: HeaderValue,
    pub body: Bytes,
    /// Keeps the answer before it goes out.
    pub keeper: Option<Arc<dyn Keeper>>,
}

/// A stream whose first event is here.
pub struct Started {
    pub first: Bytes,
    /// A fault that came in one piece with the first events; it follows them.
    pub fault: Option<StreamFault>,
    pub body: Body,
    pub reader: Stream,
    pub content_type: HeaderValue,
    /// Keeps the answer before its last event goes out.
    pub keeper: Option<Arc<dyn Keeper>>,
}

impl Serving {
    /// May this call go to a provider that goes on billing when it is cancelled?
    pub fn bills_on_cancel(&self, call: &Call) -> bool {
        let mut providers = call.model.routes.iter().filter_map(|route| self.providers.get(&route.provider));
        providers.any(|one| one.settings.bill_on_cancel)
    }
}

pub async fn dispatch(serving: &Serving, call: &mut Call, work: &impl Work) -> Result<Begun, Refusal> {
    let mut last = None;
    let mut tried: Option<(&Arc<Provider>, &Route)> = None;
    let model = call.model.clone();
    for at in ordered(&call.app, &model) {
        let route = &model.routes[at];
        let Some(provider) = serving.providers.get(&route.provider) else { continue };
        if !takes(&call.app, provider, route) {
            continue;
        }
        call.provider = Some(provider.clone());
        call.upstream_model.clone_from(&route.upstream_model);
        call.attempts += 1;
        match work.attempt(call, provider, route).await {
            Ok(begun) => return Ok(begun),
            // Nothing was sent: the route cannot take this request, and neither counts nor is to blame for that.
            Err(fault) if fault.is_refusal() => {
                tracing::debug!(call = %call.id, provider = provider.name, code = fault.code.code(), "a route cannot take a request");
                call.attempts -= 1;
                call.provider = tried.map(|(provider, _)| provider.clone());
                call.upstream_model = tried.map(|(_, route)| route.upstream_model.clone()).unwrap_or_default();
                // What a provider said of it weighs more.
                last = last.or(Some(fault));
            }
            Err(fault) => {
                tried = Some((provider, route));
                note(&call.app, call.id, provider, &fault);
                let may = call.attempts < TRIES && Instant::now() < call.deadline;
                let go_on = may && fault.try_other && !fault.maybe_charged;
                last = Some(fault);
                if !go_on {
                    break;
                }
            }
        }
    }
    Err(last.map_or_else(
        || Refusal::new(Code::NoRouteAvailable, "No route to this model is available at the moment.").after(5),
        Refusal::from,
    ))
}

/// May something new go this way now?
pub(super) fn takes(app: &App, provider: &Provider, route: &Route) -> bool {
    !app.switches.provider_is_paused(&provider.name)
        && app.pauses.lets(provider, &route.upstream_model, app.world.steady_ms())
}

pub(super) fn note(app: &App, id: CallId, provider: &Provider, fault: &Fault) {
    app.metrics.fault(&provider.name, fault.code.code());
    if fault.blame == Blame::Operator {
        tracing::error!(call = %id, provider = provider.name, status = fault.upstream_status, "the provider refuses our account or key");
    } else {
        tracing::info!(call = %id, provider = provider.name, code = fault.code.code(), status = fault.upstream_status, "provider fault");
    }
}

/// Lower priority number first; within one priority a weighted draw decides who leads.
pub(super) fn ordered(app: &App, model: &Model) -> Vec<usize> {
    let routes = &model.routes;
    if routes.len() < 2 {
        return (0..routes.len()).collect();
    }
    let mut draw = [0u8; 8];
    app.world.fill(&mut draw);
    order(routes, u64::from_le_bytes(draw))
}

fn order(routes: &[Route], seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        // splitmix64: good enough to spread load
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut left: Vec<usize> = (0..routes.len()).collect();
    left.sort_by_key(|at| routes[*at].priority);
    let mut sorted = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let priority = routes[*first].priority;
        let peers = left.iter().take_while(|at| routes[**at].priority == priority).count();
        let total: u64 = left[..peers].iter().map(|at| u64::from(routes[*at].weight)).sum();
        let mut drawn = next() % total.max(1);
        let chosen = left[..peers].iter().position(|at| match drawn.checked_sub(u64::from(routes[*at].weight)) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        });
        sorted.push(left.remove(chosen.unwrap_or(0)));
    }
    sorted
}
