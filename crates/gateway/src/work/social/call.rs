//! A social call as work: what may stand in its way once the money is held, and how it is fetched
//! along a route.

use super::asked::AskedCell;
use super::fetch::{Errand, Fetched, fetch};
use super::judge::{Judged, next_page, open};
use super::large::Large;
use super::track::Track;
use super::{SocialDesk, as_social, fault, no_data};
use crate::call::{Begun, Call, Meter, Passed, Priced, WholeAnswer, Work};
use crate::refusal::Refusal;
use crate::routes::switches::Admission;
use bytes::Bytes;
use http::HeaderValue;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::social::{Cell, Method, SocialRoute};
use tollgate_catalog::{Model, Route};
use tollgate_media::social::write_result;
use tollgate_store::{Counters, Ending, SocialTurn};
use tollgate_upstream::{Blame, Fault, Provider, ReplyBody, SocialAsk};
use tollgate_wire::error::Code;

/// The call. The money is the till's affair; what follows at the desk is the track's.
pub struct SocialCall {
    pub desk: Arc<SocialDesk>,
    pub asked: AskedCell,
    pub track: Arc<Track>,
    /// The cell is paused and this call would try it.
    pub probing: bool,
}

/// The error for callers of a paused cell.
pub fn paused(cell: &Cell) -> Refusal {
    let message = format!("{} of {} is paused at the moment.", cell.capability.name(), cell.platform);
    Refusal::new(Code::SocialDataUnavailable, message)
}

impl SocialCall {
    async fn fetch(&self, call: &mut Call, provider: &Arc<Provider>, route: &SocialRoute) -> Result<Begun, Fault> {
        let cached = self.desk.cache.take(&self.track.question(), || call.till.world.now_ms()).await;
        if let Some(bytes) = cached {
            // What the source said a while ago tells nothing about how it is now.
            return self.read(call, &bytes);
        }
        self.turn(call, provider, route).await?;
        let query = self.asked.query(route);
        let ask = match route.method {
            Method::Get => SocialAsk::Get { path: &route.path, query: &query },
            Method::Post => SocialAsk::Post { path: &route.path, body: self.asked.body(route) },
        };
        let request = provider.social(&ask).ok_or_else(no_data)?;
        let errand = Errand {
            desk: self.desk.clone(),
            provider: provider.clone(),
            request,
            until: call.deadline,
            track: self.track.clone(),
        };
        let fetched = fetch(errand).await?;
        call.first_byte_at = Some(call.till.world.now_ms());
        match fetched {
            Fetched::Whole(bytes) => self.read(call, &bytes).inspect(|_| self.track.works()),
            Fetched::Large { held, body } => self.pass(call, provider, &held, body),
        }
    }

    /// The last things that can refuse it: a question known to be vain, an account that asks in
    /// vain too often, the day, and another call that tries a paused cell.
    async fn enter(&self, call: &Call) -> Result<(), Refusal> {
        let (desk, till) = (&self.desk, &call.till);
        let settings = &desk.settings;
        let now = till.world.now_ms();
        let (account, question) = self.track.question();
        if desk.memory.is_vain(&question, now) {
            return Err(Refusal::new(Code::SocialDataNoResult, NOTHING).because("known"));
        }
        let most = settings.no_results_per_hour;
        if let Some(seconds) = desk.memory.wait(account, most, now) {
            let message = format!("More than {most} calls of this account brought no data within the hour.");
            return Err(Refusal::new(Code::SocialDataCapacityReached, message)
                .after(seconds)
                .because("no_result_limit"));
        }
        if let Some(part) = desk.part(&self.asked.cell) {
            match till.store.social_take(part.clone()).await? {
                Ok(()) => self.track.took(part),
                Err(full) => {
                    tracing::warn!(
                        platform = self.asked.cell.platform,
                        ?full,
                        "the day's capacity for social data is used up"
                    );
                    let left = super::DAY - now.rem_euclid(super::DAY);
                    let seconds = u32::try_from((left + 999) / 1_000).unwrap_or(86_400);
                    let message = "The capacity for social data is used up for today; it is renewed at 00:00 UTC.";
                    return Err(Refusal::new(Code::SocialDataCapacityReached, message).after(seconds).because("daily"));
                }
            }
        }
        match till.routes.switches.enter(&self.asked.cell.model.name, now, settings.probe_after) {
            Admission::Open => {}
            Admission::Shut => return Err(paused(&self.asked.cell)),
            Admission::Probe(pause) => self.track.probes(pause),
        }
        Ok(())
    }

