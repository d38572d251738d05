//! The verbs of probes.

use super::{Engine, Store};
use crate::account::limits::day_of;
use crate::error::StoreError;
use crate::probe::{ProbeClaim, ProbeDay, ProbeTurn};

impl Store {
    /// Takes a model to be probed and counts its cost, or says why not. Exact over all replicas.
    pub async fn claim_probe(&self, claim: ProbeClaim) -> Result<ProbeTurn, StoreError> {
        // A day's first probe finds no row to be compared with.
        if claim.calls > claim.limits.calls || claim.nano_usd > claim.limits.nano_usd {
            return Ok(ProbeTurn::Spent);
        }
        on_engine!(self, e => e.claim_probe(claim).await).map(ProbeTurn::numbered)
    }

    /// What was spent on the day of this moment.
    pub async fn probe_day(&self, at_ms: i64) -> Result<ProbeDay, StoreError> {
        on_engine!(self, e => e.probe_day(day_of(at_ms)).await)
    }

    /// Erases days and claims that are older than this moment.
    pub async fn forget_probes(&self, before_ms: i64) -> Result<(), StoreError> {
        on_engine!(self, e => e.forget_probes(before_ms).await)
    }
}
