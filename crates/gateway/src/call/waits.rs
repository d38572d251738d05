//! Whom an answer waits for on its way: its provider, or its client. Both end it the same way, by
//! time or by a connection that breaks; only one of them is a reason to charge nothing.

use crate::world::Millis;

/// A provider that was left waiting for so long may well have given up. What broke meanwhile is the
/// client's doing.
const PATIENCE: Millis = 10_000;

/// An answer is late because of its client when that took a part of its time as large as this: one
/// in so many.
const PART: Millis = 4;

/// The waits of one answer, by the steady clock.
pub(super) struct Waits {
    since: Millis,
    /// The client has a piece and has not asked for the next one.
    handed: bool,
    by_client: Millis,
    by_provider: Millis,
    /// The longest that the client left something unread since the provider was last seen silent.
    unread: Millis,
}

impl Waits {
    pub fn new(now: Millis) -> Waits {
        Waits { since: now, handed: true, by_client: 0, by_provider: 0, unread: 0 }
    }

    /// The client asks for the next piece.
    pub fn asked(&mut self, now: Millis) {
        let passed = now.saturating_sub(self.since).max(0);
        if self.handed {
            self.by_client = self.by_client.saturating_add(passed);
            self.unread = self.unread.max(passed);
        } else {
            self.by_provider = self.by_provider.saturating_add(passed);
        }
        self.since = now;
    }

    /// The client has what it asked for.
    pub fn handed(&mut self) {
        self.handed = true;
    }

    /// There is nothing to hand over yet.
    pub fn silent(&mut self) {
        self.handed = false;
        self.unread = 0;
    }

    /// The connection to the provider is found broken: it was so when the client came back.
    pub fn left_alone(&self) -> bool {
        self.unread >= PATIENCE
    }

    /// The time is up: it would have done, but for the client.
    pub fn dawdled(&self) -> bool {
        self.by_client.saturating_mul(PART) >= self.by_client.saturating_add(self.by_provider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line each: what the answer waited for, and for how long.
    fn waits(of: &[(char, Millis)]) -> Waits {
        let (mut waits, mut now) = (Waits::new(1_000), 1_000);
        for (who, ms) in of {
            match who {
                'c' => waits.handed(),
                _ => waits.silent(),
            }
            now += ms;
            waits.asked(now);
        }
        waits
    }

    #[test]
    fn what_broke_while_nobody_read_is_the_clients_doing() {
        for (of, left_alone) in [
            (&[('c', 9_999)][..], false),
            (&[('c', 10_000)], true),
            // Pieces that were there already are read, and then it shows.
            (&[('c', 10_000), ('c', 0), ('c', 1)], true),
            // The provider was alive after it, and has broken since.
            (&[('c', 60_000), ('p', 1), ('c', 0)], false),
            (&[('p', 60_000)], false),
        ] {
            assert_eq!(waits(of).left_alone(), left_alone, "{of:?}");
        }
    }

    #[test]
    fn an_answer_is_late_because_of_whoever_took_the_time() {
        for (of, dawdled) in [
            (&[('c', 1_800_000)][..], true),
            (&[('p', 1_800_000)], false),
            (&[('c', 900_000), ('p', 900_000)], true),
            // Slow until the end is near, then as fast as can be.
            (&[('c', 1_799_000), ('p', 1_000)], true),
            (&[('c', 450_000), ('p', 1_350_000)], true),
            (&[('c', 449_999), ('p', 1_350_000)], false),
        ] {
            assert_eq!(waits(of).dawdled(), dawdled, "{of:?}");
        }
    }
}
