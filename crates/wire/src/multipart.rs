//! An incremental reader of multipart/form-data: bytes are pushed as they arrive, and heads of
//! parts and pieces of their bodies come out at once.
//!
//! Nothing of a body is held or copied, but for the few bytes at the end of a piece that may be the
//! beginning of a boundary. The reader is linear in the input and refuses early: too many parts, a
//! part that is too long, headers that go on.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::{memmem, memrchr};

/// What one request may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormLimits {
    pub parts: usize,
    /// Of one part without a file name.
    pub field_bytes: u64,
    /// Of one part with a file name.
    pub file_bytes: u64,
}

impl Default for FormLimits {
    fn default() -> Self {
        // A field may be a picture as a data link, which is as long as a file.
        FormLimits { parts: 256, field_bytes: 32 << 20, file_bytes: 32 << 20 }
    }
}

/// What is said of a part before its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHead {
    pub name: String,
    /// A part with one is a file.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
}

/// What comes out of a form, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormEvent {
    /// A part begins.
    Begin(PartHead),
    /// More of its body, never empty.
    Piece(Bytes),
    /// Its body is complete.
    End,
}

/// One part of a form that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormPart {
    pub name: String,
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub body: Bytes,
}

/// Why a form cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The content type has no usable boundary.
    NoBoundary,
    /// A part has no name, its headers are not text, or the framing is wrong.
    Syntax,
    /// The last boundary never came.
    Unfinished,
    TooManyParts,
    TooLong,
}

/// Longest headers of one part.
const HEADERS: usize = 8 << 10;
/// RFC 2046.
const BOUNDARY: usize = 70;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the first boundary; what stands there is skipped.
    Before,
    /// Right behind a boundary: a line end, or two dashes and the end.
    Behind,
    Headers,
    Body,
    /// After the last boundary; the rest is skipped.
    After,
}

/// Reads one form.
#[derive(Debug)]
pub struct FormReader {
    limits: FormLimits,
    /// `\r\n--boundary`
    mark: memmem::Finder<'static>,
    at: At,
    /// Bytes not yet understood.
    held: Bytes,
    /// What of them is the line end before a body.
    line_end: usize,
    parts: usize,
    open: Option<PartHead>,
    /// Of the open part's body, so far.
    length: u64,
}

impl FormReader {
    /// `content_type` is the header's value, with its boundary.
    pub fn new(content_type: &str, limits: FormLimits) -> Result<FormReader, Bad> {
        let boundary = parameter(content_type, "boundary").ok_or(Bad::NoBoundary)?;
        let plain = boundary.bytes().all(|b| (0x20..0x7f).contains(&b)) && !boundary.ends_with(' ');
        if boundary.is_empty() || boundary.len() > BOUNDARY || !plain {
            return Err(Bad::NoBoundary);
        }
        let mark = memmem::Finder::new(format!("\r\n--{boundary}").as_bytes()).into_owned();
        // The first boundary may stand at the very start, without a line end before it.
        let held = Bytes::from_static(b"\r\n");
        Ok(FormReader { limits, mark, at: At::Before, held, line_end: 0, parts: 0, open: None, length: 0 })
    }

    /// The next bytes of the body. What is in them, [`FormReader::event`] tells.
    pub fn push(&mut self, bytes: Bytes) {
        if self.at == At::After {
            return;
        }
        if self.held.is_empty() {
            self.held = bytes;
            return;
        }
        let mut joined = BytesMut::with_capacity(self.held.len() + bytes.len());
        joined.extend_from_slice(&self.held);
        joined.extend_from_slice(&bytes);
        self.held = joined.freeze();
    }

    /// What was found next; `None` where that takes more bytes.
    pub fn event(&mut self) -> Result<Option<FormEvent>, Bad> {
        loop {
            let went_on = match self.at {
                At::Before => self.before(),
                At::Behind => self.behind()?,
                At::Headers => return self.headers(),
                At::Body => return self.body(),
                At::After => {
                    self.held.clear();
                    false
                }
            };
            if !went_on {
                return Ok(None);
            }
        }
    }

    /// The part that is being read.
    pub fn open(&self) -> Option<&PartHead> {
        self.open.as_ref()
    }

    /// How many of the bytes so far are still to be told of. Right behind the head of a part they
    /// begin with its body.
    pub fn unread(&self) -> usize {
        self.held.len().saturating_sub(self.line_end)
    }

    /// The length of the last boundary, with the line end before it and the two dashes behind it.
    pub fn closing(&self) -> usize {
        self.mark.needle().len() + 2
    }

    /// There are no more bytes.
    pub fn finish(&self) -> Result<(), Bad> {
        if self.at == At::After { Ok(()) } else { Err(Bad::Unfinished) }
    }

    fn before(&mut self) -> bool {
        let found = self.mark.find(&self.held);
        let over = found.map_or(self.held.len() - self.half_a_mark(), |start| start + self.mark.needle().len());
        self.held.advance(over);
        if found.is_some() {
            self.at = At::Behind;
        }
        found.is_some()
    }

