//! The desk: endpoints, the life of a call, background workers. Knows the four rooms below it;
//! knows nothing of the command line and nothing of the simulator. Its own rooms, and which may
//! know which, are in `scripts/arrows`.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod alerts;
pub mod app;
pub mod call;
mod cannot_start;
pub mod configuration;
pub mod csv;
pub mod door;
pub mod endpoints;
mod exports;
pub mod fetcher;
pub mod jobs;
pub mod live;
mod live_meter;
pub mod machine;
pub mod margin_report;
mod margins;
pub mod media_trial;
pub mod metrics;
pub mod payments;
pub mod people;
mod people_meter;
pub mod provider_trial;
mod published;
pub mod quotes;
pub mod reconcile;
pub mod refusal;
pub mod routes;
pub mod sale;
pub mod secrets;
pub mod settings;
pub mod shutdown;
pub mod start;
pub mod statements;
pub mod trial;
mod watching;
pub mod who;
pub mod work;
pub mod workers;
pub mod world;

#[cfg(test)]
mod testing;
