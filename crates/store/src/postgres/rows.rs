//! Rows of PostgreSQL as records.

use tokio_postgres::Row;
use tollgate_catalog::Money;

use crate::account::limits::{Limits, Used};
use crate::account::{Account, Key, KeyAndAccount, KeyOrigin, KeyScope, in_groups};
use crate::call::counters::{Columns, Counter, Counters};
use crate::call::{Ending, UsageRow};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, PersonId};
use crate::margin::MarginRow;

pub(super) const ACCOUNT: &str = "a.id, a.name, a.created_at, a.changed_at, a.trial_available, a.paid_available, \
     a.trial_held, a.paid_held, a.topped_up, a.groups, a.closed_at, a.day_limit, a.month_limit, a.day, a.day_used, a.month, \
     a.month_used, a.webhook_url, a.members_see_all, \
     a.ended_at, a.erased_at";
pub(super) const KEY: &str = "k.id, k.account_id, k.hash, k.prefix, k.name, k.created_at, k.changed_at, k.expires_at, \
     k.revoked_at, k.models, k.cidrs, k.cap, k.spent, k.held, k.day_limit, k.month_limit, k.day, k.day_used, k.month, \
     k.month_used, k.scope, (SELECT max(f.until) FROM key_former f WHERE f.key_id = k.id), k.person_id, k.origin";
const KEY_COLUMNS: usize = 24;
const ACCOUNT_COLUMNS: usize = 21;
/// Secrets that were changed for others, beside their keys and accounts.
pub(super) const FORMER: &str =
    "f.hash, f.until FROM key_former f JOIN key k ON k.id = f.key_id JOIN account a ON a.id = k.account_id";
pub(super) const USAGE: &str = "u.call_id, u.account_id, u.key_id, u.at, u.ended_at, u.endpoint, u.model, u.provider, \
     u.upstream_model, u.ending, u.reason, u.status, u.estimated, u.hold, u.charge, u.refunded, u.write_off, \
     u.raw_usage, u.attempts, u.first_byte_ms, u.tier, u.dropped, u.tools, u.cost";
const USAGE_COLUMNS: usize = 24;

pub(super) fn id(r: &Row, i: usize) -> Result<[u8; 16], StoreError> {
    r.try_get::<_, &[u8]>(i)?.try_into().map_err(|_| StoreError::broken("an id is not 16 bytes"))
}

fn money(r: &Row, i: usize) -> Result<Money, StoreError> {
    Ok(Money::from_nano(r.try_get(i)?))
}

fn list(r: &Row, i: usize) -> Result<Option<Vec<String>>, StoreError> {
    let text: Option<&str> = r.try_get(i)?;
    Ok(text.and_then(|t| serde_json::from_str(t).ok()))
}

pub(super) fn limit(r: &Row, i: usize) -> Result<Option<Money>, StoreError> {
    Ok(r.try_get::<_, Option<i64>>(i)?.map(Money::from_nano))
}

pub(super) fn used(r: &Row, at: usize) -> Result<Used, StoreError> {
    Ok(Used {
        day_number: r.try_get(at)?,
        day: money(r, at + 1)?,
        month_number: r.try_get(at + 2)?,
        month: money(r, at + 3)?,
    })
}

pub(super) fn account(r: &Row, at: usize, now: i64) -> Result<Account, StoreError> {
    Ok(Account {
        id: AccountId(id(r, at)?),
        name: r.try_get(at + 1)?,
        created_at: r.try_get(at + 2)?,
        changed_at: r.try_get(at + 3)?,
        trial_available: money(r, at + 4)?,
        paid_available: money(r, at + 5)?,
        trial_held: money(r, at + 6)?,
        paid_held: money(r, at + 7)?,
        topped_up: r.try_get(at + 8)?,
        groups: in_groups(list(r, at + 9)?.unwrap_or_default()),
        suspended_at: r.try_get(at + 10)?,
        limits: Limits { total: None, day: limit(r, at + 11)?, month: limit(r, at + 12)? },
        used: used(r, at + 13)?.at(now),
        webhook_url: r.try_get(at + 17)?,
        members_see_all: r.try_get::<_, Option<bool>>(at + 18)?.unwrap_or(false),
        closed_at: r.try_get(at + 19)?,
        erased_at: r.try_get(at + 20)?,
    })
}

