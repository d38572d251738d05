//! Probes on the embedded engine: taken by the one writer.

use rusqlite::{OptionalExtension, params};

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::account::limits::day_of;
use crate::error::StoreError;
use crate::probe::{ProbeClaim, ProbeDay};

/// What the writer is asked to write.
pub(super) enum ProbeOp {
    Claim(ProbeClaim),
    /// What is older than this moment.
    Forget(i64),
}

impl SqliteEngine {
    pub async fn claim_probe(&self, claim: ProbeClaim) -> Result<u64, StoreError> {
        self.ask(|reply| Op::Probe(Box::new(ProbeOp::Claim(claim)), reply)).await
    }

    pub async fn probe_day(&self, day: i64) -> Result<ProbeDay, StoreError> {
        let sql = "SELECT calls, nano_usd FROM probe_day WHERE day = ?1";
        let one = |r: &rusqlite::Row<'_>| Ok(ProbeDay { calls: r.get(0)?, nano_usd: r.get(1)? });
        let found = self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_row([day], one).optional()?)).await?;
        Ok(found.unwrap_or_default())
    }

    pub async fn forget_probes(&self, before_ms: i64) -> Result<(), StoreError> {
        self.ask(|reply| Op::Probe(Box::new(ProbeOp::Forget(before_ms)), reply)).await.map(drop)
    }
}

impl Apply<'_> {
    /// As `ProbeTurn` numbers them.
    pub(super) fn probe(&mut self, op: &ProbeOp) -> rusqlite::Result<u64> {
        match op {
            ProbeOp::Claim(claim) => {
                let sql = "INSERT INTO probe_claim (model, claimed_at) VALUES (?1, ?2) ON CONFLICT (model) \
                           DO UPDATE SET claimed_at = excluded.claimed_at WHERE claimed_at <= ?3";
                let due = claim.now.saturating_sub(claim.every_ms);
                if self.statement(sql)?.execute(params![claim.model, claim.now, due])? == 0 {
                    return Ok(0);
                }
                let sql = "INSERT INTO probe_day (day, calls, nano_usd) VALUES (?1, ?2, ?3) ON CONFLICT (day) \
                           DO UPDATE SET calls = calls + excluded.calls, nano_usd = nano_usd + excluded.nano_usd \
                           WHERE calls + excluded.calls <= ?4 AND nano_usd + excluded.nano_usd <= ?5";
                let limits = claim.limits;
                let row = params![day_of(claim.now), claim.calls, claim.nano_usd, limits.calls, limits.nano_usd];
                Ok(1 + self.statement(sql)?.execute(row)? as u64)
            }
            ProbeOp::Forget(before) => {
                self.statement("DELETE FROM probe_claim WHERE claimed_at < ?1")?.execute([before])?;
                self.statement("DELETE FROM probe_day WHERE day < ?1")?.execute([day_of(*before)])?;
                Ok(0)
            }
        }
    }
}
