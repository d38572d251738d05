//! May this caller have this? Checked before anything is priced, held or sent.

use super::Till;
use super::need::Priced;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tollgate_catalog::Model;
use tollgate_catalog::form::nearest;
use tollgate_wire::error::Code;

/// The model and the group it is sold to this caller in, if a call can begin now.
pub fn admit<'a>(
    till: &Till,
    serving: &'a Serving,
    caller: &'a Caller,
    work: &(impl Priced + ?Sized),
) -> Result<(Arc<Model>, &'a str), Refusal> {
    if till.shutdown.stopping.is_cancelled() {
        return Err(Refusal::new(Code::ServerDraining, "This server is stopping; send the request again.").after(1));
    }
    if till.running.load(Ordering::Relaxed) >= till.limits.calls {
        return Err(Refusal::new(Code::Overloaded, "Too many calls are running at the moment.").after(1));
    }
    if caller.account.suspended_at.is_some() {
        return Err(suspended());
    }
    let (model, group) = find(serving, caller, work)?;
    if !work.tries_paused() || till.routes.switches.shut_off(&model) {
        open(till, &model, work.unavailable())?;
    }
    paid(&model, caller)?;
    Ok((model, group))
}

/// Whether calls of this kind could begin, for what is promised before there is one.
pub fn may_begin(till: &Till, caller: &Caller, name: &str, endpoint_type: &'static str) -> Result<(), Refusal> {
    if caller.account.suspended_at.is_some() {
        return Err(suspended());
    }
    let serving = till.serving.load();
    let (model, _) = find_named(&serving, caller, name, endpoint_type)?;
    open(till, &model, Code::NoRouteAvailable)?;
    paid(&model, caller)
}

fn paid(model: &Model, caller: &Caller) -> Result<(), Refusal> {
    if model.requires_topup && !caller.account.topped_up { Err(needs_topup(model)) } else { Ok(()) }
}

pub fn suspended() -> Refusal {
    Refusal::new(Code::AccountSuspended, "This account is suspended: nothing new is begun for it. Ask the operator.")
}

/// A paused model is not sold, nor one whose providers all are.
fn open(till: &Till, model: &Model, unavailable: Code) -> Result<(), Refusal> {
    if !till.routes.switches.model_is_paused(&model.name) && !till.routes.switches.shut_off(model) {
        return Ok(());
    }
    let message = format!("`{}` is paused by the operator at the moment.", model.name);
    Err(Refusal::about(unavailable, "model", message).because("paused").after(30))
}

pub fn needs_topup(model: &Model) -> Refusal {
    let text = format!("The model `{}` needs paid credit: top up the account once.", model.name);
    Refusal::about(Code::ModelRequiresTopup, "model", text)
}

/// The model and the group it is sold to this caller in, whether or not the caller can pay for it.
pub fn find<'a>(
    serving: &'a Serving,
    caller: &'a Caller,
    work: &(impl Priced + ?Sized),
) -> Result<(Arc<Model>, &'a str), Refusal> {
    find_named(serving, caller, work.model(), work.endpoint_type())
}

fn find_named<'a>(
    serving: &'a Serving,
    caller: &'a Caller,
    name: &str,
    wanted: &str,
) -> Result<(Arc<Model>, &'a str), Refusal> {
    let unknown = || {
        let offered = |model: &&Arc<Model>| caller.may_use(&model.name) && serving.group_of(caller, model).is_some();
        let near = nearest(name, serving.catalog.models.values().filter(offered).map(|model| model.name.as_str()));
        let hint = near.map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
        let text = format!("The model `{name}` does not exist or is not offered.{hint}");
        Refusal::about(Code::ModelNotFound, "model", text)
    };
    let model = serving.catalog.model(name).ok_or_else(unknown)?;
    let group = serving.group_of(caller, model).ok_or_else(unknown)?;
    if !caller.may_use(name) {
        return Err(Refusal::about(
            Code::ModelNotAllowed,
            "model",
            format!("This key may not use the model `{name}`."),
        ));
    }
    if !model.supports(wanted) {
        let accepted = serving.asked_at(model);
        let text = format!("The model `{name}` is not offered at this endpoint (`{wanted}`); ask it at {accepted}.");
        return Err(Refusal::about(Code::UnsupportedValue, "model", text));
    }
    Ok((model.clone(), group))
}
