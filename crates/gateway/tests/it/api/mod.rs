//! Paths below /api: what operators use, and whoever manages an account.

mod admin;
mod admin_close;
mod admin_social;
pub mod catalog;
mod drafts;
pub mod jobs;
mod live;
mod live_house;
mod live_outage;
mod manage;
mod matrix;
pub mod payments;
mod provider_tests;
mod watcher;
mod workflows;
