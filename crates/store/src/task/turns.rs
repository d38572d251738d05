//! The pace at which providers are asked about tasks: turns follow each other at an even distance,
//! one line per provider, shared by all replicas. The arithmetic is here for the embedded engine;
//! `tollgate_turns` repeats it where replicas share a database.

/// A wish for some turns that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct TurnWish<'a> {
    /// Whose turns.
    pub line: &'a str,
    /// From one turn to the next, in microseconds.
    pub every_us: i64,
    pub count: u32,
    /// The latest turn that is any use, in microseconds from now. At most half a minute: a turn
    /// further ahead is taken for the trace of a clock that was set back.
    pub patience_us: i64,
}

/// Turns that were given: they belong to whoever asked, used or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Microseconds until the first, which is later than the patience when none was given.
    pub after_us: i64,
    pub count: u32,
}

/// No line reaches this far ahead.
const FARTHEST_US: i64 = 60_000_000;

impl TurnWish<'_> {
    /// Takes turns from a line whose next free one is at `next_us`.
    pub(crate) fn take(&self, next_us: &mut i64, now_us: i64) -> Turns {
        let first = if *next_us > now_us + FARTHEST_US { now_us } else { now_us.max(*next_us) };
        let after_us = first - now_us;
        if after_us > self.patience_us {
            return Turns { after_us, count: 0 };
        }
        let every = self.every_us.max(1);
        let fit = (self.patience_us - after_us) / every + 1;
        let count = u32::try_from(fit).unwrap_or(u32::MAX).min(self.count);
        *next_us = first + every * i64::from(count);
        Turns { after_us, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_as_far_as_patience_reaches() {
        let wish = TurnWish { line: "p", every_us: 100, count: 3, patience_us: 500 };
        let mut next = 0;
        for (now, after_us, count) in [(1_000, 0, 3), (1_000, 300, 3), (1_000, 600, 0), (1_150, 450, 1), (9_000, 0, 3)]
        {
            assert_eq!(wish.take(&mut next, now), Turns { after_us, count }, "at {now}");
        }
        next = 9_000 + FARTHEST_US + 1;
        assert_eq!(wish.take(&mut next, 9_000), Turns { after_us: 0, count: 3 }, "the clock was set back");
    }
}
