//! Sums of the usage log on PostgreSQL: triggers of the log write them, the database adds them up
//! further. What is read from where is settled before the question is asked (`sums/folded.rs`); the
//! answer says whether it still held.

use std::pin::pin;
use std::sync::atomic::Ordering;

use futures_util::TryStreamExt;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::PostgresEngine;
use super::connect::PgConnection;
use super::fold::{FOLDED, FOLDED_COLUMNS, NOT_FOLDED, read_folded};
use super::records::{READ_TIME, SqlParam};
use super::rows::{self, USAGE};
use crate::call::UsageRow;
use crate::call::counters::COUNTERS;
use crate::error::StoreError;
use crate::margin::first_id;
use crate::store::sums::{ExportPage, too_much_read};
use crate::sums::days::{PACKED_WEIGHT, ReadDay, SumGroups, add_value};
use crate::sums::folded::{DAY, Folded, PackedDays, SumPart, SumSource, over};
use crate::sums::{MOST_GROUPS, SUMS, SumColumn, SumGroup, SumQuery, UsageFilter, UsageSum, Wanted};

/// Days are folded and touched while a question is asked, but not again and again.
const TRIES: usize = 4;

pub(super) type Owned = Box<dyn ToSql + Sync + Send>;

impl PostgresEngine {
    pub async fn fill_sums(&self, most: i64) -> Result<bool, StoreError> {
        if self.sums_complete().await? {
            return Ok(false);
        }
        let rows = self.change("SELECT tollgate_fill_sums($1)", &[&most]).await?;
        Ok(rows.first().map_or(Ok(false), |r| r.try_get(0))?)
    }

    pub async fn sums_complete(&self) -> Result<bool, StoreError> {
        Ok(self.rows("SELECT 1 FROM usage_backfill WHERE one = 1", &[]).await?.is_empty())
    }

    pub async fn usage_sums(&self, query: &SumQuery) -> Result<Vec<SumGroup>, StoreError> {
        self.catch_up().await;
        let days = (query.from.div_euclid(DAY), query.to.div_euclid(DAY) + 1);
        let mut folded = self.folded(days.0, days.1).await?;
        self.ask_zones(query).await?;
        self.affordable(query, &folded).await?;
        for _ in 0..TRIES {
            match self.groups(query, &folded, days).await? {
                Found::Groups(groups) => return Ok(groups),
                Found::Changed(now) => folded = now,
            }
        }
        // Quarters are right at any moment.
        match self.groups(query, &Folded::default(), days).await? {
            Found::Groups(groups) => Ok(groups),
            Found::Changed(_) => Err(StoreError::broken("nothing was taken for folded")),
        }
    }

    /// The groups of an answer. Sums that are too large for their columns are added up once more,
    /// in numbers without bounds, and cut.
    async fn groups(&self, query: &SumQuery, folded: &Folded, days: (i64, i64)) -> Result<Found, StoreError> {
        let link = self.connector.summer().await?;
        for adding in [Adding::Plain, Adding::Bounded] {
            self.shared.queries.fetch_add(1, Ordering::Relaxed);
            let asked = Asked::of(query, folded, days, adding);
            let found = tokio::time::timeout(READ_TIME, found(&link, query, folded, &asked)).await;
            match found.map_err(|_| StoreError::away("the database does not answer"))? {
                Err(NotFound::TooLarge) => {}
                Err(NotFound::Failed(error)) => return Err(error),
                Ok(found) => return Ok(found),
            }
        }
        Err(StoreError::broken("sums are out of all bounds"))
    }

    /// Refuses a question that reads too much, also once all is folded that is over. Days of other
    /// zones count as they are.
    async fn affordable(&self, query: &SumQuery, folded: &Folded) -> Result<(), StoreError> {
        let asked = Asked::counting(query, self.soon(folded));
        let rows = self.summed(&asked.sql, &params(&asked.values)).await?;
        let read: i64 = rows.first().map_or(Ok(0), |r| r.try_get(0))?;
        if usize::try_from(read).unwrap_or(0) > query.most_read { Err(too_much_read(query, true)) } else { Ok(()) }
    }

