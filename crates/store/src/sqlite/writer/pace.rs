//! When the writer writes, waits and gives up: decided from what it sees, without a clock or a
//! thread.

use std::time::Duration;

/// Whoever waits is waited with for so long, for company.
const GATHER: Duration = Duration::from_millis(1);
/// Without work for so long, the writer tidies up and sleeps until it is woken.
const IDLE: Duration = Duration::from_secs(1);
/// The journal is synced when commits have been late for this long.
const JOURNAL_SYNC: Duration = Duration::from_millis(50);
/// A start gives up when the database cannot be written for this long.
const DOWN_PATIENCE: Duration = Duration::from_secs(30);
/// The first and the longest pause before a group is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];
/// How often a group is tried again when the store is to shut: what is not committed is in the
/// journal.
const TRIES_AFTER_STOP: u32 = 20;

/// What the writer sees when it looks up from its work.
#[derive(Clone, Copy)]
pub(in crate::sqlite) struct WriterView {
    /// How long the first of the queue has waited; `None` when nothing is queued.
    pub waited: Option<Duration>,
    /// Somebody waits for what is queued.
    pub hurry: bool,
    pub stop: bool,
    /// How long there has been nothing to do, and whether the file was tidied since.
    pub idle: Duration,
    pub tidied: bool,
    pub since_commit: Option<Duration>,
    /// The least time from one commit to the next.
    pub pace: Duration,
    /// How long what nobody waits for may stay queued: it is in the journal.
    pub patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Next {
    /// Everything is written and the store is shut.
    End,
    Tidy,
    /// Until woken.
    Sleep,
    /// Until woken for something urgent, or for so long.
    Doze(Duration),
    /// Write what will have queued by then.
    Write {
        after: Duration,
    },
}

impl WriterView {
    pub fn next(&self) -> Next {
        let Some(waited) = self.waited else {
            return match (self.stop, self.idle > IDLE, self.tidied) {
                (true, ..) => Next::End,
                (_, false, _) => Next::Doze(self.patience),
                (_, true, false) => Next::Tidy,
                (_, true, true) => Next::Sleep,
            };
        };
        if self.stop {
            return Next::Write { after: Duration::ZERO };
        }
        let early = self.patience.saturating_sub(waited);
        if !self.hurry && !early.is_zero() {
            return Next::Doze(early);
        }
        let rest = self.since_commit.map_or(Duration::ZERO, |since| self.pace.saturating_sub(since));
        Next::Write { after: rest.max(GATHER) }
    }
}

/// The tries of one group that the database does not take.
pub(in crate::sqlite) struct Tries {
    pause: Duration,
    after_stop: u32,
}

impl Tries {
    pub fn new() -> Self {
        Self { pause: PAUSES[0], after_stop: 0 }
    }

    /// How long to wait before the next try; `None` when it is over.
    pub fn again(&mut self, stop: bool) -> Option<Duration> {
        self.after_stop += u32::from(stop);
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES[1]);
        (self.after_stop <= TRIES_AFTER_STOP).then_some(pause)
    }
}

/// Whether what has waited so long for a commit is to be safe in the journal by itself.
pub(in crate::sqlite) fn is_late(waited: Duration) -> bool {
    waited > JOURNAL_SYNC
}

/// Whether a start that has waited so long for its recovery to be written gives up: not for a large
/// one, but for a database that cannot be written.
pub(in crate::sqlite) fn gives_up(down: bool, waited: Duration) -> bool {
    down && waited > DOWN_PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const NOTHING: WriterView = WriterView {
        waited: None,
        hurry: false,
        stop: false,
        idle: Duration::ZERO,
        tidied: false,
        since_commit: None,
        pace: Duration::ZERO,
        patience: ms(20),
    };

    #[test]
    fn the_writer_writes_at_its_pace() {
        let waited = |n| WriterView { waited: Some(ms(n)), ..NOTHING };
        let urgent = WriterView { hurry: true, ..waited(0) };
        let paced = |since| WriterView { since_commit: Some(ms(since)), pace: ms(5), ..urgent };
        let table = [
            ("nothing to do", NOTHING, Next::Doze(ms(20))),
            ("nothing for a second", WriterView { idle: ms(1_000), ..NOTHING }, Next::Doze(ms(20))),
            ("nothing for longer", WriterView { idle: ms(1_001), ..NOTHING }, Next::Tidy),
            ("tidied", WriterView { idle: ms(1_001), tidied: true, ..NOTHING }, Next::Sleep),
            ("tidied a moment ago", WriterView { tidied: true, ..NOTHING }, Next::Doze(ms(20))),
            ("shut", WriterView { stop: true, ..NOTHING }, Next::End),
            ("shut after a sleep", WriterView { stop: true, idle: ms(1_001), ..NOTHING }, Next::End),
            ("nobody waits", waited(0), Next::Doze(ms(20))),
            ("nobody waits, for a while", waited(13), Next::Doze(ms(7))),
            ("nobody waits, long enough", waited(20), Next::Write { after: ms(1) }),
            ("nobody waits, too long", waited(50), Next::Write { after: ms(1) }),
            ("somebody waits", urgent, Next::Write { after: ms(1) }),
            ("somebody waits, just after a commit", paced(2), Next::Write { after: ms(3) }),
            ("somebody waits, a while after a commit", paced(4), Next::Write { after: ms(1) }),
            ("somebody waits, long after a commit", paced(9), Next::Write { after: ms(1) }),
            ("shut with work left", WriterView { stop: true, ..paced(2) }, Next::Write { after: ms(0) }),
            ("shut with work nobody waits for", WriterView { stop: true, ..waited(0) }, Next::Write { after: ms(0) }),
        ];
        for (what, seen, next) in table {
            assert_eq!(seen.next(), next, "{what}");
        }
    }

    #[test]
    fn a_group_is_tried_again_for_as_long_as_the_store_is_open() {
        let mut tries = Tries::new();
        let pauses: Vec<u64> =
            (0..6).map(|_| tries.again(false).expect("open").as_millis().try_into().expect("few")).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 250, 250]);
        assert!((0..1_000).all(|_| tries.again(false).is_some()));
        assert!((0..20).all(|_| tries.again(true).is_some()), "twenty times more");
        assert_eq!(tries.again(true), None);
    }

    #[test]
    fn the_journal_is_synced_when_commits_are_late() {
        assert!(!is_late(ms(50)) && is_late(ms(51)));
    }

    #[test]
    fn a_start_waits_for_work_and_not_for_a_database_that_is_down() {
        assert!(!gives_up(true, ms(30_000)) && gives_up(true, ms(30_001)));
        assert!(!gives_up(false, ms(3_600_000)), "a large recovery takes its time");
    }
}
