//! An answer that must be stored before its client learns that it is complete, so that the client's
//! next request finds it.
//!
//! The one who keeps gets the whole answer as the client will see it (the response object of a
//! Responses stream). An answer that could not be stored is still the client's, and says that it is
//! not stored; unless the client relies on its being stored, where it has failed.

use crate::call::{Completed, Completion};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use tollgate_dialects::responses::{before_the_end, mark_events_not_stored, mark_not_stored};

/// Who keeps answers.
pub trait Keeper: Send + Sync {
    /// Keeps an answer in one JSON object. Must end in bounded time.
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = StoreOutcome> + Send>>;
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The next request finds it; or it was not to be stored.
    Yes,
    /// The client learns that it is not stored.
    No,
    /// Without it a conversation would go on with a hole in it: the call has failed.
    Failed,
}

/// The error of an answer that has failed so.
const NOT_STORED: &str = "The answer could not be added to its conversation; send the request again.";

/// Keeping as the last step of a call.
struct Keeping(Arc<dyn Keeper>);

/// A call whose answer this one keeps.
pub fn keeping(keeper: Arc<dyn Keeper>) -> Arc<dyn Completion> {
    Arc::new(Keeping(keeper))
}

impl Completion for Keeping {
    fn complete(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = Completed> + Send>> {
        let stored = self.0.keep(answer);
        Box::pin(async move {
            match stored.await {
                StoreOutcome::Yes => Completed::AsItIs,
                StoreOutcome::No => Completed::Changed,
                StoreOutcome::Failed => Completed::Failed,
            }
        })
    }

    fn changed(&self, answer: &Bytes) -> Bytes {
        mark_not_stored(answer)
    }

    fn changed_events(&self, last: &[u8]) -> Bytes {
        mark_events_not_stored(last)
    }

    fn unfinished<'l>(&self, last: &'l [u8]) -> &'l [u8] {
        before_the_end(last)
    }

    fn failure(&self) -> (&'static str, &'static str) {
        (NOT_STORED, "not_kept")
    }
}