    fn soon(&self, folded: &Folded) -> Folded {
        let until = over(self.now());
        let packed = PackedDays { until, touched: Vec::new() };
        Folded { until, touched: Vec::new(), zones: folded.zones.clone(), packed }
    }

    /// Statements for sums, one after the other on a connection of their own.
    pub(super) async fn summed(&self, sql: &str, params: &[SqlParam<'_>]) -> Result<Vec<Row>, StoreError> {
        self.shared.queries.fetch_add(1, Ordering::Relaxed);
        let asked = async {
            let link = self.connector.summer().await?;
            Ok(link.client.query(sql, params).await?)
        };
        tokio::time::timeout(READ_TIME, asked).await.map_err(|_| StoreError::away("the database does not answer"))?
    }

    /// How the database answers a question: the process that does, and its plan with what it took,
    /// line by line.
    #[cfg(feature = "testing")]
    pub async fn explain_sums(&self, query: &SumQuery) -> Result<Vec<String>, StoreError> {
        let days = (query.from.div_euclid(DAY), query.to.div_euclid(DAY) + 1);
        let folded = self.folded(days.0, days.1).await?;
        let process = self.summed("SELECT pg_backend_pid()", &[]).await?;
        let process: i32 = process.first().map_or(Ok(0), |r| r.try_get(0))?;
        let mut lines = vec![format!("Process: {process}")];
        for asked in [Asked::counting(query, self.soon(&folded)), Asked::of(query, &folded, days, Adding::Plain)] {
            let sql = format!("EXPLAIN (ANALYZE, BUFFERS) {}", asked.sql);
            for row in self.summed(&sql, &params(&asked.values)).await? {
                lines.push(row.try_get(0)?);
            }
        }
        Ok(lines)
    }

    pub async fn usage_export(&self, page: ExportPage) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        let (after, call) = page.after.map_or(([0; 16], [0; 16]), |(account, call)| (account.0, call.0));
        let mut values: Vec<Owned> = Vec::new();
        for id in [after, call, first_id(page.from_ms), first_id(page.to_ms)] {
            values.push(Box::new(id.to_vec()));
        }
        values.push(Box::new(i64::from(page.limit)));
        let of = conditions("u", &page.filter, &mut values);
        let sql = format!(
            "SELECT {USAGE}{COUNTERS}, NULL::text FROM usage u WHERE {of} (u.account_id, u.call_id) > ($1, $2) \
             AND u.call_id >= $3 AND u.call_id < $4 ORDER BY u.account_id, u.call_id LIMIT $5"
        );
        self.rows(&sql, &params(&values)).await?.iter().map(rows::usage).collect()
    }
}

/// The conditions on a table, each with AND after it; their values are added.
pub(super) fn conditions(table: &str, filter: &UsageFilter, values: &mut Vec<Owned>) -> String {
    let mut text = String::new();
    if let Some(account) = filter.account {
        values.push(Box::new(account.0.to_vec()));
        text.push_str(&format!("{table}.account_id = ${} AND ", values.len()));
    }
    if let Some(person) = filter.made_by {
        values.push(Box::new(person.0.to_vec()));
        text.push_str(&format!("{table}.key_id IN (SELECT id FROM key WHERE person_id = ${}) AND ", values.len()));
    }
    for (column, wanted) in &filter.wanted {
        values.push(match wanted {
            Wanted::Id(id) => Box::new(id.to_vec()),
            Wanted::Text(text) => Box::new(text.clone()),
            Wanted::Code(code) => Box::new(i16::try_from(*code).unwrap_or(-1)),
        });
        text.push_str(&format!("{table}.{column} = ${} AND ", values.len()));
    }
    text
}

/// An answer, or what is folded by now where that is not what the question was asked for.
enum Found {
    Groups(Vec<SumGroup>),
    Changed(Folded),
}

enum NotFound {
    TooLarge,
    Failed(StoreError),
}

impl From<tokio_postgres::Error> for NotFound {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::NUMERIC_VALUE_OUT_OF_RANGE) => Self::TooLarge,
            _ => Self::Failed(error.into()),
        }
    }
}

