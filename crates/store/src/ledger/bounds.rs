//! The largest amounts there are. A balance is a 64-bit whole number of nano-USD: above 2^63 SQLite
//! would go on in floating point and PostgreSQL would refuse the whole group. So what enters an
//! account is bounded far below that, here, for both engines, and the audit adds up over accounts
//! in 128 bits.

use std::sync::atomic::{AtomicI64, Ordering};

use tollgate_catalog::Money;

use crate::account::limits::{Change, Limits, NewLimits};
use crate::error::StoreError;

/// The most a top-up, an adjustment or a refund may move: 100 million USD.
pub const MOST_AT_ONCE: Money = Money::from_nano(100_000_000_000_000_000);
/// The most an account may have, both pots, available and held: one billion USD. Also the highest
/// limit of spending.
pub const MOST_IN_ACCOUNT: Money = Money::from_nano(1_000_000_000_000_000_000);
/// The most a key may ever spend, whatever its own limit: four billion USD. `functions.sql` has the
/// same number.
pub(crate) const MOST_OF_KEY: Money = Money::from_nano(4_000_000_000_000_000_000);

/// One amount that is to move, whichever way.
pub(crate) fn amount(amount: Money) -> Result<(), StoreError> {
    if amount.nano().unsigned_abs() <= MOST_AT_ONCE.nano().unsigned_abs() {
        return Ok(());
    }
    Err(StoreError::Conflict(format!("amount: at most {MOST_AT_ONCE} USD can be moved at once")))
}

/// What an account would have in all, in nano-USD.
pub(crate) fn account(total: i128) -> Result<(), StoreError> {
    if total <= i128::from(MOST_IN_ACCOUNT.nano()) { Ok(()) } else { Err(account_full()) }
}

pub(crate) fn account_full() -> StoreError {
    StoreError::Conflict(format!(
        "amount: an account can have at most {MOST_IN_ACCOUNT} USD, trial and paid, free and held"
    ))
}

/// The limits something begins with.
pub(crate) fn limits(limits: &Limits) -> Result<(), StoreError> {
    for (field, limit) in [("total", limits.total), ("day", limits.day), ("month", limits.month)] {
        limit.map_or(Ok(()), |value| self::limit(field, value))?;
    }
    Ok(())
}

/// New limits.
pub(crate) fn new_limits(change: NewLimits) -> Result<(), StoreError> {
    for (field, change) in [("total", change.total), ("day", change.day), ("month", change.month)] {
        if let Change::Set(value) = change {
            limit(field, value)?;
        }
    }
    Ok(())
}

fn limit(field: &str, limit: Money) -> Result<(), StoreError> {
    if limit.is_negative() {
        return Err(StoreError::Conflict(format!("limits.{field}: a limit cannot be below zero")));
    }
    if limit > MOST_IN_ACCOUNT {
        let why = format!("limits.{field}: a limit is at most {MOST_IN_ACCOUNT} USD; leave it out for none");
        return Err(StoreError::Conflict(why));
    }
    Ok(())
}

/// Counts what was written off since the start; a sum that is full stays full.
pub(crate) fn add_to(sum: &AtomicI64, amount: i64) {
    let add = |sum: i64| Some(sum.saturating_add(amount));
    let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_leave_room_for_every_sum_of_an_account() {
        // Two full accounts' worth beside what a key may ever have spent still fit.
        let sum = MOST_OF_KEY.checked_add(MOST_IN_ACCOUNT).and_then(|sum| sum.checked_add(MOST_IN_ACCOUNT));
        assert!(sum.is_some());
    }

    #[test]
    fn the_field_and_the_bound_are_named() {
        for nano in [MOST_AT_ONCE.nano() + 1, -MOST_AT_ONCE.nano() - 1, i64::MAX, i64::MIN] {
            let error = amount(Money::from_nano(nano)).expect_err("too much").to_string();
            assert!(error.starts_with("amount: ") && error.contains("100000000 USD"), "{error}");
        }
        for nano in [1, -1, MOST_AT_ONCE.nano(), -MOST_AT_ONCE.nano()] {
            assert!(amount(Money::from_nano(nano)).is_ok(), "{nano}");
        }
        let most = i128::from(MOST_IN_ACCOUNT.nano());
        assert!(account(most).is_ok());
        let error = account(most + 1).expect_err("too much").to_string();
        assert!(error.starts_with("amount: ") && error.contains("1000000000 USD"), "{error}");
        for (nano, sound) in [(-1, false), (0, true), (MOST_IN_ACCOUNT.nano(), true), (i64::MAX, false)] {
            let day = Money::from_nano(nano);
            assert_eq!(limits(&Limits { day: Some(day), ..Limits::default() }).is_ok(), sound, "{nano}");
            let changed = new_limits(NewLimits { day: Change::Set(day), ..NewLimits::default() });
            assert_eq!(changed.is_ok(), sound, "{nano}");
            assert!(changed.map_or_else(|error| error.to_string().starts_with("limits.day: "), |()| true));
        }
    }
}
