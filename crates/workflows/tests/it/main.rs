//! The crate from outside.

mod fuzz;
mod generated;
mod packages;
mod records;
mod runs;
