//! What watchers read, on PostgreSQL: one statement for all accounts that are watched. The place in
//! an account's ledger is its link, which is given under the lock of the account: no entry is
//! committed behind one that was seen.

use std::collections::HashMap;

use tokio_postgres::Row;
use tollgate_catalog::Money;

use super::PostgresEngine;
use super::people::row;
use super::records::SqlParam;
use super::rows::id;
use crate::call::Ending;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::live::{LIVE_ENTRIES, LiveCall, LiveCalls, LivePlace};
use crate::person::statement::{SqlRow, SqlValue};

const ENDS: &str = "SELECT a.id, coalesce((SELECT e.link FROM entry e WHERE e.account_id = a.id AND e.link IS NOT NULL \
     ORDER BY e.link DESC LIMIT 1), 0) FROM unnest($1::bytea[]) AS a (id)";
const NEW: &str = "SELECT a.id, e.link, e.kind::bigint, e.call_id, u.key_id, u.at, u.ended_at, u.endpoint, u.model, \
       u.ending::bigint, u.reason, u.status::bigint, u.charge, u.refunded, u.estimated \
     FROM unnest($1::bytea[], $2::bigint[]) AS a (id, link) \
     CROSS JOIN LATERAL (SELECT x.link, x.kind, x.call_id FROM entry x WHERE x.account_id = a.id AND x.link > a.link \
       AND x.kind IN (1, 2, 3, 8) ORDER BY x.link LIMIT $3) AS e \
     JOIN usage u ON u.account_id = a.id AND u.call_id = e.call_id ORDER BY e.link";

impl PostgresEngine {
    pub async fn live_places(&self, accounts: &[AccountId]) -> Result<Vec<LivePlace>, StoreError> {
        let ids: Vec<&[u8]> = accounts.iter().map(|account| account.0.as_slice()).collect();
        let rows = self.rows(ENDS, &[&ids]).await?;
        rows.iter().map(|r| Ok(LivePlace { account: AccountId(id(r, 0)?), entry: r.try_get(1)? })).collect()
    }

    pub async fn live_calls(&self, places: &[LivePlace]) -> Result<Vec<LiveCalls>, StoreError> {
        let ids: Vec<&[u8]> = places.iter().map(|place| place.account.0.as_slice()).collect();
        let links: Vec<i64> = places.iter().map(|place| place.entry).collect();
        // One more than is shown says that there are more.
        let rows = self.rows(NEW, &[&ids, &links, &(LIVE_ENTRIES + 1)]).await?;
        let mut news: HashMap<AccountId, (i64, LiveCalls)> = HashMap::new();
        for place in places {
            let own = LiveCalls { account: place.account, entry: place.entry, skipped: false, calls: Vec::new() };
            news.insert(place.account, (0, own));
        }
        for r in &rows {
            let Some((read, own)) = news.get_mut(&AccountId(id(r, 0)?)) else { continue };
            *read += 1;
            own.entry = own.entry.max(r.try_get(1)?);
            own.skipped = *read > LIVE_ENTRIES;
            if !own.skipped {
                own.calls.push(ended(r)?);
            }
        }
        let busy: Vec<AccountId> = news.values().filter(|(_, own)| own.skipped).map(|(_, own)| own.account).collect();
        if !busy.is_empty() {
            for place in self.live_places(&busy).await? {
                if let Some((_, own)) = news.get_mut(&place.account) {
                    own.entry = own.entry.max(place.entry);
                }
            }
        }
        Ok(news.into_values().map(|(_, own)| own).collect())
    }

    pub(crate) async fn live_rows(
        &self,
        sql: &'static str,
        accounts: &[AccountId],
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        let each = sql.replace("{account}", "a.id").replace("{now}", "tollgate_now()");
        let sql = format!("SELECT a.id, l.* FROM unnest($1::bytea[]) AS a (id) CROSS JOIN LATERAL ({each}) AS l");
        let ids: Vec<&[u8]> = accounts.iter().map(|account| account.0.as_slice()).collect();
        let own = std::iter::once(&ids as SqlParam<'_>);
        let all: Vec<SqlParam<'_>> = own.chain(values.iter().map(|value| value as SqlParam<'_>)).collect();
        self.rows(&sql, &all).await?.iter().map(row).collect()
    }
}

fn ended(r: &Row) -> Result<LiveCall, StoreError> {
    Ok(LiveCall {
        entry: Some(r.try_get(1)?),
        refunded_now: r.try_get::<_, i64>(2)? == 8,
        call: CallId(id(r, 3)?),
        key: KeyId(id(r, 4)?),
        started_at: r.try_get(5)?,
        ended_at: r.try_get(6)?,
        endpoint: r.try_get(7)?,
        model: r.try_get(8)?,
        ending: Ending::from_code(r.try_get(9)?),
        reason: r.try_get(10)?,
        status: r.try_get(11)?,
        charge: Money::from_nano(r.try_get(12)?),
        refunded: Money::from_nano(r.try_get(13)?),
        estimated: r.try_get(14)?,
    })
}
