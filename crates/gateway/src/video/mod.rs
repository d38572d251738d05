//! Videos at the desk: which rules a model on sale goes by, and what a request costs before it is sent.

mod ask;
pub mod offers;

pub use ask::VideoAsk;
pub use offers::Offers;
