//! What was decided, as rows: one statement for each table, with an array for each column. Most
//! columns of most calls have nothing in them (counters of what was not used, texts that nobody
//! said). The array of a column that is so in all rows is empty: it costs the database nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use foldhash::HashMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::column::{ArrayValue, Column};
use super::decide::{Decisions, LockedAccount, LockedKey, PlainEntry, PlainHold, PlainRow};
use crate::call::counters::Counter;
use crate::ids::{AccountId, KeyId};
use crate::postgres::queue::PendingOp;
use crate::postgres::queued::price_text;
use crate::sums::{SUM_KEY, SUMS, SumKeyRef, UsageSum};

/// A value for each parameter of a statement.
pub(super) type Values<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Names and types; `null` where a column may have nothing.
const PRICES: [(&str, &str); 2] = [("id", "bytea"), ("json", "text")];

const ENTRIES: [(&str, &str); 18] = [
    ("op_id", "bytea"),
    ("kind", "smallint"),
    ("account_id", "bytea"),
    ("key_id", "bytea"),
    ("trial", "bigint"),
    ("paid", "bigint"),
    ("take_trial", "bigint"),
    ("take_paid", "bigint"),
    ("at", "bigint"),
    ("price_id", "bytea null"),
    ("model", "text null"),
    ("endpoint", "text null"),
    ("expires_at", "bigint null"),
    ("paid_only", "boolean null"),
    ("reference", "text null"),
    ("reason", "text null"),
    ("link", "bigint"),
    ("hash", "bytea"),
];

const HOLDS: [(&str, &str); 14] = [
    ("call_id", "bytea"),
    ("account_id", "bytea"),
    ("key_id", "bytea"),
    ("paid", "bigint"),
    ("paid_only", "boolean"),
    ("at", "bigint"),
    ("expires_at", "bigint"),
    ("price_id", "bytea"),
    ("model", "text"),
    ("endpoint", "text"),
    ("due_at", "bigint"),
    ("day", "bigint"),
    ("month", "bigint"),
    ("day_used", "bigint"),
];

/// Those of a usage row but for the counters, which follow.
const ROWS: [(&str, &str); 24] = [
    ("account_id", "bytea"),
    ("call_id", "bytea"),
    ("key_id", "bytea"),
    ("at", "bigint"),
    ("ended_at", "bigint"),
    ("endpoint", "text"),
    ("model", "text"),
    ("provider", "text null"),
    ("upstream_model", "text null"),
    ("ending", "smallint"),
    ("reason", "text"),
    ("status", "integer"),
    ("tools", "text null"),
    ("estimated", "boolean"),
    ("raw_usage", "text null"),
    ("attempts", "bigint"),
    ("first_byte_ms", "bigint null"),
    ("tier", "text null"),
    ("dropped", "text null"),
    ("cost", "bigint null"),
    ("hold", "bigint"),
    ("charge", "bigint"),
    ("price_id", "bytea"),
    ("hash", "bytea"),
];

const ACCOUNTS: [(&str, &str); 12] = [
    ("id", "bytea"),
    ("trial_available", "bigint"),
    ("paid_available", "bigint"),
    ("trial_held", "bigint"),
    ("paid_held", "bigint"),
    ("last_at", "bigint"),
    ("day", "bigint"),
    ("day_used", "bigint"),
    ("month", "bigint"),
    ("month_used", "bigint"),
    ("links", "bigint"),
    ("head", "bytea"),
];

const KEYS: [(&str, &str); 7] = [
    ("id", "bytea"),
    ("held", "bigint"),
    ("spent", "bigint"),
    ("day", "bigint"),
    ("day_used", "bigint"),
    ("month", "bigint"),
    ("month_used", "bigint"),
];

static ROW_COLUMNS: LazyLock<Vec<(&'static str, &'static str)>> =
    LazyLock::new(|| ROWS.into_iter().chain(Counter::ALL.map(|counter| (counter.name(), "bigint"))).collect());

static SUM_COLUMNS: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let types = ["bytea", "bigint", "bytea", "text", "text", "smallint", "text", "text"];
    SUM_KEY.into_iter().zip(types).chain(SUMS.iter().map(|column| (*column, "bigint"))).collect()
});

