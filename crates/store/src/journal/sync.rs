//! Holds become durable here: one sync of the files for all that was written before it began. While
//! it runs others go on writing, and gather for the next. Only what was written before a sync
//! counts as synced by it, and where one has failed nothing counts until the database has what it
//! was about: a second try may find the pages clean and the bytes gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::tape::{Seen, Tape};
use super::{Inner, Journal};
use crate::call::group::CommitGroup;

/// The least time from the beginning of one sync to that of the next: on a disk that syncs at once
/// load makes groups instead of more syncs.
const PACE: Duration = Duration::from_millis(1);
/// So long a close may wait for a sync that a hold asks for.
const PATIENCE: Duration = Duration::from_millis(20);
/// So long after a sync the syncer looks for closes by itself: to be woken for each would take the
/// processor from the thread that has an answer to send.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// What the syncer has to do, and who waits for it.
#[derive(Default)]
pub(super) struct Syncing {
    /// Whoever waits for a hold that was written since the last sync began.
    pub group: Arc<CommitGroup>,
    pub wanted: bool,
    /// Since when a close is written and not synced.
    pub closed_since: Option<Instant>,
    pub nap: SyncNap,
    pub stop: bool,
    /// Every sync fails; or those of this data directory, for as long as a test says so.
    #[cfg(feature = "testing")]
    pub fails: bool,
    #[cfg(feature = "testing")]
    pub dir: std::path::PathBuf,
}

/// How deep the syncer sleeps: a close wakes it from `Asleep` only, a hold also from `Dozing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SyncNap {
    /// At work, or there is none.
    #[default]
    Awake,
    Dozing,
    Asleep,
}

/// What the syncer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncNext {
    End,
    Sync,
    /// Until woken for a hold, or for so long.
    Doze(Duration),
    /// For so long, whoever comes.
    Pause(Duration),
    /// Until woken.
    Sleep,
}

impl Syncing {
    pub fn next(&self, unsynced: bool, since_last: Option<Duration>) -> SyncNext {
        if self.stop {
            return if unsynced { SyncNext::Sync } else { SyncNext::End };
        }
        if self.wanted {
            let rest = since_last.map_or(Duration::ZERO, |since| PACE.saturating_sub(since));
            return if rest.is_zero() { SyncNext::Sync } else { SyncNext::Pause(rest) };
        }
        match self.closed_since.map(|since| PATIENCE.saturating_sub(since.elapsed())) {
            None if since_last.is_some_and(|since| since < AFTERWARDS) => SyncNext::Doze(PATIENCE),
            None => SyncNext::Sleep,
            Some(Duration::ZERO) => SyncNext::Sync,
            Some(rest) => SyncNext::Doze(rest),
        }
    }
}

/// A sync that has begun: what was written by then, and who waits for it.
pub(crate) struct JournalSync {
    group: Arc<CommitGroup>,
    parts: Vec<Part>,
    fails: bool,
}

/// One of the segments as it was.
struct Part {
    segment: usize,
    epoch: u64,
    end: u64,
    tape: Arc<Tape>,
    seen: Seen,
}

impl Journal {
    /// Waits for something to sync. `None`: the store is shut and all of it is synced.
    pub fn next_sync(&self, last: Option<Instant>) -> Option<JournalSync> {
        let mut inner = self.lock();
        loop {
            let unsynced = inner.segments.iter().any(|segment| segment.unsynced && !segment.broken);
            match inner.syncing.next(unsynced, last.map(|at| at.elapsed())) {
                SyncNext::End => return None,
                SyncNext::Sync => {
                    inner.syncing.nap = SyncNap::Awake;
                    return Some(inner.begin_sync());
                }
                SyncNext::Pause(rest) => {
                    inner.syncing.nap = SyncNap::Awake;
                    drop(inner);
                    std::thread::sleep(rest);
                    inner = self.lock();
                }
                SyncNext::Doze(rest) => {
                    inner.syncing.nap = SyncNap::Dozing;
                    inner = self.bell.wait_timeout(inner, rest).unwrap_or_else(|e| e.into_inner()).0;
                }
                SyncNext::Sleep => {
                    inner.syncing.nap = SyncNap::Asleep;
                    inner = self.bell.wait(inner).unwrap_or_else(|e| e.into_inner());
                }
            }
        }
    }

