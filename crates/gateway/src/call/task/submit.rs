//! Sends a task to a provider, once. Routes are tried in order as long as it is certain that nobody has taken it; from the first
//! doubt on its fate is found out, never tried again.

use super::{Begun, Made, millis};
use crate::call::dispatch;
use crate::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tollgate_catalog::Route;
use tollgate_store::{HoldRefused, SentTo, TaskState, TaskStep};
use tollgate_upstream::video::{self, Asking, Habits, Job};
use tollgate_upstream::{Fault, Provider};
use tollgate_wire::error::Code;

/// One task is offered to at most this many routes.
const TRIES: u32 = 3;
/// A creation that takes longer than the provider's own limits allow is looked after by others.
const GRACE_MS: i64 = 60_000;

/// How one route took it.
enum Sent {
    /// Under this name.
    Taken(String),
    /// Surely not.
    Refused(Fault),
    /// Nobody knows.
    Unknown(Fault),
    /// Others look after it by now; it was not sent.
    Lost,
}

pub(super) async fn submit(begun: Begun) -> Result<Made, Refusal> {
    let running = Running(begun.app.clone());
    let outcome = offer(&begun).await;
    drop(running);
    outcome
}

async fn offer(begun: &Begun) -> Result<Made, Refusal> {
    let (app, model) = (&begun.app, &begun.model);
    let mut last = None;
    let mut tries = 0;
    for at in dispatch::ordered(app, model) {
        let route = &model.routes[at];
        let Some(provider) = begun.serving.providers.get(&route.provider) else { continue };
        tries += 1;
        match send(begun, provider, route).await? {
            Sent::Taken(upstream_id) => return taken(begun, provider, upstream_id).await,
            Sent::Unknown(fault) => return unknown(begun, provider, &fault).await,
            Sent::Lost => return lost(begun).await,
            Sent::Refused(fault) => {
                dispatch::note(app, begun.ask.id, provider, &fault);
                let go_on = tries < TRIES && fault.try_other;
                last = Some((provider.clone(), route.upstream_model.clone(), fault));
                if !go_on {
                    break;
                }
            }
        }
    }
    let refusal = last.as_ref().map_or_else(
        || Refusal::new(Code::NoRouteAvailable, "No route to this model is available at the moment.").after(5),
        |(_, _, fault)| Refusal::from(fault.clone()),
    );
    let route = last.as_ref().map(|(provider, model, _)| (provider.as_ref(), model.as_str()));
    super::end::refused(begun, route, tries, &refusal).await?;
    Err(refusal)
}

async fn send(begun: &Begun, provider: &Arc<Provider>, route: &Route) -> Result<Sent, Refusal> {
    let app = &begun.app;
    let plan = begun.ask.ask.plan()?;
    let Some(video) = provider.kind.video().filter(|video| video.speaks(plan.api())) else {
        return Ok(Sent::Refused(Fault::unreachable()));
    };
    let lease = millis(provider.settings.first_byte + provider.settings.idle) + GRACE_MS;
    let to = SentTo {
        provider: provider.name.clone(),
        upstream_model: route.upstream_model.clone(),
        host: provider.base_url.place(),
        key: provider.key_print().to_owned(),
    };
    match app.store.task_sending(begun.task, to, lease).await {
        Ok(true) => {}
        Ok(false) => return Ok(Sent::Lost),
        // Nothing has left, and nothing ever does: it ends here, whenever that can be written.
        Err(error) => {
            let refusal = Refusal::from(error);
            super::end::refused(begun, None, 0, &refusal).await?;
            return Err(refusal);
        }
    }
    let external_id = begun.task.id.to_string();
    let asking = Asking { provider, now: app.world.now_ms() / 1_000 };
    let job = Job { plan, model: &route.upstream_model, external_id: &external_id };
    Ok(match video::create(&app.client, video, &asking, &job).await {
        Ok(upstream_id) => Sent::Taken(upstream_id),
        Err(fault) if fault.maybe_charged => Sent::Unknown(fault),
        Err(fault) => Sent::Refused(fault),
    })
}

async fn taken(begun: &Begun, provider: &Provider, upstream_id: String) -> Result<Made, Refusal> {
    let (app, id) = (&begun.app, begun.task.id);
    let api = begun.ask.ask.plan()?.api();
    let habits = provider.kind.video().map(|video| video.habits(api));
    let after = habits.map_or(0, |habits| super::look::next_look(app, provider, habits));
    match app.store.task_accepted(id, upstream_id.clone(), after).await {
        Ok(true) => shown(begun).await,
        Ok(false) => {
            tracing::error!(task = %id, provider = provider.name, upstream_id, "the provider took a task that had ended here");
            app.metrics.late_task();
            shown(begun).await
        }
        Err(error) => {
            tracing::error!(task = %id, provider = provider.name, upstream_id, %error, "the provider's id of a task could not be kept");
            Err(charge_unknown(begun))
        }
    }
}

/// The hold stays; whoever looks at the task next finds out what became of it.
async fn unknown(begun: &Begun, provider: &Provider, fault: &Fault) -> Result<Made, Refusal> {
    let (app, id) = (&begun.app, begun.task.id);
    dispatch::note(app, begun.ask.id, provider, fault);
    tracing::warn!(task = %id, provider = provider.name, "nobody knows whether the provider took this task");
    let step = TaskStep {
        id,
        fence: begun.task.fence,
        state: TaskState::Unknown,
        progress: None,
        upstream_id: None,
        checked: false,
        after_ms: 0,
    };
    app.store.put_back_task(step).await?;
    let api = begun.ask.ask.plan()?.api();
    let habits: Option<&Habits> = provider.kind.video().map(|video| video.habits(api));
    if habits.is_some_and(|habits| habits.finds) { shown(begun).await } else { Err(charge_unknown(begun)) }
}

fn charge_unknown(begun: &Begun) -> Refusal {
    let id = begun.task.id;
    let text = format!(
        "The provider did not say whether it took the task {id}. Its fate is being found out: poll it; do not send it again. It costs nothing unless a video is made."
    );
    Refusal::new(Code::ChargeStateUnknown, text)
}

async fn shown(begun: &Begun) -> Result<Made, Refusal> {
    match begun.app.store.task(begun.caller.account.id, begun.task.id).await? {
        Some(task) => super::told(task, false, begun.app.world.now_ms()),
        // Nobody but its caller, who does not know its name yet, could have hidden it.
        None => Err(charge_unknown(begun)),
    }
}

/// Others have taken the task from us. One that was never sent they end without a word, so its caller must not be given its name.
async fn lost(begun: &Begun) -> Result<Made, Refusal> {
    let known = begun.app.store.any_task(begun.task.id).await?;
    if known.is_some_and(|task| task.state == TaskState::Held) {
        return Err(super::why_refused(&HoldRefused::Unavailable, begun.app.world.now_ms()));
    }
    shown(begun).await
}

/// Counts the creation among the running calls, so that a stop waits for it.
struct Running(Arc<crate::app::App>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
