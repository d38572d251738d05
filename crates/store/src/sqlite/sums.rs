//! Sums of the usage log on the embedded engine. The writer adds up what a group closed and writes
//! it with the group (`unmerged.rs`). Questions read the sums of their time and add them up
//! further.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::SqliteEngine;
use super::fold::folded;
use super::read::{self, USAGE};
use super::unmerged::each_unmerged;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::call::UsageRow;
use crate::call::counters::COUNTERS;
use crate::call::row_hash::RowFacts;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, PersonId};
use crate::margin::first_id;
use crate::store::sums::{ExportPage, too_much_read};
use crate::sums::ask::OwnKeys;
use crate::sums::days::{PACKED_WEIGHT, ReadDay, SumGroups, add_value};
use crate::sums::folded::{SumPart, SumSource, over};
use crate::sums::pending::PendingSums;
use crate::sums::{
    SUMS, SumColumn, SumGroup, SumKeyRef, SumQuery, SummedUntil, UsageFilter, UsageSum, Wanted, quarter,
};

/// What is read of a row of the log to add it to its sum; the counters come after it.
const SUMMED: &str = "u.account_id, u.call_id, u.key_id, u.at, u.ended_at, u.endpoint, u.model, u.provider, u.upstream_model, \
     u.ending, u.estimated, u.charge, u.refunded, u.write_off, u.first_byte_ms, u.cost";
const SUMMED_COLUMNS: usize = 16;

/// The last row that is in the sums; `None`: all are.
pub(super) fn summed_until(conn: &Connection) -> rusqlite::Result<Option<SummedUntil>> {
    let mut found = conn.prepare_cached("SELECT account_id, call_id FROM usage_backfill")?;
    let read = |r: &Row<'_>| Ok(SummedUntil::read(&r.get::<_, Vec<u8>>(0)?, &r.get::<_, Vec<u8>>(1)?));
    found.query_row([], read).optional()
}

impl Apply<'_> {
    /// Whether a row is in the sums already, or comes in when it is its turn.
    fn is_summed(&mut self, account: AccountId, call: CallId) -> rusqlite::Result<bool> {
        let until = match self.summed {
            Some(until) => until,
            None => *self.summed.insert(summed_until(self.conn)?),
        };
        Ok(until.is_none_or(|until| until.covers(account, call)))
    }

    /// Adds a row that has just been written to its sum.
    pub(super) fn sum_row(
        &mut self,
        (account, call, key): (AccountId, CallId, KeyId),
        facts: &RowFacts<'_>,
        (charge, write_off): (i64, i64),
    ) -> rusqlite::Result<()> {
        if self.is_summed(account, call)? {
            self.sums.of(&SumKeyRef::of(facts, &key.0)).add_row(facts, charge, 0, write_off);
        }
        Ok(())
    }

    /// A refund belongs to the sum of its call.
    pub(super) fn sum_refund(&mut self, account: AccountId, call: CallId, amount: i64) -> rusqlite::Result<()> {
        if !self.is_summed(account, call)? {
            return Ok(());
        }
        let sql = "SELECT key_id, model, endpoint, ending, coalesce(provider, ''), coalesce(upstream_model, '') \
                   FROM usage WHERE account_id = ?1 AND call_id = ?2";
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params![account.0, call.0])?;
        let Some(r) = rows.next()? else { return Ok(()) };
        let key = KeyId(r.get(0)?);
        let text = |i: usize| r.get_ref(i)?.as_str().map_err(rusqlite::Error::from);
        let of = SumKeyRef {
            account: &account.0,
            quarter: quarter(call),
            key: &key.0,
            model: text(1)?,
            endpoint: text(2)?,
            ending: r.get(3)?,
            provider: text(4)?,
            upstream_model: text(5)?,
        };
        self.sums.of(&of).add(&UsageSum::refund(amount));
        Ok(())
    }

    /// Adds the next rows from before there were sums. Answers 1 where there is more to do.
    pub(super) fn fill_sums(&mut self, most: i64) -> rusqlite::Result<u64> {
        let Some(from) = summed_until(self.conn)? else { return Ok(0) };
        let sql = format!(
            "SELECT {SUMMED}{COUNTERS} FROM usage u WHERE (u.account_id, u.call_id) > (?1, ?2) \
             ORDER BY u.account_id, u.call_id LIMIT ?3"
        );
        let mut statement = self.statement(&sql)?;
        let (account, call) = (from.account.map(|id| id.0.to_vec()), from.call.map(|id| id.0.to_vec()));
        let mut rows = statement.query(params![account.unwrap_or_default(), call.unwrap_or_default(), most])?;
        let (mut count, mut last) = (0, None);
        while let Some(r) = rows.next()? {
            last = Some(add_stored(r, &mut self.sums)?);
            count += 1;
        }
        drop(rows);
        match last.filter(|_| count == most) {
            Some((account, call)) => {
                let sql = "UPDATE usage_backfill SET account_id = ?1, call_id = ?2";
                self.statement(sql)?.execute(params![account.0, call.0])?;
            }
            None => {
                self.statement("DELETE FROM usage_backfill")?.execute([])?;
            }
        }
        self.summed = None;
        Ok((count == most).into())
    }
}

