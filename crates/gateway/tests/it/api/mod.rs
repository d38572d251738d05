//! Paths below /api that operators use.

mod admin_social;
