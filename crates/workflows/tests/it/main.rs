//! The crate from outside.

mod generated;
mod packages;
mod records;
mod runs;
