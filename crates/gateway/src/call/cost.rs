//! What a call cost the operator: noted beside the charge when it ends, for operators only.

use crate::metrics::Metrics;
use crate::world::Millis;
use tollgate_catalog::import::written_usd;
use tollgate_catalog::{Model, Money};
use tollgate_store::{Counters, Side, UsageFacts};
use tollgate_wire::ChatQuirks;

/// What these counters cost along the route that served them. Where the provider says it, that
/// counts. `None`: nobody knows, which is not the same as nothing.
pub(super) fn cost_of(model: &Model, row: &UsageFacts, quirks: Option<&ChatQuirks>, at: Millis) -> Option<Money> {
    let said = quirks.zip(row.raw_usage.as_deref()).and_then(|(quirks, usage)| quirks.reported_cost(usage));
    if let Some(said) = said.and_then(|said| written_usd(&said)) {
        return Some(said);
    }
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
