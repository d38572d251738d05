//! The audit: recomputes every balance, every charge and every hash. Each engine streams its rows,
//! entries in order, through the [`Auditor`], from one snapshot; memory is bounded by accounts,
//! keys and open holds, not by history. What it knows at the end of a full audit it keeps, so that
//! the next one need only look at what is new (`online`).

mod books;
mod folds;
mod halves;
mod invariants;
mod life;
mod online;
mod proofs;
mod quarters;
mod questions;
mod rows;
mod sums;
mod terms;

use std::hash::{DefaultHasher, Hasher as _};

use crate::call::row_hash;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::chain::{ChainLink, Hash};
use crate::ledger::{EntryKind, Pots};
use crate::report::{AuditReport, Breach};
use crate::sums::SummedUntil;
use crate::sums::folded::Folded;
use crate::world::FillRandom;

use books::PlatformBooks;
use folds::DayFolds;
use invariants::looked_at;
pub use invariants::{INVARIANTS, Looked};
use life::OpenHold;
pub(crate) use online::Touched;
use proofs::LinkProofs;
pub(crate) use proofs::SealProofs;
use quarters::Quarters;
pub(crate) use questions::QUESTIONS;
pub(crate) use rows::{ACCOUNT, AccountRow, CHARGE, CHARGE_COLUMNS, ChargeRow, ENTRY, KEY, KeyRow, StoredEntry};
use sums::Sums;
use terms::SpendingAudit;

/// So many rows are shown per invariant; more would only say the same.
const SHOWN: usize = 20;

/// Key and detail of one row that answers a question it should not.
pub(crate) fn show(id: Option<&[u8]>, detail: &str) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in id.unwrap_or_default() {
        let _ = write!(text, "{byte:02x}");
    }
    format!("{text} {detail}")
}

/// An account as its entries make it.
#[derive(Default, PartialEq)]
struct Running {
    available: Pots,
    held: Pots,
    at: i64,
    end: ChainLink,
    sums: Sums,
    /// Hashes of usage rows, those that its entries carry less those that its rows have. See
    /// [`Auditor::print`].
    hashes: u64,
    /// Sums by quarter of an hour less the rows they are of.
    quarters: Quarters,
    /// It has paid something in.
    topped_up: bool,
    /// Its row was seen.
    seen: bool,
}

/// What a key's entries say.
#[derive(Default)]
struct KeySums {
    spent: i64,
    held: i64,
}

#[derive(Default)]
pub(crate) struct Auditor {
    /// Drawn anew for each audit, so that nobody can choose rows whose prints cancel out.
    key: [u8; 16],
    report: AuditReport,
    accounts: IdMap<AccountId, Running>,
    keys: IdMap<KeyId, KeySums>,
    open: IdMap<CallId, OpenHold>,
    platform: PlatformBooks,
    prices: books::Prices,
    pub terms: SpendingAudit,
    links: LinkProofs,
    /// Rows of the usage log that are proved by [`Self::usage`] when many have come together.
    pub seals: SealProofs,
    lots_seen: usize,
    /// Which rows of the usage log are in the sums; `None`: all of them.
    pub summed_until: Option<SummedUntil>,
    /// Which days were added up once more.
    pub folded: Folded,
    folds: std::collections::BTreeMap<i64, DayFolds>,
    touched: Option<Touched>,
    /// Entries from before there was a chain.
    unchained: u64,
    /// Entries that follow one that was dated by a clock far ahead.
    put_right: u64,
}

/// Who waits for an audit of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditedFor {
    /// It may take the whole machine.
    Somebody,
    /// It is done beside other work, and there are more of them.
    Nobody,
}

/// What an audit has learnt, and the last entry it saw: where the next one goes on.
pub(crate) type Audited = (Auditor, i64);

impl Auditor {
    pub fn new(random: &FillRandom) -> Self {
        let mut key = [0; 16];
        random(&mut key);
        Self { key, ..Self::default() }
    }

    /// What stands for the hash of a usage row in the sum of its account. Short and fast is enough:
    /// it is compared within this audit only, and nobody knows its key.
    fn print(&self, hash: &Hash) -> u64 {
        let mut print = DefaultHasher::new();
        print.write(&self.key);
        print.write(hash);
        print.finish()
    }

    pub fn breach(&mut self, invariant: &'static str, row: String) {
        let breaches = &mut self.report.breaches;
        match breaches.iter_mut().find(|b| b.invariant == invariant) {
            Some(breach) if breach.rows.len() >= SHOWN => {}
            Some(breach) => breach.rows.push(row),
            None => breaches.push(Breach { invariant, rows: vec![row] }),
        }
    }

