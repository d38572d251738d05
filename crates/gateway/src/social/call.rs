//! A social call as work: what may stand in its way once the money is held, and how it is fetched along a route.

use super::fetch::{Errand, Fetched, fetch};
use super::{Judged, Seen, judge, judge_begun, next_page, wanted};
use crate::app::App;
use crate::call::{Begun, Call, Meter, Need, Passed, Priced, Rewrite, Whole, Work};
use crate::refusal::Refusal;
use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tollgate_catalog::social::{Cell, Checked, Method, SocialRoute, Value};
use tollgate_catalog::{Model, Route};
use tollgate_store::{Counters, SocialTake, SocialTurn, SocialVain};
use tollgate_upstream::{Blame, Body, Fault, Provider, SocialAsk};
use tollgate_wire::error::Code;
use tollgate_wire::social::{Flow, encode, read_envelope, write_result};

/// The call and what was seen of it. The money is the till's affair; the desk looks at `Track` when the call is over.
pub struct SocialCall {
    pub cell: Arc<Cell>,
    pub checked: Checked,
    pub track: Arc<Track>,
}

/// What a call left behind at the source.
#[derive(Default)]
pub struct Track(Mutex<Traces>);

#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The part of the day that was taken.
    pub part: Option<SocialTake>,
    /// The source may bill the operator for it.
    pub billed: bool,
    pub seen: Option<Seen>,
    /// Who was asked last, and whether our key was refused there.
    pub asked: Option<(String, bool)>,
    /// It found nothing.
    pub vain: Option<SocialVain>,
}

