//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is
//! sent.

mod ask;
mod bill;
mod candidates;
pub mod copies;
mod copying;
mod desk;
pub mod file;
pub mod links;
mod looking;
mod maker;
pub mod show;
mod stored;
mod task;
pub mod webhooks;

pub use ask::{VideoAsk, most};
pub use copies::CopyStore;
pub use desk::{MadeVideo, VideoDesk, VideoPlan};
pub use stored::{StoredPlan, StoredResult};
pub use task::VideoTask;