pub(super) fn key(r: &Row, now: i64) -> Result<Key, StoreError> {
    let hash: &[u8] = r.try_get(2)?;
    Ok(Key {
        id: KeyId(id(r, 0)?),
        account: AccountId(id(r, 1)?),
        hash: hash.try_into().map_err(|_| StoreError::broken("a key hash is not 32 bytes"))?,
        prefix: r.try_get(3)?,
        name: r.try_get(4)?,
        created_at: r.try_get(5)?,
        changed_at: r.try_get(6)?,
        expires_at: r.try_get(7)?,
        revoked_at: r.try_get(8)?,
        models: list(r, 9)?,
        cidrs: list(r, 10)?,
        limits: Limits { total: limit(r, 11)?, day: limit(r, 14)?, month: limit(r, 15)? },
        spent: money(r, 12)?,
        held: money(r, 13)?,
        used: used(r, 16)?.at(now),
        scope: KeyScope::of(r.try_get(20)?),
        former_until: r.try_get(21)?,
        person: maker(r)?,
        origin: KeyOrigin::of(r.try_get(23)?),
    })
}

fn maker(r: &Row) -> Result<Option<PersonId>, StoreError> {
    match r.try_get::<_, Option<&[u8]>>(22)? {
        Some(_) => id(r, 22).map(|id| Some(PersonId(id))),
        None => Ok(None),
    }
}

pub(super) fn key_and_account(r: &Row, now: i64) -> Result<KeyAndAccount, StoreError> {
    Ok(KeyAndAccount { key: key(r, now)?, account: account(r, KEY_COLUMNS, now)? })
}

/// A key as it is for who shows the secret of before: it ends when that ends.
pub(super) fn former(r: &Row, now: i64) -> Result<KeyAndAccount, StoreError> {
    let at = KEY_COLUMNS + ACCOUNT_COLUMNS;
    let hash = r.try_get::<_, &[u8]>(at)?.try_into().map_err(|_| StoreError::broken("a key hash is not 32 bytes"))?;
    Ok(key_and_account(r, now)?.by_former(hash, r.try_get(at + 1)?))
}

/// As they are selected by [`crate::call::counters::COUNTERS`]. NULL: the row is older than the
/// counter.
pub(super) fn counters(r: &Row, at: usize) -> Result<Columns, StoreError> {
    let mut columns = [0; Counter::COUNT];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = r.try_get::<_, Option<i64>>(at + i)?.unwrap_or_default();
    }
    Ok(columns)
}

/// Small numbers are written by us within these types; anything else is shown as the largest.
fn small<T: TryFrom<i64>>(n: i64, largest: T) -> T {
    T::try_from(n).unwrap_or(largest)
}

pub(super) fn usage(r: &Row) -> Result<UsageRow, StoreError> {
    let price: Option<&str> = r.try_get(USAGE_COLUMNS + Counter::COUNT)?;
    Ok(UsageRow {
        call: CallId(id(r, 0)?),
        account: AccountId(id(r, 1)?),
        key: KeyId(id(r, 2)?),
        at: r.try_get(3)?,
        ended_at: r.try_get(4)?,
        endpoint: r.try_get(5)?,
        model: r.try_get(6)?,
        provider: r.try_get(7)?,
        upstream_model: r.try_get(8)?,
        ending: Ending::from_code(r.try_get::<_, i16>(9)?.into()),
        reason: r.try_get(10)?,
        status: small(r.try_get::<_, i32>(11)?.into(), u16::MAX),
        counters: Counters::from_columns(counters(r, USAGE_COLUMNS)?).with_tools(r.try_get(22)?),
        estimated: r.try_get(12)?,
        hold: money(r, 13)?,
        charge: money(r, 14)?,
        refunded: money(r, 15)?,
        write_off: money(r, 16)?,
        raw_usage: r.try_get(17)?,
        attempts: small(r.try_get(18)?, u32::MAX),
        first_byte_ms: r.try_get::<_, Option<i64>>(19)?.map(|n| small(n, u32::MAX)),
        tier: r.try_get(20)?,
        dropped: r.try_get(21)?,
        cost: limit(r, 23)?,
        price: price.and_then(|p| serde_json::from_str(p).ok()),
    })
}

pub(super) fn margin(r: &Row) -> Result<MarginRow, StoreError> {
    Ok(MarginRow {
        day: r.try_get(0)?,
        model: r.try_get(1)?,
        provider: r.try_get(2)?,
        upstream_model: r.try_get(3)?,
        calls: r.try_get(4)?,
        sold: money(r, 5)?,
        cost_unknown: r.try_get(6)?,
        sold_unknown: money(r, 7)?,
        cost: money(r, 8)?,
    })
}
