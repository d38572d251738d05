//! What a call can cost at most, before it is sent. The price is frozen here: a catalog that changes in
//! mid-call changes nothing for that call.

use super::Ask;
use crate::app::App;
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::world::Millis;
use std::sync::Arc;
use tollgate_catalog::{Face, Facts, Model, Money, Price, Quantities};
use tollgate_wire::error::Code;

/// Output tokens reserved for a call that names no limit (money.md R2), so that one such call does not lock a whole balance.
const DEFAULT_OUTPUT: u64 = 16_384;

/// The frozen facts of a price: enough to choose the tier again when the true length of the input is known.
pub struct Quote {
    pub amount: Money,
    /// The dearest price that can apply; the hold is made with it.
    pub price: Arc<Price>,
    pub at: Millis,
    pub topped_up: bool,
    pub service_tier: Option<String>,
}

impl Quote {
    /// The price for an input of this length, at the time and with the attributes of the admission.
    pub fn price_for(&self, model: &Model, context_len: u64) -> Arc<Price> {
        let attr = |path: &str| attribute(path, self.service_tier.as_deref());
        let facts = Facts {
            at_ms: self.at,
            context_len,
            context_max: context_len,
            attr: &attr,
            topped_up: self.topped_up,
            group: &self.price.group,
        };
        model.price(&facts).unwrap_or_else(|_| self.price.clone())
    }
}

pub fn quote(app: &App, caller: &Caller, model: &Model, group: &str, ask: &Ask) -> Result<Quote, Refusal> {
    let at = app.world.now_ms();
    let service_tier = ask.request.service_tier.clone();
    let attr = |path: &str| attribute(path, service_tier.as_deref());
    let topped_up = caller.account.topped_up;
    let facts = Facts {
        at_ms: at,
        context_len: ask.request.prompt_tokens,
        // The estimate leans high, so twice the estimate bounds what a provider can report.
        context_max: ask.request.prompt_tokens.saturating_mul(2).min(model.context_window.unwrap_or(u64::MAX)),
        attr: &attr,
        topped_up,
        group,
    };
    let price = model.dearest(&facts).map_err(|_| {
        Refusal::about(
            Code::NoRouteAvailable,
            "model",
            format!("The model `{}` has no price at the moment.", model.name),
        )
    })?;
    let amount = upper_bound(&price, model, ask)?;
    Ok(Quote { amount, price, at, topped_up, service_tier })
}

fn upper_bound(price: &Price, model: &Model, ask: &Ask) -> Result<Money, Refusal> {
    let too_much = || Refusal::about(Code::InvalidParameter, "max_tokens", "This request is too large to be priced.");
    let each = ask.request.max_output.unwrap_or(DEFAULT_OUTPUT).min(model.max_output_tokens.unwrap_or(u64::MAX)).max(1);
    let output = each.checked_mul(ask.request.choices).ok_or_else(too_much)?;
    // Input may turn out to be cache writes or sound: the hold takes the dearest face of each side.
    let bound =
        [(price.dearest_input(), ask.request.prompt_tokens), (price.dearest_output(), output), (Face::PerCall, 1)];
    let priced = bound.into_iter().filter(|(face, _)| price.faces.has(*face));
    let quantities = priced.fold(Quantities::NONE, |all, (face, quantity)| all.with(face, quantity));
    price.charge(&quantities).map_err(|_| too_much())
}

fn attribute(path: &str, service_tier: Option<&str>) -> Option<String> {
    (path == "service_tier").then(|| service_tier.unwrap_or("auto").to_owned())
}
