//! What can be said about money without moving any: would a hold be granted, and which entries a call has made.

use serde::Serialize;
use tollgate_catalog::Money;

use crate::account::KeyAndAccount;
use crate::call::HoldRefused;
use crate::ledger::{self, Kind, Pots};
use crate::limits::{self, LimitKind};

impl KeyAndAccount {
    /// Whether a hold of this amount would be granted at `at`, by the rules of a hold, as far as this record is current.
    pub fn would_hold(&self, amount: Money, paid_only: bool, at: i64) -> Result<(), HoldRefused> {
        let (key, account, nano) = (&self.key, &self.account, amount.nano());
        if account.suspended_at.is_some() {
            return Err(HoldRefused::Suspended);
        }
        let kinds = (LimitKind::KeyDay, LimitKind::KeyMonth);
        let total = key.spent.nano().saturating_add(key.held.nano());
        limits::check(&key.limits, kinds, total, &key.used, at, nano).map_err(HoldRefused::Limit)?;
        let kinds = (LimitKind::AccountDay, LimitKind::AccountMonth);
        limits::check(&account.limits, kinds, 0, &account.used, at, nano).map_err(HoldRefused::Limit)?;
        let available = Pots { trial: account.trial_available.nano(), paid: account.paid_available.nano() };
        ledger::split_hold(available, nano, paid_only).map(drop).ok_or(HoldRefused::Insufficient)
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
        let kind = match Kind::from_code(kind)? {
            Kind::Hold => "hold",
            Kind::Settle => "settle",
            Kind::Void => "void",
            Kind::Expire => "expire",
            Kind::Extend => "extend",
            Kind::WriteOff => "write_off",
            Kind::Refund => "refund",
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