    /// Wakes the syncer for a hold, where nobody else has.
    pub fn wake(&self) {
        let mut inner = self.lock();
        let syncing = &mut inner.syncing;
        if syncing.wanted && syncing.nap != SyncNap::Awake {
            syncing.nap = SyncNap::Awake;
            drop(inner);
            self.bell.notify_one();
        }
    }

    /// The same at once, if there is anything to sync: for a simulation, which has no syncer.
    #[cfg(feature = "testing")]
    pub fn begin_sync(&self) -> Option<JournalSync> {
        let mut inner = self.lock();
        inner.segments.iter().any(|segment| segment.unsynced).then(|| inner.begin_sync())
    }

    /// Syncs, and wakes those who wait. `false`: what they wait for is not durable by the journal.
    pub fn finish_sync(&self, sync: JournalSync, durable: impl FnOnce() -> u64) -> bool {
        let JournalSync { group, parts, fails } = sync;
        let done: Vec<(Part, io::Result<()>)> = parts
            .into_iter()
            .map(|part| {
                let synced = if fails { Err(io::Error::other("on purpose")) } else { part.tape.sync(Some(&part.seen)) };
                (part, synced)
            })
            .collect();
        let durable = durable();
        let mut inner = self.lock();
        for (part, synced) in done {
            inner.synced(part.segment, (part.epoch, part.end), synced);
        }
        let trusted = inner.is_trusted(durable);
        drop(inner);
        if trusted {
            group.finish(Vec::new());
        }
        trusted
    }

    /// No more is written: the syncer ends.
    pub fn stop(&self) {
        self.lock().syncing.stop = true;
        self.bell.notify_all();
    }

    /// Syncs what was written since the last sync, with the journal in hand: when commits are late,
    /// and for a close that the database refuses.
    pub fn sync(&self) {
        let mut inner = self.lock();
        for i in 0..2 {
            let segment = &inner.segments[i];
            if segment.unsynced {
                let (upto, synced) = ((segment.epoch, segment.end), segment.tape.sync(None));
                inner.synced(i, upto, synced);
            }
        }
    }
}

impl Inner {
    pub(super) fn begin_sync(&mut self) -> JournalSync {
        self.syncing.wanted = false;
        self.syncing.closed_since = None;
        let group = std::mem::take(&mut self.syncing.group);
        let unsynced = self.segments.iter().enumerate().filter(|(_, segment)| segment.unsynced);
        let mut parts: Vec<Part> = unsynced
            .map(|(i, segment)| Part {
                segment: i,
                epoch: segment.epoch,
                end: segment.end,
                tape: segment.tape.clone(),
                seen: segment.tape.seen(),
            })
            .collect();
        parts.sort_by_key(|part| part.epoch);
        #[cfg(feature = "testing")]
        let fails = self.syncing.fails || crate::testing::syncs_are_broken(&self.syncing.dir);
        #[cfg(not(feature = "testing"))]
        let fails = false;
        JournalSync { group, parts, fails }
    }

    fn synced(&mut self, i: usize, upto: (u64, u64), synced: io::Result<()>) {
        let segment = &mut self.segments[i];
        // One that was taken for new records meanwhile had nothing in it that anybody waits for.
        if segment.epoch != upto.0 {
            return;
        }
        match synced {
            Ok(()) => segment.unsynced &= segment.end > upto.1,
            Err(_) if segment.broken => {}
            Err(error) => {
                segment.broken = true;
                tracing::error!(%error, "cannot sync the journal; holds wait for the database");
            }
        }
    }

