//! Time that is over is added up once more (`sums/folded.rs`), on PostgreSQL. A step is one
//! transaction of one replica: it has the row that says how far it is. It makes nobody wait but
//! where it moves that place on, four times a day.
//!
//! A step removes the touches of a day before it reads the day's quarters. Whoever writes touches
//! in the same transaction. So what a removed touch stands for is read, and what is not read has
//! a touch that stays.

use std::time::Duration;

use tokio_postgres::{Row, Transaction};

use super::PostgresEngine;
use super::packed::pack_step;
use crate::error::StoreError;
use crate::margin::first_id;
use crate::route_health::QUARTER_MS;
use crate::sums::folded::{BLOCK, DAY, Folded, HOUR, HOUSE_KEY, PackedDays, ZoneDays, over};
use crate::sums::{SUM_KEY, SUMS};

/// A day of a very large house takes seconds.
const STEP_TIME: Duration = Duration::from_secs(300);
const DUE: &str =
    "SELECT EXISTS (SELECT 1 FROM usage_folded WHERE until < $1) OR EXISTS (SELECT 1 FROM usage_day_touched)";
/// Touches the days from `$1` on that have sums and begin before the quarter `$2`. Each is found by
/// the index, so that this is short.
pub(super) fn days_over(touched: &str) -> String {
    format!(
        "INSERT INTO {touched} WITH RECURSIVE d (day) AS (\
           SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= $1::bigint * 96) / 96 \
           UNION ALL SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= (d.day + 1) * 96) / 96 FROM d WHERE d.day * 96 < $2::bigint) \
         SELECT day FROM d WHERE day * 96 < $2::bigint"
    )
}

impl PostgresEngine {
    /// The next step. `true`: it was done, and there may be more.
    pub async fn fold_sums(&self) -> Result<bool, StoreError> {
        self.merge_sums().await?;
        let until = over(self.now());
        let due = self.rows(DUE, &[&until]).await?;
        let due = due.first().map_or(Ok(false), |r| r.try_get(0))?;
        if !due && !self.packing_due().await? && !self.zones_due().await? {
            return Ok(false);
        }
        let step = tokio::time::timeout(STEP_TIME, self.fold_step(until));
        step.await.map_err(|_| StoreError::away("the database does not come to an end with a day of sums"))?
    }

    async fn fold_step(&self, until: i64) -> Result<bool, StoreError> {
        let mut link = self.connector.connect().await?;
        let tx = link.client.transaction().await?;
        tx.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
        let place = "SELECT until FROM usage_folded WHERE one = 1 FOR UPDATE SKIP LOCKED";
        // Another replica is at it.
        let Some(place) = tx.query_opt(place, &[]).await? else { return Ok(false) };
        let last: i64 = place.try_get(0)?;
        if tx.query_opt("SELECT 1 FROM usage_backfill WHERE one = 1", &[]).await?.is_some() {
            return Ok(false);
        }
        if last < until {
            // Whoever writes now has read the place before, and will not touch these days.
            tx.batch_execute("LOCK TABLE usage IN SHARE ROW EXCLUSIVE MODE").await?;
            tx.execute(&days_over("usage_day_touched"), &[&last.div_euclid(DAY), &until]).await?;
            let first = first_id(until.saturating_mul(QUARTER_MS));
            let moved = "UPDATE usage_folded SET until = $1, first_call = $2 WHERE one = 1";
            tx.execute(moved, &[&until, &first.as_slice()]).await?;
        } else {
            // The newest first: it is asked for most.
            let day: Option<i64> = tx.query_one("SELECT max(day) FROM usage_day_touched", &[]).await?.try_get(0)?;
            match day {
                Some(day) => fold(&tx, day, last).await?,
                None if !pack_step(&tx, last).await? && !self.zone_step(&tx, last).await? => return Ok(false),
                None => {}
            }
        }
        tx.commit().await?;
        Ok(true)
    }

    /// What is folded of the days from one to before another.
    pub(super) async fn folded(&self, from: i64, to: i64) -> Result<Folded, StoreError> {
        let rows = self.summed(&format!("SELECT {FOLDED}"), &[&from, &to]).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        read_folded(row)
    }
}

