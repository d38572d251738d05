//! What has to be done with an answer before its client learns that it is complete: to be stored,
//! so that the client's next request finds it.
//!
//! Whoever does it gets the whole answer as the client will see it and is waited for; the last
//! events, or the whole answer, leave only then. What does not come off may change the client's
//! error, or be the failure of the call.

use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The last step of an answer.
pub trait Completion: Send + Sync {
    /// Takes the step for an answer. Must end in bounded time.
    fn complete(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = Completed> + Send>>;
    /// A whole answer as it goes out after [`Completed::Changed`].
    fn changed(&self, answer: &Bytes) -> Bytes;
    /// The last piece of a stream as it goes out after [`Completed::Changed`].
    fn changed_events(&self, last: &[u8]) -> Bytes;
    /// What of the last piece of a stream may go out although the step has failed: nothing that
    /// says the answer is complete.
    fn unfinished<'l>(&self, last: &'l [u8]) -> &'l [u8];
    /// The error for the client of a failed call, and the reason that stands in its usage row.
    fn failure(&self) -> (&'static str, &'static str);
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The answer goes out as it is.
    AsItIs,
    /// It goes out as the step has changed it.
    Changed,
    /// The call has failed, and costs nothing where nothing of it went out.
    Failed,
}

/// A step that is being taken, and the last piece of its stream that waits for it.
pub(super) struct Completing {
    step: Arc<dyn Completion>,
    done: Pin<Box<dyn Future<Output = Completed> + Send>>,
    last: Bytes,
}

impl Completing {
    pub fn new(step: Arc<dyn Completion>, answer: Bytes, last: Bytes) -> Completing {
        let done = step.complete(answer);
        Completing { step, done, last }
    }

    /// What became of it, and the last piece that may go out now.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StreamEnding> {
        self.done.as_mut().poll(cx).map(|done| match done {
            Completed::AsItIs => StreamEnding::Answered(self.last.clone()),
            Completed::Changed => StreamEnding::Answered(self.step.changed_events(&self.last)),
            Completed::Failed => {
                let (message, reason) = self.step.failure();
                StreamEnding::Failed {
                    before: Bytes::copy_from_slice(self.step.unfinished(&self.last)),
                    message,
                    reason,
                }
            }
        })
    }
}

/// How a stream ends after its last step.
pub(super) enum StreamEnding {
    Answered(Bytes),
    Failed { before: Bytes, message: &'static str, reason: &'static str },
}
