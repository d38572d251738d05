//! What watchers read, on the embedded engine. The ledger has no index by account, so that a close
//! need not write one: one pass over what is new is for all accounts that are watched.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use tollgate_catalog::Money;

use super::SqliteEngine;
use super::people::{numbered, row};
use crate::call::Ending;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::live::{LIVE_ENTRIES, LiveCall, LiveCalls, LivePlace};
use crate::person::statement::{SqlRow, SqlValue};

/// Entries of all accounts that one pass looks at; what is more is passed over.
const PASS: i64 = 50_000;
const END: &str = "SELECT coalesce(max(seq), 0) FROM entry";
const NEW: &str = "SELECT seq, account_id, kind, substr(op_id, 1, 16) FROM entry \
     WHERE seq > ?1 AND seq <= ?2 AND kind IN (1, 2, 3, 8) ORDER BY seq";
const CALL: &str = "SELECT key_id, at, ended_at, endpoint, model, ending, reason, status, charge, refunded, estimated \
     FROM usage WHERE account_id = ?1 AND call_id = ?2";

impl SqliteEngine {
    pub async fn live_places(&self, accounts: &[AccountId]) -> Result<Vec<LivePlace>, StoreError> {
        let entry = self.readers.read(|c| Ok(c.prepare_cached(END)?.query_row([], |r| r.get(0))?)).await?;
        Ok(accounts.iter().map(|account| LivePlace { account: *account, entry }).collect())
    }

    pub async fn live_calls(&self, places: &[LivePlace]) -> Result<Vec<LiveCalls>, StoreError> {
        let places = places.to_vec();
        self.readers.read(move |c| calls_since(c, &places)).await
    }

    pub(crate) async fn live_rows(
        &self,
        sql: &'static str,
        accounts: &[AccountId],
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        let (accounts, mut values) = (accounts.to_vec(), values);
        // The time comes last, where it is asked for.
        if sql.contains("{now}") {
            values.push(SqlValue::from(self.now()));
        }
        let last = format!("${}", values.len() + 1);
        let sql = numbered(&sql.replace("{account}", "$1").replace("{now}", &last));
        let read = move |c: &Connection| {
            let mut statement = c.prepare_cached(&sql)?;
            let mut all = Vec::new();
            for account in accounts {
                let own = std::iter::once(SqlValue::from(account.0)).chain(values.iter().cloned());
                for found in statement.query_map(params_from_iter(own), row)? {
                    let SqlRow(columns) = found?;
                    all.push(SqlRow(std::iter::once(SqlValue::from(account.0)).chain(columns).collect()));
                }
            }
            Ok(all)
        };
        self.readers.read(read).await
    }
}

fn calls_since(c: &Connection, places: &[LivePlace]) -> Result<Vec<LiveCalls>, StoreError> {
    let snapshot = c.unchecked_transaction()?;
    let end: i64 = snapshot.prepare_cached(END)?.query_row([], |r| r.get(0))?;
    let mut news: HashMap<AccountId, LiveCalls> = HashMap::new();
    let mut from = end;
    for place in places {
        let too_old = end - place.entry > PASS;
        let own = LiveCalls { account: place.account, entry: end, skipped: too_old, calls: Vec::new() };
        news.insert(place.account, own);
        if !too_old {
            from = from.min(place.entry);
        }
    }
    let since: HashMap<AccountId, i64> = places.iter().map(|place| (place.account, place.entry)).collect();
    let mut statement = snapshot.prepare_cached(NEW)?;
    let mut entries = statement.query(params![from, end])?;
    while let Some(entry) = entries.next()? {
        let (seq, account) = (entry.get::<_, i64>(0)?, AccountId(entry.get(1)?));
        let Some(own) = news.get_mut(&account).filter(|own| !own.skipped && since[&own.account] < seq) else {
            continue;
        };
        if i64::try_from(own.calls.len()).is_ok_and(|calls| calls >= LIVE_ENTRIES) {
            own.skipped = true;
            continue;
        }
        let (refunded_now, call) = (entry.get::<_, i64>(2)? == 8, CallId(entry.get(3)?));
        let found =
            snapshot.prepare_cached(CALL)?.query_row(params![account.0, call.0], |r| ended(r, seq, call, refunded_now));
        own.calls.extend(found.optional()?);
    }
    Ok(news.into_values().collect())
}

fn ended(r: &Row<'_>, seq: i64, call: CallId, refunded_now: bool) -> rusqlite::Result<LiveCall> {
    Ok(LiveCall {
        entry: Some(seq),
        refunded_now,
        call,
        key: KeyId(r.get(0)?),
        started_at: r.get(1)?,
        ended_at: r.get(2)?,
        endpoint: r.get(3)?,
        model: r.get(4)?,
        ending: Ending::from_code(r.get(5)?),
        reason: r.get(6)?,
        status: r.get(7)?,
        charge: Money::from_nano(r.get(8)?),
        refunded: Money::from_nano(r.get(9)?),
        estimated: r.get(10)?,
    })
}
