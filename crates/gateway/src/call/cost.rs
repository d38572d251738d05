//! What a call cost the operator: noted beside the charge when it ends, for operators only.

use crate::metrics::Metrics;
use crate::world::Millis;
use tollgate_catalog::{Model, Money};
use tollgate_store::{Counters, Side, UsageFacts};

/// What these counters cost along the route that served them. `None`: nobody knows, which is not
/// the same as nothing.
pub(super) fn cost_of(model: &Model, row: &UsageFacts, at: Millis) -> Option<Money> {
    let (provider, upstream_model) = (row.provider.as_deref()?, row.upstream_model.as_deref()?);
    if row.counters == Counters::default() {
        return None;
    }
    let price = model.cost_price(provider, upstream_model, row.tier.as_deref(), at)?;
    row.counters.charge(&price).ok()
}

/// Counts what was sold and what it cost.
pub(super) fn note_cost(metrics: &Metrics, row: &UsageFacts, charge: Money) {
    if let Some(provider) = row.provider.as_deref() {
        let (input, output) = (row.counters.total(Side::Input), row.counters.total(Side::Output));
        metrics.margins.used(&row.model, provider, input, output);
    }
    if let Some(provider) = row.provider.as_deref().filter(|_| row.cost.is_some() || !charge.is_zero()) {
        metrics.margins.sold(&row.model, provider, charge.nano(), row.cost.map(Money::nano));
    }
}
