//! OpenAI chat completions: reading requests, replies and streamed events.
//!
//! Everything passes through as bytes; only `model`, `stream_options.include_usage` and the
//! events a client must not see are touched.

mod reply;
mod request;
mod stream;

pub use reply::{NotAReply, Reply, read_reply, with_model};
pub use request::{Problem, Request, read_request};
pub use stream::{Broken, End, HEARTBEAT, Stream, StreamFault, StreamSetup, error_event};

/// An error object sent by a provider, as it came: not yet safe for a client's eyes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamError {
    /// A numeric `code` or `status` inside the object.
    pub status: Option<u16>,
    pub code: Option<String>,
    /// `type`.
    pub kind: Option<String>,
    pub param: Option<String>,
    pub message: String,
}
