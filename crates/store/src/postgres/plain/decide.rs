//! What becomes of plain operations, decided from what the locked rows say. Nothing here asks or
//! tells the database anything.

use tokio_postgres::Row;

use super::rows;
use crate::account::limits::{Limits, Used};
use crate::call::Ending;
use crate::call::row_hash::{Decided, RowFacts, reference};
use crate::call::wish::Purse;
use crate::clock::ledger_time;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::chain::{ChainLink, Content, Hash};
use crate::ledger::{CLASS_HOLD, CLASS_TERMINAL, EntryKind, OpId, Pots, op_id, settle};
use crate::postgres::batch::OpOutcome;
use crate::postgres::queue::PendingOp;
use crate::postgres::queued::{QueuedClose, QueuedHold, QueuedOp};

/// An account under its lock, as it is after what was decided so far.
pub(super) struct LockedAccount {
    pub available: Pots,
    pub held: Pots,
    pub last_at: i64,
    pub suspended: bool,
    pub topped_up: bool,
    pub limits: Limits,
    pub used: Used,
    /// The end of its hash chain.
    pub end: ChainLink,
    pub changed: bool,
    /// A hold was left to the functions: so are those that follow it, which must not take the money
    /// before it.
    pub in_order: bool,
}

pub(super) struct LockedKey {
    pub account: AccountId,
    pub revoked: bool,
    pub limits: Limits,
    pub spent: i64,
    pub held: i64,
    pub used: Used,
    pub changed: bool,
}

/// An open hold.
pub(super) struct LockedHold {
    pub account: AccountId,
    pub key: KeyId,
    pub replica: [u8; 16],
    pub pots: Pots,
    pub paid_only: bool,
    pub price_id: [u8; 16],
    /// It has an idempotency key, credit that expires, or a task.
    pub special: bool,
    /// What it counts in which day and month.
    pub counted: Used,
}

#[derive(Default)]
pub(super) struct Locked {
    pub accounts: IdMap<AccountId, LockedAccount>,
    pub keys: IdMap<KeyId, LockedKey>,
    pub holds: IdMap<CallId, LockedHold>,
}

impl Locked {
    pub fn of(accounts: &[Row], keys: &[Row], holds: &[Row]) -> Result<Self, StoreError> {
        let mut locked = Self::default();
        for row in accounts {
            locked.accounts.extend(rows::account(row)?);
        }
        for row in keys {
            locked.keys.extend(rows::key(row)?);
        }
        for row in holds {
            locked.holds.extend(rows::hold(row)?);
        }
        Ok(locked)
    }
}

/// An entry of the ledger that is to be written.
pub(super) struct PlainEntry<'a> {
    pub op_id: OpId,
    pub kind: EntryKind,
    pub account: &'a AccountId,
    pub key: &'a KeyId,
    pub pots: Pots,
    pub take: Pots,
    pub at: i64,
    /// What only the entry of a hold says.
    pub hold: Option<&'a QueuedHold>,
    pub reason: Option<&'a str>,
    pub reference: Option<String>,
    pub link: ChainLink,
}

impl PlainEntry<'_> {
    pub fn content<'c>(&'c self, replica: &'c [u8; 16]) -> Content<'c> {
        let hold = self.hold;
        Content {
            op_id: &self.op_id,
            kind: self.kind as i64,
            account: &self.account.0,
            key: Some(&self.key.0),
            trial: self.pots.trial,
            paid: self.pots.paid,
            take_trial: self.take.trial,
            take_paid: self.take.paid,
            at: self.at,
            price_id: hold.map(|waits| &waits.price_id[..]),
            model: hold.map(|waits| waits.hold.model.as_str()),
            endpoint: hold.map(|waits| waits.hold.endpoint),
            expires_at: hold.map(|waits| waits.hold.expires_at),
            paid_only: hold.map(|waits| waits.hold.paid_only),
            replica: Some(replica),
            reference: self.reference.as_deref(),
            reason: self.reason,
            ..Content::default()
        }
    }
}

/// A hold that is open from now on.
pub(super) struct PlainHold<'a> {
    pub waits: &'a QueuedHold,
    pub paid: i64,
    pub at: i64,
    pub counted: Used,
}

/// A row of the usage log.
pub(super) struct PlainRow<'a> {
    pub facts: RowFacts<'a>,
    pub key: &'a KeyId,
    pub price_id: [u8; 16],
    pub hold: i64,
    pub charge: i64,
    pub hash: Hash,
}

/// What is to be written, and answered.
pub(super) struct Decisions<'a> {
    pub locked: Locked,
    pub entries: Vec<PlainEntry<'a>>,
    pub opened: Vec<PlainHold<'a>>,
    /// The holds of these are over.
    pub rows: Vec<PlainRow<'a>>,
    pub outcomes: Vec<Option<OpOutcome>>,
    replica: &'a [u8; 16],
}

/// What can be seen of a hold before the database is asked.
pub(super) fn hold_may_be_plain(waits: &QueuedHold) -> bool {
    waits.hold.idem.is_none()
}

