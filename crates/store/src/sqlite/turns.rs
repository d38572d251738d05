//! Turns at providers on the embedded engine: one process asks, so they are in memory.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::time::Instant;

use super::{SqliteEngine, lock};
use crate::error::StoreError;
use crate::task::turns::{TurnWish, Turns};

/// The next free turn of each line, in microseconds since this was made.
pub(super) struct TurnQueues {
    began: Instant,
    next: Mutex<HashMap<String, i64>>,
}

impl Default for TurnQueues {
    fn default() -> Self {
        Self { began: Instant::now(), next: Mutex::default() }
    }
}

impl SqliteEngine {
    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn turns(&self, wish: TurnWish<'_>) -> Result<Turns, StoreError> {
        let now = i64::try_from(self.lines.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let mut next = lock(&self.lines.next);
        Ok(wish.take(next.entry(wish.line.to_owned()).or_default(), now))
    }
}
