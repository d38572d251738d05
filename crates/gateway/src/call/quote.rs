//! What a call can cost at most, before it is sent. The price is frozen here: a catalog that
//! changes in mid-call changes nothing for that call.

use super::meter::{context_len, fitted, within};
use super::need::{Need, Priced};
use crate::refusal::Refusal;
use crate::world::Millis;
use std::sync::Arc;
use tollgate_catalog::{
    ChargeBound, Condition, Face, Model, Money, Price, PriceFacts, Quantities, Unbounded, Uncharged,
};
use tollgate_store::Counters;
use tollgate_wire::error::Code;

/// Who buys, and when.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub at: Millis,
    pub group: &'a str,
    /// Whether the prices of accounts that have topped up apply.
    pub topped_up: bool,
    /// Output tokens that a stream without a limit is held for at first, unless its model says
    /// otherwise.
    pub stream_hold: u64,
}

/// The frozen facts of a price: enough to choose the tier again when the true length of the input
/// is known.
pub struct Quote {
    pub amount: Money,
    /// The price that makes the bound; the hold is made with it.
    pub price: Arc<Price>,
    /// The quantities of the bound.
    pub most: Quantities,
    /// No other price can apply in the end.
    pub settled: bool,
    pub need: Need,
    pub at: Millis,
    pub topped_up: bool,
    /// The parameters that tiers of this model go by, with their values; empty for nearly every
    /// model.
    pub attributes: Vec<(String, Option<String>)>,
}

impl Quote {
    /// What these counters come to in the end: the price of the tier that their length leads to, at
    /// the time and with the attributes of the admission, and what of them it charges for. The one
    /// place where a charge is computed.
    pub fn charge(&self, model: &Model, used: Counters) -> (Arc<Price>, Counters, Result<Money, Uncharged>) {
        let price = self.price_for(model, context_len(&used));
        let counters = fitted(used, &price);
        let charge = counters.charge(&price);
        (price, counters, charge)
    }

    fn price_for(&self, model: &Model, context_len: u64) -> Arc<Price> {
        if model.book_at(self.at).tiers.is_empty() {
            return self.price.clone();
        }
        let attr = |path: &str| attribute(&self.attributes, path);
        model.price(&self.facts(context_len, context_len, &attr)).unwrap_or_else(|_| self.price.clone())
    }

    /// What so many output tokens more can cost, whichever tier applies in the end.
    pub fn more_output(&self, model: &Model, tokens: u64) -> Option<Money> {
        let attr = |path: &str| attribute(&self.attributes, path);
        let facts = self.facts(self.need.context_len, self.need.context_max, &attr);
        let need = |price: &Price| Ok(Quantities::NONE.with(price.dearest_output(), tokens));
        model.bound(&facts, need).ok().map(|bound| bound.amount)
    }

    /// What of a charge the customer pays, where that is not all of it: nothing beyond the caller's
    /// own limit of the output, and never more than the call can cost at most.
    pub fn due(&self, model: &Model, used: Counters, charge: Money) -> Option<Money> {
        let mut due = charge;
        let within = within(used, self.need.output_ceiling);
        if within != used {
            due = self.charge(model, within).2.map_or(due, |charge| charge.min(due));
        }
        // Looked at only where it can matter: nearly no call costs more than was held for it.
        if due > self.amount
            && let Some(most) = self.most(model)
        {
            due = due.min(most.amount.max(self.amount));
        }
        (due < charge).then_some(due)
    }

    /// What the call may use when its input is so much longer than was quoted for, and what that
    /// can cost more.
    pub fn more_input(&self, model: &Model, tokens: u64) -> Option<(Need, Money)> {
        let mut need = self.need;
        need.context_len = need.context_len.checked_add(tokens)?;
        let longest = need.context_len.saturating_mul(2).min(model.context_window.unwrap_or(u64::MAX));
        need.most.input = need.most.input.checked_add(tokens)?;
        need.context_max = need.context_max.max(longest).max(need.most.input);
        let bound = self.bound(model, need)?;
        Some((need, bound.amount.checked_sub(self.amount).unwrap_or(Money::ZERO).max(Money::ZERO)))
    }

