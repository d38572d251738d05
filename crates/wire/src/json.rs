//! A small strict scanner over JSON text that finds things without building values.
//!
//! The gateway needs a few facts and the exact places of a few values; every other byte goes
//! on as it came. The scanner checks the grammar of RFC 8259, keeps byte positions, limits the
//! depth, allocates nothing, and is tested against serde_json. Unlike it, it does not refuse
//! lone surrogate escapes or numbers beyond a double: those are the provider's to judge.

mod attr;
mod build;
mod edit;
mod push;
mod tree;
mod write;

pub use attr::attr;
pub use build::{Array, Object};
pub use edit::{EditChange, EditKey};
pub use push::{JsonStep, Push, Steps};
pub use tree::{Members, Node, NodeKind};
pub use write::{Edit, has_separator, quoted, splice, splice_with, write_raw, write_str};

use std::borrow::Cow;
use std::ops::Range;

/// Deepest nesting accepted.
pub const DEPTH: u32 = 128;

/// The text is not JSON (or nested too deeply).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenJson {
    Syntax { at: usize },
    Depth,
}

/// A string as it stands between its quotes, escapes included.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    /// The bytes between the quotes. Equal to the meaning when there are no escapes.
    #[inline]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether its bytes have another meaning than they show.
    #[inline]
    pub fn has_escapes(&self) -> bool {
        self.escaped
    }

    /// The meaning of the string; broken UTF-8 and lone surrogates become U+FFFD.
    #[inline]
    pub fn text(&self) -> Cow<'a, str> {
        if self.escaped {
            return Cow::Owned(unescape(self.raw));
        }
        lossy(self.raw)
    }

    /// The same of a string in a text, which need not be checked again.
    #[inline]
    pub fn of(&self, text: &'a str) -> Cow<'a, str> {
        if self.escaped {
            return Cow::Owned(unescape(self.raw));
        }
        let at = (self.raw.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        text.get(at..at.wrapping_add(self.raw.len())).map_or_else(|| lossy(self.raw), Cow::Borrowed)
    }

    /// The meaning as bytes.
    #[inline]
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw).into_bytes()) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether it means this.
    #[inline]
    pub fn is(&self, text: &str) -> bool {
        if self.escaped { unescape(self.raw) == text } else { self.raw == text.as_bytes() }
    }
}

/// Bytes as text; what is no UTF-8 becomes U+FFFD. The standard library's way goes byte by byte
/// even where nothing is wrong.
#[inline]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

fn unescape(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(step) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + step]);
        at += step + 1;
        let letter = raw.get(at).copied().unwrap_or(b'\\');
        at += 1;
        let plain = match letter {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let mut unit = hex4(raw, at);
                at += 4;
                if (0xD800..0xDC00).contains(&unit) && raw.get(at..at + 2) == Some(b"\\u") {
                    let low = hex4(raw, at + 2);
                    if (0xDC00..0xE000).contains(&low) {
                        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                        at += 6;
                    }
                }
                let letter = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => other,
        };
        out.push(plain);
    }
    out.extend_from_slice(raw.get(at..).unwrap_or_default());
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Four hex digits as checked by the scanner; anything else gives a lone surrogate.
pub fn hex4(raw: &[u8], at: usize) -> u32 {
    raw.get(at..at + 4)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .unwrap_or(0xD800)
}