/// Adds a row of the log to its sum.
fn add_stored(r: &Row<'_>, sums: &mut PendingSums) -> rusqlite::Result<(AccountId, CallId)> {
    let (account, call, key) = (AccountId(r.get(0)?), CallId(r.get(1)?), KeyId(r.get(2)?));
    let text = |i: usize| r.get_ref(i)?.as_str_or_null().map_err(rusqlite::Error::from);
    let facts = RowFacts {
        account: &account.0,
        call: &call.0,
        at: r.get(3)?,
        ended_at: r.get(4)?,
        endpoint: text(5)?.unwrap_or_default(),
        model: text(6)?.unwrap_or_default(),
        provider: text(7)?,
        upstream_model: text(8)?,
        ending: r.get(9)?,
        estimated: r.get(10)?,
        first_byte_ms: r.get(14)?,
        cost: r.get(15)?,
        counters: read::counters(r, SUMMED_COLUMNS)?,
        ..RowFacts::default()
    };
    let sum = sums.of(&SumKeyRef::of(&facts, &key.0));
    sum.add_row(&facts, r.get(11)?, r.get(12)?, r.get(13)?);
    Ok((account, call))
}

impl SqliteEngine {
    pub async fn fill_sums(&self, most: i64) -> Result<bool, StoreError> {
        if self.readers.read(|c| Ok(summed_until(c)?)).await?.is_none() {
            return Ok(false);
        }
        Ok(self.ask(|reply| Op::FillSums(most, reply)).await? > 0)
    }

    pub async fn sums_complete(&self) -> Result<bool, StoreError> {
        self.readers.read(|c| Ok(summed_until(c)?.is_none())).await
    }

    pub async fn usage_sums(&self, query: &SumQuery) -> Result<Vec<SumGroup>, StoreError> {
        self.catch_up().await;
        let (query, now) = (query.clone(), self.now());
        self.readers.read(move |c| groups(c, &query, now)).await
    }

