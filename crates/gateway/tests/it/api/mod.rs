//! Paths below /api that operators use.

mod admin;
mod admin_social;
pub mod payments;
mod workflows;
