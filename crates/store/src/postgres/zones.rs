//! Sums of accounts by days of zones other than UTC, on PostgreSQL. Whoever asks for days, weeks or
//! months of all accounts in such a zone has them made: each account and key once a day, for each
//! distance from UTC that is asked for. They are made from the newest back, a day at a time, and
//! forgotten when nobody has asked for a month.
//!
//! A day of a zone has parts of two days of UTC. It counts only while both are folded and not
//! touched, and is made again with each of them (`Folded::has_sums`). So whatever makes a day of
//! UTC right again makes it right too.

use tokio_postgres::Transaction;

use super::PostgresEngine;
use super::fold::accounts;
use crate::error::StoreError;
use crate::sums::SumQuery;
use crate::sums::folded::DAY;

/// Distances from UTC at the same time. Each takes a fiftieth of what quarters take.
const MOST_ZONES: i64 = 8;
const FORGOTTEN_MS: i64 = 31 * 86_400_000;
const DAY_MS: i64 = 86_400_000;

/// A zone with a day that is over and not folded; `$1` is the quarter up to which all is. One that
/// nobody asked for since `$2` comes first.
const NEXT: &str = "SELECT shift::bigint, since, until, asked_at < $2 AS forgotten FROM usage_zone \
     WHERE asked_at < $2 OR EXISTS (SELECT 1 FROM usage_quarter) \
       AND (until + 96 <= $1 OR since > (SELECT min(quarter) FROM usage_quarter)) \
     ORDER BY forgotten DESC, shift LIMIT 1";

impl PostgresEngine {
    /// Notes that days of these zones are asked for.
    pub(super) async fn ask_zones(&self, query: &SumQuery) -> Result<(), StoreError> {
        for shift in query.shifts() {
            // There is none yet. Who asks again and again writes once a day.
            let sql = "INSERT INTO usage_zone (shift, since, until, asked_at) \
                 SELECT $1, 0, 0, $2 \
                 WHERE EXISTS (SELECT 1 FROM usage_zone WHERE shift = $1) OR (SELECT count(*) FROM usage_zone) < $3 \
                 ON CONFLICT (shift) DO UPDATE SET asked_at = excluded.asked_at WHERE usage_zone.asked_at < excluded.asked_at - $4";
            self.summed(sql, &[&short(shift), &self.now(), &MOST_ZONES, &DAY_MS]).await?;
        }
        Ok(())
    }

    pub(super) async fn zones_due(&self) -> Result<bool, StoreError> {
        let sql = format!("SELECT 1 FROM ({}) z", NEXT.replace("$1", "(SELECT until FROM usage_folded)"));
        Ok(!self.rows(&sql.replace("$2", "$1"), &[&(self.now() - FORGOTTEN_MS)]).await?.is_empty())
    }

    /// Makes one day of one zone, in the transaction of a step. `false`: there is none to make.
    pub(super) async fn zone_step(&self, tx: &Transaction<'_>, folded_until: i64) -> Result<bool, StoreError> {
        let forgotten = self.now() - FORGOTTEN_MS;
        let Some(zone) = tx.query_opt(NEXT, &[&folded_until, &forgotten]).await? else { return Ok(false) };
        let (shift, since, until): (i64, i64, i64) = (zone.try_get(0)?, zone.try_get(1)?, zone.try_get(2)?);
        if zone.try_get(3)? {
            let sums = format!("DELETE FROM usage_account_sum WHERE width = {DAY} AND shift = {shift}");
            tx.batch_execute(&format!("{sums}; DELETE FROM usage_zone WHERE shift = {shift}")).await?;
            return Ok(true);
        }
        let last = (folded_until + shift).div_euclid(DAY) * DAY - shift;
        let (since, until, begins) = match () {
            // The first that is made is the last that is over.
            () if since == until => (last - DAY, last, last - DAY),
            () if until < last => (since, until + DAY, until),
            () => (since - DAY, until, since - DAY),
        };
        make_day(tx, shift, begins).await?;
        tx.execute("UPDATE usage_zone SET since = $2, until = $3 WHERE shift = $1", &[&short(shift), &since, &until])
            .await?;
        Ok(true)
    }
}

fn short(shift: i64) -> i16 {
    i16::try_from(shift).unwrap_or(0)
}

/// The days of zones that have a part of this day of UTC.
pub(super) async fn fold_again(tx: &Transaction<'_>, day: i64) -> Result<(), StoreError> {
    for zone in tx.query("SELECT shift::bigint, since, until FROM usage_zone", &[]).await? {
        let (shift, since, until): (i64, i64, i64) = (zone.try_get(0)?, zone.try_get(1)?, zone.try_get(2)?);
        for begins in [day * DAY - shift, (day + 1) * DAY - shift] {
            if since <= begins && begins + DAY <= until {
                make_day(tx, shift, begins).await?;
            }
        }
    }
    Ok(())
}

async fn make_day(tx: &Transaction<'_>, shift: i64, begins: i64) -> Result<(), StoreError> {
    let old = format!("DELETE FROM usage_account_sum WHERE width = {DAY} AND shift = {shift} AND quarter = $1");
    tx.execute(&old, &[&begins]).await?;
    tx.execute(&accounts(DAY, shift, "usage_quarter WHERE"), &[&begins, &(begins + DAY)]).await?;
    Ok(())
}
