//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is
//! sent.

mod alike;
mod ask;
mod bill;
mod copying;
mod desk;
pub mod file;
mod kept;
pub mod links;
mod looking;
mod maker;
mod retention;
mod s3;
pub mod shelf;
pub mod show;
mod task;
mod upload;
pub mod webhooks;

pub use ask::{VideoAsk, most};
pub use desk::{MadeVideo, VideoDesk, VideoPlan};
pub use kept::{KeptPlan, KeptResult};
pub use shelf::Shelf;
pub use task::VideoTask;
