//! The arithmetic of holds: pure functions over a customer's pots, shared by everything that
//! decides about money. Trial credit is spent first; a capture never exceeds the hold and its
//! extensions; no pot goes below zero.

pub(crate) mod bounds;
pub(crate) mod chain;
pub(crate) mod entries;
pub(crate) mod hash_batch;

use crate::account::lots::CreditKey;

/// An amount in each of the two pots, in nano-USD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pots {
    pub trial: i64,
    pub paid: i64,
}

impl Pots {
    pub fn total(self) -> i64 {
        self.trial.saturating_add(self.paid)
    }

    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    pub fn plus(self, other: Self) -> Self {
        Self { trial: self.trial.saturating_add(other.trial), paid: self.paid.saturating_add(other.paid) }
    }

    pub fn minus(self, other: Self) -> Self {
        Self { trial: self.trial.saturating_sub(other.trial), paid: self.paid.saturating_sub(other.paid) }
    }

    /// As much of `amount` as the pots hold, trial first.
    fn take(self, amount: i64) -> Self {
        let trial = amount.min(self.trial).max(0);
        let paid = (amount - trial).min(self.paid).max(0);
        Self { trial, paid }
    }
}

/// What of the available money may pay for a call.
fn usable(available: Pots, paid_only: bool) -> Pots {
    if paid_only { Pots { trial: 0, ..available } } else { available }
}

/// How a hold of `amount`, or of all that there is if that is at least `least`, is taken from what
/// is available. Refused with what there is.
pub(crate) fn split_hold(available: Pots, amount: i64, least: i64, paid_only: bool) -> Result<Pots, i64> {
    let usable = usable(available, paid_only);
    let part = usable.take(amount);
    if amount < 0 || part.total() < least.min(amount) {
        return Err(usable.total());
    }
    Ok(part)
}

/// What closing a hold does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settlement {
    /// Held in addition, because the charge is above the hold.
    pub extend: Pots,
    /// What leaves the held pots: the hold and its extensions.
    pub release: Pots,
    /// What of it goes to revenue; the rest returns to available.
    pub take: Pots,
    /// What nobody could pay, or was not to pay: the operator's loss.
    pub write_off: i64,
}

/// Closes a hold at `charge` (zero = void), of which the customer pays `most` at most.
pub(crate) fn settle(held: Pots, available: Pots, charge: i64, most: Option<i64>, paid_only: bool) -> Settlement {
    let charge = charge.max(0);
    let due = most.unwrap_or(charge).clamp(0, charge);
    let extend = usable(available, paid_only).take((due - held.total()).max(0));
    let release = held.plus(extend);
    let take = release.take(due);
    Settlement { extend, release, take, write_off: charge - take.total() }
}

impl Settlement {
    /// The customer gets all back; what it would have cost is the operator's loss.
    pub fn forgiven(held: Pots, charge: i64) -> Self {
        Self { release: held, write_off: charge.max(0), ..Self::default() }
    }
}

/// How a refund goes back to the pots a charge came from: paid first, so that real money is
/// returned as such.
pub(crate) fn split_refund(taken: Pots, amount: i64) -> Option<Pots> {
    if amount <= 0 || amount > taken.total() {
        return None;
    }
    let paid = amount.min(taken.paid);
    Some(Pots { trial: amount - paid, paid })
}

/// What a top-up of the trial pot is called. In the ledger it has the number of every top-up.
pub(crate) const TRIAL_CREDIT: &str = "trial_credit";

/// The kinds of ledger entry. Each is a fixed posting between the customer's pots and the
/// platform's accounts; the view `posting` in the schema spells them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Hold = 0,
    Settle = 1,
    Void = 2,
    Expire = 3,
    Extend = 4,
    WriteOff = 5,
    TopUp = 6,
    Adjust = 7,
    Refund = 8,
    /// Trial credit past its time is taken back.
    Lapse = 9,
    /// A hold that another replica gave up is open again, without money, to be closed once more.
    Reopen = 10,
}

