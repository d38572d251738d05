//! The meter of a streamed chat reply.

use super::UpstreamError;
use crate::error::{Code, Dialect, write_body};
use crate::usage::Usage;
use bytes::Bytes;

/// A keep-alive every chat client tolerates: one comment line, no blank line.
pub const HEARTBEAT: &[u8] = b": hb\n";

/// How one stream is to be treated.
#[derive(Clone, Debug)]
pub struct StreamSetup {
    /// The client asked for the usage chunk.
    pub wants_usage: bool,
    /// The public model name, when the upstream's differs.
    pub rename_to: Option<String>,
    /// An event longer than this is a fault.
    pub max_event_bytes: usize,
}

/// Why a stream cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The provider sent an error object.
    Upstream(UpstreamError),
    /// An event without end.
    TooLong,
    /// An event that is no chat chunk.
    Garbage,
}

/// A fault and the whole events that came before it in the same chunk: send those first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub before: Bytes,
    pub fault: StreamFault,
}

/// How the upstream's stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Whole. `tail` still has to reach the client (`[DONE]` from a provider that omits it); often empty.
    Complete { tail: Bytes },
    /// No terminal mark: the client needs an error event. Bytes of an unfinished event are dropped.
    Truncated,
    /// The unterminated rest was an error object or nonsense.
    Fault(StreamFault),
}

/// Reads a streamed reply as it passes.
#[derive(Debug)]
pub struct Stream {
    setup: StreamSetup,
}

impl Stream {
    pub fn new(setup: StreamSetup) -> Self {
        Stream { setup }
    }

    /// Takes a chunk from upstream and gives what the client gets now: whole events only, possibly
    /// nothing, and the chunk itself when it holds only whole events that pass unchanged.
    pub fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
        let _ = &self.setup;
        Ok(chunk)
    }

    /// The upstream has closed its side.
    pub fn finish(&mut self) -> End {
        End::Truncated
    }

    /// Disjoint counters from what was reported so far.
    pub fn usage(&self) -> Option<&Usage> {
        None
    }

    /// The last `usage` object as it came.
    pub fn raw_usage(&self) -> Option<&str> {
        None
    }

    /// True when no output came after the last usage report, so that it covers everything seen.
    pub fn usage_is_current(&self) -> bool {
        false
    }

    /// Own count of text, reasoning, refusal, tool names and arguments seen so far.
    pub fn counted_output(&self) -> u64 {
        0
    }

    pub fn has_output(&self) -> bool {
        false
    }

    /// `[DONE]` was seen: nothing of interest follows.
    pub fn saw_done(&self) -> bool {
        false
    }

    /// Events with data seen so far.
    pub fn events(&self) -> u64 {
        0
    }
}

/// An error in the middle of a stream, as both official SDKs expect it.
pub fn error_event(code: Code, message: &str) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 160);
    out.extend_from_slice(b"data: ");
    write_body(&mut out, Dialect::OpenAi, code, message, None, "");
    out.extend_from_slice(b"\n\n");
    Bytes::from(out)
}
