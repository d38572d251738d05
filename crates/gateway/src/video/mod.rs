//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is sent.

mod ask;
pub mod file;
mod home;
mod kept;
pub mod links;
pub mod offers;
mod retention;
mod s3;
mod settings;
pub mod shelf;
pub mod show;
mod turns;
mod upload;

pub use ask::{VideoAsk, most};
pub use home::{Home, home};
pub use kept::{KeptPlan, KeptResult};
pub use offers::Offers;
pub use settings::{Bucket, CopyTo, Delivery, VideoSettings, WebhookSettings};
pub use shelf::Shelf;
pub use turns::TurnBook;
