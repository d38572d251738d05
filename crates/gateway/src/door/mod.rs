//! The door: connections, their number and their limits, the memory for bodies, and which pages may
//! ask. It knows nothing of what is asked for.

pub mod bodies;
mod connections;
pub mod cors;
pub mod peer;
pub mod server;
mod stalled_streams;
mod unread;
pub mod write_timeout;
