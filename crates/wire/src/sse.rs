//! Server-sent events, read from bytes as they arrive.

use bytes::Bytes;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The exact bytes, the ending blank line included.
    pub raw: Bytes,
    /// The data lines, joined by a newline; `None` when there was none.
    pub data: Option<Bytes>,
    /// The `event:` field.
    pub name: Option<Bytes>,
}

/// An event grew beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Cuts a byte stream into events.
#[derive(Debug)]
pub struct Reader {
    max_event_bytes: usize,
}

impl Reader {
    pub fn new(max_event_bytes: usize) -> Self {
        Reader { max_event_bytes }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, chunk: Bytes) {
        let _ = (chunk, self.max_event_bytes);
    }

    /// The next whole event, if there is one.
    #[expect(clippy::should_implement_trait, reason = "None means more bytes are needed, not the end")]
    pub fn next(&mut self) -> Option<Result<Event, TooLong>> {
        None
    }

    /// The unterminated last event, at the end of the stream.
    pub fn take_rest(&mut self) -> Option<Event> {
        None
    }
}
