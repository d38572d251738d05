//! An answer that must be kept before its client learns that it is complete, so that the client's next request finds it.
//!
//! The one who keeps gets the whole answer as the client will see it (the response object of a Responses stream) and is
//! waited for; the last events, or the whole reply, leave only then. How it fails is its own affair: an answer that could
//! not be kept is still the client's, who has paid for it.

use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Who keeps answers.
pub trait Keeper: Send + Sync {
    /// Keeps an answer in one JSON object. Must end in bounded time.
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// An answer being kept, and the last piece of its stream that waits for it.
pub struct Keeping {
    kept: Pin<Box<dyn Future<Output = ()> + Send>>,
    last: Bytes,
}

impl Keeping {
    pub fn new(keeper: &dyn Keeper, answer: Bytes, last: Bytes) -> Keeping {
        Keeping { kept: keeper.keep(answer), last }
    }

    /// The last piece, once the answer is kept.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        self.kept.as_mut().poll(cx).map(|()| self.last.clone())
    }
}
