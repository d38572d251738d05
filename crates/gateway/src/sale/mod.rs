//! What is on sale and where it comes from, as one snapshot; and the price lists that are written
//! of it.

mod catalog_text;
pub mod groups;
pub mod music;
pub mod offers;
pub mod pictures;
mod price_filter;
pub mod price_list;
pub mod price_page;
pub mod price_versions;
mod publishing;
pub mod ratio_config;
pub mod recordings;
mod serving;
pub mod speech;
mod tier_facts;
mod workflow_board;
pub mod workflows;

pub use catalog_text::{CatalogText, MOST_BYTES as MOST_CATALOG_BYTES, MOST_FILES as MOST_CATALOG_FILES};
pub use offers::Offers;
pub use price_filter::PriceFilter;
pub use publishing::{CatalogReader, CheckedCatalog, ProviderTest, ProviderTester, Publishing};
pub use serving::Serving;
pub use workflow_board::{ShownWorkflow, WorkflowBoard, WorkflowPage};