    /// What such a need can cost at most.
    pub fn bound(&self, model: &Model, need: Need) -> Option<ChargeBound> {
        let attr = |path: &str| attribute(&self.attributes, path);
        let facts = self.facts(need.context_len, need.context_max, &attr);
        model.bound(&facts, |price| need.bound(price)).ok()
    }

    fn facts<'a>(
        &'a self,
        context_len: u64,
        context_max: u64,
        attr: &'a dyn Fn(&str) -> Option<String>,
    ) -> PriceFacts<'a> {
        PriceFacts {
            at_ms: self.at,
            context_len,
            context_max,
            attr,
            topped_up: self.topped_up,
            group: &self.price.group,
        }
    }
}

pub fn quote(terms: Terms<'_>, model: &Model, work: &(impl Priced + ?Sized)) -> Result<Quote, Refusal> {
    let mut need = work.need(model)?;
    need.begin_with(model.chat.stream_hold.unwrap_or(terms.stream_hold));
    let attributes = frozen(model, work, terms.at);
    let sold = &model.book_at(terms.at).standard;
    if let Some((tool, _)) = need.most.tools.iter().find(|(tool, _)| !sold.has(*tool)) {
        return Err(refuse_tool(model, tool));
    }
    let attr = |path: &str| attribute(&attributes, path);
    let Terms { at, group, topped_up, .. } = terms;
    let facts = PriceFacts {
        at_ms: at,
        context_len: need.context_len,
        context_max: need.context_max,
        attr: &attr,
        topped_up,
        group,
    };
    let bound = model.bound(&facts, |price| need.bound(price)).map_err(|why| refuse_unpriced(model, &need, why))?;
    let ChargeBound { amount, price, most, candidates } = bound;
    work.sold_at(&price)?;
    Ok(Quote { amount, price, most, settled: candidates == 1, need, at, topped_up, attributes })
}

/// A tool that has a price at another time only: its use would be the operator's loss.
fn refuse_tool(model: &Model, tool: Face) -> Refusal {
    let (model, tool) = (&model.name, tool.name());
    let text =
        format!("`tools`: `{model}` has no price at the moment for a tool that runs at the provider (`{tool}`).");
    Refusal::about(Code::UnsupportedValue, "tools", text)
}

fn refuse_unpriced(model: &Model, need: &Need, why: Unbounded) -> Refusal {
    match why {
        Unbounded::Uncharged(Uncharged::Overflow) => {
            Refusal::about(Code::InvalidParameter, need.sized_by, "This request is too large to be priced.")
        }
        Unbounded::Uncharged(Uncharged::Unpriced(_)) | Unbounded::NoPrice(_) => {
            let text = format!("The model `{}` has no price for this call at the moment ({why}).", model.name);
            Refusal::about(Code::NoRouteAvailable, "model", text)
        }
    }
}

/// The values that the tiers of the model ask for; nothing is read for a model whose tiers ask for
/// none.
fn frozen(model: &Model, work: &(impl Priced + ?Sized), at: Millis) -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    for condition in model.book_at(at).tiers.iter().flat_map(|tier| &tier.when) {
        if let Condition::Attribute { path, .. } = condition
            && !all.iter().any(|(known, _)| known == path)
        {
            all.push((path.clone(), fact(model, work, path)));
        }
    }
    all
}

/// A fact about the request, or one of its parameters.
fn fact(model: &Model, work: &(impl Priced + ?Sized), path: &str) -> Option<String> {
    match path {
        Condition::ENDPOINT => Some(work.endpoint().to_owned()),
        Condition::THINKING => model.chat.thinks(work.thinking()).map(|on| on.to_string()),
        _ => work.attribute(path).map(|value| value.into_owned()),
    }
}

fn attribute(all: &[(String, Option<String>)], path: &str) -> Option<String> {
    all.iter().find(|(known, _)| known == path).and_then(|(_, value)| value.clone())
}
