//! Days that are over are added up once more (`sums/folded.rs`), on PostgreSQL. A step is one
//! transaction of one replica: it has the row that says how far it is. It makes nobody wait but
//! where it moves that place on, once a day.
//!
//! A step removes the touches of a day before it reads the day's quarters. Whoever writes touches
//! in the same transaction. So what a removed touch stands for is read, and what is not read has
//! a touch that stays.

use std::time::Duration;

use tokio_postgres::Transaction;

use super::PostgresEngine;
use crate::error::StoreError;
use crate::margin::first_id;
use crate::sums::SUMS;
use crate::sums::folded::{DAY, Folded, HOUSE_KEY, day_key, over};

/// A day of a very large house takes seconds.
const STEP_TIME: Duration = Duration::from_secs(300);
const DUE: &str = "SELECT EXISTS (SELECT 1 FROM usage_fold WHERE until < $1) OR EXISTS (SELECT 1 FROM usage_touched)";
/// Days that are over since the last time and have sums, all of them touched. Each is found by the
/// index, so that this is short.
const OVER: &str = "INSERT INTO usage_touched WITH RECURSIVE d (day) AS (\
       SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= $1::bigint * 96) / 96 \
       UNION ALL SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= (d.day + 1) * 96) / 96 FROM d WHERE d.day < $2::bigint) \
     SELECT day FROM d WHERE day < $2::bigint";

impl PostgresEngine {
    /// The next step. `true`: it was done, and there may be more.
    pub async fn fold_sums(&self) -> Result<bool, StoreError> {
        let until = over(self.now());
        let due = self.rows(DUE, &[&until]).await?;
        if !due.first().map_or(Ok(false), |r| r.try_get(0))? {
            return Ok(false);
        }
        let step = tokio::time::timeout(STEP_TIME, self.fold_step(until));
        step.await.map_err(|_| StoreError::away("the database does not come to an end with a day of sums"))?
    }

    async fn fold_step(&self, until: i64) -> Result<bool, StoreError> {
        let mut link = self.connector.connect().await?;
        let tx = link.client.transaction().await?;
        tx.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
        let place = "SELECT until FROM usage_fold WHERE one = 1 FOR UPDATE SKIP LOCKED";
        // Another replica is at it.
        let Some(place) = tx.query_opt(place, &[]).await? else { return Ok(false) };
        let last: i64 = place.try_get(0)?;
        if tx.query_opt("SELECT 1 FROM usage_backfill WHERE one = 1", &[]).await?.is_some() {
            return Ok(false);
        }
        if last < until {
            // Whoever writes now has read the place before, and will not touch these days.
            tx.batch_execute("LOCK TABLE usage IN SHARE ROW EXCLUSIVE MODE").await?;
            tx.execute(OVER, &[&last, &until]).await?;
            let first = first_id(until.saturating_mul(86_400_000));
            let moved = "UPDATE usage_fold SET until = $1, first_call = $2 WHERE one = 1";
            tx.execute(moved, &[&until, &first.as_slice()]).await?;
        } else {
            // The newest first: it is asked for most.
            let day: Option<i64> = tx.query_one("SELECT max(day) FROM usage_touched", &[]).await?.try_get(0)?;
            let Some(day) = day else { return Ok(false) };
            fold(&tx, day).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Which of the days from one to before another are folded.
    pub(super) async fn folded(&self, from: i64, to: i64) -> Result<Folded, StoreError> {
        let rows = self.summed(&format!("SELECT {FOLDED}"), &[&from, &to]).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        Ok(Folded { until: row.try_get(0)?, touched: row.try_get(1)? })
    }
}

/// What is folded of the days from `$1` to before `$2`.
pub(super) const FOLDED: &str = "(SELECT until FROM usage_fold WHERE one = 1) AS until, \
     ARRAY(SELECT DISTINCT day FROM usage_touched WHERE day >= $1::bigint AND day < $2::bigint ORDER BY day) AS touched";

async fn fold(tx: &Transaction<'_>, day: i64) -> Result<(), StoreError> {
    let (from, to) = (day.saturating_mul(DAY), day.saturating_add(1).saturating_mul(DAY));
    tx.execute("DELETE FROM usage_touched WHERE day = $1", &[&day]).await?;
    tx.execute("DELETE FROM usage_day WHERE day = $1", &[&day]).await?;
    tx.execute("DELETE FROM usage_house WHERE width IN (1, 96) AND quarter >= $1 AND quarter < $2", &[&from, &to])
        .await?;
    let columns = SUMS.join(", ");
    let sums: Vec<String> = SUMS.iter().map(|c| format!("least(sum({c}), 9000000000000000000)::bigint")).collect();
    let sums = sums.join(", ");
    let (house, rest) = (HOUSE_KEY.join(", "), HOUSE_KEY[1..].join(", "));
    let by_quarter = format!(
        "INSERT INTO usage_house (width, {house}, {columns}) SELECT 1, {house}, {sums} FROM usage_quarter \
         WHERE quarter >= $1 AND quarter < $2 GROUP BY {house}"
    );
    tx.execute(&by_quarter, &[&from, &to]).await?;
    let by_day = format!(
        "INSERT INTO usage_house (width, {house}, {columns}) SELECT 96, $1::bigint, {rest}, {sums} FROM usage_house \
         WHERE width = 1 AND quarter >= $1 AND quarter < $2 GROUP BY {rest}"
    );
    tx.execute(&by_day, &[&from, &to]).await?;
    let key = day_key();
    let of = |day: &'static str| key.iter().map(|c| if *c == "day" { day } else { c }).collect::<Vec<_>>().join(", ");
    let others: Vec<&str> = key.iter().filter(|c| **c != "day").copied().collect();
    let accounts = format!(
        "INSERT INTO usage_day ({}, {columns}) SELECT {}, {sums} FROM usage_quarter \
         WHERE quarter >= $1 AND quarter < $2 GROUP BY {}",
        of("day"),
        of("$1::bigint / 96"),
        others.join(", ")
    );
    tx.execute(&accounts, &[&from, &to]).await?;
    Ok(())
}