/// A cursor in JSON text.
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Scan<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Scan { bytes, at: 0, depth: 0 }
    }

    /// Byte position of the cursor.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn broken(&self) -> BrokenJson {
        BrokenJson::Syntax { at: self.at }
    }

    /// First byte of the next value or mark where blanks may stand, or nothing more.
    #[inline(never)]
    fn peek_behind_blanks(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// What lies ahead, to be looked at before it is read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// First byte of the next value or mark, blanks skipped.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        match self.bytes.get(self.at) {
            // Above all blanks, and nearly always so.
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_behind_blanks(),
        }
    }

    /// Nothing but blanks may be left.
    #[inline]
    pub fn end(&mut self) -> Result<(), BrokenJson> {
        if self.peek().is_none() { Ok(()) } else { Err(self.broken()) }
    }

    /// Walks the object the cursor stands on. `each` must consume the member's value.
    #[inline]
    pub fn object<E: From<BrokenJson>>(
        &mut self,
        mut each: impl FnMut(Text<'a>, &mut Scan<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{')?;
        if self.peek() == Some(b'}') {
            self.close();
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.broken().into());
            }
            let key = self.string_here()?;
            if self.peek() != Some(b':') {
                return Err(self.broken().into());
            }
            self.at += 1;
            each(key, self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.close();
                    return Ok(());
                }
                _ => return Err(self.broken().into()),
            }
        }
    }

    /// Walks the array the cursor stands on. `each` must consume the item.
    #[inline]
    pub fn array<E: From<BrokenJson>>(
        &mut self,
        mut each: impl FnMut(&mut Scan<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        if self.peek() == Some(b']') {
            self.close();
            return Ok(());
        }
        loop {
            each(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.close();
                    return Ok(());
                }
                _ => return Err(self.broken().into()),
            }
        }
    }

    #[inline]
    fn open(&mut self, mark: u8) -> Result<(), BrokenJson> {
        if self.peek() != Some(mark) {
            return Err(self.broken());
        }
        if self.depth == DEPTH {
            return Err(BrokenJson::Depth);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// Reads the string the cursor stands on.
    #[inline]
    pub fn string(&mut self) -> Result<Text<'a>, BrokenJson> {
        if self.peek() != Some(b'"') {
            return Err(self.broken());
        }
        self.string_here()
    }

    /// Reads the string whose quote is at the cursor. Most are names, which end within two words:
    /// in line, they need no call.
    #[inline(always)]
    fn string_here(&mut self) -> Result<Text<'a>, BrokenJson> {
        if let Some(head) = self.bytes[self.at + 1..].first_chunk::<16>() {
            let length = plain_run(head);
            if head.get(length) == Some(&b'"') {
                self.at += length + 2;
                return Ok(Text { raw: &head[..length], escaped: false });
            }
        }
        self.long_string()
    }

    /// The same, however long it is.
    #[inline(never)]
    fn long_string(&mut self) -> Result<Text<'a>, BrokenJson> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at += long_plain_run(&self.bytes[at..]);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at = self.escape(at)?;
                }
                _ => {
                    self.at = at;
                    return Err(self.broken());
                }
            }
        }
        self.at = at + 1;
        Ok(Text { raw: &self.bytes[start..at], escaped })
    }

    /// Position after the escape that starts at `at`.
    fn escape(&mut self, at: usize) -> Result<usize, BrokenJson> {
        match self.bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u')
                if self.bytes.get(at + 2..at + 6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) =>
            {
                Ok(at + 6)
            }
            _ => {
                self.at = at;
                Err(self.broken())
            }
        }
    }

    /// Passes over any value, checking it.
    pub fn skip(&mut self) -> Result<(), BrokenJson> {
        match self.peek() {
            Some(b'"') => self.string_here().map(drop),
            Some(b'{' | b'[') => self.skip_nested(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.broken()),
        }
    }

    #[inline(never)]
    fn skip_nested(&mut self) -> Result<(), BrokenJson> {
        if self.peek() == Some(b'{') {
            return self.object(|_, scan| scan.skip());
        }
        // Vectors are lists of thousands of numbers.
        self.array(|scan| match scan.peek() {
            Some(b'-' | b'0'..=b'9') => scan.number(),
            _ => scan.skip(),
        })
    }

    /// Passes over any value and gives its exact text.
    #[inline]
    pub fn value(&mut self) -> Result<&'a [u8], BrokenJson> {
        let span = self.span()?;
        Ok(&self.bytes[span])
    }

    /// Passes over any value and gives its place.
    #[inline]
    pub fn span(&mut self) -> Result<Range<usize>, BrokenJson> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(start..self.at)
    }

    #[inline]
    fn word(&mut self, word: &[u8]) -> Result<(), BrokenJson> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.broken())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), BrokenJson> {
        match digit_run(&self.bytes[self.at..]) {
            0 => Err(self.broken()),
            length => {
                self.at += length;
                Ok(())
            }
        }
    }

    #[inline]
    fn number(&mut self) -> Result<(), BrokenJson> {
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

/// Length of the run of digits; eight at a time.
#[inline]
fn digit_run(bytes: &[u8]) -> usize {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    // A digit's value and this stay below the top bit; what is more than nine does not.
    const TO_TOP: u64 = 0x7676_7676_7676_7676;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        let value = u64::from_le_bytes(*word) ^ ZEROS;
        // The lowest set bit marks the first that is none; bits above it may be false.
        match (value.wrapping_add(TO_TOP) | value) & TOPS {
            0 => at += 8,
            hit => return at + (hit.trailing_zeros() / 8) as usize,
        }
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
}

/// Length of the run without quote, backslash or control character.
#[inline]
fn plain_run(bytes: &[u8]) -> usize {
    run_without(bytes, [b'"', b'\\'], true)
}

/// The same of a run that is long, most likely: sixteen bytes at a time. All of them are looked at
/// without a branch, which is one step on a wide register.
#[inline]
fn long_plain_run(bytes: &[u8]) -> usize {
    let is_mark = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    let mut at = 0;
    while let Some(block) = bytes[at..].first_chunk::<16>() {
        if block.iter().fold(false, |any, byte| any | is_mark(byte)) {
            break;
        }
        at += 16;
    }
    at + plain_run(&bytes[at..])
}

/// Length of the run without these bytes nor, if so, control characters; eight bytes at a time.
#[inline]
fn run_without<const N: usize>(bytes: &[u8], marks: [u8; N], controls: bool) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The lowest set top bit marks the first byte that is found; bits above it may be false.
    let found = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        let control = if controls { word.wrapping_sub(ONES * 0x20) & !word & TOPS } else { 0 };
        marks.iter().fold(control, |found, mark| {
            let word = word ^ (ONES * u64::from(*mark));
            found | word.wrapping_sub(ONES) & !word & TOPS
        })
    };
    let place = |hit: u64| (hit.trailing_zeros() / 8) as usize;
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        match found(word) {
            0 => at += 8,
            hit => return at + place(hit),
        }
    }
    match bytes.last_chunk() {
        // What stands in front of the rest is known to be none of them.
        Some(word) => match found(word) {
            0 => bytes.len(),
            hit => bytes.len() - 8 + place(hit),
        },
        None => {
            let is_one = |byte: &u8| marks.contains(byte) || controls && *byte < 0x20;
            bytes.iter().position(is_one).unwrap_or(bytes.len())
        }
    }
}

/// A number written as plain digits, if it is not beyond 64 bits.
pub fn whole_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, letter| {
        let digit = letter.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

#[cfg(test)]
mod tests;