impl Track {
    pub fn traces(&self) -> Traces {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn bills(&self) {
        self.note(|traces| traces.billed = true);
    }

    fn note(&self, change: impl FnOnce(&mut Traces)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl SocialCall {
    /// The same question, whoever asks it.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(&self.cell.model.name);
        for (name, value) in self.checked.pairs(&self.cell) {
            hash.update([0]);
            hash.update(name);
            hash.update([1]);
            hash.update(value.to_string());
        }
        hash.finalize().into()
    }

    fn believed_for(&self, call: &Call) -> Duration {
        let settings = &call.app.settings.social;
        if self.cell.capability.is_one_thing() { settings.no_result_things } else { settings.no_result_lists }
    }

    async fn fetch(&self, call: &mut Call, provider: &Arc<Provider>, route: &SocialRoute) -> Result<Begun, Fault> {
        let question = (call.caller.account.id, self.fingerprint());
        let kept = call.app.social.kept.take(&question, || call.app.world.now_ms()).await;
        if let Some(bytes) = kept {
            return self.read(call, &bytes);
        }
        self.turn(call, provider, route).await?;
        let query = self.query(route);
        let ask = match route.method {
            Method::Get => SocialAsk::Get { path: &route.path, query: &query },
            Method::Post => SocialAsk::Post { path: &route.path, body: self.body(route) },
        };
        let request = provider.social(&ask).ok_or_else(no_data)?;
        let errand = Errand {
            app: call.app.clone(),
            provider: provider.clone(),
            request,
            until: call.deadline,
            question,
            track: self.track.clone(),
        };
        let fetched = fetch(errand).await?;
        call.first_byte_at = Some(call.app.world.now_ms());
        match fetched {
            Fetched::Whole(bytes) => self.read(call, &bytes),
            Fetched::Large { held, body } => self.pass(call, provider, &held, body),
        }
    }

    /// Waits for a turn on the route: as many begin in a second as the source allows, over all replicas.
    async fn turn(&self, call: &Call, provider: &Provider, route: &SocialRoute) -> Result<(), Fault> {
        let (most, patience) = (provider.settings.per_second, call.app.settings.social.patience);
        if most == 0 {
            return Ok(());
        }
        let busy = |wait: Duration| {
            let seconds = u32::try_from(wait.as_secs() + 1).unwrap_or(60);
            Fault {
                retry_after: Some(seconds.min(60)),
                ..fault(Code::SocialDataCapacityReached, "The platform is busy; try again in a few seconds.")
            }
        };
        let line = format!("{}{}", provider.name, route.path);
        let (per_second, wait) = (u32::try_from(most).unwrap_or(u32::MAX), patience.as_millis());
        let turn = call.app.store.social_turn(&line, per_second, u64::try_from(wait).unwrap_or(u64::MAX)).await;
        match turn {
            Ok(SocialTurn::After(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Ok(SocialTurn::Busy(ms)) => return Err(busy(Duration::from_millis(ms))),
            // Alone, or out of reach of the others.
            Ok(SocialTurn::Own) | Err(_) => {
                call.app.social.pace.turn(&line, most, patience).await.map_err(|full| busy(full.0))?;
            }
        }
        Ok(())
    }

    fn read(&self, call: &mut Call, bytes: &Bytes) -> Result<Begun, Fault> {
        let envelope = read_envelope(bytes).map_err(|_| no_data())?;
        if is_bad(envelope.code) {
            return Err(no_data());
        }
        let Some(data) = envelope.data else { return Err(self.nothing(call)) };
        match judge(&self.cell, &data) {
            Judged::NoResult => Err(self.nothing(call)),
            Judged::Failed => Err(no_data()),
            Judged::Result => {
                self.found(call);
                let next = next_page(&self.cell, &self.checked, &data);
                let cell = &self.cell;
                let body = write_result(&cell.platform, cell.capability.name(), &data, &cell.drop, &next);
                Ok(Begun::Whole(Whole { content_type: HeaderValue::from_static("application/json"), body }))
            }
        }
    }

    /// An answer that is too large to be held passes, if its beginning does not speak against it; its end decides.
    fn pass(&self, call: &mut Call, provider: &Provider, held: &Bytes, body: Body) -> Result<Begun, Fault> {
        let cell = &self.cell;
        let mut flow = Flow::new(&cell.platform, cell.capability.name(), &cell.drop, wanted(cell));
        let first = flow.feed(held).map_err(|_| no_data())?;
        match judge_begun(cell, flow.picked()) {
            Judged::Result if !is_bad(flow.code()) => {}
            Judged::NoResult => return Err(self.nothing(call)),
            _ => return Err(no_data()),
        }
        self.found(call);
        let rewrite = Large { app: call.app.clone(), cell: cell.clone(), checked: self.checked.clone(), flow };
        Ok(Begun::Passing(Box::new(Passed {
            content_type: HeaderValue::from_static("application/json"),
            first,
            body,
            rewrite: Box::new(rewrite),
            left: provider.settings.max_reply_bytes.saturating_sub(held.len()),
        })))
    }

    fn found(&self, call: &mut Call) {
        self.track.note(|traces| traces.seen = Some(Seen::Data));
        let used = Counters { calls: 1, ..Counters::default() };
        call.meter = Meter::Known { used, estimated: false, raw_usage: None };
    }

    /// Found nothing, for which the operator pays: remembered, so that it is not asked again at once.
    fn nothing(&self, call: &Call) -> Fault {
        let now = call.app.world.now_ms();
        let time = i64::try_from(self.believed_for(call).as_millis()).unwrap_or(0);
        let vain = SocialVain {
            call: call.id,
            question: self.fingerprint(),
            account: call.caller.account.id,
            at: now,
            until: now.saturating_add(time),
        };
        call.app.social.memory.note(&vain, now);
        self.track.note(|traces| traces.vain = Some(vain));
        Fault { blame: Blame::Caller, maybe_charged: true, ..fault(Code::SocialDataNoResult, NOTHING) }
    }

    fn query(&self, route: &SocialRoute) -> String {
        let mut query = String::new();
        let fixed = route.fixed.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())));
        let given = self.checked.pairs(&self.cell).map(|(name, value)| (name, Cow::Owned(value.to_string())));
        for (name, value) in given.chain(fixed) {
            if !query.is_empty() {
                query.push('&');
            }
            encode(&mut query, name);
            query.push('=');
            encode(&mut query, &value);
        }
        query
    }

    fn body(&self, route: &SocialRoute) -> Bytes {
        let given = self.checked.pairs(&self.cell).map(|(name, value)| (name.to_owned(), value.json()));
        let fixed = route.fixed.iter().map(|(name, value)| (name.clone(), Value::Text(value.clone()).json()));
        let object: serde_json::Map<String, serde_json::Value> = given.chain(fixed).collect();
        Bytes::from(serde_json::Value::Object(object).to_string())
    }
}

/// A large answer on its way.
struct Large {
    app: Arc<App>,
    cell: Arc<Cell>,
    checked: Checked,
    flow: Flow,
}

impl Rewrite for Large {
    fn feed(&mut self, piece: &[u8]) -> Result<Bytes, Fault> {
        self.flow.feed(piece).map_err(|_| no_data())
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        self.flow.finish().map_err(|_| no_data())?;
        let seen = self.flow.picked();
        if is_bad(self.flow.code()) || judge(&self.cell, seen) != Judged::Result {
            return Err(no_data());
        }
        Ok(Flow::end(&next_page(&self.cell, &self.checked, seen)))
    }

