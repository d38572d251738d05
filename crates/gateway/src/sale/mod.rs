//! What is on sale and where it comes from, as one snapshot; and the price lists that are written
//! of it.

pub mod groups;
pub mod offers;
pub mod price_list;
pub mod price_versions;
mod serving;
pub mod speech;

pub use offers::Offers;
pub use serving::Serving;
