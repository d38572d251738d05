//! Holds, closes, marks and refusals on the embedded engine: decided in memory, journalled in the
//! same order, and queued for the database.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;
use tollgate_catalog::Money;

use super::books::replay::HoldAgain;
use super::books::{Books, Decision};
use super::writer::ops::{Op, RefusalOp};
use super::{SqliteEngine, lock};
use crate::call::group::{Closing, ClosingWait, CommitGroup, Held, HeldWait};
use crate::call::{Close, Closed, Ending, Hold, HoldRefused, Mark, StoredReply, UsageFacts, tidy_raw_usage};
use crate::ids::{AccountId, CallId};
use crate::journal::{Appended, record};
use crate::task::NewTask;

/// The record of a close in the journal.
pub(super) enum CloseRecord<'a> {
    New(&'a mut [u8]),
    /// It comes from there.
    Read,
    /// Nobody said what the call cost. Its hold comes along where that is not queued yet.
    None(Option<HoldAgain>),
}

/// What a hold waits for beside the database.
struct ByJournal {
    synced: Arc<CommitGroup>,
    /// The syncer is to be woken.
    asleep: bool,
}

impl SqliteEngine {
    pub async fn hold(&self, hold: Hold) -> Result<Held, HoldRefused> {
        self.hold_for(hold, None).await
    }

    /// A hold, and the task it is for.
    pub(super) async fn hold_for(&self, mut hold: Hold, task: Option<NewTask>) -> Result<Held, HoldRefused> {
        let shared = &self.shared;
        if !self.takes(hold.account, task.is_some()) {
            return Err(self.repeated_without_ledger(&hold).await);
        }
        if hold.amount.is_negative() {
            return Err(HoldRefused::Insufficient { available: Money::ZERO });
        }
        let mut epoch = self.look_up_idem(&hold).await?;
        let mut record = record::write_hold(&hold, &shared.known_prices);
        for _ in 0..3 {
            let Some((decision, synced)) = self.decide(&mut hold, task.as_ref(), epoch, &mut record) else {
                epoch = self.look_up_idem(&hold).await?;
                continue;
            };
            match decision {
                Decision::Held { pots, op, group, .. } => {
                    let until = Instant::now() + self.options.hold_deadline;
                    return Ok(Held {
                        call: hold.call,
                        trial: Money::from_nano(pots.trial),
                        paid: Money::from_nano(pots.paid),
                        wait: match synced {
                            Some(ByJournal { synced, asleep }) => {
                                let sleeper = asleep.then(|| shared.journal.clone());
                                HeldWait::Either { synced, sleeper, group, op, until }
                            }
                            None => HeldWait::Group { group, op, until },
                        },
                    });
                }
                Decision::Refused(HoldRefused::Unavailable) => return Err(self.repeated_without_ledger(&hold).await),
                Decision::Refused(refused) => return Err(refused),
                Decision::Done { call, op } => return Err(self.finished(&hold, call, op).await),
                Decision::Unknown => match self.load(hold.account, hold.key).await {
                    Ok(true) => {}
                    Ok(false) => return Err(HoldRefused::NoAccount),
                    Err(_) => return Err(HoldRefused::Unavailable),
                },
            }
        }
        Err(HoldRefused::Unavailable)
    }

    /// Whether a hold can become durable. While the database takes nothing only by the journal: not
    /// that of a task, nor one that rests on what the journal does not know, and for a while.
    fn takes(&self, account: AccountId, task: bool) -> bool {
        let (shared, durable) = (&self.shared, self.shared.durable());
        if !shared.down.load(Ordering::Acquire) {
            return shared.journal.accepts(durable);
        }
        let books = lock(&shared.books);
        !task && !books.is_behind() && books.rests_on_journal(account) && shared.journal.suffices(durable)
    }

    /// With what a hold waits for beside the database. `None`: what was read about the idempotency
    /// key may be out of date.
    fn decide(
        &self,
        hold: &mut Hold,
        task: Option<&NewTask>,
        epoch: u64,
        record: &mut Vec<u8>,
    ) -> Option<(Decision, Option<ByJournal>)> {
        let now = self.now();
        let task = task.map(|new| (new, self.steady()));
        let mut books = lock(&self.shared.books);
        if hold.idem.is_some() && books.idem_epoch != epoch {
            return None;
        }
        let plain = task.is_none();
        let decision = books.hold(hold, task, now);
        let Decision::Held { op, by_journal, .. } = decision else { return Some((decision, None)) };
        let by_journal = by_journal || self.options.overrates_journal();
        // A task is not sent before the database has it.
        let written = if plain { self.append_hold(&books, op, record) } else { None };
        if by_journal && let Some((waits, crowded)) = written {
            if crowded {
                self.shared.ring(books);
            } else {
                self.shared.nudge(books);
            }
            return Some((decision, Some(waits)));
        }
        self.shared.ring(books);
        if written.is_some_and(|(waits, _)| waits.asleep) {
            self.shared.journal.wake();
        }
        Some((decision, None))
    }

    /// Journals the hold that was queued last: with the books in hand, so that the records have the
    /// order of the decisions. What to wait for, and whether space is short.
    fn append_hold(&self, books: &Books, op: u64, record: &mut Vec<u8>) -> Option<(ByJournal, bool)> {
        let Some(Op::Hold(hold)) = books.queue.last() else { return None };
        record::decided(record, hold.at, hold.pots, &hold.lots);
        let Appended { synced, asleep, crowded } = self.shared.journal.append_hold(op, record, self.shared.durable());
        Some((ByJournal { synced: synced?, asleep }, crowded))
    }

