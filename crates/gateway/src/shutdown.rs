//! The steps of a stop, as everybody sees them: no new calls, no time left for open ones, the last
//! one closed.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub struct Shutdown {
    /// Cancelled at the beginning of a stop: new calls are refused.
    pub stopping: CancellationToken,
    /// Cancelled when the time for open streams is over: each ends with a proper error event.
    pub cut: CancellationToken,
    /// The same as a flag, for streams that look at it with every piece.
    cutting: AtomicBool,
    /// Cancelled when the last call is closed: the regular rounds may end.
    pub ended: CancellationToken,
}

impl Shutdown {
    /// The time for open calls is over.
    pub fn cut_calls(&self) {
        self.cutting.store(true, Ordering::Relaxed);
        self.cut.cancel();
    }

    pub fn is_cutting(&self) -> bool {
        self.cutting.load(Ordering::Relaxed)
    }
}