    /// Waits for a turn on the route: as many begin in a second as the source allows, over all
    /// replicas.
    async fn turn(&self, call: &Call, provider: &Provider, route: &SocialRoute) -> Result<(), Fault> {
        let (most, patience) = (provider.settings.per_second, self.desk.settings.patience);
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
        let turn = call.till.store.social_turn(&line, per_second, u64::try_from(wait).unwrap_or(u64::MAX)).await;
        match turn {
            Ok(SocialTurn::After(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Ok(SocialTurn::Busy(ms)) => return Err(busy(Duration::from_millis(ms))),
            // Alone, or out of reach of the others.
            Ok(SocialTurn::Own) | Err(_) => {
                call.till.routes.pace.turn(&line, most, patience).await.map_err(|full| busy(full.0))?;
            }
        }
        Ok(())
    }

    fn read(&self, call: &mut Call, bytes: &Bytes) -> Result<Begun, Fault> {
        let cell = &self.asked.cell;
        let data = open(cell, bytes).map_err(|judged| self.without_data(judged))?;
        self.charge(call);
        let next = next_page(cell, &self.asked.checked, &data);
        let body = write_result(&cell.platform, cell.capability.name(), &data, &cell.drop, &next);
        Ok(Begun::Whole(WholeAnswer {
            content_type: HeaderValue::from_static("application/json"),
            body,
            completion: None,
        }))
    }

    /// An answer that is too large to be held passes, if its beginning does not speak against it;
    /// its end decides.
    fn pass(&self, call: &mut Call, provider: &Provider, held: &Bytes, body: ReplyBody) -> Result<Begun, Fault> {
        let begun = Large::begin(self.track.clone(), self.asked.checked.clone(), held);
        let (rewrite, first) = begun.map_err(|judged| self.without_data(judged))?;
        self.charge(call);
        Ok(Begun::Passing(Box::new(Passed {
            content_type: HeaderValue::from_static("application/json"),
            first,
            body,
            rewrite: Box::new(rewrite),
            left: provider.settings.max_reply_bytes.saturating_sub(held.len()),
        })))
    }

    fn charge(&self, call: &mut Call) {
        self.track.covered();
        let used = Counters { calls: 1, ..Counters::default() };
        call.meter = Meter::Known { used, estimated: false, raw_usage: None };
    }

    fn without_data(&self, judged: Judged) -> Fault {
        if judged != Judged::NoResult {
            return no_data();
        }
        self.track.nothing();
        Fault { blame: Blame::Caller, maybe_charged: true, ..fault(Code::SocialDataNoResult, NOTHING) }
    }
}

const NOTHING: &str = "The platform found nothing for these parameters.";

impl Work for SocialCall {
    fn priced(&self) -> &dyn Priced {
        &self.asked
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    /// A paused cell is paused before anything else is, also where this call would have tried it.
    async fn before(&self, call: &Call) -> Result<(), Refusal> {
        self.track.admitted();
        match self.enter(call).await {
            Err(_) if self.probing => Err(paused(&self.asked.cell)),
            entered => entered,
        }
    }

    fn ending(&self, refusal: &Refusal) -> Option<Ending> {
        (refusal.code == Code::SocialDataNoResult).then_some(Ending::Answered)
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let own = |one: &&SocialRoute| one.provider == route.provider && one.path == route.upstream_model;
        let Some(social) = self.asked.cell.routes.iter().find(own) else { return Err(no_data()) };
        let mut outcome = self.fetch(call, provider, social).await;
        let pause = self.desk.settings.retry_pause;
        // The source fails like this now and then, surely for free; once more, on the first route
        // only.
        if call.attempts == 1 && !pause.is_zero() && outcome.as_ref().is_err_and(|f| f.upstream_status == Some(400)) {
            tokio::time::sleep(pause).await;
            outcome = self.fetch(call, provider, social).await;
        }
        outcome.map_err(|fault| {
            let fault = as_social(fault);
            self.track.failed(&fault);
            fault
        })
    }
}
