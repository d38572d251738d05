//! Server-sent events, cut from bytes as they arrive.
//!
//! Lines end with CR, LF or CRLF and nothing else; text is never decoded. Each byte is looked
//! at once, however the stream is cut into chunks, and copied only when its event spans chunks.
//! The raw bytes of all events plus the rest are exactly the input.

use bytes::Bytes;
use std::ops::Range;

/// An event grew beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The data of one event, as places in its raw bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventData {
    None,
    One(Range<usize>),
    /// Several lines; see [`join`].
    Many,
}

/// Where the parts of one event stand in its raw bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub end: usize,
    pub data: EventData,
    pub name: Option<Range<usize>>,
    /// An `id:` or `retry:` line is there.
    pub control: bool,
}

/// All data lines of an event, put together with `between`.
pub fn join(raw: &[u8], between: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut first = true;
    let mut start = if raw.starts_with(BOM) { BOM.len() } else { 0 };
    while start < raw.len() {
        let end = memchr::memchr2(b'\r', b'\n', &raw[start..]).map_or(raw.len(), |at| start + at);
        if let Some(("data", value)) = field(raw, start..end) {
            if !first {
                out.push(between);
            }
            first = false;
            out.extend_from_slice(&raw[value]);
        }
        start = end + 1;
    }
    out
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Name and value of a line; `None` for comments and unknown names.
fn field(raw: &[u8], line: Range<usize>) -> Option<(&'static str, Range<usize>)> {
    let bytes = &raw[line.clone()];
    let name = match bytes.first()? {
        b'd' => "data",
        b'e' => "event",
        b'i' => "id",
        b'r' => "retry",
        _ => return None,
    };
    let after = bytes.strip_prefix(name.as_bytes())?;
    let start = match after {
        [] => line.end,
        [b':', b' ', ..] => line.start + name.len() + 2,
        [b':', ..] => line.start + name.len() + 1,
        _ => return None,
    };
    Some((name, start..line.end))
}

/// The state of looking for the end of one event: positions count from the event's start.
#[derive(Debug, Default)]
struct Look {
    /// Everything before this has been looked at.
    at: usize,
    /// Start of the current line.
    line: usize,
    data: Option<Range<usize>>,
    many: bool,
    name: Option<Range<usize>>,
    control: bool,
}

impl Look {
    fn line(&mut self, bytes: &[u8], line: Range<usize>) {
        match field(bytes, line) {
            Some(("data", _)) if self.data.is_some() => self.many = true,
            Some(("data", value)) => self.data = Some(value),
            Some(("event", value)) => self.name = Some(value),
            Some(_) => self.control = true,
            None => {}
        }
    }

    fn frame(self, end: usize) -> Frame {
        let data = match self.data {
            None => EventData::None,
            Some(_) if self.many => EventData::Many,
            Some(place) => EventData::One(place),
        };
        Frame { end, data, name: self.name, control: self.control }
    }
}

/// Finds the ends of events and keeps the start of an unfinished one between chunks.
#[derive(Debug)]
pub struct Cutter {
    held: Vec<u8>,
    look: Look,
    found: Option<Frame>,
    /// The last event ended with a CR that may be half of a CRLF.
    after_cr: bool,
    /// Nothing was read yet: a byte order mark may come.
    fresh: bool,
    max: usize,
}

impl Cutter {
    pub fn new(max: usize) -> Self {
        Cutter { held: Vec::new(), look: Look::default(), found: None, after_cr: false, fresh: true, max }
    }

    /// An event begins here, and nothing of it was looked at.
    pub fn at_start(&self) -> bool {
        self.found.is_none() && self.look.at == 0 && !self.after_cr && !self.fresh && self.held.is_empty()
    }

    /// Longest event.
    pub fn most(&self) -> usize {
        self.max
    }

    /// Takes a chunk; gives the bytes in which to look for events with [`Cutter::next`], the held
    /// start included. `None` when the chunk completes no held event. What is left goes to
    /// [`Cutter::hold`].
    pub fn take(&mut self, chunk: Bytes) -> Result<Option<Bytes>, TooLong> {
        if self.held.is_empty() {
            return Ok(Some(chunk));
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(&chunk);
        self.found = self.find(&held);
        if self.found.is_some() {
            return Ok(Some(Bytes::from(held)));
        }
        self.held = held;
        if self.held.len() > self.max { Err(TooLong) } else { Ok(None) }
    }

    /// The event at the start of `bytes`, if it is whole.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Frame>, TooLong> {
        let frame = match self.found.take() {
            Some(frame) => frame,
            None => match self.find(bytes) {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        if frame.end > self.max { Err(TooLong) } else { Ok(Some(frame)) }
    }

    /// Keeps the start of an event for the next chunk.
    pub fn hold(&mut self, rest: &[u8]) -> Result<(), TooLong> {
        if rest.len() > self.max {
            return Err(TooLong);
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// The unfinished event at the end of the stream.
    pub fn rest(&mut self) -> Option<(Vec<u8>, Frame)> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return None;
        }
        let mut look = std::mem::take(&mut self.look);
        look.line(&held, look.line..held.len());
        let frame = look.frame(held.len());
        Some((held, frame))
    }

    /// Goes on looking where the last look ended.
    fn find(&mut self, bytes: &[u8]) -> Option<Frame> {
        if self.fresh {
            if bytes.len() < BOM.len() && BOM.starts_with(bytes) {
                return None;
            }
            self.fresh = false;
            if bytes.starts_with(BOM) {
                self.look.at = BOM.len();
                self.look.line = BOM.len();
            }
        }
        while let Some(step) = memchr::memchr2(b'\r', b'\n', &bytes[self.look.at..]) {
            let end = self.look.at + step;
            let line = self.look.line..end;
            self.look.at = end + 1;
            self.look.line = end + 1;
            if !line.is_empty() {
                self.look.line(bytes, line);
                continue;
            }
            let cr_before = if end == 0 { self.after_cr } else { bytes[end - 1] == b'\r' };
            if bytes[end] == b'\n' && cr_before {
                // The second half of a CRLF.
                self.after_cr = false;
                continue;
            }
            let crlf = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
            let end = end + 1 + usize::from(crlf);
            self.after_cr = bytes[end - 1] == b'\r';
            return Some(std::mem::take(&mut self.look).frame(end));
        }
        self.look.at = bytes.len();
        None
    }
}