    /// Entries of one account must come in the order of `seq`.
    pub fn entry(&mut self, stored: &StoredEntry<'_>) {
        self.report.entries += 1;
        self.report.last_seq = self.report.last_seq.max(stored.seq);
        let Some(e) = stored.read() else {
            return self.breach("I2", format!("entry {}: unknown kind {}", stored.seq, stored.content.kind));
        };
        self.linked(stored, e.account);
        self.hold_life(&e);
        self.platform.entry(&e);
        if let Some(key) = e.key {
            self.keys.entry(key).or_default().entry(&e);
        }
        let print = match e.kind {
            kind if kind.is_end() => {
                stored.content.reference.map(|text| self.print(&row_hash::referred(text).unwrap_or_default()))
            }
            _ => None,
        };
        let running = self.accounts.entry(e.account).or_default();
        running.hashes = running.hashes.wrapping_add(print.unwrap_or(0));
        running.sums.entry(&e);
        running.moves(&e);
        running.topped_up |= e.kind == EntryKind::TopUp && e.pots.paid > 0;
        let (a, h) = (running.available, running.held);
        // As it was while the money of a whole call was held.
        let least = if e.whole { a.plus(e.take).minus(e.pots) } else { a };
        // A clock that was far ahead is put right in one step; strictly, that is reported.
        let late = crate::clock::ledger_time(running.at, e.at) != e.at;
        if !late && e.at < running.at {
            self.put_right += 1;
        }
        running.at = e.at.max(if late { running.at } else { e.at });
        if least.trial < 0 || least.paid < 0 || h.trial < 0 || h.paid < 0 {
            self.breach("I3", format!("{} at entry {}: available {least:?}, held {h:?}", e.account, e.seq));
        }
        let sound = match e.kind {
            EntryKind::TopUp | EntryKind::Adjust => self.terms.credit(&e),
            EntryKind::Lapse => self.terms.lapse(&e),
            _ => true,
        };
        if !sound {
            let why = "takes trial credit that is not there, or too early";
            self.breach("I3", format!("{} at entry {}: {why}", e.account, e.seq));
        }
        if late {
            self.breach("I20", format!("{} at entry {}: time goes back", e.account, e.seq));
        }
        if let Some(touched) = &mut self.touched {
            touched.entry(&e);
        }
    }

    /// The entry follows the one before it of its account.
    fn linked(&mut self, stored: &StoredEntry<'_>, account: AccountId) {
        let running = self.accounts.entry(account).or_default();
        let Some(link) = stored.link else {
            self.unchained += 1;
            if running.end.number > 0 {
                self.breach("I19", format!("entry {} of {account} is not in the chain", stored.seq));
            }
            return;
        };
        // The chain is followed as it is stored, so that one break is one row and not all that come
        // after it.
        let hash = stored.hash.and_then(|hash| hash.try_into().ok()).unwrap_or_default();
        let was = std::mem::replace(&mut running.end, ChainLink { number: link, hash });
        if link == was.number + 1 {
            self.claim_link((stored.seq, account), &stored.content, &was, hash);
        } else {
            let why = format!("link {link} follows link {}", was.number);
            self.breach("I19", format!("entry {} of {account}: {why}", stored.seq));
        }
    }

    /// The result so far; what was learnt stays, for the next time.
    pub fn finish(&mut self, strict: bool) -> AuditReport {
        self.prove();
        // Parts of sums that cancel out, of rows that were taken away again.
        self.accounts.retain(|_, running| running.seen || *running != Running::default());
        let unseen: Vec<AccountId> = self.accounts.iter().filter(|(_, r)| !r.seen).map(|(id, _)| *id).collect();
        for id in unseen {
            self.breach("I1", format!("{id}: entries without an account"));
        }
        let left =
            self.accounts.iter_mut().filter_map(|(id, r)| std::mem::take(&mut r.sums).left().map(|why| (*id, why)));
        for (id, why) in left.collect::<Vec<_>>() {
            self.breach("I11", format!("{id}: {why}"));
        }
        self.quarters_left();
        self.folds_left();
        let outside = self.accounts.iter().filter(|(id, r)| !self.terms.lots_within(**id, r.available, r.held));
        for id in outside.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.breach("I3", format!("{id}: more expires than there is trial credit"));
        }
        let given = self.terms.lots_given();
        if std::mem::take(&mut self.lots_seen) != given {
            self.breach("I1", format!("{given} credits that expire were given, not as many are known"));
        }
        if let Some(difference) = self.platform.difference() {
            self.breach("I2", format!("debits and credits differ by {difference}"));
        }
        if strict {
            self.strictly();
        }
        self.report.accounts = self.accounts.len() as u64;
        self.report.checked = looked_at(if strict { Looked::Strictly } else { Looked::InFull });
        std::mem::take(&mut self.report)
    }

    /// What is allowed in life but not in a test of it.
    fn strictly(&mut self) {
        for row in self.platform.days_of_loss() {
            self.breach("I17", row);
        }
        if self.put_right > 0 {
            let why = "times in the ledger were put right after a clock that was far ahead";
            self.breach("I20", format!("{} {why}", self.put_right));
        }
        if self.unchained > 0 {
            self.breach("I19", format!("{} entries from before there was a chain", self.unchained));
        }
    }
}

#[cfg(test)]
mod tests;
