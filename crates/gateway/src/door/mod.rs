//! The door: connections, their number and their limits, the memory for bodies, and which pages may
//! ask. It knows nothing of what is asked for.

pub mod bodies;
mod connections;
pub mod cors;
mod leash;
pub mod peer;
pub mod server;
pub mod timed;
mod unread;
