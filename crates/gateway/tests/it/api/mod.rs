//! Paths below /api: what operators use, and whoever manages an account.

mod admin;
mod admin_social;
pub mod catalog;
pub mod jobs;
mod manage;
mod matrix;
pub mod payments;
mod workflows;
