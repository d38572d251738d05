//! Reads a whole chat reply: usage, whether there is any output, an error in disguise.

use super::UpstreamError;
use crate::usage::Usage;
use bytes::Bytes;

/// The body is no chat completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReply;

/// What a whole reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub usage: Option<Usage>,
    /// The provider's `usage` as it came, for the usage row.
    pub raw_usage: Option<String>,
    /// Text, refusal, tool call, audio or reasoning is there.
    pub has_output: bool,
    /// Own count of the output; only when `usage` is `None`.
    pub counted_output: u64,
    /// The reply is an error object.
    pub error: Option<UpstreamError>,
}

/// Reads a whole (not streamed) reply.
pub fn read_reply(body: &Bytes) -> Result<Reply, NotAReply> {
    let _ = body;
    Err(NotAReply)
}

impl Reply {
    /// The body with the public model name; the same `Bytes` when it already has it.
    /// `body` must be the one this reply was read from.
    pub fn with_model(&self, body: Bytes, public: &str) -> Bytes {
        with_model(body, public)
    }
}

/// Puts the public name in the top-level `model` if it differs.
pub fn with_model(body: Bytes, public: &str) -> Bytes {
    let _ = public;
    body
}
