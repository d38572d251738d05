//! May this caller have this? Checked before anything is priced, held or sent.

use super::Ask;
use crate::app::{App, Serving};
use crate::caller::Caller;
use crate::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tollgate_catalog::Model;
use tollgate_wire::error::Code;

/// The endpoint type of specification 2.6 that a model must list to be asked through chat completions.
const CHAT: &str = "openai";

/// The model and the group it is sold to this caller in.
pub fn admit<'a>(
    app: &App,
    serving: &'a Serving,
    caller: &'a Caller,
    ask: &Ask,
) -> Result<(Arc<Model>, &'a str), Refusal> {
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(Code::ServerDraining, "This server is stopping; send the request again.").after(1));
    }
    if app.running.load(Ordering::Relaxed) >= app.settings.limits.calls {
        return Err(Refusal::new(Code::Overloaded, "Too many calls are running at the moment.").after(1));
    }
    let name = &ask.request.model;
    let unknown = || {
        Refusal::about(Code::ModelNotFound, "model", format!("The model `{name}` does not exist or is not offered."))
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
    if !model.supports(CHAT) {
        return Err(Refusal::about(
            Code::UnsupportedValue,
            "model",
            format!(
                "The model `{name}` does not accept this format; it accepts: {}.",
                model.supported_endpoint_types.join(", ")
            ),
        ));
    }
    if model.requires_topup && !caller.account.topped_up {
        return Err(Refusal::about(
            Code::ModelRequiresTopup,
            "model",
            format!("The model `{name}` needs paid credit: top up the account once."),
        ));
    }
    check_output_limit(model, ask)?;
    Ok((model.clone(), group))
}

fn check_output_limit(model: &Model, ask: &Ask) -> Result<(), Refusal> {
    let asked = ask.request.prompt_tokens;
    match model.context_window {
        // The estimate leans high, so only what cannot possibly fit is refused here; the provider decides the rest.
        Some(window) if asked / 4 > window => Err(Refusal::about(
            Code::ContextLengthExceeded,
            "messages",
            format!("The messages have about {asked} tokens; `{}` takes at most {window}.", model.name),
        )),
        _ => Ok(()),
    }
}
