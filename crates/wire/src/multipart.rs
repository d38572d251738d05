//! An incremental reader of multipart/form-data: bytes are pushed as they arrive, parts come out at
//! the end.
//!
//! Official SDKs send every video request this way, with or without a file. The reader is linear in
//! the input, keeps one copy of what it was given and refuses early: too many parts, a part or a
//! whole that is too long, headers that go on.

use bytes::Bytes;
use memchr::memmem;

/// What one request may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormLimits {
    pub parts: usize,
    /// Of one part without a file name.
    pub field_bytes: usize,
    /// Of one part with a file name.
    pub file_bytes: usize,
}

impl Default for FormLimits {
    fn default() -> Self {
        // A field may be a picture as a data link, which is as long as a file.
        FormLimits { parts: 256, field_bytes: 32 << 20, file_bytes: 32 << 20 }
    }
}

/// One part of a form.
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
    mark: Vec<u8>,
    at: At,
    /// Bytes not yet understood; in a body, the body so far.
    held: Vec<u8>,
    /// Up to here `held` was searched for the mark.
    searched: usize,
    open: Option<FormPart>,
    parts: Vec<FormPart>,
}

impl FormReader {
    /// `content_type` is the header's value, with its boundary.
    pub fn new(content_type: &str, limits: FormLimits) -> Result<FormReader, Bad> {
        let boundary = parameter(content_type, "boundary").ok_or(Bad::NoBoundary)?;
        let plain = boundary.bytes().all(|b| (0x20..0x7f).contains(&b)) && !boundary.ends_with(' ');
        if boundary.is_empty() || boundary.len() > BOUNDARY || !plain {
            return Err(Bad::NoBoundary);
        }
        let mark = format!("\r\n--{boundary}").into_bytes();
        // The first boundary may stand at the very start, without a line end before it.
        let held = b"\r\n".to_vec();
        Ok(FormReader { limits, mark, at: At::Before, held, searched: 0, open: None, parts: Vec::new() })
    }

    /// The next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        if self.at == At::After {
            return Ok(());
        }
        self.held.extend_from_slice(bytes);
        while self.step()? {}
        Ok(())
    }

    /// The name of the part that is being read.
    pub fn field(&self) -> Option<&str> {
        self.open.as_ref().map(|part| part.name.as_str())
    }

    /// All parts, in their order.
    pub fn finish(self) -> Result<Vec<FormPart>, Bad> {
        if self.at == At::After { Ok(self.parts) } else { Err(Bad::Unfinished) }
    }

    /// True while there may be more to understand in what is held.
    fn step(&mut self) -> Result<bool, Bad> {
        match self.at {
            At::Before => self.before(),
            At::Behind => self.behind(),
            At::Headers => self.headers(),
            At::Body => self.body(),
            At::After => {
                self.held.clear();
                Ok(false)
            }
        }
    }

    fn before(&mut self) -> Result<bool, Bad> {
        match self.find_mark() {
            Some(start) => {
                self.take(start + self.mark.len());
                self.at = At::Behind;
                Ok(true)
            }
            None => {
                let keep = self.held.len().min(self.mark.len() - 1);
                self.take(self.held.len() - keep);
                Ok(false)
            }
        }
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
        self.take(blanks + 2);
        Ok(true)
    }

    fn headers(&mut self) -> Result<bool, Bad> {
        let Some(end) = memmem::find(&self.held, b"\r\n\r\n") else {
            return if self.held.len() > HEADERS { Err(Bad::TooLong) } else { Ok(false) };
        };
        if end > HEADERS {
            return Err(Bad::TooLong);
        }
        if self.parts.len() == self.limits.parts {
            return Err(Bad::TooManyParts);
        }
        let part = read_headers(&self.held[..end])?;
        self.open = Some(part);
        // The line end stays: an empty body is followed by the mark at once.
        self.take(end + 2);
        self.at = At::Body;
        Ok(true)
    }

    fn body(&mut self) -> Result<bool, Bad> {
        let found = self.find_mark();
        // The two bytes of the line end before the body are still held.
        let length = found.unwrap_or(self.held.len()).saturating_sub(2);
        let file = self.open.as_ref().is_some_and(|part| part.file_name.is_some());
        let most = if file { self.limits.file_bytes } else { self.limits.field_bytes };
        let slack = if found.is_some() { 0 } else { self.mark.len() };
        if length > most.saturating_add(slack) {
            return Err(Bad::TooLong);
        }
        let Some(start) = found else {
            return Ok(false);
        };
        let mut part = self.open.take().ok_or(Bad::Syntax)?;
        part.body = Bytes::copy_from_slice(self.held.get(2..start).unwrap_or_default());
        self.parts.push(part);
        self.take(start + self.mark.len());
        self.at = At::Behind;
        Ok(true)
    }

    fn find_mark(&mut self) -> Option<usize> {
        let from = self.searched;
        let found = memmem::find(&self.held[from..], &self.mark).map(|at| from + at);
        self.searched = self.held.len().saturating_sub(self.mark.len() - 1).max(from);
        found
    }

    fn take(&mut self, length: usize) {
        self.held.drain(..length);
        self.searched = 0;
    }
}

fn read_headers(bytes: &[u8]) -> Result<FormPart, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| Bad::Syntax)?;
    let mut part = FormPart { name: String::new(), file_name: None, content_type: None, body: Bytes::new() };
    let mut named = false;
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Bad::Syntax)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-disposition") {
            if !value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("form-data")) {
                return Err(Bad::Syntax);
            }
            part.name = parameter(value, "name").ok_or(Bad::Syntax)?;
            part.file_name = parameter(value, "filename");
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
