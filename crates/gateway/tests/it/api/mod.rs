//! Paths below /api that operators use.

mod admin;
mod admin_social;
mod payments;
mod workflows;
