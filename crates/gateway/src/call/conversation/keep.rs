//! An answer that must be kept before its client learns that it is complete, so that the client's next request finds it.
//!
//! The one who keeps gets the whole answer as the client will see it (the response object of a Responses stream) and is
//! waited for; the last events, or the whole reply, leave only then. An answer that could not be kept is still the client's, and
//! says that it is not stored; unless the client relies on its being kept, where it has failed.

use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Who keeps answers.
pub trait Keeper: Send + Sync {
    /// Keeps an answer in one JSON object. Must end in bounded time.
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = Kept> + Send>>;
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The next request finds it; or it was not to be kept.
    Yes,
    /// The client is told that it is not stored.
    No,
    /// Without it a conversation would go on with a hole in it: the call has failed.
    Failed,
}

/// What is told of an answer that has failed so.
pub const NOT_KEPT: &str = "The answer could not be added to its conversation; send the request again.";

/// An answer being kept, and the last piece of its stream that waits for it.
pub struct Keeping {
    kept: Pin<Box<dyn Future<Output = Kept> + Send>>,
    last: Bytes,
}

impl Keeping {
    pub fn new(keeper: &dyn Keeper, answer: Bytes, last: Bytes) -> Keeping {
        Keeping { kept: keeper.keep(answer), last }
    }

    /// The last piece, once it is known whether the answer is kept.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Kept, Bytes)> {
        self.kept.as_mut().poll(cx).map(|kept| (kept, self.last.clone()))
    }
}
