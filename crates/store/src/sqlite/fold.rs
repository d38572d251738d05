//! Time that is over is added up once more (`sums/folded.rs`), on the embedded engine. A reader
//! adds a day up, so that no call waits for that; the writer stores it, unless the day was touched
//! meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::SqliteEngine;
use super::sums::summed_until;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::sums::days::pack_quarter;
use crate::sums::folded::{
    BLOCK, DAY, Folded, FoldedDay, HOUR, HOUSE_KEY, PackedDays, PackedQuarters, SumSource, over,
};
use crate::sums::{SUM_KEY, SUMS, SumKey, UsageSum};

pub(in crate::sqlite) enum FoldStep {
    /// Quarters before this one are over.
    Over(i64),
    Day(FoldedDay),
}

static QUARTERS: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<&str> = SUM_KEY.iter().chain(SUMS.iter()).copied().collect();
    format!("SELECT {} FROM usage_quarter WHERE quarter >= ?1 AND quarter < ?2", columns.join(", "))
});
static ACCOUNTS: LazyLock<String> = LazyLock::new(|| {
    let key: Vec<&str> = ["width", "shift"].into_iter().chain(SUM_KEY).collect();
    insert("usage_account_sum", &key)
});
static HOUSE: LazyLock<String> = LazyLock::new(|| {
    let key: Vec<&str> = ["width", "quarter"].into_iter().chain(HOUSE_KEY).collect();
    insert("usage_house_sum", &key)
});
const PACKED: &str = "INSERT INTO usage_day_packed \
     (day, account_id, key_id, model, endpoint, ending, provider, upstream_model, quarters) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
/// Those days from one on that have sums and begin before a quarter, each found by the index.
const TOUCH_OVER: &str = "WITH RECURSIVE d (day) AS (\
       SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= ?1 * 96) / 96 \
       UNION ALL SELECT (SELECT min(quarter) FROM usage_quarter WHERE quarter >= (d.day + 1) * 96) / 96 FROM d WHERE d.day * 96 < ?2) \
     INSERT INTO usage_day_touched SELECT day, 1 FROM d WHERE day * 96 < ?2 ON CONFLICT (day) DO UPDATE SET times = times + 1";

fn insert(table: &str, key: &[&str]) -> String {
    let columns: Vec<&str> = key.iter().chain(SUMS.iter()).copied().collect();
    format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), vec!["?"; columns.len()].join(", "))
}