/// What is folded of the days from `$1` to before `$2`.
pub(super) const FOLDED: &str = "(SELECT until FROM usage_folded WHERE one = 1) AS until, \
     ARRAY(SELECT DISTINCT day FROM usage_day_touched WHERE day >= $1::bigint AND day < $2::bigint ORDER BY day) AS touched, \
     ARRAY(SELECT shift::bigint FROM usage_zone ORDER BY shift) AS shifts, \
     ARRAY(SELECT since FROM usage_zone ORDER BY shift) AS since, \
     ARRAY(SELECT until FROM usage_zone ORDER BY shift) AS zone_until, \
     (SELECT until FROM usage_packed WHERE one = 1) AS packed_until, \
     ARRAY(SELECT DISTINCT day FROM usage_packed_touched WHERE day >= $1::bigint AND day < $2::bigint ORDER BY day) AS packed_touched";
/// In rows that do not say it.
pub(super) const NOT_FOLDED: &str =
    "NULL::bigint, NULL::bigint[], NULL::bigint[], NULL::bigint[], NULL::bigint[], NULL::bigint, NULL::bigint[]";
/// How many columns these are.
pub(super) const FOLDED_COLUMNS: usize = 7;

/// A row that begins with [`FOLDED`].
pub(super) fn read_folded(row: &Row) -> Result<Folded, StoreError> {
    let [shifts, since, until] = [2, 3, 4].map(|place| row.try_get::<_, Vec<i64>>(place));
    let zones = shifts?.into_iter().zip(since?).zip(until?);
    let zones = zones.map(|((shift, since), until)| ZoneDays { shift, since, until }).collect();
    let packed = PackedDays { until: row.try_get(5)?, touched: row.try_get(6)? };
    Ok(Folded { until: row.try_get(0)?, touched: row.try_get(1)?, zones, packed })
}

/// Adds up a day as far as it is over.
async fn fold(tx: &Transaction<'_>, day: i64, until: i64) -> Result<(), StoreError> {
    let (from, end) = (day.saturating_mul(DAY), day.saturating_add(1).saturating_mul(DAY));
    let to = end.min(until);
    tx.execute("DELETE FROM usage_day_touched WHERE day = $1", &[&day]).await?;
    for old in [
        format!("usage_house_sum WHERE width IN (1, {HOUR}, {DAY})"),
        format!("usage_account_sum WHERE width IN ({BLOCK}, {DAY}) AND shift = 0"),
    ] {
        tx.execute(&format!("DELETE FROM {old} AND quarter >= $1 AND quarter < $2"), &[&from, &end]).await?;
    }
    let mut made = vec![house(1, "usage_quarter WHERE"), house(HOUR, "usage_house_sum WHERE width = 1 AND")];
    made.push(accounts(BLOCK, 0, "usage_quarter WHERE"));
    if to == end {
        made.push(house(DAY, &format!("usage_house_sum WHERE width = {HOUR} AND")));
        made.push(accounts(DAY, 0, &format!("usage_account_sum WHERE width = {BLOCK} AND shift = 0 AND")));
    }
    for sql in made {
        tx.execute(&sql, &[&from, &to]).await?;
    }
    super::zones::fold_again(tx, day).await
}

fn sums() -> (String, String) {
    let sums: Vec<String> = SUMS.iter().map(|c| format!("least(sum({c}), 9000000000000000000)::bigint")).collect();
    (SUMS.join(", "), sums.join(", "))
}

/// Makes sums of the house of the quarters from `$1` to before `$2`.
fn house(width: i64, from: &str) -> String {
    let ((columns, sums), key) = (sums(), HOUSE_KEY.join(", "));
    format!(
        "INSERT INTO usage_house_sum (width, quarter, {key}, {columns}) \
         SELECT {width}, quarter / {width} * {width}, {key}, {sums} FROM {from} quarter >= $1 AND quarter < $2 GROUP BY 2, {key}"
    )
}

/// Makes sums of accounts of the quarters from `$1` to before `$2`, whose days begin with the
/// first of them.
pub(super) fn accounts(width: i64, shift: i64, from: &str) -> String {
    let (columns, sums) = sums();
    let key: Vec<&str> = SUM_KEY.iter().filter(|column| **column != "quarter").copied().collect();
    let key = key.join(", ");
    format!(
        "INSERT INTO usage_account_sum (width, shift, quarter, {key}, {columns}) \
         SELECT {width}, {shift}, (quarter + {shift}) / {width} * {width} - {shift}, {key}, {sums} \
         FROM {from} quarter >= $1 AND quarter < $2 GROUP BY 3, {key}"
    )
}