impl EntryKind {
    pub const ALL: [Self; 11] = [
        Self::Hold,
        Self::Settle,
        Self::Void,
        Self::Expire,
        Self::Extend,
        Self::WriteOff,
        Self::TopUp,
        Self::Adjust,
        Self::Refund,
        Self::Lapse,
        Self::Reopen,
    ];

    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i64 == code)
    }

    /// Whether it ends a call.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Settle | Self::Void | Self::Expire)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Settle => "settle",
            Self::Void => "void",
            Self::Expire => "expire",
            Self::Extend => "extend",
            Self::WriteOff => "write_off",
            Self::TopUp => "top_up",
            Self::Adjust => "adjust",
            Self::Refund => "refund",
            Self::Lapse => "lapse",
            Self::Reopen => "reopen",
        }
    }

    /// How exports call an entry that moves so much of the trial pot. A top-up of that pot is money
    /// that nobody paid: the postings have it from `promotion`, not from `cash`.
    pub fn told_by_pot(self, trial: i64) -> &'static str {
        match self {
            Self::TopUp if trial > 0 => TRIAL_CREDIT,
            kind => kind.name(),
        }
    }

    /// How people and scripts see a change of balance that is not a call.
    pub fn event_name(self, trial: i64) -> &'static str {
        match self {
            Self::TopUp if trial > 0 => TRIAL_CREDIT,
            Self::TopUp => "top_up",
            Self::Adjust => "adjust",
            Self::Refund => "refund",
            Self::Lapse => "lapse",
            _ => "call",
        }
    }
}

/// Identity of a ledger entry: the call and a class byte. Settle, void and expire share one class,
/// so the unique index on it is the rule "one terminal entry per hold".
pub(crate) type OpId = [u8; 17];

pub(crate) const CLASS_HOLD: u8 = 0;
pub(crate) const CLASS_TERMINAL: u8 = 1;
pub(crate) const CLASS_EXTEND: u8 = 2;
/// The terminal entry of a hold that was given up and opened again.
pub(crate) const CLASS_TERMINAL_AGAIN: u8 = 4;
pub(crate) const CLASS_WRITE_OFF: u8 = 200;
pub(crate) const CLASS_REFUND: u8 = 201;
pub(crate) const CLASS_CREDIT: u8 = 202;
pub(crate) const CLASS_LAPSE: u8 = 203;

pub(crate) fn op_id(id: &[u8; 16], class: u8) -> OpId {
    let mut op = [0u8; 17];
    op[..16].copy_from_slice(id);
    op[16] = class;
    op
}

/// Identity of an extension of a running call. The one made by a settlement above the hold has no
/// step.
pub(crate) fn extend_op_id(call: &[u8; 16], step: u32) -> [u8; 21] {
    numbered(op_id(call, CLASS_EXTEND), step)
}

/// Identity of the expiry of a part of a credit: begins as that of the credit does.
pub(crate) fn lapse_op_id(credit: &CreditKey, number: u32) -> [u8; 21] {
    numbered(op_id(credit, CLASS_LAPSE), number)
}

fn numbered(id: OpId, number: u32) -> [u8; 21] {
    let mut op = [0u8; 21];
    op[..17].copy_from_slice(&id);
    op[17..].copy_from_slice(&number.to_be_bytes());
    op
}

/// Identity of a credit: made from the caller's own id, so that repeating it is recognised.
pub(crate) fn credit_op_id(id: &str) -> OpId {
    op_id(&credit_key(id), CLASS_CREDIT)
}

pub(crate) fn credit_key(id: &str) -> CreditKey {
    let hash = crate::account::hash_secret(id);
    let mut half = [0u8; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refund_is_within_what_was_taken_and_gives_back_paid_money_first() {
        let taken = Pots { trial: 10, paid: 5 };
        for amount in [i64::MIN, -1, 0, 16, i64::MAX] {
            assert_eq!(split_refund(taken, amount), None, "{amount}");
        }
        for (amount, trial, paid) in [(1, 0, 1), (5, 0, 5), (6, 1, 5), (15, 10, 5)] {
            assert_eq!(split_refund(taken, amount), Some(Pots { trial, paid }), "{amount}");
        }
    }

    #[test]
    fn entries_are_called_what_exports_call_them() {
        let names: Vec<&str> = EntryKind::ALL.into_iter().map(EntryKind::name).collect();
        let wanted = "hold settle void expire extend write_off top_up adjust refund lapse reopen";
        assert_eq!(names.join(" "), wanted);
        let events = |trial| EntryKind::ALL.map(|kind| kind.event_name(trial)).join(" ");
        assert_eq!(events(0), "call call call call call call top_up adjust refund lapse call");
        assert_eq!(events(1), "call call call call call call trial_credit adjust refund lapse call");
        assert_eq!(EntryKind::ALL.map(|kind| kind.told_by_pot(1)).join(" "), wanted.replace("top_up", "trial_credit"));
        assert_eq!(EntryKind::ALL.map(|kind| kind.told_by_pot(0)).join(" "), wanted);
        assert!(EntryKind::ALL.into_iter().enumerate().all(|(at, kind)| EntryKind::from_code(at as i64) == Some(kind)));
        assert_eq!(EntryKind::from_code(11), None);
    }
}
