//! What the database says of the accounts, keys and holds of a group. An account is locked before
//! its keys, as everywhere; what belongs to an account changes under its lock only.

use tokio_postgres::Row;

use crate::account::limits::Limits;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;
use crate::ledger::chain::{ChainLink, Hash};
use crate::postgres::plain::decide::{LockedAccount, LockedHold, LockedKey};
use crate::postgres::rows::{limit, used};

pub(super) const ACCOUNTS: &str = "SELECT id, trial_available, paid_available, trial_held, paid_held, last_at, \
     closed_at IS NOT NULL, topped_up, day, day_used, month, month_used, day_limit, month_limit, links, head \
     FROM account WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";

pub(super) const KEYS: &str = "SELECT id, account_id, revoked_at IS NOT NULL, spent, held, day, day_used, month, month_used, \
     cap, day_limit, month_limit FROM key WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";

pub(super) const HOLDS: &str = "SELECT call_id, account_id, key_id, replica, trial, paid, paid_only, price_id, \
     key_hash IS NOT NULL OR lots IS NOT NULL OR task, day, day_used, month, month_used \
     FROM open_hold WHERE call_id = ANY ($1)";

/// Bytes of a fixed length; others were not written by us.
fn bytes<const N: usize>(row: &Row, at: usize) -> Result<Option<[u8; N]>, StoreError> {
    Ok(row.try_get::<_, Option<&[u8]>>(at)?.and_then(|bytes| bytes.try_into().ok()))
}

fn pots(row: &Row, at: usize) -> Result<Pots, StoreError> {
    Ok(Pots { trial: row.try_get(at)?, paid: row.try_get(at + 1)? })
}

/// `None`: a row that is not of the form that this version writes. It is left to the functions.
pub(super) fn account(row: &Row) -> Result<Option<(AccountId, LockedAccount)>, StoreError> {
    let Some(id) = bytes(row, 0)? else { return Ok(None) };
    let number: i64 = row.try_get(14)?;
    let end = match bytes::<{ size_of::<Hash>() }>(row, 15)? {
        Some(hash) => ChainLink { number, hash },
        None if number == 0 => ChainLink::default(),
        None => return Ok(None),
    };
    let account = LockedAccount {
        available: pots(row, 1)?,
        held: pots(row, 3)?,
        last_at: row.try_get(5)?,
        suspended: row.try_get(6)?,
        topped_up: row.try_get(7)?,
        used: used(row, 8)?,
        limits: Limits { total: None, day: limit(row, 12)?, month: limit(row, 13)? },
        end,
        changed: false,
        in_order: false,
    };
    Ok(Some((AccountId(id), account)))
}

pub(super) fn key(row: &Row) -> Result<Option<(KeyId, LockedKey)>, StoreError> {
    let (Some(id), Some(account)) = (bytes(row, 0)?, bytes(row, 1)?) else { return Ok(None) };
    let key = LockedKey {
        account: AccountId(account),
        revoked: row.try_get(2)?,
        spent: row.try_get(3)?,
        held: row.try_get(4)?,
        used: used(row, 5)?,
        limits: Limits { total: limit(row, 9)?, day: limit(row, 10)?, month: limit(row, 11)? },
        changed: false,
    };
    Ok(Some((KeyId(id), key)))
}

pub(super) fn hold(row: &Row) -> Result<Option<(CallId, LockedHold)>, StoreError> {
    let (Some(call), Some(account), Some(key)) = (bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?) else {
        return Ok(None);
    };
    let (Some(replica), Some(price_id)) = (bytes(row, 3)?, bytes(row, 7)?) else { return Ok(None) };
    let hold = LockedHold {
        account: AccountId(account),
        key: KeyId(key),
        replica,
        pots: pots(row, 4)?,
        paid_only: row.try_get(6)?,
        price_id,
        special: row.try_get(8)?,
        counted: used(row, 9)?,
    };
    Ok(Some((CallId(call), hold)))
}
