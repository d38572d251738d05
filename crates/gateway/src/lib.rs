//! The desk: endpoints, the life of a call, background workers. Knows the four rooms below it; knows nothing of the command
//! line and nothing of the simulator.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod app;
mod bodies;
pub mod call;
pub mod caller;
mod connections;
pub mod cors;
pub mod endpoints;
mod given;
mod groups;
pub mod kept;
pub mod keys;
mod leash;
pub mod machine;
pub mod metrics;
pub mod operator;
mod pauses;
mod price_list;
mod price_versions;
mod published;
pub mod quotes;
pub mod refusal;
pub mod secrets;
pub mod server;
pub mod settings;
pub mod social;
pub mod start;
pub mod switches;
pub mod timed;
mod unread;
pub mod video;
pub mod webhooks;
pub mod workers;
pub mod world;

#[cfg(test)]
mod testing;
