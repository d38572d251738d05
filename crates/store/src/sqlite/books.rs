//! The books in memory: balances, key spending, open holds and running idempotency keys, under one
//! short lock. A hold is decided here, without the database, and queued; the writer makes the
//! database follow in the same order.

pub(super) mod extend;
pub(super) mod leases;
pub(super) mod replay;
pub(super) mod trial;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_catalog::Money;

use self::leases::Leases;
use super::tasks::rows::TaskDone;
use super::writer::ops::{BegunOp, CloseOp, HoldOp, IdemEnd, LotMove, Op, Spent, UnsettledHold};
use crate::account::limits::{Limits, Used};
use crate::account::lots::{Lots, Parts};
use crate::account::{Account, Key};
use crate::call::group::CommitGroup;
use crate::call::wish::Purse;
use crate::call::{Close, Closed, Hold, HoldRefused, Idem};
use crate::clock::Clock;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::{self, Pots, Settlement};
use crate::task::NewTask;

/// Above this many queued operations new holds are refused: the database does not keep up.
pub(super) const QUEUE_LIMIT: usize = 200_000;
/// Above this many the usage rows of refusals are left out.
const REFUSAL_LIMIT: usize = 20_000;

pub(super) struct AccountBalance {
    pub available: Pots,
    pub held: Pots,
    /// What runs goes on, nothing new begins.
    pub suspended: bool,
    pub topped_up: bool,
    /// The time of its last entry.
    pub last_at: i64,
    /// The last operation that gave it money back and is in no journal: until it is committed, a
    /// hold that may need the money waits for the database.
    pub released: u64,
    pub limits: Limits,
    pub used: Used,
    /// Trial credit that expires; part of the trial pots.
    pub lots: Lots,
}

pub(super) struct KeyBalance {
    pub account: AccountId,
    /// Revoked for good: what it began goes on, nothing new begins.
    pub revoked: bool,
    pub limits: Limits,
    pub spent: i64,
    pub held: i64,
    pub used: Used,
}

pub(super) struct IdemKeys {
    pub fingerprint: [u8; 32],
    pub call: CallId,
    pub state: IdemState,
    /// The operation that brought it here; once committed the database knows as much as we do.
    pub op: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IdemState {
    Running,
    Done,
    /// The call ended without a charge or an answer: the key may be used again.
    Free,
}

/// How deep the writer sleeps: a close wakes it from `Asleep` only, a hold also from `Dozing`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nap {
    Awake,
    Dozing,
    Asleep,
}

pub(super) struct Books {
    pub accounts: IdMap<AccountId, AccountBalance>,
    pub keys: IdMap<KeyId, KeyBalance>,
    pub open: IdMap<CallId, UnsettledHold>,
    pub leases: Leases,
    pub idem: HashMap<(AccountId, [u8; 32]), IdemKeys>,
    /// Grows whenever finished idempotency keys are dropped from memory.
    pub idem_epoch: u64,
    pub queue: Vec<Op>,
    pub queued_since: Option<Instant>,
    /// Since when the oldest operation waits of the group that is on its way to the disk.
    pub writing_since: Option<Instant>,
    pub next_op: u64,
    /// The last operation that is committed.
    pub durable: u64,
    /// How old an operation may get that is not committed, while holds are taken.
    pub behind_most: Duration,
    pub group: Arc<CommitGroup>,
    pub last_at: i64,
    /// Says what time is certain; without it every time is.
    pub clock: Option<Arc<Clock>>,
    pub hurry: bool,
    pub nap: Nap,
    pub stop: bool,
}

/// What the books say to a wish for a hold.
pub(super) enum Decision {
    Held {
        pots: Pots,
        op: u64,
        group: Arc<CommitGroup>,
        /// It rests on nothing that a crash takes away from the journal.
        by_journal: bool,
    },
    Refused(HoldRefused),
    /// The account or the key is not in memory yet.
    Unknown,
    /// The idempotency key is known and finished; its reply is in the database once `op` is
    /// committed.
    Done {
        call: CallId,
        op: u64,
    },
}

