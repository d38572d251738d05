//! Probes on PostgreSQL: replicas share them, so both the turn and the day are decided in the
//! database, in one statement.

use super::PostgresEngine;
use super::records::SqlParam;
use crate::account::limits::day_of;
use crate::error::StoreError;
use crate::probe::{ProbeClaim, ProbeDay};

impl PostgresEngine {
    pub async fn claim_probe(&self, claim: ProbeClaim) -> Result<u64, StoreError> {
        let sql = "WITH claim AS (INSERT INTO probe_claim (model, claimed_at) VALUES ($1, $2) ON CONFLICT (model) \
                     DO UPDATE SET claimed_at = excluded.claimed_at WHERE probe_claim.claimed_at <= $3 RETURNING 1), \
                   spent AS (INSERT INTO probe_day (day, calls, nano_usd) \
                     SELECT $4::bigint, $5::bigint, $6::bigint FROM claim ON CONFLICT (day) DO UPDATE SET \
                     calls = probe_day.calls + excluded.calls, nano_usd = probe_day.nano_usd + excluded.nano_usd \
                     WHERE probe_day.calls + excluded.calls <= $7 AND probe_day.nano_usd + excluded.nano_usd <= $8 \
                     RETURNING 1) \
                   SELECT (SELECT count(*) FROM claim) + (SELECT count(*) FROM spent)";
        let limits = claim.limits;
        let (due, day) = (claim.now.saturating_sub(claim.every_ms), day_of(claim.now));
        let values: [SqlParam<'_>; 8] =
            [&claim.model, &claim.now, &due, &day, &claim.calls, &claim.nano_usd, &limits.calls, &limits.nano_usd];
        let rows = self.change(sql, &values).await?;
        let number: i64 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        Ok(number.unsigned_abs())
    }

    pub async fn probe_day(&self, day: i64) -> Result<ProbeDay, StoreError> {
        let rows = self.rows("SELECT calls, nano_usd FROM probe_day WHERE day = $1", &[&day]).await?;
        let read = |r: &tokio_postgres::Row| Ok(ProbeDay { calls: r.try_get(0)?, nano_usd: r.try_get(1)? });
        rows.first().map(read).transpose().map(Option::unwrap_or_default)
    }

    pub async fn forget_probes(&self, before_ms: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM probe_claim WHERE claimed_at < $1", &[&before_ms]).await?;
        self.change("DELETE FROM probe_day WHERE day < $1", &[&day_of(before_ms)]).await?;
        Ok(())
    }
}
