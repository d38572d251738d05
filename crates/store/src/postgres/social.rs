//! Social data on PostgreSQL: replicas share pauses and the day's capacity, so both are decided in
//! the database.

use tokio_postgres::Row;

use super::PostgresEngine;
use super::records::SqlParam;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::operator::pause::{PauseChange, PauseKind};
use crate::social::{SocialDay, SocialFull, SocialTake, SocialTurn, SocialVain, VAIN_COUNTS};

/// The most vain calls read at once.
const VAINS_READ: i64 = 100_000;

impl PostgresEngine {
    pub async fn change_pause(&self, change: PauseChange) -> Result<(), StoreError> {
        let sql = "INSERT INTO social_change (kind, model, paused, at, actor, reason) VALUES ($1, $2, $3, $4, $5, $6) \
                   RETURNING seq AS id";
        let c = &change;
        let params: [SqlParam<'_>; 6] = [&c.kind.word(), &c.name, &c.paused, &c.at, &c.actor, &c.reason];
        self.noted(sql, &params, c.audit_row()).await?;
        Ok(())
    }

    pub async fn pause_changes(&self, limit: u32) -> Result<Vec<PauseChange>, StoreError> {
        let sql = "SELECT kind, model, paused, at, actor, reason FROM social_change ORDER BY seq DESC LIMIT $1";
        Ok(self.rows(sql, &[&i64::from(limit)]).await?.iter().map(change).collect())
    }

    pub async fn pause_states(&self) -> Result<Vec<PauseChange>, StoreError> {
        let sql = "SELECT DISTINCT ON (kind, model) kind, model, paused, at, actor, reason FROM social_change \
                   ORDER BY kind, model, seq DESC";
        Ok(self.rows(sql, &[]).await?.iter().map(change).collect())
    }

    pub async fn social_take(&self, take: SocialTake) -> Result<Result<(), SocialFull>, StoreError> {
        let sql = "SELECT tollgate_social_take($1, $2, $3, $4, $5, $6, $7)";
        let t = &take;
        let rows = self
            .rows(sql, &[&t.day, &t.platform, &t.cost, &t.all.calls, &t.all.cost, &t.own.calls, &t.own.cost])
            .await?;
        let number: i16 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.get(0);
        Ok(SocialFull::numbered(number).map_or(Ok(()), Err))
    }

    /// The cost of a call that turned out to be free; the call stays counted.
    pub async fn social_give_back(&self, take: SocialTake) -> Result<(), StoreError> {
        // Both rows are locked in the order of `tollgate_social_take`, or the two would wait for
        // each other in a circle.
        let sql = "WITH mine AS MATERIALIZED (SELECT day, platform FROM social_day WHERE day = $1 AND platform IN ('', $2) \
                     ORDER BY platform COLLATE \"C\" FOR UPDATE) \
                   UPDATE social_day SET cost = greatest(cost - $3, 0) FROM mine \
                   WHERE social_day.day = mine.day AND social_day.platform = mine.platform";
        self.rows(sql, &[&take.day, &take.platform, &take.cost]).await?;
        Ok(())
    }

    pub async fn social_vain(&self, vain: SocialVain) -> Result<(), StoreError> {
        let sql = "INSERT INTO social_vain (call_id, question, account_id, at, until) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT DO NOTHING";
        let (call, question, account) = (vain.call.0, vain.question, vain.account.0);
        self.rows(sql, &[&call.as_slice(), &question.as_slice(), &account.as_slice(), &vain.at, &vain.until]).await?;
        Ok(())
    }

    pub async fn social_vains(&self, since: i64) -> Result<Vec<SocialVain>, StoreError> {
        let sql =
            "SELECT call_id, question, account_id, at, until FROM social_vain WHERE at >= $1 ORDER BY at DESC LIMIT $2";
        self.rows(sql, &[&since, &VAINS_READ]).await?.iter().map(vain).collect()
    }

    pub(super) async fn forget_vain(&self, now: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM social_vain WHERE until <= $1 AND at < $1 - $2";
        self.rows(sql, &[&now, &VAIN_COUNTS]).await?;
        Ok(())
    }

    pub async fn social_turn(&self, route: &str, per_second: u32, patience_ms: u64) -> Result<SocialTurn, StoreError> {
        let most = i32::try_from(per_second).unwrap_or(i32::MAX);
        let patience = i64::try_from(patience_ms).unwrap_or(i64::MAX);
        // A client waits for this one.
        let sql = "SELECT tollgate_social_turn($1, $2, $3)";
        let rows = self.rows_within(self.options.hold_deadline, sql, &[&route, &most, &patience]).await?;
        let wait: i64 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        Ok(if wait < 0 { SocialTurn::Busy(wait.unsigned_abs()) } else { SocialTurn::After(wait.unsigned_abs()) })
    }

    pub async fn social_days(&self, day: i64) -> Result<Vec<SocialDay>, StoreError> {
        let sql = "SELECT day, platform, calls, cost FROM social_day WHERE day = $1 AND calls > 0 \
                   ORDER BY platform COLLATE \"C\"";
        let read = |r: &Row| SocialDay { day: r.get(0), platform: r.get(1), calls: r.get(2), cost: r.get(3) };
        Ok(self.rows(sql, &[&day]).await?.iter().map(read).collect())
    }
}

fn vain(r: &Row) -> Result<SocialVain, StoreError> {
    let bad = || StoreError::broken("not a vain call");
    Ok(SocialVain {
        call: CallId::from_slice(r.try_get(0)?).ok_or_else(bad)?,
        question: r.try_get::<_, &[u8]>(1)?.try_into().map_err(|_| bad())?,
        account: AccountId::from_slice(r.try_get(2)?).ok_or_else(bad)?,
        at: r.try_get(3)?,
        until: r.try_get(4)?,
    })
}

fn change(r: &Row) -> PauseChange {
    let kind = PauseKind::of(r.get(0));
    PauseChange { kind, name: r.get(1), paused: r.get(2), at: r.get(3), actor: r.get(4), reason: r.get(5) }
}
