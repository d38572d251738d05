//! What is on sale and where it comes from, as one snapshot; and the price lists that are written
//! of it.

pub mod groups;
pub mod music;
pub mod offers;
mod price_filter;
pub mod price_list;
pub mod price_page;
pub mod price_versions;
pub mod ratio_config;
pub mod recordings;
mod serving;
pub mod speech;
mod workflow_board;
pub mod workflows;

pub use offers::Offers;
pub use price_filter::PriceFilter;
pub use serving::Serving;
pub use workflow_board::{ShownWorkflow, WorkflowBoard, WorkflowPage};