    /// Whether what is synced can be read back: all before it was written and synced too, or is in
    /// the database.
    pub(super) fn is_trusted(&self, durable: u64) -> bool {
        let broken = |segment: &super::Segment| segment.broken && segment.last_op > durable;
        self.unwritten_upto <= durable && !self.segments.iter().any(broken)
    }

    /// A hold is written. `true`: the syncer sleeps, and is to be woken for it.
    pub(super) fn hold_wants_sync(&mut self) -> bool {
        self.syncing.wanted = true;
        self.syncing.nap != SyncNap::Awake
    }

    /// A close is written. `true`: the syncer has to be told now, with the bell.
    pub(super) fn close_wants_sync(&mut self) -> bool {
        let syncing = &mut self.syncing;
        syncing.closed_since.get_or_insert_with(Instant::now);
        let asleep = syncing.nap == SyncNap::Asleep;
        if asleep {
            syncing.nap = SyncNap::Awake;
        }
        asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_is_synced_at_once_and_a_close_with_the_next_hold_or_soon() {
        let closed = |before: u64| Syncing { closed_since: Some(Instant::now() - ms(before)), ..Syncing::default() };
        tokio::time::advance(ms(1_000)).await;
        let wanted = || Syncing { wanted: true, ..Syncing::default() };
        let stop = || Syncing { stop: true, ..Syncing::default() };
        let table = [
            ("nothing", Syncing::default(), false, None, SyncNext::Sleep),
            ("nothing after a sync", Syncing::default(), false, Some(ms(999)), SyncNext::Doze(ms(20))),
            ("nothing for long", Syncing::default(), false, Some(ms(1_000)), SyncNext::Sleep),
            ("a mark", Syncing::default(), true, None, SyncNext::Sleep),
            ("the first hold", wanted(), true, None, SyncNext::Sync),
            ("a hold long after another", wanted(), true, Some(ms(1)), SyncNext::Sync),
            ("a hold just after another", wanted(), true, Some(ms(0)), SyncNext::Pause(ms(1))),
            ("a close", closed(0), true, None, SyncNext::Doze(ms(20))),
            ("a close that waits", closed(15), true, Some(ms(0)), SyncNext::Doze(ms(5))),
            ("a close that has waited", closed(20), true, None, SyncNext::Sync),
            ("shut", stop(), false, None, SyncNext::End),
            ("shut with something left", stop(), true, Some(ms(0)), SyncNext::Sync),
        ];
        for (what, seen, unsynced, since, next) in table {
            assert_eq!(seen.next(unsynced, since), next, "{what}");
        }
    }

    #[test]
    fn who_writes_wakes_the_syncer_only_where_it_must() {
        let options = crate::Options::default();
        let dir = tempfile::tempdir().expect("a directory");
        let (journal, _) = Journal::open(dir.path(), &options).expect("a journal");
        let nap = |nap| journal.lock().syncing.nap = nap;
        let told = |told: bool, after: SyncNap| {
            assert_eq!(journal.lock().syncing.nap, after);
            told
        };
        for (before, close, hold) in
            [(SyncNap::Awake, false, false), (SyncNap::Dozing, false, true), (SyncNap::Asleep, true, true)]
        {
            nap(before);
            let rings = journal.lock().close_wants_sync();
            assert_eq!(told(rings, if close { SyncNap::Awake } else { before }), close, "a close, {before:?}");
            nap(before);
            let rings = journal.lock().hold_wants_sync();
            assert_eq!(told(rings, before), hold, "a hold, {before:?}");
            journal.wake();
            assert_eq!(journal.lock().syncing.nap, SyncNap::Awake);
        }
        // Another has been quicker.
        nap(SyncNap::Dozing);
        journal.lock().syncing.wanted = false;
        journal.wake();
        assert_eq!(journal.lock().syncing.nap, SyncNap::Dozing);
    }
}