    pub async fn usage_export(&self, page: ExportPage) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        self.readers
            .read(move |c| {
                let (of, mut values) = conditions("u", &page.filter);
                let (after, call) = page.after.map_or(([0; 16], [0; 16]), |(account, call)| (account.0, call.0));
                let sql = format!(
                    "SELECT {USAGE}{COUNTERS}, NULL FROM usage u WHERE {of} (u.account_id, u.call_id) > (?, ?) \
                     AND u.call_id >= ? AND u.call_id < ? ORDER BY u.account_id, u.call_id LIMIT ?"
                );
                let bytes = |id: [u8; 16]| Value::Blob(id.to_vec());
                values.extend([after, call, first_id(page.from_ms), first_id(page.to_ms)].map(bytes));
                values.push(Value::Integer(page.limit.into()));
                let mut statement = c.prepare_cached(&sql)?;
                let rows = statement.query_map(params_from_iter(values), read::read_usage)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}

/// The conditions on a table, each with AND after it, and their values.
pub(super) fn conditions(table: &str, filter: &UsageFilter) -> (String, Vec<Value>) {
    let (mut text, mut values) = (String::new(), Vec::new());
    if let Some(account) = filter.account {
        text.push_str(&format!("{table}.account_id = ? AND "));
        values.push(Value::Blob(account.0.to_vec()));
    }
    if let Some(person) = filter.made_by {
        text.push_str(&format!("{table}.key_id IN (SELECT id FROM key WHERE person_id = ?) AND "));
        values.push(Value::Blob(person.0.to_vec()));
    }
    for (column, wanted) in &filter.wanted {
        text.push_str(&format!("{table}.{column} = ? AND "));
        values.push(match wanted {
            Wanted::Id(id) => Value::Blob(id.to_vec()),
            Wanted::Text(text) => Value::Text(text.clone()),
            Wanted::Code(code) => Value::Integer(*code),
        });
    }
    (text, values)
}

/// All in one moment, so that what is folded is what is read.
fn groups(conn: &Connection, query: &SumQuery, now: i64) -> Result<Vec<SumGroup>, StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    let folded = folded(&snapshot)?;
    // What is not folded yet is read however much it is: that is not for long.
    let mut left = if folded.touched.is_empty() && folded.until >= over(now) { query.most_read } else { usize::MAX };
    let mut all = SumGroups::default();
    for part in query.parts(&folded) {
        match part.source {
            SumSource::Packed => add_packed(&snapshot, query, &part, &mut all, &mut left)?,
            _ => add_part(&snapshot, query, &part, &mut all, &mut left)?,
        }
    }
    add_unmerged(&snapshot, query, &mut all)?;
    Ok(all.groups(&query.by))
}

fn add_part(
    conn: &Connection,
    query: &SumQuery,
    part: &SumPart,
    all: &mut SumGroups,
    left: &mut usize,
) -> Result<(), StoreError> {
    let (of, values) = conditions("q", &query.filter);
    let by: String = query.by.iter().map(|column| format!(", {}", column.sql())).collect();
    let sums: String = SUMS.iter().map(|column| format!(", q.{column}")).collect();
    let join = if query.by.contains(&SumColumn::Groups) { "JOIN account a ON a.id = q.account_id" } else { "" };
    let sql = format!(
        "SELECT q.quarter{by}{sums} FROM {} q {join} WHERE {of}{} q.quarter >= ? AND q.quarter < ?",
        part.source.table(),
        part.source.condition()
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut key = Vec::new();
    for (from, to) in &part.ranges {
        let range = [*from, *to].map(Value::Integer);
        let mut rows = statement.query(params_from_iter(values.iter().cloned().chain(range)))?;
        while let Some(r) = rows.next()? {
            *left = left.checked_sub(1).ok_or_else(|| too_much_read(query, false))?;
            group_key(query.by.len(), r, &mut key)?;
            let mut sum = UsageSum::default();
            for (i, value) in sum.0.iter_mut().enumerate() {
                *value = r.get(1 + query.by.len() + i)?;
            }
            all.add(&key, query.span_of(r.get(0)?), &sum)?;
        }
    }
    Ok(())
}

/// Adds quarters of days that are packed.
fn add_packed(
    conn: &Connection,
    query: &SumQuery,
    part: &SumPart,
    all: &mut SumGroups,
    left: &mut usize,
) -> Result<(), StoreError> {
    let (of, values) = conditions("q", &query.filter);
    let by: String = query.by.iter().map(|column| format!(", {}", column.sql())).collect();
    let join = if query.by.contains(&SumColumn::Groups) { "JOIN account a ON a.id = q.account_id" } else { "" };
    let sql = format!("SELECT q.day{by}, q.quarters FROM usage_day_packed q {join} WHERE {of} q.day = ?");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut key = Vec::new();
    for day in part.days() {
        let day = [Value::Integer(day)];
        let mut rows = statement.query(params_from_iter(values.iter().cloned().chain(day)))?;
        while let Some(r) = rows.next()? {
            *left = left.checked_sub(PACKED_WEIGHT).ok_or_else(|| too_much_read(query, false))?;
            group_key(query.by.len(), r, &mut key)?;
            let packed = r.get_ref(1 + query.by.len())?.as_blob().unwrap_or(&[u8::MAX]);
            all.add_day(query, &ReadDay { day: r.get(0)?, packed, ranges: &part.ranges }, &key)?;
        }
    }
    Ok(())
}

/// Adds what is not in the table of sums yet, and in nothing that was folded.
fn add_unmerged(conn: &Connection, query: &SumQuery, all: &mut SumGroups) -> Result<(), StoreError> {
    let mut groups_of = conn.prepare_cached("SELECT groups FROM account WHERE id = ?1")?;
    let own = query.filter.made_by.map(|person| keys_of(conn, person)).transpose()?;
    let mut key = Vec::new();
    let lost = each_unmerged(conn, |of, sum| {
        if !(query.from..query.to).contains(&of.quarter) || !query.filter.wants(of, own.as_ref()) {
            return Ok(());
        }
        key.clear();
        for column in &query.by {
            match column {
                SumColumn::Model => add_value(&mut key, of.model.as_bytes()),
                SumColumn::Key => add_value(&mut key, of.key),
                SumColumn::Endpoint => add_value(&mut key, of.endpoint.as_bytes()),
                SumColumn::Ending => add_value(&mut key, of.ending.to_string().as_bytes()),
                SumColumn::Account => add_value(&mut key, of.account),
                SumColumn::Provider => add_value(&mut key, of.provider.as_bytes()),
                SumColumn::UpstreamModel => add_value(&mut key, of.upstream_model.as_bytes()),
                SumColumn::Groups => {
                    let found = groups_of.query_row(params![of.account], |r| r.get::<_, String>(0)).optional()?;
                    let Some(groups) = found else { return Ok(()) };
                    add_value(&mut key, groups.as_bytes());
                }
            }
        }
        all.add(&key, query.span_of(of.quarter), &sum)
    })?;
    if lost == 0 { Ok(()) } else { Err(StoreError::broken("sums that are not merged yet are damaged")) }
}

/// The keys that a person made.
fn keys_of(conn: &Connection, person: PersonId) -> rusqlite::Result<OwnKeys> {
    let mut statement = conn.prepare_cached("SELECT id FROM key WHERE person_id = ?1")?;
    statement.query_map(params![person.0], |r| r.get(0))?.collect()
}

/// What a group is of: so many columns after the first.
fn group_key(columns: usize, r: &Row<'_>, key: &mut Vec<u8>) -> rusqlite::Result<()> {
    key.clear();
    for place in 1..=columns {
        match r.get_ref(place)? {
            ValueRef::Text(raw) | ValueRef::Blob(raw) => add_value(key, raw),
            ValueRef::Integer(number) => add_value(key, number.to_string().as_bytes()),
            _ => add_value(key, &[]),
        }
    }
    Ok(())
}
