//! The audit reads the whole ledger, on a machine that may have one core. It gives way while the
//! ledger's writer is late, and not for ever: its snapshot keeps the write-ahead log from being
//! tidied.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::sqlite::{Shared, lock};

/// The audit looks at the writer each time it has read so many rows.
const ROWS: u32 = 1_000;
/// How late the writer is when it needs the machine: later than it ever is by intention.
const LATE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(in crate::sqlite) struct GiveWay {
    /// `None`: there is no other thread.
    to: Option<Arc<Shared>>,
    rows: u32,
    begun: Instant,
    waited: Duration,
}

impl GiveWay {
    pub fn new(to: Option<Arc<Shared>>) -> Self {
        Self { to, rows: 0, begun: Instant::now(), waited: Duration::ZERO }
    }

    /// A row was read.
    pub fn row(&mut self) {
        self.rows += 1;
        if self.rows < ROWS {
            return;
        }
        self.rows = 0;
        let Some(to) = &self.to else { return };
        while waits(lock(&to.books).behind(), self.waited, self.begun.elapsed()) {
            std::thread::sleep(PAUSE);
            self.waited += PAUSE;
        }
    }
}

/// Whether a reader waits that has waited so much of its time: at least a quarter it reads.
fn waits(behind: Duration, waited: Duration, elapsed: Duration) -> bool {
    behind > LATE && waited * 4 < elapsed * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_writer_goes_first_for_three_quarters_of_the_time() {
        let ms = Duration::from_millis;
        let table = [
            ("the writer is as late as it may be", ms(500), ms(0), ms(1_000), false),
            ("the writer is late", ms(501), ms(0), ms(1_000), true),
            ("and has been given way to", ms(501), ms(749), ms(1_000), true),
            ("for long enough", ms(501), ms(750), ms(1_000), false),
            ("for long enough, however late it is", ms(60_000), ms(750), ms(1_000), false),
            ("and the reader has read on", ms(501), ms(750), ms(1_001), true),
        ];
        for (what, behind, waited, elapsed, expected) in table {
            assert_eq!(waits(behind, waited, elapsed), expected, "{what}");
        }
    }
}
