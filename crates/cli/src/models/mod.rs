//! `catalog list`, `enable`, `disable`, `import`, `update` and `tidy`: real models with real list
//! prices, in the operator's catalog: in its folder, or published in the database.

mod desk;
mod folder;
mod import;
mod published;
mod shipped;
mod tidy;
mod update;

pub use import::import;
pub use published::PublishedCatalog;
pub use shipped::{disable, enable, enable_quietly, list};
pub use tidy::tidy;
pub use update::update;
