//! Every scenario seen over a raw socket, so that no HTTP library hides what was sent.

mod client;
mod dialects;
mod faults;
mod framing;
mod leaving;
mod plain;
mod realtime;
mod social;
mod usage;
mod videos;
