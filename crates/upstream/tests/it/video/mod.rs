//! Every maker against the simulated provider, over real sockets: every way a task can be made, go
//! on, fail and be lost.

mod any_reply;
mod creating;
mod files;
mod finding;
mod house;
mod keys;
pub mod makers;
mod polling;
mod usage;
