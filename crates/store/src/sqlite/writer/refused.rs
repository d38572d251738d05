//! When the database refuses a hold for good (damage, or a bug), the books in memory are ahead of
//! it: money is held there that is not held in the ledger, and a close may be queued already that
//! would release it. Both are taken back here.

use crate::account::limits::Used;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::Pots;
use crate::sqlite::books::{Books, IdemState};
use crate::sqlite::writer::apply::{Apply, Outcome};
use crate::sqlite::writer::is_refusal;
use crate::sqlite::writer::ops::{Op, RefusalOp, Spent};

/// What of a call is not in the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum RefusedCall {
    Hold,
    Extension,
}

/// Notes a hold or an extension the database has just refused.
pub(in crate::sqlite) fn remember(refused: &mut IdMap<CallId, RefusedCall>, op: &Op) {
    match op {
        Op::Hold(op) => refused.insert(op.call, RefusedCall::Hold),
        Op::Extend(op) => refused.insert(op.call, RefusedCall::Extension),
        _ => None,
    };
}

/// The close of a call whose hold is not in the database: a row in the usage log and nothing else.
/// Where only an extension is missing, the close is left out: the hold stays open, and the next
/// start finds the close in the journal.
pub(in crate::sqlite) fn close_without_hold(
    refused: &mut IdMap<CallId, RefusedCall>,
    apply: &mut Apply<'_>,
    op: &Op,
) -> rusqlite::Result<Option<Outcome>> {
    let (Op::Close(_) | Op::Extend(_), Some(call)) = (op, op.call()) else { return Ok(None) };
    let Some(part) = refused.get(&call) else { return Ok(None) };
    if let (Op::Close(c), RefusedCall::Hold) = (op, part) {
        let row = c.row.clone();
        let (account, ending, reason) = (c.account, c.ending, c.reason.clone());
        match apply.refusal(&RefusalOp { call, account, ending, reason, row }) {
            Err(error) if is_refusal(&error) => tracing::error!(%error, %call, "cannot note a call without a hold"),
            noted => noted?,
        }
    }
    Ok(Some(Outcome::Plain))
}

impl Books {
    /// Undoes in memory what the database did not do. `refused` keeps those whose close is still to
    /// come from the queue.
    pub fn take_back(&mut self, op: &Op, refused: &mut IdMap<CallId, RefusedCall>) {
        match op {
            Op::Hold(op) => {
                let Some(open) = self.open.remove(&op.call) else { return };
                refused.remove(&op.call);
                self.leases.end(op.call);
                if let Some(known) = open.idem.and_then(|hash| self.idem.get_mut(&(open.account, hash))) {
                    known.state = IdemState::Free;
                }
                if let Some(account) = self.accounts.get_mut(&open.account) {
                    account.available = account.available.plus(open.held);
                    account.held = account.held.minus(open.held);
                    account.lots.close(&open.lots, 0);
                    account.used.close(&open.counted, open.held.total(), 0);
                }
                if let Some(key) = self.keys.get_mut(&open.key) {
                    key.held -= open.held.total();
                    key.used.close(&open.counted, open.held.total(), 0);
                }
                self.recount(op.account, op.key);
            }
            Op::Extend(op) => {
                let (counted, total) = (counted(op.at, op.pots), op.pots.total());
                let Some(open) = self.open.get_mut(&op.call) else {
                    // Its close is refused with it.
                    if refused.get(&op.call) == Some(&RefusedCall::Extension) {
                        self.recount_with(op.account, op.key, |used| used.close(&counted, total, 0));
                    }
                    return;
                };
                refused.remove(&op.call);
                open.held = open.held.minus(op.pots);
                open.lots.retain(|part| !op.lots.contains(part));
                open.counted.close(&counted, total, 0);
                if let Some(account) = self.accounts.get_mut(&op.account) {
                    account.available = account.available.plus(op.pots);
                    account.held = account.held.minus(op.pots);
                    account.lots.close(&op.lots, 0);
                    account.used.close(&counted, total, 0);
                }
                if let Some(key) = self.keys.get_mut(&op.key) {
                    key.held -= total;
                    key.used.close(&counted, total, 0);
                }
                self.recount(op.account, op.key);
            }
            Op::Close(op) if refused.remove(&op.call) == Some(RefusedCall::Hold) => {
                let taken = op.settlement.take;
                let counted = counted(op.at, taken);
                if let Some(account) = self.accounts.get_mut(&op.account) {
                    account.available = account.available.plus(taken);
                    for &(credit, free, held) in &op.lot_moves {
                        account.lots.shift(credit, -free - held, 0);
                    }
                    account.used.close(&counted, taken.total(), 0);
                }
                if let Some(key) = self.keys.get_mut(&op.key) {
                    key.spent -= taken.total();
                    key.used.close(&counted, taken.total(), 0);
                }
                self.recount(op.account, op.key);
            }
            // The hold stays in the ledger, and counts, until a later start brings in what the
            // journal keeps.
            Op::Close(op) => {
                let (held, taken) = (op.held.total(), op.settlement.take.total());
                self.recount_with(op.account, op.key, |used| used.reopen(&op.counted, held, taken));
            }
            _ => {}
        }
    }

    /// Changes what counts of an account and a key, in memory and in the database.
    fn recount_with(&mut self, account: AccountId, key: KeyId, change: impl Fn(&mut Used)) {
        if let Some(account) = self.accounts.get_mut(&account) {
            change(&mut account.used);
        }
        if let Some(key) = self.keys.get_mut(&key) {
            change(&mut key.used);
        }
        self.recount(account, key);
    }

    /// Brings what the database says is used in line with the books.
    fn recount(&mut self, account: AccountId, key: KeyId) {
        let (Some(of_account), Some(of_key)) = (self.accounts.get(&account), self.keys.get(&key)) else { return };
        let spent = Spent { account: of_account.used, key: of_key.used };
        self.push(Op::Recount(account, key, spent));
    }
}

/// What an amount counts in its day and month.
fn counted(at: i64, pots: Pots) -> Used {
    let mut used = Used::default();
    used.add(at, pots.total());
    used
}
