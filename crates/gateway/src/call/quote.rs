//! What a call can cost at most, before it is sent. The price is frozen here: a catalog that changes in
//! mid-call changes nothing for that call.

use super::need::{Need, Priced};
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::world::Millis;
use std::sync::Arc;
use tollgate_catalog::{Condition, Facts, Model, Money, Price};
use tollgate_wire::error::Code;

/// The frozen facts of a price: enough to choose the tier again when the true length of the input is known.
pub struct Quote {
    pub amount: Money,
    /// The dearest price that can apply; the hold is made with it.
    pub price: Arc<Price>,
    pub need: Need,
    pub at: Millis,
    pub topped_up: bool,
    /// The parameters that tiers of this model go by, with their values; empty for nearly every model.
    pub attributes: Vec<(String, Option<String>)>,
}

impl Quote {
    /// The price for an input of this length, at the time and with the attributes of the admission.
    pub fn price_for(&self, model: &Model, context_len: u64) -> Arc<Price> {
        if model.book.tiers.is_empty() {
            return self.price.clone();
        }
        let attr = |path: &str| attribute(&self.attributes, path);
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

pub fn quote(
    at: Millis,
    caller: &Caller,
    model: &Model,
    group: &str,
    work: &(impl Priced + ?Sized),
) -> Result<Quote, Refusal> {
    let need = work.need(model)?;
    let attributes = frozen(model, work);
    let attr = |path: &str| attribute(&attributes, path);
    let topped_up = caller.account.topped_up;
    let facts = Facts {
        at_ms: at,
        context_len: need.context_len,
        context_max: need.context_max,
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
    let amount = need.bound(&price).and_then(|bound| price.charge(&bound).ok()).ok_or_else(|| {
        Refusal::about(Code::InvalidParameter, need.sized_by, "This request is too large to be priced.")
    })?;
    Ok(Quote { amount, price, need, at, topped_up, attributes })
}

/// The values that the tiers of the model ask for; nothing is read for a model whose tiers ask for none.
fn frozen(model: &Model, work: &(impl Priced + ?Sized)) -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    for condition in model.book.tiers.iter().flat_map(|tier| &tier.when) {
        if let Condition::Attribute { path, .. } = condition
            && !all.iter().any(|(known, _)| known == path)
        {
            all.push((path.clone(), work.attribute(path).map(|value| value.into_owned())));
        }
    }
    all
}

fn attribute(all: &[(String, Option<String>)], path: &str) -> Option<String> {
    all.iter().find(|(known, _)| known == path).and_then(|(_, value)| value.clone())
}