/// Columns of a table, with the types of their arrays.
type ColumnTypes<'a> = &'a [(&'static str, &'static str)];

fn names(columns: ColumnTypes<'_>) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Of each parameter that is a column, the array.
fn arrays(columns: ColumnTypes<'_>) -> impl Iterator<Item = String> {
    (1..).zip(columns).map(|(n, (_, of))| format!("unnest(${n}::{}[])", of.trim_end_matches(" null")))
}

/// A value of a row. The array of a column that has nothing in any row is empty ([`Column::of`]).
fn value((name, of): &(&str, &str)) -> String {
    match *of {
        "bigint" => format!("coalesce(new.{name}, 0)"),
        _ => format!("new.{name}"),
    }
}

/// The arrays are taken side by side. `FROM unnest(…)` would keep each column in a store of its own
/// before it makes rows of them: a fifth of what a row takes the database, at least.
fn insert(table: &str, columns: ColumnTypes<'_>, more: &[(&str, &str)]) -> String {
    let extra = |of: fn(&(&str, &str)) -> String| more.iter().map(of).collect::<String>();
    let (named, given) = (extra(|(name, _)| format!(", {name}")), extra(|(_, value)| format!(", {value}")));
    let values = columns.iter().map(value).collect::<Vec<_>>().join(", ");
    let arrays = arrays(columns).zip(columns).map(|(array, (name, _))| format!("{array} AS {name}"));
    let (names, arrays) = (names(columns), arrays.collect::<Vec<_>>().join(", "));
    format!("INSERT INTO {table} ({names}{named}) SELECT {values}{given} FROM (SELECT {arrays}) AS new")
}

fn update(table: &str, columns: ColumnTypes<'_>) -> String {
    let sets: Vec<String> = columns.iter().skip(1).map(|of| format!("{} = {}", of.0, value(of))).collect();
    let arrays: Vec<String> = arrays(columns).collect();
    let (sets, arrays, names) = (sets.join(", "), arrays.join(", "), names(columns));
    format!("UPDATE {table} SET {sets} FROM ROWS FROM ({arrays}) AS new ({names}) WHERE {table}.id = new.id")
}

/// The replica is the last parameter of two of them.
fn with_replica(table: &str, columns: ColumnTypes<'_>, more: &[(&str, &str)]) -> String {
    let replica = format!("${}::bytea", columns.len() + 1);
    let more: Vec<(&str, &str)> = more.iter().copied().chain([("replica", replica.as_str())]).collect();
    insert(table, columns, &more)
}

pub(super) struct Tables {
    prices: Statement,
    entries: Statement,
    opened: Statement,
    ended: Statement,
    rows: Statement,
    /// What rows add to sums. `None`: a trigger of the log does it, as long as rows from before
    /// there were sums are being added.
    sums: Option<Statement>,
    accounts: Statement,
    keys: Statement,
}

impl Tables {
    pub async fn prepare(client: &Client) -> Result<Self, Error> {
        let filled: bool =
            client.query_one("SELECT NOT EXISTS (SELECT 1 FROM usage_backfill)", &[]).await?.try_get(0)?;
        let sums = insert("usage_unmerged", &SUM_COLUMNS, &[]);
        Ok(Self {
            prices: client.prepare(&format!("{} ON CONFLICT DO NOTHING", insert("price", &PRICES, &[]))).await?,
            entries: client.prepare(&with_replica("entry", &ENTRIES, &[])).await?,
            opened: client
                .prepare(&with_replica(
                    "open_hold",
                    &HOLDS,
                    &[("trial", "0"), ("month_used", "coalesce(new.day_used, 0)")],
                ))
                .await?,
            ended: client.prepare("DELETE FROM open_hold WHERE call_id = ANY ($1)").await?,
            rows: client.prepare(&insert("usage", &ROW_COLUMNS, &[("refunded", "0"), ("write_off", "0")])).await?,
            sums: if filled { Some(client.prepare(&sums).await?) } else { None },
            accounts: client.prepare(&update("account", &ACCOUNTS)).await?,
            keys: client.prepare(&update("key", &KEYS)).await?,
        })
    }

    /// How a transaction begins.
    pub fn begin(&self) -> &'static str {
        if self.sums.is_some() { "BEGIN; SET LOCAL tollgate.sums = 'given'" } else { "BEGIN" }
    }

    pub fn prices(&self) -> &Statement {
        &self.prices
    }

    /// Statements that have something to write, with their parameters.
    pub fn statements<'a>(
        &'a self,
        decisions: &'a Decisions<'_>,
        replica: &'a [u8; 16],
    ) -> Vec<(&'a Statement, Values<'a>)> {
        let accounts = decisions.locked.accounts.iter().filter(|(_, account)| account.changed).collect::<Vec<_>>();
        let keys = decisions.locked.keys.iter().filter(|(_, key)| key.changed).collect::<Vec<_>>();
        let mut sums: HashMap<SumKeyRef<'_>, UsageSum> = HashMap::default();
        for row in &decisions.rows {
            let sum = sums.entry(SumKeyRef::of(&row.facts, &row.key.0)).or_default();
            sum.add_row(&row.facts, row.charge, 0, 0);
        }
        let sums: Vec<(SumKeyRef<'_>, UsageSum)> = sums.into_iter().collect();
        let adds = self.sums.iter().map(|statement| (statement, sum_values(&sums), sums.is_empty()));
        let all = [
            (&self.entries, entries(&decisions.entries, replica), decisions.entries.is_empty()),
            (&self.opened, opened(&decisions.opened, replica), decisions.opened.is_empty()),
            (&self.ended, vec![column(&decisions.rows, |row| row.facts.call)], decisions.rows.is_empty()),
            (&self.rows, rows(&decisions.rows), decisions.rows.is_empty()),
            (&self.accounts, account_values(&accounts), accounts.is_empty()),
            (&self.keys, key_values(&keys), keys.is_empty()),
        ];
        all.into_iter()
            .chain(adds)
            .filter(|(.., empty)| !empty)
            .map(|(statement, values, _)| (statement, values))
            .collect()
    }
}

