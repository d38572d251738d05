//! Routes in order, until one begins to answer. A fault says whose it is and whether another route may be
//! tried; once output has begun there is no second try.

use super::open::Call;
use crate::app::Serving;
use crate::refusal::Refusal;
use bytes::Bytes;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::Route;
use tollgate_upstream::{Blame, Body, Fault, Provider};
use tollgate_wire::chat;
use tollgate_wire::error::Code;

/// One call is sent to at most this many routes.
const TRIES: usize = 3;

/// The answer has begun.
pub enum Begun {
    Whole(Bytes),
    Stream(Box<Started>),
}

/// A stream whose first event is here.
pub struct Started {
    pub first: Bytes,
    /// A fault that came in one piece with the first events; it follows them.
    pub fault: Option<chat::StreamFault>,
    pub body: Body,
    pub reader: chat::Stream,
}

impl Serving {
    /// May this call go to a provider that goes on billing when it is cancelled?
    pub fn bills_on_cancel(&self, call: &Call) -> bool {
        let mut providers = call.model.routes.iter().filter_map(|route| self.providers.get(&route.provider));
        providers.any(|one| one.settings.bill_on_cancel)
    }
}

pub async fn dispatch(serving: &Serving, call: &mut Call, request: &chat::Request) -> Result<Begun, Refusal> {
    let mut last = None;
    let model = call.model.clone();
    for at in ordered(call).into_iter().take(TRIES) {
        let route = &model.routes[at];
        let Some(provider) = serving.providers.get(&route.provider) else { continue };
        call.provider = Some(provider.clone());
        call.upstream_model.clone_from(&route.upstream_model);
        call.attempts += 1;
        match attempt(call, provider, route, request).await {
            Ok(begun) => return Ok(begun),
            Err(fault) => {
                note(call, provider, &fault);
                let go_on = fault.try_other && !fault.maybe_charged && Instant::now() < call.deadline;
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

fn note(call: &Call, provider: &Provider, fault: &Fault) {
    call.app.metrics.fault(&provider.name, fault.code.code());
    if fault.blame == Blame::Operator {
        tracing::error!(call = %call.id, provider = provider.name, status = fault.upstream_status, "the provider refuses our account or key");
    } else {
        tracing::info!(call = %call.id, provider = provider.name, code = fault.code.code(), status = fault.upstream_status, "provider fault");
    }
}

/// Lower priority number first; within one priority a weighted draw decides who leads.
fn ordered(call: &Call) -> Vec<usize> {
    let routes = &call.model.routes;
    if routes.len() < 2 {
        return (0..routes.len()).collect();
    }
    let mut draw = [0u8; 8];
    call.app.world.fill(&mut draw);
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

async fn attempt(
    call: &mut Call,
    provider: &Arc<Provider>,
    route: &Route,
    request: &chat::Request,
) -> Result<Begun, Fault> {
    let body = request.upstream_body(&route.upstream_model);
    let ask = provider.chat(body, &call.id.to_string());
    let reply = call.app.client.send(provider, ask).await?;
    if !reply.status().is_success() {
        return Err(call.app.client.fault(provider, reply).await);
    }
    let body = Body::new(reply.into_body(), provider.settings.idle);
    if request.stream {
        begin_stream(call, provider, route, request, body).await
    } else {
        whole(call, provider, route, body).await
    }
}

async fn whole(call: &mut Call, provider: &Provider, route: &Route, body: Body) -> Result<Begun, Fault> {
    let bytes = body.whole(provider.settings.max_reply_bytes, call.deadline).await?;
    call.first_byte_at = Some(call.app.world.now_ms());
    let reply = chat::read_reply(&bytes).map_err(|_| Fault::garbage())?;
    if let Some(error) = &reply.error {
        return Err(provider.kind.error_inside(error));
    }
    call.meter.reported = reply.usage;
    call.meter.report_is_whole = true;
    call.meter.raw_usage.clone_from(&reply.raw_usage);
    call.meter.has_output = reply.has_output;
    call.meter.counted_output = reply.counted_output;
    let renamed = route.upstream_model != call.model.name;
    Ok(Begun::Whole(if renamed { reply.with_model(bytes, &call.model.name) } else { bytes }))
}

/// Waits for the first event, so that an early failure keeps its status and another route can be tried.
async fn begin_stream(
    call: &mut Call,
    provider: &Provider,
    route: &Route,
    request: &chat::Request,
    mut body: Body,
) -> Result<Begun, Fault> {
    let mut reader = chat::Stream::new(chat::StreamSetup {
        wants_usage: request.wants_usage,
        rename_to: (route.upstream_model != call.model.name).then(|| call.model.name.clone()),
        max_event_bytes: provider.settings.max_event_bytes,
    });
    loop {
        let Some(chunk) = body.chunk().await? else {
            return match reader.finish() {
                // A provider may leave out the last blank line.
                chat::End::Complete { tail } if reader.saw_done() || !tail.is_empty() => {
                    Ok(started(tail, None, body, reader))
                }
                chat::End::Fault(fault) => Err(Fault::of_stream(provider.kind, &fault)),
                // Not one event: this was no stream at all.
                _ if reader.events() == 0 => Err(Fault::garbage()),
                _ => Err(Fault::truncated()),
            };
        };
        if call.first_byte_at.is_none() {
            call.first_byte_at = Some(call.app.world.now_ms());
        }
        // Comments alone can keep a reply alive for ever; the hold does not live that long.
        if Instant::now() >= call.deadline {
            return Err(Fault::late());
        }
        match reader.feed(chunk) {
            Ok(first) if first.is_empty() && !reader.saw_done() => {}
            Ok(first) => return Ok(started(first, None, body, reader)),
            Err(broken) if reader.has_output() => return Ok(started(broken.before, Some(broken.fault), body, reader)),
            Err(broken) => return Err(Fault::of_stream(provider.kind, &broken.fault)),
        }
    }
}

fn started(first: Bytes, fault: Option<chat::StreamFault>, body: Body, reader: chat::Stream) -> Begun {
    Begun::Stream(Box::new(Started { first, fault, body, reader }))
}
