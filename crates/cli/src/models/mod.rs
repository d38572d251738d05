//! `catalog list`, `enable`, `disable`, `import` and `update`: real models with real list prices, in
//! the operator's catalog.

mod desk;
mod folder;
mod shipped;

pub use shipped::{disable, enable, list};
