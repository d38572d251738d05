//! How a streamed reply ends or breaks, and the events we write ourselves.

use bytes::Bytes;
use tollgate_wire::StreamFault;
use tollgate_wire::error::{Code, ErrorFormat, write_body};

/// A keep-alive every chat client tolerates: one comment line, no blank line.
pub const HEARTBEAT: &[u8] = b": hb\n";

/// A fault and the whole events that came before it in the same chunk: send those first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenStream {
    pub before: Bytes,
    pub fault: StreamFault,
}

/// How the upstream's stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// Whole. `tail` still has to reach the client (`[DONE]` from a provider that omits it); often
    /// empty.
    Complete { tail: Bytes },
    /// No terminal mark: after `rest` (a whole last event, often empty) the client needs an error
    /// event.
    Truncated { rest: Bytes },
    /// The unterminated rest was an error object.
    Fault(StreamFault),
}

/// An error in the middle of a stream, as both official SDKs expect it.
pub fn error_event(code: Code, message: &str) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 160);
    out.extend_from_slice(b"data: ");
    write_body(&mut out, ErrorFormat::OpenAi, code, message, None, "");
    out.extend_from_slice(b"\n\n");
    Bytes::from(out)
}