impl Books {
    pub fn new(last_at: i64) -> Self {
        Self {
            accounts: IdMap::default(),
            keys: IdMap::default(),
            open: IdMap::default(),
            leases: Leases::default(),
            idem: HashMap::new(),
            idem_epoch: 0,
            queue: Vec::new(),
            queued_since: None,
            writing_since: None,
            next_op: 1,
            durable: 0,
            behind_most: Duration::MAX,
            group: Arc::default(),
            last_at,
            clock: None,
            hurry: false,
            nap: Nap::Awake,
            stop: false,
        }
    }

    /// Ledger time does not go back, unless it was far ahead by a clock that has been put right.
    pub fn tick(&mut self, now: i64) -> i64 {
        self.last_at = crate::clock::ledger_time(self.last_at, now);
        self.last_at
    }

    /// The time of the next entry of an account. Other accounts may have had theirs by another
    /// clock: what goes back for all of them need not do so for this one.
    pub fn time_of(&mut self, account: AccountId, now: i64) -> i64 {
        let now = self.tick(now);
        self.accounts.get(&account).map_or(now, |account| crate::clock::ledger_time(account.last_at, now))
    }

    /// How old the oldest operation is that is not committed; what is on its way to the disk is
    /// older than what waits behind it.
    pub fn behind(&self) -> Duration {
        let queued = || self.queued_since.filter(|_| !self.queue.is_empty());
        self.writing_since.or_else(queued).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The database is too far behind the journal for more.
    pub fn is_behind(&self) -> bool {
        self.behind() > self.behind_most
    }

    /// Whether all that this account has is in the journal or the database.
    pub fn rests_on_journal(&self, account: AccountId) -> bool {
        self.accounts.get(&account).is_none_or(|account| account.released <= self.durable)
    }

    /// Calls with a hold that the process that took it would end; a task's goes on without it.
    pub fn open_calls(&self) -> Vec<CallId> {
        self.open.keys().filter(|call| !self.leases.has(**call)).copied().collect()
    }

    /// Queues an operation and says its number.
    pub fn push(&mut self, op: Op) -> u64 {
        if let Some((account, at)) = op.dated()
            && let Some(account) = self.accounts.get_mut(&account)
        {
            account.last_at = at;
        }
        if self.queue.is_empty() {
            self.queued_since = Some(Instant::now());
        }
        self.queue.push(op);
        let number = self.next_op;
        self.next_op += 1;
        number
    }

    /// `task` comes with the time by the clock that does not jump.
    pub fn hold(&mut self, hold: &mut Hold, task: Option<(&NewTask, i64)>, now: i64) -> Decision {
        if self.queue.len() >= QUEUE_LIMIT || self.is_behind() || self.stop || self.open.contains_key(&hold.call) {
            return Decision::Refused(HoldRefused::Unavailable);
        }
        let at = self.time_of(hold.account, now);
        self.lapse(hold.account, at);
        let (Some(account), Some(key)) = (self.accounts.get_mut(&hold.account), self.keys.get_mut(&hold.key)) else {
            return Decision::Unknown;
        };
        if key.account != hold.account || key.revoked {
            return Decision::Refused(HoldRefused::NoAccount);
        }
        if account.suspended {
            return Decision::Refused(HoldRefused::Suspended);
        }
        let known = hold.idem.as_ref().and_then(|idem| self.idem.get(&(hold.account, idem.key_hash))?.answer(idem));
        if let Some(repeated) = known {
            return repeated;
        }
        if account.topped_up && !hold.topped_up {
            return Decision::Refused(HoldRefused::ToppedUp);
        }
        let wish = (hold.amount.nano(), hold.least.nano());
        let Reserved { pots, lots, spent } = match reserve(account, key, wish, hold.paid_only, at) {
            Ok(reserved) => reserved,
            Err(refused) => return Decision::Refused(refused),
        };
        let mut counted = Used::default();
        counted.add(at, pots.total());
        let by_journal = account.released <= self.durable;
        let goes_back = at < account.last_at;
        let model = std::mem::take(&mut hold.model);
        self.open.insert(
            hold.call,
            UnsettledHold {
                account: hold.account,
                key: hold.key,
                held: pots,
                lots: lots.clone(),
                counted,
                extended: None,
                paid_only: hold.paid_only,
                at,
                expires_at: hold.expires_at,
                price_id: hold.price.id(),
                model: model.clone(),
                endpoint: hold.endpoint.into(),
                idem: hold.idem.map(|i| i.key_hash),
            },
        );
        let task = task.map(|(new, steady)| {
            let due_at = steady.saturating_add(new.lease_ms);
            self.leases.begin(hold.call, steady, due_at);
            BegunOp { new: new.clone(), created_at: now, due_at }
        });
        let op = self.push(Op::Hold(Box::new(HoldOp {
            call: hold.call,
            account: hold.account,
            key: hold.key,
            pots,
            lots,
            spent,
            price_id: hold.price.id(),
            price: Some(hold.price.clone()),
            model,
            endpoint: hold.endpoint.into(),
            paid_only: hold.paid_only,
            expires_at: hold.expires_at,
            at,
            goes_back,
            idem: hold.idem,
            task,
        })));
        if let Some(idem) = hold.idem {
            let known = IdemKeys { fingerprint: idem.fingerprint, call: hold.call, state: IdemState::Running, op };
            self.idem.insert((hold.account, idem.key_hash), known);
        }
        Decision::Held { pots, op, group: self.group.clone(), by_journal }
    }

    /// Closes an open hold; `None` when it is not open (closed before, or never there). A task's
    /// hold ends with its task only.
    pub fn close(&mut self, close: Close, price_id: Option<[u8; 16]>, now: i64) -> Option<(Closed, u64)> {
        if self.leases.has(close.call) {
            return None;
        }
        self.close_with(close, price_id, now, None)
    }

    pub fn close_with(
        &mut self,
        close: Close,
        price_id: Option<[u8; 16]>,
        now: i64,
        task: Option<TaskDone>,
    ) -> Option<(Closed, u64)> {
        let open = self.open.remove(&close.call)?;
        let charge = close.charge.nano();
        let account = self.accounts.get_mut(&open.account)?;
        let settlement = if task.as_ref().is_some_and(|task| task.forgiven) {
            Settlement::forgiven(open.held, charge)
        } else {
            // The customer of a task knows the most it costs: what its provider counts beyond
            // that is not taken from him.
            let available = if task.is_some() { Pots::default() } else { account.available };
            ledger::settle(open.held, available, charge, close.most.map(Money::nano), open.paid_only)
        };
        account.available = account.available.minus(settlement.extend).plus(settlement.release.minus(settlement.take));
        account.held = account.held.minus(open.held);
        let (extend_lots, lot_moves) =
            close_lots(&mut account.lots, &open.lots, settlement.extend.trial, settlement.take.trial);
        let captured = settlement.take.total();
        account.used.close(&open.counted, open.held.total(), captured);
        let mut spent = Spent { account: account.used, ..Spent::default() };
        if let Some(key) = self.keys.get_mut(&open.key) {
            key.held -= open.held.total();
            key.spent = key.spent.saturating_add(captured);
            key.used.close(&open.counted, open.held.total(), captured);
            spent.key = key.used;
        }
        // What it gives back a replay of the journal may find elsewhere, or not at all.
        let lost = task.is_some() || open.extended.as_ref().is_some_and(|(_, op, _)| *op > self.durable);
        let shown = task.as_ref().is_some_and(TaskDone::is_shown);
        let keep = captured > 0 || close.keeps_key() || shown;
        let at = self.time_of(open.account, now);
        let op = self.push(Op::Close(Box::new(CloseOp {
            call: close.call,
            account: open.account,
            key: open.key,
            at,
            ending: close.ending,
            reason: close.reason,
            held: open.held,
            counted: open.counted,
            settlement,
            extend_lots,
            lot_moves,
            spent,
            price_id: price_id.unwrap_or(open.price_id),
            row: close.row,
            idem: open.idem.map(|key_hash| IdemEnd { key_hash, keep, reply: close.reply }),
            task,
        })));
        if lost {
            self.released(open.account, op);
        }
        if let Some(known) = open.idem.and_then(|hash| self.idem.get_mut(&(open.account, hash))) {
            known.state = if keep { IdemState::Done } else { IdemState::Free };
            known.op = op;
        }
        // What went back to credit past its time is gone in the same group.
        self.lapse(open.account, at);
        let closed = Closed {
            captured: Money::from_nano(captured),
            write_off: Money::from_nano(settlement.write_off),
            applied: true,
        };
        Some((closed, op))
    }

    /// This operation gave money back and is not in the journal.
    pub fn released(&mut self, account: AccountId, op: u64) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.released = op;
        }
    }

    /// Whether there is room for the row of a call that was refused.
    pub fn notes_refusals(&self) -> bool {
        self.queue.len() < REFUSAL_LIMIT && !self.stop
    }

    /// Drops finished idempotency keys that the database has; later readers of the database must
    /// look again.
    pub fn drop_finished_idem(&mut self, durable: u64) {
        let before = self.idem.len();
        self.idem.retain(|_, known| known.state == IdemState::Running || known.op > durable);
        if self.idem.len() != before {
            self.idem_epoch += 1;
        }
    }
}