/// Prices that the database may not have, in the order of their ids.
pub(super) struct NewPrices(BTreeMap<[u8; 16], String>);

impl NewPrices {
    pub fn of(part: &[PendingOp]) -> Self {
        let prices = part.iter().filter_map(|pending| pending.op.new_price());
        Self(prices.map(|(id, price)| (id, price_text(price))).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn values(&self) -> Values<'_> {
        let ids: Vec<&[u8]> = self.0.keys().map(|id| &id[..]).collect();
        let texts: Vec<&str> = self.0.values().map(String::as_str).collect();
        vec![Box::new(ids), Box::new(texts)]
    }
}

/// The array of one column.
fn column<'r, 'a, R, C: ArrayValue>(rows: &'r [R], of: impl Fn(&'r R) -> C) -> Box<dyn ToSql + Sync + Send + 'a> {
    Box::new(Column::of(rows, of))
}

fn entries<'a>(all: &'a [PlainEntry<'_>], replica: &'a [u8; 16]) -> Values<'a> {
    vec![
        column(all, |entry| &entry.op_id[..]),
        column(all, |entry| entry.kind as i16),
        column(all, |entry| &entry.account.0[..]),
        column(all, |entry| &entry.key.0[..]),
        column(all, |entry| entry.pots.trial),
        column(all, |entry| entry.pots.paid),
        column(all, |entry| entry.take.trial),
        column(all, |entry| entry.take.paid),
        column(all, |entry| entry.at),
        column(all, |entry| entry.hold.map(|waits| &waits.price_id[..])),
        column(all, |entry| entry.hold.map(|waits| waits.hold.model.as_str())),
        column(all, |entry| entry.hold.map(|waits| waits.hold.endpoint)),
        column(all, |entry| entry.hold.map(|waits| waits.hold.expires_at)),
        column(all, |entry| entry.hold.map(|waits| waits.hold.paid_only)),
        column(all, |entry| entry.reference.as_deref()),
        column(all, |entry| entry.reason),
        column(all, |entry| entry.link.number),
        column(all, |entry| &entry.link.hash[..]),
        Box::new(&replica[..]),
    ]
}

