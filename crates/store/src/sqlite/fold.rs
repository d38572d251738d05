//! Time that is over is added up once more (`sums/folded.rs`), on the embedded engine. A day is
//! added up in parts (`fold/day.rs`): a reader reads one and the writer stores it, so that no call
//! waits for more than that. The day stays touched until its last part is there, and nobody reads
//! what is stored of it before. Where it is touched once more on the way, it is begun again.

pub(super) mod day;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, ToSql, params};

use self::day::FoldingDay;
use super::SqliteEngine;
use super::sums::summed_until;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::sums::folded::{BLOCK, DAY, Folded, FoldedPart, HOUR, HOUSE_KEY, PackedDays, TouchedDay, over};
use crate::sums::{SUM_KEY, SUMS, SumKey};

pub(in crate::sqlite) enum FoldStep {
    /// Quarters before this one are over.
    Over(i64),
    /// So many sums that were stored of a day are taken away.
    Clear(TouchedDay, u32),
    Part(FoldedPart),
}

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
/// `?1` sums of the day that begins with the quarter `?2`.
static CLEAR: LazyLock<[String; 6]> = LazyLock::new(|| {
    let columns = |first: &[&str]| first.iter().copied().chain(HOUSE_KEY).collect::<Vec<&str>>().join(", ");
    let account = columns(&["account_id", "width", "shift", "quarter", "key_id"]);
    let house = columns(&["width", "quarter"]);
    let some = |table: &str, key: &str, of: String| {
        format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {of} LIMIT ?1)")
    };
    let accounts = |width: i64| {
        let of = format!("width = {width} AND shift = 0 AND quarter >= ?2 AND quarter < ?2 + {DAY}");
        some("usage_account_sum", &account, of)
    };
    let of_house = |width: i64| {
        some("usage_house_sum", &house, format!("width = {width} AND quarter >= ?2 AND quarter < ?2 + {DAY}"))
    };
    let packed = some("usage_day_packed", "rowid", format!("day = ?2 / {DAY}"));
    [accounts(BLOCK), accounts(DAY), of_house(1), of_house(HOUR), of_house(DAY), packed]
});

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

/// What is to be done next.
enum NextFold {
    Over,
    Day(Box<FoldingDay>),
}

/// Of one moment. A day that was begun is gone on with, unless it has changed.
fn next_step(
    conn: &Connection,
    until: i64,
    begun: Option<Box<FoldingDay>>,
    most: u32,
) -> Result<Option<NextFold>, StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    if summed_until(&snapshot)?.is_some() {
        return Ok(None);
    }
    let last: i64 = snapshot.prepare_cached("SELECT until FROM usage_folded")?.query_row([], |r| r.get(0))?;
    if last < until {
        return Ok(Some(NextFold::Over));
    }
    if let Some(begun) = begun
        && is_touched(&snapshot, begun.of)?
    {
        return Ok(Some(NextFold::Day(begun)));
    }
    // The newest first: it is asked for most.
    let mut next = snapshot.prepare_cached("SELECT day, times FROM usage_day_touched ORDER BY day DESC LIMIT 1")?;
    let next = next.query_row([], |r| Ok(TouchedDay { day: r.get(0)?, times: r.get(1)? })).optional()?;
    next.map(|of| Ok(NextFold::Day(Box::new(FoldingDay::begin(&snapshot, of, last, most)?)))).transpose()
}

/// Whether a day is touched, and was not once more.
fn is_touched(conn: &Connection, of: TouchedDay) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM usage_day_touched WHERE day = ?1 AND times = ?2")?
        .exists(params![of.day, of.times])
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

    /// Answers 0 where the step was not done, and more where it was. What this group has added to
    /// sums before touches its day when the group is written, after this.
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
            FoldStep::Clear(of, _) | FoldStep::Part(FoldedPart { of, .. }) if !is_touched(self.conn, *of)? => Ok(0),
            FoldStep::Clear(of, most) => self.clear_day(of.day, *most),
            FoldStep::Part(part) => self.store_part(part),
        }
    }

    /// Answers one more than were taken away.
    fn clear_day(&mut self, day: i64, most: u32) -> rusqlite::Result<u64> {
        let (first, mut gone) = (day.saturating_mul(DAY), 0);
        for sql in CLEAR.iter() {
            let left = (most as usize).saturating_sub(gone);
            gone += self.statement(sql)?.execute(params![left as i64, first])?;
        }
        Ok(1 + gone as u64)
    }

    fn store_part(&mut self, part: &FoldedPart) -> rusqlite::Result<u64> {
        let (mut accounts, mut house) = (self.statement(&ACCOUNTS)?, self.statement(&HOUSE)?);
        for (source, of, sum) in &part.sums {
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
        let mut insert = self.statement(PACKED)?;
        for (of, packed) in &part.packed {
            let mut all: Vec<&dyn ToSql> = vec![&part.of.day, &of.account.0, &of.key.0];
            all.extend(named(of));
            all.push(packed);
            insert.execute(&all[..])?;
        }
        if part.last {
            self.statement("DELETE FROM usage_day_touched WHERE day = ?1")?.execute(params![part.of.day])?;
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
        let (until, most) = (over(self.now()), self.options.fold_part);
        // One at a time. Whoever gives up in the middle leaves nothing begun.
        let mut folding = self.folding.lock().await;
        let begun = folding.take();
        let next = self.readers.read(move |c| next_step(c, until, begun, most)).await?;
        let mut day = match next {
            None => return Ok(false),
            Some(NextFold::Over) => {
                self.ask(|reply| Op::FoldSums(Box::new(FoldStep::Over(until)), reply)).await?;
                return Ok(true);
            }
            Some(NextFold::Day(day)) => day,
        };
        if !day.is_clear {
            let clear = FoldStep::Clear(day.of, most);
            let gone = self.ask(|reply| Op::FoldSums(Box::new(clear), reply)).await?;
            day.is_clear = (1..=u64::from(most)).contains(&gone);
            if !day.is_clear {
                *folding = (gone > 0).then_some(day);
                return Ok(true);
            }
        }
        let read = move |c: &Connection| {
            let part = day.next_part(c, most)?;
            Ok((day, part))
        };
        let (day, part) = self.readers.read(read).await?;
        let last = part.last;
        let stored = self.ask(|reply| Op::FoldSums(Box::new(FoldStep::Part(part)), reply)).await? > 0;
        *folding = (stored && !last).then_some(day);
        Ok(true)
    }
}