/// Money set aside: from which pots and lots, and what counts in the day and month now.
pub(super) struct Reserved {
    pub pots: Pots,
    pub lots: Parts,
    pub spent: Spent,
}

/// Sets money aside, for a hold or for more of one: the amount, or what there is if that is at
/// least the second number. Or says why not.
pub(super) fn reserve(
    account: &mut AccountBalance,
    key: &mut KeyBalance,
    (amount, least): (i64, i64),
    paid_only: bool,
    at: i64,
) -> Result<Reserved, HoldRefused> {
    let purse = Purse {
        available: account.available,
        account: (&account.limits, &account.used),
        key: (&key.limits, &key.used),
        key_total: key.spent.saturating_add(key.held),
    };
    let pots = purse.grant(amount, least, paid_only, at)?;
    let amount = pots.total();
    account.available = account.available.minus(pots);
    account.held = account.held.plus(pots);
    account.used.add(at, amount);
    key.held += amount;
    key.used.add(at, amount);
    let spent = Spent { account: account.used, key: key.used };
    Ok(Reserved { pots, lots: account.lots.hold(pots.trial), spent })
}

/// Ends what a hold took from lots, after it was extended by `more` of trial money and cost `spent`
/// of it: where the extension came from, and what moved in all.
fn close_lots(lots: &mut Lots, held: &[([u8; 16], i64)], more: i64, spent: i64) -> (Parts, Vec<LotMove>) {
    let extension = lots.hold(more);
    let all: Parts = held.iter().chain(&extension).copied().collect();
    let back = lots.close(&all, spent);
    let moves = held.iter().map(|&(credit, part)| (credit, 0, -part));
    let moves = moves.chain(extension.iter().map(|&(credit, part)| (credit, -part, 0)));
    let moves = moves.chain(back.iter().map(|&(credit, part)| (credit, part, 0))).collect();
    (extension, moves)
}