impl From<StoreError> for NotFound {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Reads an answer row by row: packed days are many bytes. The first row says what is folded.
async fn found(link: &PgConnection, query: &SumQuery, taken: &Folded, asked: &Asked) -> Result<Found, NotFound> {
    let mut rows = pin!(link.client.query_raw(&asked.sql, params(&asked.values)).await?);
    let (mut groups, mut key) = (SumGroups::default(), Vec::new());
    while let Some(row) = rows.try_next().await? {
        if row.try_get::<_, Option<i64>>(0)?.is_some() {
            let now = read_folded(&row)?;
            // A day was folded or touched since: what to read is another question then.
            if *taken != Folded::default() && !now.allows(taken) {
                return Ok(Found::Changed(now));
            }
            continue;
        }
        group_key(query, &row, &mut key)?;
        let sums = GROUP + 1 + query.by.len();
        match row.try_get::<_, Option<i32>>(GROUP)? {
            Some(bucket) => {
                let mut sum = UsageSum::default();
                for (place, value) in (sums..).zip(&mut sum.0) {
                    *value = row.try_get(place)?;
                }
                groups.add(&key, usize::try_from(bucket - 1).unwrap_or(0), &sum)?;
            }
            None => {
                let (day, packed) = (row.try_get(sums + SUMS.len())?, row.try_get(sums + SUMS.len() + 1)?);
                groups.add_day(query, &ReadDay { day, packed, ranges: &asked.packed }, &key)?;
            }
        }
    }
    Ok(Found::Groups(groups.groups(&query.by)))
}

/// How numbers are added up: those that fit into a column, or any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Adding {
    Plain,
    Bounded,
}

/// A statement and its values.
struct Asked {
    sql: String,
    values: Vec<Owned>,
    /// What is read of packed days.
    packed: Vec<(i64, i64)>,
}

impl Asked {
    /// The groups of a question, and what is folded of these days at the moment of the answer.
    fn of(query: &SumQuery, folded: &Folded, days: (i64, i64), adding: Adding) -> Self {
        let mut values: Vec<Owned> = vec![Box::new(days.0), Box::new(days.1)];
        let (packed, parts): (Vec<SumPart>, Vec<SumPart>) =
            query.parts(folded).into_iter().partition(|part| part.source == SumSource::Packed);
        let by: String = query.by.iter().map(|column| format!(", {}", column.sql())).collect();
        let join = if query.by.contains(&SumColumn::Groups) { "JOIN account a ON a.id = q.account_id" } else { "" };
        // What is folded is said once, in a row without a group: with each group it would take as
        // long as the groups.
        let nothing: String = query.by.iter().map(|column| format!(", NULL::{}", postgres_type(*column))).collect();
        let no_sums = ", NULL::bigint".repeat(SUMS.len());
        let mut sql = format!("SELECT {FOLDED}, NULL::integer{nothing}{no_sums}, NULL::bigint, NULL::bytea");
        if !parts.is_empty() {
            let groups = added_up(query, &parts, (&by, join), adding, &mut values);
            sql += &format!(" UNION ALL SELECT {NOT_FOLDED}, g.*, NULL::bigint, NULL::bytea FROM ({groups}) g");
        }
        for part in &packed {
            let of = conditions("t", &query.filter, &mut values);
            let (by, join) = (by.replace("q.", "t."), join.replace("q.", "t."));
            let within = within(part, &mut values);
            sql += &format!(
                " UNION ALL SELECT {NOT_FOLDED}, NULL::integer{by}{no_sums}, t.day, t.quarters \
                 FROM usage_day_packed t {join} WHERE {of}{within}"
            );
        }
        Self { sql, values, packed: packed.into_iter().flat_map(|part| part.ranges).collect() }
    }

    /// How many sums a question reads once this is folded, up to the bound and one.
    fn counting(query: &SumQuery, folded: Folded) -> Self {
        let mut values: Vec<Owned> = Vec::new();
        let counts: Vec<String> = query
            .parts(&folded)
            .iter()
            .map(|part| {
                let mut account = String::new();
                if let Some(id) = query.filter.account {
                    values.push(Box::new(id.0.to_vec()));
                    account = format!("t.account_id = ${} AND ", values.len());
                }
                let table = part.source.table();
                let of = format!("{account}{}", within(part, &mut values));
                let weight = if part.source == SumSource::Packed { PACKED_WEIGHT } else { 1 };
                format!(
                    "(SELECT {weight} * count(*) FROM (SELECT 1 FROM {table} t WHERE {of} LIMIT {}) n)",
                    (query.most_read / weight).saturating_add(1)
                )
            })
            .collect();
        Self { sql: format!("SELECT {}", counts.join(" + ")), values, packed: Vec::new() }
    }
}

