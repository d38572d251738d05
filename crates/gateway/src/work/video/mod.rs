//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is sent.

mod ask;
pub mod file;
mod home;
mod kept;
pub mod links;
mod retention;
mod s3;
pub mod shelf;
pub mod show;
mod upload;
pub mod webhooks;

pub use ask::{VideoAsk, most};
pub use home::{Home, home};
pub use kept::{KeptPlan, KeptResult};
pub use shelf::Shelf;
