//! After a crash: holds that only the journal has are made again, closes in it are applied, both in
//! the order of the records; calls without a close are settled at their last mark or voided.
//! Everything goes through the same books as in normal life, so it happens once however often it is
//! tried.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use tollgate_catalog::Money;

use crate::call::{Close, Ending, Mark, UsageFacts};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap};
use crate::journal::record::{self, HoldRecord, JournalRecord};
use crate::report::Recovered;
use crate::sqlite::books::replay::HoldAgain;
use crate::sqlite::calls::CloseRecord;
use crate::sqlite::writer::ops::{Op, RefusalOp};
use crate::sqlite::writer::pace::gives_up;
use crate::sqlite::{SqliteEngine, lock};

impl SqliteEngine {
    pub(in crate::sqlite) async fn recover(
        &self,
        records: Vec<Option<JournalRecord>>,
    ) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let mut marks: IdMap<CallId, (Box<Mark>, Option<[u8; 16]>)> = IdMap::default();
        let mut lost: IdMap<CallId, Close> = IdMap::default();
        // A close that was retained is there twice.
        let mut replayed: IdMap<CallId, ()> = IdMap::default();
        let mut new = self.without_row(&records).await?;
        let mut waiting: IdMap<CallId, HoldAgain> = IdMap::default();
        let ended = ended(&records);
        let mut turns = Turns::new(self.options.is_simulated());
        for record in records {
            turns.next().await;
            match record {
                Some(JournalRecord::Mark { mark, price_id, hold }) => {
                    if let Some(hold) = hold.filter(|hold| new.remove(&hold.call))
                        && let Some(hold) = self.hold_again(hold, !ended.contains_key(&mark.call)).await?
                    {
                        waiting.insert(mark.call, hold);
                    }
                    marks.insert(mark.call, (mark, price_id));
                }
                Some(JournalRecord::Close { close, price_id }) => {
                    marks.remove(&close.call);
                    if lock(&self.shared.books).open.contains_key(&close.call) {
                        replayed.insert(close.call, ());
                        count(
                            &mut recovered,
                            self.close_in_books(*close, price_id, CloseRecord::Read)
                                .map(|(closed, ..)| closed.captured),
                        );
                    } else if !replayed.contains_key(&close.call) {
                        lost.insert(close.call, *close);
                    }
                }
                None => recovered.dropped += 1,
            }
        }
        // In the order they were made: rows put into the tables here and there would touch every
        // page again and again.
        let mut left = lock(&self.shared.books).open_calls();
        left.sort_unstable();
        for call in left {
            turns.next().await;
            let (close, price_id) = match marks.remove(&call) {
                Some((mark, price_id)) => (Close::at_mark(*mark, "crashed"), price_id),
                None => match self.without_mark(call, "crashed") {
                    Some(close) => (close, None),
                    None => continue,
                },
            };
            let hold = CloseRecord::None(waiting.remove(&call));
            let closed = self.close_in_books(close.lost(&self.options), price_id, hold);
            count(&mut recovered, closed.map(|(closed, ..)| closed.captured));
        }
        lost.extend(marks.into_values().map(|(mark, _)| (mark.call, Close::at_mark(*mark, "crashed"))));
        self.written().await?;
        recovered.dropped += self.note_lost(lost).await?;
        self.written().await?;
        self.shared.journal.reset()?;
        self.shared.recovered.store(true, Ordering::Release);
        Ok(recovered)
    }

    /// The calls whose hold is in the journal and of which the database knows nothing: neither an
    /// open hold nor a usage row, which comes with every end and with a hold that it has refused.
    async fn without_row(&self, records: &[Option<JournalRecord>]) -> Result<HashSet<CallId>, StoreError> {
        let mut holds: Vec<(AccountId, CallId)> = {
            let books = lock(&self.shared.books);
            let holds = records.iter().filter_map(|record| match record {
                Some(JournalRecord::Mark { hold: Some(hold), .. }) => Some((hold.account, hold.call)),
                _ => None,
            });
            holds.filter(|(_, call)| !books.open.contains_key(call)).collect()
        };
        // As the rows lie.
        holds.sort_unstable();
        self.readers.without_usage(holds).await
    }

    /// Makes a hold again that only the journal has. One that may wait for its end is given back,
    /// to be queued with it.
    async fn hold_again(&self, hold: Box<HoldRecord>, ends_later: bool) -> Result<Option<HoldAgain>, StoreError> {
        let (call, now) = (hold.call, self.now());
        let known = self.load(hold.account, hold.key).await?;
        let mut books = lock(&self.shared.books);
        let Some(again) = known.then(|| books.replay(hold, now)).flatten() else {
            tracing::error!(%call, "a hold of the journal is of nobody");
            return Ok(None);
        };
        if ends_later && books.may_wait(&again, now) {
            return Ok(Some(again));
        }
        books.queue_again(again);
        self.shared.nudge(books);
        Ok(None)
    }

    /// Waits for the commit of all that was put right, however large it is; but not for a database
    /// that cannot be written.
    async fn written(&self) -> Result<(), StoreError> {
        let started = tokio::time::Instant::now();
        loop {
            match self.flush().await {
                Err(error) if gives_up(self.shared.down.load(Ordering::Acquire), started.elapsed()) => {
                    return Err(error);
                }
                Err(error) => tracing::info!(%error, "recovery goes on"),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// The ends of calls that are not open: closed before, or their hold never became durable. In
    /// the second case nothing of the answer reached the client, so it costs nothing; but it may
    /// have reached a provider, so it has its row.
    async fn note_lost(&self, lost: IdMap<CallId, Close>) -> Result<u64, StoreError> {
        let calls = lost.values().map(|close| (close.account, close.call)).collect();
        let without = self.readers.without_usage(calls).await?;
        let mut books = lock(&self.shared.books);
        let noted = without.len() as u64;
        for Close { call, account, ending, reason, row, .. } in lost.into_values() {
            if without.contains(&call) {
                books.push(Op::Refusal(Box::new(RefusalOp { call, account, ending, reason, row })));
            }
        }
        self.shared.nudge(books);
        Ok(noted)
    }

    /// Ends an open call that nobody will end: at its last mark if it has one, else without a
    /// charge.
    pub(in crate::sqlite) fn resolve(&self, call: CallId, reason: &str) -> bool {
        let marked = self.shared.journal.mark_of(call).and_then(|payload| record::read(&payload));
        let (close, price_id) = match marked {
            Some(JournalRecord::Mark { mark, price_id, .. }) => (Close::at_mark(*mark, reason), price_id),
            _ => match self.without_mark(call, reason) {
                Some(close) => (close, None),
                None => return false,
            },
        };
        let close = close.lost(&self.options);
        let mut written = record::write_close(&close, price_id, &self.shared.known_prices);
        let closed = self.close_in_books(close, price_id, CloseRecord::New(&mut written)).is_some();
        if !closed {
            self.shared.journal.forget_mark(call);
        }
        closed
    }

    fn without_mark(&self, call: CallId, reason: &str) -> Option<Close> {
        let now = self.now();
        let books = lock(&self.shared.books);
        let open = books.open.get(&call)?;
        let row = UsageFacts::unanswered(open.key, open.at, now, open.endpoint.clone(), open.model.clone());
        Some(Close::unanswered(call, open.account, Ending::Expired, reason, row))
    }
}

/// The calls whose end is in the journal.
fn ended(records: &[Option<JournalRecord>]) -> IdMap<CallId, ()> {
    let ends = records.iter().filter_map(|record| match record {
        Some(JournalRecord::Close { close, .. }) => Some((close.call, ())),
        _ => None,
    });
    ends.collect()
}

/// Lets others have their turn now and then. In a simulation that is when something is committed,
/// and when another crash comes: after every few steps.
struct Turns {
    every: u32,
    steps: u32,
}

impl Turns {
    fn new(simulated: bool) -> Self {
        Self { every: if simulated { 3 } else { 4_000 }, steps: 0 }
    }

    async fn next(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(self.every) {
            tokio::task::yield_now().await;
        }
    }
}

fn count(recovered: &mut Recovered, captured: Option<Money>) {
    match captured {
        Some(captured) if captured.is_zero() => recovered.voided += 1,
        Some(_) => recovered.settled += 1,
        None => {}
    }
}