    /// Reads an idempotency key that memory does not know. Returns the epoch the answer belongs to.
    async fn look_up_idem(&self, hold: &Hold) -> Result<u64, HoldRefused> {
        let Some(idem) = hold.idem else { return Ok(0) };
        let slot = (hold.account, idem.key_hash);
        let (epoch, known) = {
            let books = lock(&self.shared.books);
            (books.idem_epoch, books.idem.contains_key(&slot))
        };
        if known {
            return Ok(epoch);
        }
        let stored = self.readers.idem(slot.0, slot.1).await.map_err(|_| HoldRefused::Unavailable)?;
        match stored {
            None => Ok(epoch),
            Some(stored) if stored.fingerprint != idem.fingerprint => Err(HoldRefused::IdemConflict),
            Some(stored) if stored.done => Err(HoldRefused::IdemDone { call: stored.call, reply: stored.reply }),
            // Running in the database but unknown to memory: memory has just dropped it, so it has
            // ended since.
            Some(stored) => Err(HoldRefused::IdemRunning(stored.call)),
        }
    }

    /// The ledger takes no hold. Who repeats a request whose answer is stored needs none.
    async fn repeated_without_ledger(&self, hold: &Hold) -> HoldRefused {
        let Some(idem) = hold.idem else { return HoldRefused::Unavailable };
        let known = lock(&self.shared.books).idem.get(&(hold.account, idem.key_hash)).map(|known| known.answer(&idem));
        match known {
            Some(Some(Decision::Refused(refused))) => refused,
            Some(Some(Decision::Done { call, op })) if self.shared.durable() >= op => {
                self.finished(hold, call, op).await
            }
            Some(_) => HoldRefused::Unavailable,
            None => self.look_up_idem(hold).await.err().unwrap_or(HoldRefused::Unavailable),
        }
    }

    /// The first call with this key has ended; its reply is in the database as soon as its close is
    /// committed.
    async fn finished(&self, hold: &Hold, call: CallId, op: u64) -> HoldRefused {
        if self.shared.durable() < op && self.flush().await.is_err() {
            return HoldRefused::Unavailable;
        }
        let Some(idem) = hold.idem else { return HoldRefused::Unavailable };
        let reply: Option<StoredReply> = match self.readers.idem(hold.account, idem.key_hash).await {
            Ok(stored) => stored.and_then(|s| s.reply),
            Err(_) => return HoldRefused::Unavailable,
        };
        HoldRefused::IdemDone { call, reply }
    }

    pub fn close(self: &Arc<Self>, mut close: Close) -> Closing {
        close.row.raw_usage = tidy_raw_usage(close.row.raw_usage.take());
        let price_id = close.row.price.as_ref().map(|p| p.id());
        let mut written = record::write_close(&close, price_id, &self.shared.known_prices);
        let Some((closed, op, group)) = self.close_in_books(close, price_id, CloseRecord::New(&mut written)) else {
            self.shared.late_closes.fetch_add(1, Ordering::Relaxed);
            return Closing { wait: ClosingWait::Done(Closed::default()) };
        };
        Closing { wait: ClosingWait::Group { closed, group, op, engine: self.clone() } }
    }

    /// The close, and its record in the journal: with the books in hand, so that no hold that needs
    /// what it gives back is written before it.
    pub(super) fn close_in_books(
        &self,
        close: Close,
        price_id: Option<[u8; 16]>,
        mut record: CloseRecord<'_>,
    ) -> Option<(Closed, u64, Arc<CommitGroup>)> {
        let (now, estimated) = (self.now(), close.estimated_for());
        let (call, account, ended_at) = (close.call, close.account, close.row.ended_at);
        let mut books = lock(&self.shared.books);
        let at = if matches!(record, CloseRecord::Read) { books.replay_time(ended_at, now) } else { now };
        if let CloseRecord::None(hold) = &mut record
            && let Some(hold) = hold.take()
        {
            books.queue_again(hold);
        }
        let (closed, op) = books.close(close, price_id, at)?;
        let group = books.group.clone();
        let crowded = match record {
            CloseRecord::New(bytes) => self.shared.journal.append_close(call, op, bytes, self.shared.durable()),
            CloseRecord::Read => false,
            CloseRecord::None(_) => {
                books.released(account, op);
                false
            }
        };
        if crowded {
            self.shared.ring(books);
        } else {
            self.shared.nudge(books);
        }
        self.shared.count_write_off(&closed);
        self.shared.count_estimated(estimated);
        Some((closed, op, group))
    }

    pub fn mark(&self, mut mark: Mark) {
        if !lock(&self.shared.books).open.contains_key(&mark.call) {
            return;
        }
        mark.row.raw_usage = tidy_raw_usage(mark.row.raw_usage.take());
        let written = record::write_mark(&mark, &self.shared.known_prices);
        self.shared.journal.append_mark(mark.call, written, self.shared.durable());
    }

    pub fn note_refusal(&self, call: CallId, account: AccountId, reason: String, mut row: UsageFacts) {
        row.raw_usage = tidy_raw_usage(row.raw_usage.take());
        let mut books = lock(&self.shared.books);
        if !books.notes_refusals() || self.shared.down.load(Ordering::Relaxed) {
            self.shared.refusals_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        books.push(Op::Refusal(Box::new(RefusalOp { call, account, ending: Ending::Refused, reason, row })));
        self.shared.nudge(books);
    }
}
