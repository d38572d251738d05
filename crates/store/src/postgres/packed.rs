//! Quarters of accounts, those of a day in one row (`sums/days.rs`), on PostgreSQL. Days are packed
//! by the worker that folds them, in steps of their own: an earlier version on the same database
//! folds days too, and packs none. Whoever changes a quarter before `usage_folded.until` touches
//! its day here as well, and what is packed never goes beyond that.

use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::{Row, Transaction};

use super::PostgresEngine;
use super::fold::days_over;
use super::rows::id;
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::sums::days::pack_quarter;
use crate::sums::folded::{DAY, PackedQuarters};
use crate::sums::{SUM_KEY, SUMS, SumKey, UsageSum};

const DUE: &str = "SELECT EXISTS (SELECT 1 FROM usage_packed p, usage_folded f WHERE p.until < f.until) \
     OR EXISTS (SELECT 1 FROM usage_packed_touched)";
/// Rows that are written at once.
const WRITTEN: usize = 1_000;
const WRITE: &str = "INSERT INTO usage_day_packed (day, account_id, key_id, model, endpoint, ending, provider, upstream_model, quarters) \
     SELECT $1, * FROM unnest($2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::text[], $9::bytea[])";

impl PostgresEngine {
    pub(super) async fn packing_due(&self) -> Result<bool, StoreError> {
        Ok(self.rows(DUE, &[]).await?.first().map_or(Ok(false), |r| r.try_get(0))?)
    }
}

/// Packs one day, or finds out which are to be packed, in the transaction of a step. `false`: there
/// is none.
pub(super) async fn pack_step(tx: &Transaction<'_>, folded_until: i64) -> Result<bool, StoreError> {
    let until: i64 = tx.query_one("SELECT until FROM usage_packed WHERE one = 1", &[]).await?.try_get(0)?;
    if until < folded_until {
        let touch = days_over("usage_packed_touched");
        tx.execute(&touch, &[&until.div_euclid(DAY), &folded_until]).await?;
        tx.execute("UPDATE usage_packed SET until = $1 WHERE one = 1", &[&folded_until]).await?;
        return Ok(true);
    }
    let day = tx.query_one("SELECT max(day) FROM usage_packed_touched", &[]).await?;
    let Some(day) = day.try_get::<_, Option<i64>>(0)? else { return Ok(false) };
    // The touches first: see fold.rs.
    tx.execute("DELETE FROM usage_packed_touched WHERE day = $1", &[&day]).await?;
    tx.execute("DELETE FROM usage_day_packed WHERE day = $1", &[&day]).await?;
    let packed = packed(tx, day.saturating_mul(DAY), until.min(day.saturating_add(1).saturating_mul(DAY))).await?;
    let packed: Vec<(SumKey, Vec<u8>)> = packed.into_iter().collect();
    for rows in packed.chunks(WRITTEN) {
        write(tx, day, rows).await?;
    }
    Ok(true)
}

async fn packed(tx: &Transaction<'_>, from: i64, to: i64) -> Result<PackedQuarters, StoreError> {
    let columns: Vec<&str> = SUM_KEY.iter().chain(SUMS.iter()).copied().collect();
    let sql = format!("SELECT {} FROM usage_quarter WHERE quarter >= $1 AND quarter < $2", columns.join(", "));
    let mut rows = pin!(tx.query_raw(&sql, [&from, &to]).await?);
    let mut packed = PackedQuarters::new();
    while let Some(row) = rows.try_next().await? {
        let (of, quarter, sum) = stored(&row, from)?;
        pack_quarter(packed.entry(of).or_default(), quarter, &sum);
    }
    Ok(packed)
}

fn stored(r: &Row, first: i64) -> Result<(SumKey, i64, UsageSum), StoreError> {
    let of = SumKey {
        account: AccountId(id(r, 0)?),
        quarter: first,
        key: KeyId(id(r, 2)?),
        model: r.try_get(3)?,
        endpoint: r.try_get(4)?,
        ending: r.try_get::<_, i16>(5)?.into(),
        provider: r.try_get(6)?,
        upstream_model: r.try_get(7)?,
    };
    let mut sum = UsageSum::default();
    for (place, value) in (SUM_KEY.len()..).zip(&mut sum.0) {
        *value = r.try_get(place)?;
    }
    Ok((of, r.try_get(1)?, sum))
}

async fn write(tx: &Transaction<'_>, day: i64, rows: &[(SumKey, Vec<u8>)]) -> Result<(), StoreError> {
    let bytes = |of: fn(&SumKey) -> &[u8]| rows.iter().map(|(key, _)| of(key)).collect::<Vec<&[u8]>>();
    let texts = |of: fn(&SumKey) -> &str| rows.iter().map(|(key, _)| of(key)).collect::<Vec<&str>>();
    let endings: Vec<i16> = rows.iter().map(|(key, _)| i16::try_from(key.ending).unwrap_or(-1)).collect();
    let quarters: Vec<&[u8]> = rows.iter().map(|(_, packed)| packed.as_slice()).collect();
    tx.execute(
        WRITE,
        &[
            &day,
            &bytes(|key| &key.account.0),
            &bytes(|key| &key.key.0),
            &texts(|key| &key.model),
            &texts(|key| &key.endpoint),
            &endings,
            &texts(|key| &key.provider),
            &texts(|key| &key.upstream_model),
            &quarters,
        ],
    )
    .await?;
    Ok(())
}
