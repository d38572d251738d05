//! What can be said about money without moving any: would a hold be granted, and which entries a
//! call has made.

use serde::Serialize;
use tollgate_catalog::Money;

use crate::account::KeyAndAccount;
use crate::account::limits::{self, LimitKind, Limits, Used};
use crate::call::HoldRefused;
use crate::ledger::{self, EntryKind, Pots};

impl KeyAndAccount {
    /// What would be held at `at` for a wish of this amount, or of `least` at least, by the rules
    /// of a hold, as far as this record is current.
    pub fn would_hold(&self, amount: Money, least: Money, paid_only: bool, at: i64) -> Result<Money, HoldRefused> {
        let (key, account) = (&self.key, &self.account);
        if account.suspended_at.is_some() {
            return Err(HoldRefused::Suspended);
        }
        let purse = Purse {
            available: Pots { trial: account.trial_available.nano(), paid: account.paid_available.nano() },
            account: (&account.limits, &account.used),
            key: (&key.limits, &key.used),
            key_total: key.spent.nano().saturating_add(key.held.nano()),
        };
        purse.grant(amount.nano(), least.nano(), paid_only, at).map(|pots| Money::from_nano(pots.total()))
    }
}

/// All that decides about a hold, or about more of one.
pub(crate) struct Purse<'a> {
    pub available: Pots,
    pub account: (&'a Limits, &'a Used),
    pub key: (&'a Limits, &'a Used),
    /// What counts against the key's limit for all time.
    pub key_total: i64,
}

impl Purse<'_> {
    /// From which pots `amount` is set aside, or all that there is and the limits leave, if that is
    /// at least `least`. The rules of a hold; `functions.sql` has the same.
    pub fn grant(&self, amount: i64, least: i64, paid_only: bool, at: i64) -> Result<Pots, HoldRefused> {
        let least = least.min(amount);
        let (limits, used) = self.key;
        let kinds = (LimitKind::KeyDay, LimitKind::KeyMonth);
        limits::check(limits, kinds, self.key_total, used, at, least).map_err(HoldRefused::Limit)?;
        let room = limits::room(limits, self.key_total, used, at);
        let (limits, used) = self.account;
        let kinds = (LimitKind::AccountDay, LimitKind::AccountMonth);
        limits::check(limits, kinds, 0, used, at, least).map_err(HoldRefused::Limit)?;
        let amount = amount.min(room).min(limits::room(limits, 0, used, at));
        ledger::split_hold(self.available, amount, least, paid_only)
            .map_err(|available| HoldRefused::Insufficient { available: Money::from_nano(available) })
    }
}

/// One entry of the ledger that a call has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CallEntry {
    /// `hold`, `extend`, `settle`, `void`, `expire`, `write_off`, `refund`.
    pub kind: &'static str,
    pub at: i64,
    /// What moved between the pots of the account: set aside, or returned to be divided.
    pub trial: Money,
    pub paid: Money,
    /// What of it was charged.
    pub taken: Money,
}

impl CallEntry {
    pub(crate) fn new(kind: i64, at: i64, pots: Pots, taken: Pots) -> Option<Self> {
        let kind = match EntryKind::from_code(kind)? {
            EntryKind::Hold => "hold",
            EntryKind::Settle => "settle",
            EntryKind::Void => "void",
            EntryKind::Expire => "expire",
            EntryKind::Extend => "extend",
            EntryKind::WriteOff => "write_off",
            EntryKind::Refund => "refund",
            _ => return None,
        };
        let (trial, paid) = (Money::from_nano(pots.trial), Money::from_nano(pots.paid));
        Some(Self { kind, at, trial, paid, taken: Money::from_nano(taken.total()) })
    }
}

/// The identities of all entries of a call lie from its id up to this.
pub(crate) fn end_of_entries(call: &[u8; 16]) -> Vec<u8> {
    let mut end = call.to_vec();
    // No entry has more than this after the id.
    end.extend([u8::MAX; 8]);
    end
}
