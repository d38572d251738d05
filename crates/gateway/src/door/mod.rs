//! The door: connections, their number and their limits, room for bodies in memory and on disk, and
//! which pages may ask. It knows nothing of what is asked for.

pub mod bodies;
mod connections;
pub mod cors;
pub mod counted;
pub mod http1;
mod http2;
mod last_word;
pub mod passing;
pub mod peer;
pub mod protocol;
pub mod server;
pub mod spool;
mod stalled_streams;
pub mod tls;
mod unread;
pub mod write_timeout;