    fn behind(&mut self) -> Result<bool, Bad> {
        let blanks = self.held.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let Some(next) = self.held.get(blanks..blanks + 2) else {
            return if blanks > HEADERS { Err(Bad::Syntax) } else { Ok(false) };
        };
        self.at = match next {
            b"\r\n" => At::Headers,
            b"--" if blanks == 0 => At::After,
            _ => return Err(Bad::Syntax),
        };
        self.held.advance(blanks + 2);
        Ok(true)
    }

    fn headers(&mut self) -> Result<Option<FormEvent>, Bad> {
        let seen = &self.held[..self.held.len().min(HEADERS + 4)];
        let Some(end) = memmem::find(seen, b"\r\n\r\n") else {
            return if self.held.len() > HEADERS { Err(Bad::TooLong) } else { Ok(None) };
        };
        if self.parts == self.limits.parts {
            return Err(Bad::TooManyParts);
        }
        let head = read_headers(&self.held[..end])?;
        self.parts += 1;
        self.length = 0;
        self.open = Some(head.clone());
        // The line end stays: an empty body is followed by the mark at once.
        self.held.advance(end + 2);
        self.line_end = 2;
        self.at = At::Body;
        Ok(Some(FormEvent::Begin(head)))
    }

    fn body(&mut self) -> Result<Option<FormEvent>, Bad> {
        let found = self.mark.find(&self.held);
        let end = found.unwrap_or_else(|| self.held.len() - self.half_a_mark());
        if end > self.line_end {
            let mut piece = self.held.split_to(end);
            piece.advance(std::mem::take(&mut self.line_end));
            self.count(piece.len())?;
            return Ok(Some(FormEvent::Piece(piece)));
        }
        let Some(start) = found else { return Ok(None) };
        self.held.advance(start + self.mark.needle().len());
        self.line_end = 0;
        self.open = None;
        self.at = At::Behind;
        Ok(Some(FormEvent::End))
    }

    fn count(&mut self, more: usize) -> Result<(), Bad> {
        let file = self.open.as_ref().is_some_and(|part| part.file_name.is_some());
        let most = if file { self.limits.file_bytes } else { self.limits.field_bytes };
        self.length = self.length.saturating_add(more as u64);
        if self.length > most { Err(Bad::TooLong) } else { Ok(()) }
    }

    /// How many bytes at the end may be the beginning of a mark. A mark has one carriage return,
    /// its first byte, so that only the last one can begin it.
    fn half_a_mark(&self) -> usize {
        let mark = self.mark.needle();
        let tail = &self.held[self.held.len().saturating_sub(mark.len() - 1)..];
        let rest = memrchr(b'\r', tail).map_or(&[][..], |at| &tail[at..]);
        if mark.starts_with(rest) { rest.len() } else { 0 }
    }
}

/// All parts of a form that is there as a whole; they share its bytes. A mistake comes with the
/// name of the part in which it was found.
pub fn whole_form(content_type: &str, limits: FormLimits, body: Bytes) -> Result<Vec<FormPart>, (Bad, Option<String>)> {
    let mut reader = FormReader::new(content_type, limits).map_err(|bad| (bad, None))?;
    reader.push(body);
    let mut parts: Vec<FormPart> = Vec::new();
    loop {
        match reader.event() {
            Ok(Some(FormEvent::Begin(PartHead { name, file_name, content_type }))) => {
                parts.push(FormPart { name, file_name, content_type, body: Bytes::new() });
            }
            // All of it was pushed at once, so a body is in one piece.
            Ok(Some(FormEvent::Piece(piece))) => {
                if let Some(part) = parts.last_mut() {
                    part.body = piece;
                }
            }
            Ok(Some(FormEvent::End)) => {}
            Ok(None) => return reader.finish().map(|()| parts).map_err(|bad| (bad, None)),
            Err(bad) => return Err((bad, reader.open().map(|part| part.name.clone()))),
        }
    }
}

fn read_headers(bytes: &[u8]) -> Result<PartHead, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| Bad::Syntax)?;
    let mut part = PartHead { name: String::new(), file_name: None, content_type: None };
    let mut named = false;
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Bad::Syntax)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-disposition") {
            let form_data = value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("form-data"));
            // Said twice, it could be understood in two ways.
            if !form_data || named {
                return Err(Bad::Syntax);
            }
            part.name = parameter(value, "name").ok_or(Bad::Syntax)?;
            part.file_name = parameter(value, "filename").or_else(|| parameter(value, "filename*"));
            named = true;
        } else if name.eq_ignore_ascii_case("content-type") {
            part.content_type = Some(value.to_owned());
        }
    }
    if named { Ok(part) } else { Err(Bad::Syntax) }
}

/// The parameter `name` of a header value such as `form-data; name="a"; filename="b \"c\".png"`.
fn parameter(value: &str, name: &str) -> Option<String> {
    let (_, mut rest) = value.split_once(';')?;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (key, after) = rest.split_once('=')?;
        let (found, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(found);
        }
        rest = after;
    }
}

/// What stands before the closing quote, and what after it. Browsers write `%22` for a quote,
/// others `\"`.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out.replace("%22", "\""), &text[at + 1..])),
            '\\' => match chars.next()? {
                (_, escaped @ ('"' | '\\')) => out.push(escaped),
                (_, other) => out.extend(['\\', other]),
            },
            other => out.push(other),
        }
    }
    None
}
