//! Probes: where a route had no traffic for a while and the operator allows it, the gateway makes
//! the cheapest call there is by itself, so that its health is known before a customer finds out.
//! One replica at a time takes a model (`claim_probe`), which also counts what the day may cost
//! before anything is sent. Nobody is billed; whatever it costs is the operator's.

use crate::app::App;
use crate::settings::ProbeSettings;
use crate::trial::{answer, cheap_call, most_cost_nano};
use crate::world::Millis;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tollgate_catalog::{Model, Route};
use tollgate_store::{ProbeClaim, ProbeTurn, StoreError};
use tollgate_upstream::{Ability, Blame, Provider};

const CALL_ID: &str = "tollgate-probe";
/// Nobody waits longer than this for one word.
const PATIENCE: Duration = Duration::from_secs(60);
/// Models that are asked at once, by this replica.
const AT_ONCE: usize = 8;
/// What was spent is remembered for so long.
const REMEMBERED: Millis = 40 * 86_400_000;

/// Runs until the stop.
pub async fn run(app: Arc<App>) {
    let pause = app.settings.probes.look_every;
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + pause, pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
        if let Err(error) = round(&app).await {
            tracing::warn!(%error, "routes could not be probed");
        }
    }
}

/// Asks every route that is due, and counts how it went. What is under way at a stop is given up.
pub async fn round(app: &Arc<App>) -> Result<(), StoreError> {
    let now = app.world.now_ms();
    if !is_on(app) {
        return Ok(());
    }
    app.flush_health().await?;
    app.read_health().await?;
    app.store.forget_probes(app.world.sure_ms() - REMEMBERED).await?;
    let mut asked = JoinSet::new();
    for probe in due(app, now) {
        while asked.len() >= AT_ONCE {
            asked.join_next().await;
        }
        if app.shutdown.stopping.is_cancelled() {
            break;
        }
        match app.store.claim_probe(probe.claim(&app.settings.probes, now)).await? {
            ProbeTurn::NotDue => {}
            ProbeTurn::Spent => {
                app.metrics.probed("", "spent", 0);
                tracing::warn!(model = probe.model.name, "not probed: what probes may cost in a day is used up");
            }
            ProbeTurn::Taken => {
                let app = app.clone();
                asked.spawn(async move {
                    let stop = app.shutdown.stopping.clone();
                    tokio::select! {
                        () = probe.ask(&app) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        }
    }
    while asked.join_next().await.is_some() {}
    app.flush_health().await
}

/// Whether anybody wants probes at all: else nothing is read for them.
fn is_on(app: &App) -> bool {
    let serving = app.serving.load();
    let some = |every: &Option<Duration>| every.is_some_and(|every| !every.is_zero());
    some(&app.settings.probes.every)
        || serving.providers.values().any(|provider| some(&provider.settings.probe_every))
        || serving.catalog.models.values().any(|model| model.routes.iter().any(|route| some(&route.probe_every)))
}

/// The routes of one model that are due.
struct DueModel {
    model: Arc<Model>,
    ability: Ability,
    routes: Vec<DueRoute>,
    /// The model itself was not called for as long either: what comes of its routes is what its
    /// customers would have seen.
    unseen: bool,
}

struct DueRoute {
    provider: Arc<Provider>,
    route: Route,
    every: Millis,
    most_nano: i64,
}

fn due(app: &App, now: Millis) -> Vec<DueModel> {
    let serving = app.serving.load_full();
    let settings = &app.settings.probes;
    let window = Millis::from(app.settings.price_list.health_hours) * 3_600_000;
    let figures = app.routes.figures.now();
    let seen: HashMap<(&str, &str, &str), Millis> = figures
        .counted
        .iter()
        .map(|(of, n)| ((&*of.model, &*of.provider, &*of.upstream_model), n.last_at.max(n.probed_at)))
        .collect();
    let last =
        |model: &str, provider: &str, upstream: &str| seen.get(&(model, provider, upstream)).copied().unwrap_or(0);
    let of_model = |model: &Arc<Model>| {
        let ability = ability(model, settings).filter(|_| !app.routes.switches.model_is_paused(&model.name))?;
        let of_route = |route: &Route| {
            let provider = serving.providers.get(&route.provider).filter(|one| one.kind.has(ability))?;
            let every = settings.every(provider, route.probe_every)?;
            let every = Millis::try_from(every.as_millis()).unwrap_or(window).min(window);
            let paused = app.routes.switches.provider_is_paused(&provider.name)
                || app.routes.pauses.is_shut(&provider.name, &route.upstream_model);
            if paused || last(&model.name, &route.provider, &route.upstream_model) > now - every {
                return None;
            }
            let most_nano = most_cost_nano(&app.settings, &serving, (ability, model, route), now)?;
            Some(DueRoute { provider: provider.clone(), route: route.clone(), every, most_nano })
        };
        let routes: Vec<DueRoute> = model.routes.iter().filter_map(of_route).collect();
        let every = routes.iter().map(|due| due.every).min()?;
        let unseen = last(&model.name, "", "") <= now - every;
        Some(DueModel { model: model.clone(), ability, routes, unseen })
    };
    serving.catalog.models.values().filter_map(of_model).collect()
}

/// What is asked of a model to see whether it answers.
fn ability(model: &Model, settings: &ProbeSettings) -> Option<Ability> {
    let sold = |kind: &&Ability| {
        model.supported_endpoint_types.iter().any(|name| Ability::of_endpoint_type(name) == Some(**kind))
    };
    settings.kinds.iter().find(sold).copied()
}

impl DueModel {
    fn claim(&self, settings: &ProbeSettings, now: Millis) -> ProbeClaim {
        ProbeClaim {
            model: self.model.name.clone(),
            now,
            every_ms: self.routes.iter().map(|due| due.every).min().unwrap_or(Millis::MAX),
            calls: i64::try_from(self.routes.len()).unwrap_or(i64::MAX),
            nano_usd: self.routes.iter().fold(0, |sum, due| due.most_nano.saturating_add(sum)),
            limits: settings.daily,
        }
    }

    /// One route after the other.
    async fn ask(self, app: &App) {
        let name = &self.model.name;
        let mut answered = None;
        for DueRoute { provider, route, most_nano, .. } in &self.routes {
            let Some(good) = self.ask_route(app, provider, route, *most_nano).await else { continue };
            let way = (provider.name.as_str(), route.upstream_model.as_str());
            app.routes.traffic.probe(name, Some(way), good, app.world.now_ms());
            answered = Some(answered.unwrap_or(false) || good);
        }
        if let Some(good) = answered.filter(|_| self.unseen) {
            app.routes.traffic.probe(name, None, good, app.world.now_ms());
        }
    }

    /// Whether it answered; `None`: it says nothing of the route.
    async fn ask_route(&self, app: &App, provider: &Arc<Provider>, route: &Route, most_nano: i64) -> Option<bool> {
        let (model, upstream_model) = (&self.model.name, &route.upstream_model);
        let call = cheap_call(provider, self.ability, upstream_model, CALL_ID).ok()?;
        let (good, outcome) = match answer(&app.client, provider, call, PATIENCE).await {
            Ok(_) => (Some(true), "answered"),
            // The provider does not take the question, which customers would not have put.
            Err(none) if none.blame == Blame::Caller => {
                tracing::info!(
                    model,
                    provider = provider.name,
                    upstream_model,
                    said = none.said,
                    "a probe was refused"
                );
                (None, "refused")
            }
            Err(none) => {
                tracing::warn!(model, provider = provider.name, upstream_model, said = none.said, "a probe failed");
                (Some(false), "failed")
            }
        };
        app.metrics.probed(&provider.name, outcome, most_nano);
        good
    }
}
