//! Social data on PostgreSQL: replicas share pauses and the day's capacity, so both are decided in the database.

use tokio_postgres::Row;

use super::Engine;
use crate::error::StoreError;
use crate::social::{SocialChange, SocialDay, SocialFull, SocialTake};

impl Engine {
    pub async fn social_change(&self, change: SocialChange) -> Result<(), StoreError> {
        let sql = "INSERT INTO social_change (model, paused, at, actor, reason) VALUES ($1, $2, $3, $4, $5)";
        let c = &change;
        self.rows(sql, &[&c.model, &c.paused, &c.at, &c.actor, &c.reason]).await?;
        Ok(())
    }

    pub async fn social_changes(&self, limit: u32) -> Result<Vec<SocialChange>, StoreError> {
        let sql = "SELECT model, paused, at, actor, reason FROM social_change ORDER BY seq DESC LIMIT $1";
        Ok(self.rows(sql, &[&i64::from(limit)]).await?.iter().map(change).collect())
    }

    pub async fn social_states(&self) -> Result<Vec<SocialChange>, StoreError> {
        let sql = "SELECT DISTINCT ON (model) model, paused, at, actor, reason FROM social_change \
                   ORDER BY model, seq DESC";
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
        let sql = "UPDATE social_day SET cost = greatest(cost - $3, 0) WHERE day = $1 AND platform IN ('', $2)";
        self.rows(sql, &[&take.day, &take.platform, &take.cost]).await?;
        Ok(())
    }

    pub async fn social_days(&self, day: i64) -> Result<Vec<SocialDay>, StoreError> {
        let sql = "SELECT day, platform, calls, cost FROM social_day WHERE day = $1 AND calls > 0 \
                   ORDER BY platform COLLATE \"C\"";
        let read = |r: &Row| SocialDay { day: r.get(0), platform: r.get(1), calls: r.get(2), cost: r.get(3) };
        Ok(self.rows(sql, &[&day]).await?.iter().map(read).collect())
    }
}

fn change(r: &Row) -> SocialChange {
    SocialChange { model: r.get(0), paused: r.get(1), at: r.get(2), actor: r.get(3), reason: r.get(4) }
}
