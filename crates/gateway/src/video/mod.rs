//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is sent.

mod ask;
mod kept;
pub mod offers;

pub use ask::{VideoAsk, most};
pub use kept::{KeptPlan, KeptResult};
pub use offers::Offers;