fn opened<'a>(all: &'a [PlainHold<'_>], replica: &'a [u8; 16]) -> Values<'a> {
    vec![
        column(all, |held| &held.waits.hold.call.0[..]),
        column(all, |held| &held.waits.hold.account.0[..]),
        column(all, |held| &held.waits.hold.key.0[..]),
        column(all, |held| held.paid),
        column(all, |held| held.waits.hold.paid_only),
        column(all, |held| held.at),
        column(all, |held| held.waits.hold.expires_at),
        column(all, |held| &held.waits.price_id[..]),
        column(all, |held| held.waits.hold.model.as_str()),
        column(all, |held| held.waits.hold.endpoint),
        column(all, |held| held.waits.at.saturating_add(held.waits.life)),
        column(all, |held| held.counted.day_number),
        column(all, |held| held.counted.month_number),
        column(all, |held| held.counted.day.nano()),
        Box::new(&replica[..]),
    ]
}

fn rows<'a>(all: &'a [PlainRow<'_>]) -> Values<'a> {
    let mut values: Values<'a> = vec![
        column(all, |row| row.facts.account),
        column(all, |row| row.facts.call),
        column(all, |row| &row.key.0[..]),
        column(all, |row| row.facts.at),
        column(all, |row| row.facts.ended_at),
        column(all, |row| row.facts.endpoint),
        column(all, |row| row.facts.model),
        column(all, |row| row.facts.provider),
        column(all, |row| row.facts.upstream_model),
        column(all, |row| i16::try_from(row.facts.ending).unwrap_or(i16::MAX)),
        column(all, |row| row.facts.reason),
        column(all, |row| i32::try_from(row.facts.status).unwrap_or(i32::MAX)),
        column(all, |row| row.facts.tools.as_deref()),
        column(all, |row| row.facts.estimated),
        column(all, |row| row.facts.raw_usage),
        column(all, |row| row.facts.attempts),
        column(all, |row| row.facts.first_byte_ms),
        column(all, |row| row.facts.tier),
        column(all, |row| row.facts.dropped),
        column(all, |row| row.facts.cost),
        column(all, |row| row.hold),
        column(all, |row| row.charge),
        column(all, |row| &row.price_id[..]),
        column(all, |row| &row.hash[..]),
    ];
    let counters =
        (0..Counter::COUNT).map(|n| column(all, move |row| row.facts.counters.get(n).copied().unwrap_or_default()));
    values.extend(counters);
    values
}

fn sum_values<'a>(all: &[(SumKeyRef<'a>, UsageSum)]) -> Values<'a> {
    let mut values: Values<'a> = vec![
        column(all, |(of, _)| of.account),
        column(all, |(of, _)| of.quarter),
        column(all, |(of, _)| of.key),
        column(all, |(of, _)| of.model),
        column(all, |(of, _)| of.endpoint),
        column(all, |(of, _)| i16::try_from(of.ending).unwrap_or(i16::MAX)),
        column(all, |(of, _)| of.provider),
        column(all, |(of, _)| of.upstream_model),
    ];
    values.extend((0..SUMS.len()).map(|n| column(all, move |(_, sum)| sum.0.get(n).copied().unwrap_or_default())));
    values
}

fn account_values<'a>(all: &[(&'a AccountId, &'a LockedAccount)]) -> Values<'a> {
    vec![
        column(all, |(id, _)| &id.0[..]),
        column(all, |(_, account)| account.available.trial),
        column(all, |(_, account)| account.available.paid),
        column(all, |(_, account)| account.held.trial),
        column(all, |(_, account)| account.held.paid),
        column(all, |(_, account)| account.last_at),
        column(all, |(_, account)| account.used.day_number),
        column(all, |(_, account)| account.used.day.nano()),
        column(all, |(_, account)| account.used.month_number),
        column(all, |(_, account)| account.used.month.nano()),
        column(all, |(_, account)| account.end.number),
        column(all, |(_, account)| &account.end.hash[..]),
    ]
}

fn key_values<'a>(all: &[(&'a KeyId, &'a LockedKey)]) -> Values<'a> {
    vec![
        column(all, |(id, _)| &id.0[..]),
        column(all, |(_, key)| key.held),
        column(all, |(_, key)| key.spent),
        column(all, |(_, key)| key.used.day_number),
        column(all, |(_, key)| key.used.day.nano()),
        column(all, |(_, key)| key.used.month_number),
        column(all, |(_, key)| key.used.month.nano()),
    ]
}