impl IdemKeys {
    /// What whoever repeats a key gets; `None`: it may be used again.
    pub fn answer(&self, idem: &Idem) -> Option<Decision> {
        Some(match self.state {
            IdemState::Free => return None,
            _ if self.fingerprint != idem.fingerprint => Decision::Refused(HoldRefused::IdemConflict),
            IdemState::Running => Decision::Refused(HoldRefused::IdemRunning(self.call)),
            IdemState::Done => Decision::Done { call: self.call, op: self.op },
        })
    }
}

impl AccountBalance {
    pub fn of(account: &Account, lots: Lots, last_at: i64) -> Self {
        Self {
            available: Pots { trial: account.trial_available.nano(), paid: account.paid_available.nano() },
            held: Pots { trial: account.trial_held.nano(), paid: account.paid_held.nano() },
            suspended: account.suspended_at.is_some(),
            topped_up: account.topped_up,
            last_at,
            released: 0,
            limits: account.limits,
            used: account.used,
            lots,
        }
    }
}

impl KeyBalance {
    pub fn of(key: &Key) -> Self {
        Self {
            account: key.account,
            revoked: key.revoked_at.is_some(),
            limits: key.limits,
            spent: key.spent.nano(),
            held: key.held.nano(),
            used: key.used,
        }
    }
}

#[cfg(test)]
mod tests;