    fn broke(&mut self) {
        self.app.social.health.add(&self.cell.model.name, Seen::Fault, self.app.world.now_ms());
    }
}

/// The supplier's own status says that there is no answer; without one there may be.
fn is_bad(code: Option<i64>) -> bool {
    code.is_some_and(|code| code != 200 && code != 0)
}

const NOTHING: &str = "The platform found nothing for these parameters.";

fn fault(code: Code, message: &str) -> Fault {
    Fault { blame: Blame::Provider, code, message: message.to_owned(), try_other: false, ..Fault::unreachable() }
}

/// An answer without data. It was billed, so no other route is tried.
fn no_data() -> Fault {
    let message = "The data source answered without data.";
    Fault { maybe_charged: true, sent: true, ..fault(Code::SocialDataUpstreamError, message) }
}

/// The specification knows one status for a source that did not answer properly.
fn as_social(fault: Fault) -> Fault {
    match fault.code {
        Code::UpstreamError | Code::UpstreamTimeout | Code::UpstreamInvalidReply => Fault {
            code: Code::SocialDataUpstreamError,
            message: "The data source did not answer.".to_owned(),
            ..fault
        },
        _ => fault,
    }
}

impl Priced for SocialCall {
    fn model(&self) -> &str {
        &self.cell.model.name
    }

    fn endpoint_type(&self) -> &'static str {
        Cell::ENDPOINT_TYPE
    }

    fn need(&self, _: &Model) -> Result<Need, Refusal> {
        let most = Counters { calls: 1, ..Counters::default() };
        Ok(Need { most, exact: true, ..Need::default() })
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        self.checked.get(&self.cell, path).map(|value| Cow::Owned(value.to_string()))
    }
}

impl Work for SocialCall {
    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    /// The last things that can refuse it: an account that asks in vain too often, a question known to be vain, the day.
    async fn before(&self, call: &Call) -> Result<(), Refusal> {
        let app = &call.app;
        let now = app.world.now_ms();
        if app.social.memory.is_vain(&self.fingerprint(), now) {
            return Err(Refusal::new(Code::SocialDataNoResult, NOTHING).because("known"));
        }
        let most = app.settings.social.no_results_per_hour;
        if let Some(seconds) = app.social.memory.wait(call.caller.account.id, most, now) {
            let message = format!("More than {most} calls of this account found nothing within the hour.");
            return Err(Refusal::new(Code::SocialDataCapacityReached, message)
                .after(seconds)
                .because("no_result_limit"));
        }
        let Some(part) = app.social_part(&self.cell) else { return Ok(()) };
        match app.store.social_take(part.clone()).await? {
            Ok(()) => {
                self.track.note(|traces| traces.part = Some(part));
                Ok(())
            }
            Err(full) => {
                tracing::warn!(platform = self.cell.platform, ?full, "the day's capacity for social data is used up");
                let left = super::DAY - now.rem_euclid(super::DAY);
                let seconds = u32::try_from((left + 999) / 1_000).unwrap_or(86_400);
                let message = "The capacity for social data is used up for today; it is renewed at 00:00 UTC.";
                Err(Refusal::new(Code::SocialDataCapacityReached, message).after(seconds).because("daily"))
            }
        }
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let own = |one: &&SocialRoute| one.provider == route.provider && one.path == route.upstream_model;
        let Some(social) = self.cell.routes.iter().find(own) else { return Err(no_data()) };
        let mut outcome = self.fetch(call, provider, social).await;
        let pause = call.app.settings.social.retry_pause;
        // The source fails like this now and then, surely for free; once more, on the first route only.
        if call.attempts == 1 && !pause.is_zero() && outcome.as_ref().is_err_and(|f| f.upstream_status == Some(400)) {
            tokio::time::sleep(pause).await;
            outcome = self.fetch(call, provider, social).await;
        }
        let refused = outcome.as_ref().is_err_and(|fault| fault.upstream_status == Some(401));
        self.track.note(|traces| traces.asked = Some((provider.name.clone(), refused)));
        outcome.map_err(|fault| {
            let fault = as_social(fault);
            let seen = match (fault.code, fault.blame) {
                (Code::SocialDataNoResult, _) => Some(Seen::NoResult),
                (_, Blame::Operator) => Some(Seen::Operator),
                // Our table is stale when the source refuses what passed our check.
                (Code::InvalidParameter, _) => {
                    tracing::error!(
                        cell = self.cell.model.name,
                        param = fault.param,
                        "the source refuses a parameter that the catalog allows"
                    );
                    Some(Seen::Operator)
                }
                (Code::SocialDataCapacityReached, _) => None,
                _ => Some(Seen::Fault),
            };
            self.track.note(|traces| {
                traces.seen = seen;
                traces.billed |= fault.maybe_charged;
            });
            fault
        })
    }
}
