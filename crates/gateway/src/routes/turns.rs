//! Turns at providers: no more questions about tasks begin in a second than a provider allows,
//! whoever asks them. All replicas take their turns from one line in the store, a small block at a
//! time, so that a question costs no statement of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Line;
use tokio::time::{Instant, sleep_until};
use tollgate_store::{Store, StoreError, TurnWish};

/// A turn that is this late is lost: who slept too long must not meet all the others who did.
const LATE: Duration = Duration::from_millis(100);
/// Turns are this share of the limit, in tenths: what is a little late does not fall together with
/// what is on time.
const SHARE: i64 = 9;
/// A block is a tenth of a second's turns, and not more than this.
const LARGEST: u32 = 100;

/// The blocks this process has, by provider.
#[derive(Default)]
pub struct TurnBlocks {
    lines: Mutex<HashMap<String, Arc<Line<Block>>>>,
}

/// Turns in hand: so many, the first at a moment, the others behind it.
struct Block {
    first: Instant,
    left: u32,
    /// Until then the line is longer than anybody would wait.
    full_until: Instant,
}

impl Block {
    fn take(&mut self, now: Instant, every: Duration) -> Option<Instant> {
        while self.left > 0 {
            let at = self.first;
            (self.first, self.left) = (at + every, self.left - 1);
            if at + LATE >= now {
                return Some(at);
            }
        }
        None
    }
}

impl TurnBlocks {
    /// Waits for a turn in the line of a provider that takes so many questions a second; 0: as many
    /// as there are. `false`: it would take longer than `patience`.
    pub async fn turn(
        &self,
        store: &Store,
        provider: &str,
        per_second: u32,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        if per_second == 0 {
            return Ok(true);
        }
        let line = self.line(provider);
        let wish = Wish { provider, per_second, patience, until: Instant::now() + patience };
        // Those who stood still together have another turn each and go on one after the other. A
        // process that is always late must not wait for ever, so that one counts.
        for last in [false, true] {
            let Some(at) = wish.next(&line, store).await? else { return Ok(false) };
            sleep_until(at).await;
            if last || Instant::now() <= at + LATE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn line(&self, provider: &str) -> Arc<Line<Block>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(provider) {
            return line.clone();
        }
        let now = Instant::now();
        let line = Arc::new(Line::new(Block { first: now, left: 0, full_until: now }));
        lines.insert(provider.to_owned(), line.clone());
        line
    }
}

/// Somebody who wants a turn, until a moment.
struct Wish<'a> {
    provider: &'a str,
    per_second: u32,
    patience: Duration,
    until: Instant,
}

impl Wish<'_> {
    /// The next turn: one of the block in hand, or the first of a new one.
    async fn next(&self, line: &Line<Block>, store: &Store) -> Result<Option<Instant>, StoreError> {
        let every_us = (10_000_000 / (SHARE * i64::from(self.per_second))).max(1);
        let every = Duration::from_micros(every_us.unsigned_abs());
        let mut block = line.lock().await;
        let now = Instant::now();
        if let Some(at) = block.take(now, every) {
            return Ok(Some(at));
        }
        let left = self.until.saturating_duration_since(now);
        if now < block.full_until || left.is_zero() {
            return Ok(None);
        }
        let patience_us = i64::try_from(left.as_micros()).unwrap_or(i64::MAX);
        let count = (self.per_second / 10).clamp(1, LARGEST);
        let turns = store.turns(TurnWish { line: self.provider, every_us, count, patience_us }).await?;
        let after = Duration::from_micros(turns.after_us.max(0).unsigned_abs());
        if turns.count == 0 {
            // Nobody else needs to ask before it is shorter.
            block.full_until = now + after.saturating_sub(self.patience);
            return Ok(None);
        }
        (block.first, block.left) = (Instant::now() + after, turns.count);
        Ok(block.take(now, every))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_block_is_used_in_order_and_what_is_late_is_lost() {
        let now = Instant::now();
        let every = Duration::from_millis(50);
        let mut block = Block { first: now, left: 5, full_until: now };
        assert_eq!(block.take(now, every), Some(now));
        assert_eq!(block.take(now, every), Some(now + every), "the next one is to be waited for");
        let late = now + Duration::from_millis(240);
        assert_eq!(block.take(late, every), Some(now + every * 3), "the one at 100 ms is lost, that at 150 ms is not");
        assert_eq!((block.take(late, every), block.take(late, every)), (Some(now + every * 4), None));
    }
}