/// The groups of what has columns of sums, by these columns and with this join.
fn added_up(
    query: &SumQuery,
    parts: &[SumPart],
    (by, join): (&str, &str),
    adding: Adding,
    values: &mut Vec<Owned>,
) -> String {
    // Of one span of time there is nothing to tell apart, and a database that is not made to
    // expects the groups that there are: it adds up in memory instead of sorting all sums.
    let timed = query.spans.len() > 1;
    let span = if timed {
        values.push(Box::new(query.spans.clone()));
        format!("width_bucket(q.quarter, ${}::bigint[])", values.len())
    } else {
        "1::integer".to_owned()
    };
    let sum = |column: &str| match adding {
        Adding::Plain => format!("tollgate_sum(q.{column})"),
        Adding::Bounded => format!("least(sum(q.{column}), 9000000000000000000)::bigint"),
    };
    let sums: String = SUMS.iter().map(|column| format!(", {}", sum(column))).collect();
    let read: Vec<String> = parts.iter().map(|part| branch(query, part, timed, values)).collect();
    format!(
        "SELECT {span}{by}{sums} FROM ({}) q {join} GROUP BY 1{by} HAVING {} <> 0 LIMIT {}",
        read.join(" UNION ALL "),
        sum("requests"),
        MOST_GROUPS + 1
    )
}

fn postgres_type(column: SumColumn) -> &'static str {
    match column {
        SumColumn::Key | SumColumn::Account => "bytea",
        SumColumn::Ending => "smallint",
        _ => "text",
    }
}

/// The time of a part, as a condition on its table `t`.
fn within(part: &SumPart, values: &mut Vec<Owned>) -> String {
    let of = part.source.condition();
    let at = values.len();
    if part.source == SumSource::Packed {
        values.push(Box::new(part.days()));
        return format!("t.day = ANY(${}::bigint[])", at + 1);
    }
    match part.range() {
        Some((from, to)) => {
            values.extend([from, to].map(|value| Box::new(value) as Owned));
            format!("{of}t.quarter >= ${} AND t.quarter < ${}", at + 1, at + 2)
        }
        None => {
            values.push(Box::new(part.values()));
            format!("{of}t.quarter = ANY(${}::bigint[])", at + 1)
        }
    }
}

/// What is read from one source: columns that are grouped by, and the sums.
fn branch(query: &SumQuery, part: &SumPart, timed: bool, values: &mut Vec<Owned>) -> String {
    let mut columns: Vec<String> = Vec::new();
    if timed {
        columns.push("t.quarter".to_owned());
    }
    for column in &query.by {
        let name = match column {
            SumColumn::Groups | SumColumn::Account => "t.account_id".to_owned(),
            other => other.sql().replacen("q.", "t.", 1),
        };
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns.extend(SUMS.iter().map(|column| format!("t.{column}")));
    let of = conditions("t", &query.filter, values);
    format!("SELECT {} FROM {} t WHERE {of}{}", columns.join(", "), part.source.table(), within(part, values))
}

fn params(values: &[Owned]) -> Vec<SqlParam<'_>> {
    values.iter().map(|value| value.as_ref() as SqlParam<'_>).collect()
}

/// Where the columns of a group begin.
const GROUP: usize = FOLDED_COLUMNS;

/// What a group is of.
fn group_key(query: &SumQuery, r: &Row, key: &mut Vec<u8>) -> Result<(), tokio_postgres::Error> {
    key.clear();
    for (place, column) in (GROUP + 1..).zip(&query.by) {
        match column {
            SumColumn::Key | SumColumn::Account => add_value(key, r.try_get(place)?),
            SumColumn::Ending => add_value(key, r.try_get::<_, i16>(place)?.to_string().as_bytes()),
            _ => add_value(key, r.try_get::<_, &str>(place)?.as_bytes()),
        }
    }
    Ok(())
}