impl<'a> Decisions<'a> {
    /// Ends before holds: they give money back.
    pub fn of(part: &'a [PendingOp], locked: Locked, replica: &'a [u8; 16]) -> Self {
        let mut decisions = Self {
            locked,
            entries: Vec::with_capacity(part.len()),
            opened: Vec::with_capacity(part.len()),
            rows: Vec::with_capacity(part.len()),
            outcomes: part.iter().map(|_| None).collect(),
            replica,
        };
        let mut asked: IdMap<CallId, u32> = IdMap::default();
        for pending in part {
            if let QueuedOp::Close(waits) = &pending.op {
                *asked.entry(waits.close.call).or_default() += 1;
            }
        }
        for (place, pending) in part.iter().enumerate() {
            if let QueuedOp::Close(waits) = &pending.op
                && asked.get(&waits.close.call) == Some(&1)
            {
                decisions.outcomes[place] = decisions.close(waits);
            }
        }
        for (place, pending) in part.iter().enumerate() {
            if let QueuedOp::Hold(waits) = &pending.op {
                decisions.outcomes[place] = decisions.hold(waits);
            }
        }
        decisions
    }

    /// The end of a hold of this replica that covers its charge, all of which the customer pays.
    fn close(&mut self, waits: &'a QueuedClose) -> Option<OpOutcome> {
        let close = &waits.close;
        let charge = close.charge.nano().max(0);
        let hold = self.locked.holds.get(&close.call)?;
        let plain = hold.account == close.account
            && hold.key == close.row.key
            && hold.replica == *self.replica
            && !hold.special
            && charge <= hold.pots.total()
            && close.most.is_none_or(|most| charge <= most.nano());
        if !plain {
            return None;
        }
        let account = self.locked.accounts.get_mut(&close.account)?;
        let key = self.locked.keys.get_mut(&close.row.key).filter(|key| key.account == close.account)?;
        let settlement = settle(hold.pots, Pots::default(), charge, None, hold.paid_only);
        let captured = settlement.take.total();
        account.available = account.available.plus(settlement.release.minus(settlement.take));
        account.held = account.held.minus(hold.pots);
        account.used.close(&hold.counted, hold.pots.total(), captured);
        account.last_at = ledger_time(account.last_at, waits.at);
        account.changed = true;
        key.held -= hold.pots.total();
        key.spent = key.spent.saturating_add(captured);
        key.used.close(&hold.counted, hold.pots.total(), captured);
        key.changed = true;

        let price_id = waits.price_id.unwrap_or(hold.price_id);
        let facts = RowFacts::of(&close.call, &close.account, close.ending, &close.reason, &close.row);
        let decided = Decided {
            key: &close.row.key.0,
            price_id: Some(&price_id),
            hold: hold.pots.total(),
            charge: captured,
            write_off: 0,
        };
        let hash = decided.hash(&facts.hash());
        let kind = match close.ending {
            _ if charge > 0 => EntryKind::Settle,
            Ending::Expired => EntryKind::Expire,
            _ => EntryKind::Void,
        };
        let reason = Some(close.reason.as_str()).filter(|reason| charge == 0 && !reason.is_empty());
        let entry = PlainEntry {
            op_id: op_id(&close.call.0, CLASS_TERMINAL),
            kind,
            account: &close.account,
            key: &close.row.key,
            pots: hold.pots,
            take: settlement.take,
            at: account.last_at,
            hold: None,
            reason,
            reference: Some(reference(&hash)),
            link: ChainLink::default(),
        };
        let row = PlainRow { facts, key: &close.row.key, price_id, hold: hold.pots.total(), charge: captured, hash };
        self.rows.push(row);
        link(&mut self.entries, account, entry, self.replica);
        Some(OpOutcome::closed(captured))
    }

    /// A hold of paid money, or of what there is of it.
    fn hold(&mut self, waits: &'a QueuedHold) -> Option<OpOutcome> {
        if !hold_may_be_plain(waits) {
            return None;
        }
        let hold = &waits.hold;
        let account = self.locked.accounts.get_mut(&hold.account)?;
        let able = self.locked.keys.get_mut(&hold.key).filter(|key| {
            !account.in_order
                && !account.suspended
                // Trial credit may be past its time.
                && account.available.trial == 0
                && (hold.topped_up || !account.topped_up)
                && key.account == hold.account
                && !key.revoked
        });
        let at = ledger_time(account.last_at, waits.at);
        let granted = able.and_then(|key| {
            let purse = Purse {
                available: account.available,
                account: (&account.limits, &account.used),
                key: (&key.limits, &key.used),
                key_total: key.spent.saturating_add(key.held),
            };
            let pots = purse.grant(hold.amount.nano(), hold.least.nano(), hold.paid_only, at).ok()?;
            Some((key, pots))
        });
        let Some((key, pots)) = granted else {
            account.in_order = true;
            return None;
        };
        let amount = pots.total();
        account.available = account.available.minus(pots);
        account.held = account.held.plus(pots);
        account.used.add(at, amount);
        account.last_at = at;
        account.changed = true;
        key.held += amount;
        key.used.add(at, amount);
        key.changed = true;
        let mut counted = Used::default();
        counted.add(at, amount);
        self.opened.push(PlainHold { waits, paid: pots.paid, at, counted });
        let entry = PlainEntry {
            op_id: op_id(&hold.call.0, CLASS_HOLD),
            kind: EntryKind::Hold,
            account: &hold.account,
            key: &hold.key,
            pots,
            take: Pots::default(),
            at,
            hold: Some(waits),
            reason: None,
            reference: None,
            link: ChainLink::default(),
        };
        link(&mut self.entries, account, entry, self.replica);
        Some(OpOutcome::held(pots.paid))
    }
}

/// Adds an entry at the end of its account's chain.
fn link<'a>(
    entries: &mut Vec<PlainEntry<'a>>,
    account: &mut LockedAccount,
    mut entry: PlainEntry<'a>,
    replica: &[u8; 16],
) {
    entry.link = entry.content(replica).after(&account.end);
    account.end = entry.link;
    entries.push(entry);
}

#[cfg(test)]
mod tests;
