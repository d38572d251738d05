//! What a group of calls adds to sums is written as one row of bytes, in the transaction of the
//! group: a tenth of what a statement for each sum takes. Every so many sums all of them are merged
//! into the table of sums, each sum with one statement, in the transaction of the last group. So
//! sums are what is in the table and what is not merged yet, at any moment, also after a crash.
//! Whoever reads sums reads both, from one snapshot. How many sums wait is bounded
//! (`Options::sums_apart`), and with it what a question reads and how long a merge takes.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ToSql, params};

use super::SqliteEngine;
use super::writer::apply::Apply;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::sums::folded::DAY;
use crate::sums::packed::{PackedSum, Unpacked, pack, read_key};
use crate::sums::{SUM_COLUMNS, SUM_KEY, SUMS, SumKeyRef, UsageSum};

/// The number of a row is how many sums there are up to its end.
const INSERT: &str = "INSERT INTO usage_unmerged (number, sums) \
     SELECT (SELECT coalesce(max(number), 0) FROM usage_unmerged) + ?1, ?2";

static UPSERT: LazyLock<String> = LazyLock::new(|| {
    let columns: Vec<&str> = SUM_KEY.iter().chain(SUMS.iter()).copied().collect();
    let adds: Vec<String> = SUMS.iter().map(|column| format!("{column} = {column} + excluded.{column}")).collect();
    format!(
        "INSERT INTO usage_quarter ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        columns.join(", "),
        vec!["?"; columns.len()].join(", "),
        SUM_KEY.join(", "),
        adds.join(", ")
    )
});

impl Apply<'_> {
    /// Writes what this group has added to sums.
    pub(super) fn flush_sums(&mut self) -> rusqlite::Result<()> {
        let count = self.sums.len();
        if count == 0 {
            return Ok(());
        }
        // What is merged soon anyway is not written before.
        if count > self.sums_apart as usize / 4 {
            return self.merge_sums();
        }
        let packed = pack(&self.sums);
        self.sums.clear();
        let number = self.statement(INSERT)?.insert(params![count as i64, packed])?;
        if number >= i64::from(self.sums_apart) { self.merge_sums() } else { Ok(()) }
    }

    /// Brings into the table what this group and those before it have added to sums. Days that were
    /// folded are touched with it.
    pub(super) fn merge_sums(&mut self) -> rusqlite::Result<()> {
        let mut lost = each_packed(self.conn, |one| {
            self.sums.add(one);
            Ok::<(), rusqlite::Error>(())
        })?;
        if self.sums.len() == 0 && lost == 0 {
            return Ok(());
        }
        self.statement("DELETE FROM usage_unmerged")?.execute([])?;
        let folded = self.folded_until()?;
        let mut touched = BTreeSet::new();
        let mut statement = self.statement(&UPSERT)?;
        for (of, sum) in self.sums.all() {
            let Some(of) = read_key(of) else {
                lost += 1;
                continue;
            };
            if of.quarter < folded {
                touched.insert(of.quarter.div_euclid(DAY));
            }
            let mut all: [&dyn ToSql; SUM_KEY.len() + SUM_COLUMNS] = [&0; SUM_KEY.len() + SUM_COLUMNS];
            let key: [&dyn ToSql; SUM_KEY.len()] = [
                &of.account,
                &of.quarter,
                &of.key,
                &of.model,
                &of.endpoint,
                &of.ending,
                &of.provider,
                &of.upstream_model,
            ];
            all[..SUM_KEY.len()].copy_from_slice(&key);
            for (place, value) in all[SUM_KEY.len()..].iter_mut().zip(&sum.0) {
                *place = value;
            }
            statement.execute(&all[..])?;
        }
        drop(statement);
        if lost > 0 {
            // What is left is right for money, and the audit names the accounts.
            tracing::error!(sums = lost, "sums that were not merged yet are damaged and left out");
        }
        self.sums.clear();
        self.touch(&touched)
    }
}

/// Calls `each` with every sum that is not merged, in the order of groups. Answers how many groups
/// cannot be read to their end.
pub(super) fn each_unmerged<E: From<rusqlite::Error>>(
    conn: &Connection,
    mut each: impl FnMut(&SumKeyRef<'_>, UsageSum) -> Result<(), E>,
) -> Result<usize, E> {
    let mut no_text = 0;
    let lost = each_packed(conn, |one| match one.key() {
        Some(of) => each(&of, one.sum()),
        None => {
            no_text += 1;
            Ok(())
        }
    })?;
    Ok(lost + no_text)
}

/// The same of sums as they lie there.
fn each_packed<E: From<rusqlite::Error>>(
    conn: &Connection,
    mut each: impl FnMut(&PackedSum<'_>) -> Result<(), E>,
) -> Result<usize, E> {
    let mut statement = conn.prepare_cached("SELECT sums FROM usage_unmerged ORDER BY number")?;
    let mut rows = statement.query([])?;
    let mut lost = 0;
    while let Some(r) = rows.next()? {
        let ValueRef::Blob(packed) = r.get_ref(0)? else {
            lost += 1;
            continue;
        };
        for one in Unpacked(packed) {
            match one {
                Some(one) => each(&one)?,
                None => lost += 1,
            }
        }
    }
    Ok(lost)
}

impl SqliteEngine {
    /// What an account, or with none the house, was charged from a quarter on: `sql` says it of
    /// the table of sums.
    pub async fn charged_since(
        &self,
        sql: &'static str,
        account: Option<AccountId>,
        quarter: i64,
    ) -> Result<i64, StoreError> {
        let read = move |c: &Connection| {
            let snapshot = c.unchecked_transaction()?;
            let mut statement = snapshot.prepare_cached(&sql.replace('$', "?"))?;
            let merged: i64 = match account {
                Some(account) => statement.query_row(params![account.0, quarter], |r| r.get(0))?,
                None => statement.query_row(params![quarter], |r| r.get(0))?,
            };
            let mut all = merged;
            each_unmerged(&snapshot, |of, sum| {
                if of.quarter >= quarter && account.is_none_or(|account| account.0 == *of.account) {
                    all = all.saturating_add(sum.charge()).saturating_sub(sum.refunded());
                }
                Ok::<(), StoreError>(())
            })?;
            Ok(all)
        };
        self.readers.read(read).await
    }
}
