//! Decisions: a model reads something once and answers typed questions about it with probabilities.
//! Two formats ask for that, System One's and OpenAI's. Each is served by providers of either: the
//! questions are the same, only spelt differently, and so are the answers.

mod answers;
mod assets;
mod question;
mod reply;
mod request;
mod unsaid;

pub use assets::{AssetPart, DecisionBody, UnfoldedRequest, with_assets};
pub use reply::{DecisionReply, NotDecided};
pub use request::{DecisionForm, DecisionRequest, MOST_QUESTIONS};
