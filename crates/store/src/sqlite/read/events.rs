//! Changes of balance that were not calls, and what a call was charged: read for people.

use rusqlite::{OptionalExtension, params};
use tollgate_catalog::Money;

use crate::account::{BalanceEvent, Charged, EventPage};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::ledger::{self, EntryKind, OpId, op_id};
use crate::sqlite::SqliteEngine;
use crate::sqlite::books::AccountBalance;
use crate::sqlite::read::{self, Readers};

impl SqliteEngine {
    pub async fn events(&self, account: AccountId, page: EventPage) -> Result<Vec<BalanceEvent>, StoreError> {
        self.catch_up().await;
        self.readers.events(account, page).await
    }

    pub async fn charged(&self, call: CallId) -> Result<Option<Charged>, StoreError> {
        self.catch_up().await;
        self.readers.charged(call).await
    }
}

impl Readers {
    async fn events(&self, account: AccountId, page: EventPage) -> Result<Vec<BalanceEvent>, StoreError> {
        self.read(move |c| {
            let sql = "SELECT seq, at, kind, trial, paid, reference, call_id, expires_at, actor, reason FROM entry \
                       WHERE account_id = ?1 AND seq < ?2 AND kind BETWEEN 6 AND 9 ORDER BY seq DESC LIMIT ?3";
            let before = page.before.unwrap_or(i64::MAX);
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map(params![account.0, before, page.limit], |r| {
                let kind = EntryKind::from_code(r.get(2)?).unwrap_or(EntryKind::Adjust);
                let call: Option<[u8; 16]> = r.get(6)?;
                let (trial, reference) = (r.get(3)?, r.get::<_, Option<String>>(5)?.unwrap_or_default());
                Ok(BalanceEvent {
                    seq: r.get(0)?,
                    at: r.get(1)?,
                    kind: kind.event_name(trial).to_owned(),
                    trial: Money::from_nano(trial),
                    paid: Money::from_nano(r.get(4)?),
                    reference,
                    call: call.filter(|_| kind == EntryKind::Refund).map(CallId),
                    expires_at: r.get(7)?,
                    actor: r.get::<_, Option<String>>(8)?.unwrap_or_default(),
                    reason: r.get::<_, Option<String>>(9)?.unwrap_or_default(),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn charged(&self, call: CallId) -> Result<Option<Charged>, StoreError> {
        self.read(move |c| {
            let sql = "SELECT account_id, take_trial + take_paid FROM entry WHERE op_id = ?1 AND kind = 1";
            let id = op_id(&call.0, ledger::CLASS_TERMINAL);
            let found = c.prepare_cached(sql)?.query_row(params![id], |r| {
                Ok(Charged { account: AccountId(r.get(0)?), captured: Money::from_nano(r.get(1)?) })
            });
            Ok(found.optional()?)
        })
        .await
    }

    pub async fn entry_exists(&self, id: OpId) -> Result<bool, StoreError> {
        self.read(move |c| {
            let sql = "SELECT EXISTS (SELECT 1 FROM entry WHERE op_id = ?1)";
            Ok(c.prepare_cached(sql)?.query_row(params![id], |r| r.get(0))?)
        })
        .await
    }

    pub async fn account_balance(&self, id: AccountId) -> Result<Option<AccountBalance>, StoreError> {
        self.read(move |c| {
            let snapshot = c.unchecked_transaction()?;
            Ok(read::account_balance(&snapshot, id)?)
        })
        .await
    }

    pub async fn accounts_with_due_credit(&self, now: i64) -> Result<Vec<AccountId>, StoreError> {
        self.read(move |c| {
            let sql = "SELECT DISTINCT account_id FROM trial_lot WHERE expires_at <= ?1 AND free > 0 LIMIT 1000";
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map(params![now], |r| r.get(0).map(AccountId))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