/// What is folded.
pub(super) fn folded(conn: &Connection) -> rusqlite::Result<Folded> {
    let until = conn.prepare_cached("SELECT until FROM usage_folded")?.query_row([], |r| r.get(0))?;
    let mut touched = conn.prepare_cached("SELECT day FROM usage_day_touched ORDER BY day")?;
    let touched = touched.query_map([], |r| r.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    // Days are packed with their fold.
    let packed = PackedDays { until, touched };
    Ok(Folded { until, touched: packed.touched.clone(), zones: Vec::new(), packed })
}

/// What is to be done next, of one moment.
fn next_step(conn: &Connection, until: i64) -> Result<Option<FoldStep>, StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    if summed_until(&snapshot)?.is_some() {
        return Ok(None);
    }
    let last: i64 = snapshot.prepare_cached("SELECT until FROM usage_folded")?.query_row([], |r| r.get(0))?;
    if last < until {
        return Ok(Some(FoldStep::Over(until)));
    }
    // The newest first: it is asked for most.
    let mut next = snapshot.prepare_cached("SELECT day, times FROM usage_day_touched ORDER BY day DESC LIMIT 1")?;
    let next = next.query_row([], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    next.map(|(day, times)| Ok(FoldStep::Day(added_up(&snapshot, (day, times), last)?))).transpose()
}

/// A day, as far as quarters are over.
fn added_up(conn: &Connection, (day, times): (i64, i64), until: i64) -> rusqlite::Result<FoldedDay> {
    let mut statement = conn.prepare_cached(&QUARTERS)?;
    let (from, end) = (day.saturating_mul(DAY), day.saturating_add(1).saturating_mul(DAY));
    let mut rows = statement.query(params![from, end.min(until)])?;
    let (mut blocks, mut quarters): (Added, Added) = Default::default();
    let mut packed = PackedQuarters::new();
    while let Some(r) = rows.next()? {
        let (of, sum) = quarter(r)?;
        pack_quarter(packed.entry(of.clone().widened(DAY)).or_default(), of.quarter, &sum);
        quarters.entry(of.clone().of_the_house()).or_default().add(&sum);
        blocks.entry(of.widened(BLOCK)).or_default().add(&sum);
    }
    let hours = widened(&quarters, HOUR);
    let mut all = vec![];
    if end <= until {
        all.push((SumSource::Days(0), widened(&blocks, DAY)));
        all.push((SumSource::HouseDays, widened(&hours, DAY)));
    }
    all.extend([(SumSource::Blocks, blocks), (SumSource::HouseQuarters, quarters), (SumSource::HouseHours, hours)]);
    let sums = all.into_iter().flat_map(|(source, sums)| sums.into_iter().map(move |(of, sum)| (source, of, sum)));
    Ok(FoldedDay { day, times, sums: sums.collect(), packed })
}

type Added = HashMap<SumKey, UsageSum>;

fn widened(narrow: &Added, width: i64) -> Added {
    let mut wide = Added::new();
    for (of, sum) in narrow {
        wide.entry(of.clone().widened(width)).or_default().add(sum);
    }
    wide
}

fn quarter(r: &Row<'_>) -> rusqlite::Result<(SumKey, UsageSum)> {
    let of = SumKey {
        account: AccountId(r.get(0)?),
        quarter: r.get(1)?,
        key: KeyId(r.get(2)?),
        model: r.get(3)?,
        endpoint: r.get(4)?,
        ending: r.get(5)?,
        provider: r.get(6)?,
        upstream_model: r.get(7)?,
    };
    let mut sum = UsageSum::default();
    for (place, value) in (SUM_KEY.len()..).zip(&mut sum.0) {
        *value = r.get(place)?;
    }
    Ok((of, sum))
}

impl Apply<'_> {
    pub(super) fn folded_until(&self) -> rusqlite::Result<i64> {
        self.statement("SELECT until FROM usage_folded")?.query_row([], |r| r.get(0))
    }

    /// Sums of these days have changed.
    pub(super) fn touch(&self, days: &BTreeSet<i64>) -> rusqlite::Result<()> {
        for day in days {
            let sql = "INSERT INTO usage_day_touched VALUES (?1, 1) ON CONFLICT (day) DO UPDATE SET times = times + 1";
            self.statement(sql)?.execute(params![day])?;
        }
        Ok(())
    }

    /// Answers 1 where the step was done. What this group has added to sums before touches its day
    /// when the group is written, after this.
    pub(super) fn fold_sums(&mut self, step: &FoldStep) -> rusqlite::Result<u64> {
        match step {
            FoldStep::Over(until) => {
                let last = self.folded_until()?;
                if last >= *until {
                    return Ok(0);
                }
                // Otherwise the days of what is merged later would be folded twice.
                self.merge_sums()?;
                self.statement(TOUCH_OVER)?.execute(params![last.div_euclid(DAY), until])?;
                self.statement("UPDATE usage_folded SET until = ?1")?.execute(params![until])?;
                Ok(1)
            }
            FoldStep::Day(day) => self.store_day(day),
        }
    }

    fn store_day(&mut self, day: &FoldedDay) -> rusqlite::Result<u64> {
        let sql = "DELETE FROM usage_day_touched WHERE day = ?1 AND times = ?2";
        if self.statement(sql)?.execute(params![day.day, day.times])? == 0 {
            return Ok(0);
        }
        let from = day.day.saturating_mul(DAY);
        for old in
            ["usage_house_sum WHERE width IN (1, 4, 96)", "usage_account_sum WHERE width IN (24, 96) AND shift = 0"]
        {
            let sql = format!("DELETE FROM {old} AND quarter >= ?1 AND quarter < ?2");
            self.statement(&sql)?.execute(params![from, from.saturating_add(DAY)])?;
        }
        let (mut accounts, mut house) = (self.statement(&ACCOUNTS)?, self.statement(&HOUSE)?);
        for (source, of, sum) in &day.sums {
            let width = source.width();
            let mut all: Vec<&dyn ToSql> = vec![&width];
            if source.of_the_house() {
                all.push(&of.quarter);
            } else {
                all.extend([&0i64 as &dyn ToSql, &of.account.0, &of.quarter, &of.key.0]);
            }
            all.extend(named(of));
            all.extend(sum.0.iter().map(|value| value as &dyn ToSql));
            let insert = if source.of_the_house() { &mut house } else { &mut accounts };
            insert.execute(&all[..])?;
        }
        self.statement("DELETE FROM usage_day_packed WHERE day = ?1")?.execute(params![day.day])?;
        let mut insert = self.statement(PACKED)?;
        for (of, packed) in &day.packed {
            let mut all: Vec<&dyn ToSql> = vec![&day.day, &of.account.0, &of.key.0];
            all.extend(named(of));
            all.push(packed);
            insert.execute(&all[..])?;
        }
        Ok(1)
    }
}

/// What both kinds of sums are of, in the order of their columns.
fn named(of: &SumKey) -> [&dyn ToSql; 5] {
    [&of.model, &of.endpoint, &of.ending, &of.provider, &of.upstream_model]
}

impl SqliteEngine {
    /// The next step. `true`: there may be more.
    pub async fn fold_sums(&self) -> Result<bool, StoreError> {
        let until = over(self.now());
        let Some(step) = self.readers.read(move |c| next_step(c, until)).await? else { return Ok(false) };
        self.ask(|reply| Op::FoldSums(Box::new(step), reply)).await?;
        Ok(true)
    }
}
