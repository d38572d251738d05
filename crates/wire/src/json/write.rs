//! Writing: strings in quotes, and texts with a few places replaced.

use super::run_without;
use std::ops::Range;

/// A splice: the bytes of a place and what stands there instead.
pub type Edit<'a> = (Range<usize>, &'a [u8]);

/// The text with some places replaced; `edits` in order of place, not overlapping.
pub fn splice(text: &[u8], edits: &[Edit<'_>]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let removed: usize = edits.iter().map(|(place, _)| place.len()).sum();
    let edits = edits.iter().map(|(place, new)| (place.clone(), new));
    // To the byte: what is made of it then takes it over as it is.
    splice_with(text, text.len() + added - removed, edits, |new, out| out.extend_from_slice(new))
}

/// The same where what is new is written straight into its place; `length` is that of the
/// result, about.
pub fn splice_with<T>(
    text: &[u8],
    length: usize,
    edits: impl IntoIterator<Item = (Range<usize>, T)>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    let mut done = 0;
    for (place, new) in edits {
        out.extend_from_slice(&text[done..place.start]);
        write(new, &mut out);
        done = place.end;
    }
    out.extend_from_slice(&text[done..]);
    out
}

/// A JSON string as bytes, quotes included.
pub fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_str(&mut out, text);
    out
}

/// Writes a JSON string. U+2028, U+2029 and U+0085 are escaped too: some clients split lines there.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (run, left) = rest.split_at(special(rest));
        out.extend_from_slice(run);
        rest = left;
        let Some(first) = rest.first() else { break };
        let len = match *first {
            b'"' | b'\\' => {
                out.extend_from_slice(&[b'\\', *first]);
                1
            }
            b'\n' => put(out, b"\\n"),
            b'\r' => put(out, b"\\r"),
            b'\t' => put(out, b"\\t"),
            byte @ 0..0x20 => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                1
            }
            _ => separator(rest, out),
        };
        rest = &rest[len..];
    }
    out.push(b'"');
}

/// How far it is to a byte that may need an escape: a control character, quote, backslash, the
/// first byte of a separator. Most strings are short names, for which a table is quicker.
#[inline]
fn special(bytes: &[u8]) -> usize {
    if bytes.len() < 8 {
        return bytes.iter().position(|&byte| SPECIAL[usize::from(byte)]).unwrap_or(bytes.len());
    }
    run_without(bytes, [b'"', b'\\', 0xE2, 0xC2], true)
}

fn put(out: &mut Vec<u8>, escape: &[u8]) -> usize {
    out.extend_from_slice(escape);
    1
}

/// Bytes that may need an escape: control characters, quote, backslash, and the first bytes of the
/// three separators.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0xE2] = true;
    table[0xC2] = true;
    table
};

/// Writes the separator that stands here escaped, or the byte as it is; gives how many bytes that
/// was.
fn separator(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let (escape, len): (&[u8], usize) = match bytes {
        [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
        [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
        [0xC2, 0x85, ..] => (b"\\u0085", 2),
        _ => (&bytes[..1], 1),
    };
    out.extend_from_slice(escape);
    len
}

/// Whether one of the three separators stands here.
pub fn has_separator(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(0xE2, 0xC2, bytes)
        .any(|at| matches!(bytes[at..], [0xE2, 0x80, 0xA8 | 0xA9, ..] | [0xC2, 0x85, ..]))
}

/// Writes a value that is JSON already so that it fits into one line: line ends can only be blanks
/// there, and the separators can only stand in strings.
pub fn write_raw(out: &mut Vec<u8>, raw: &[u8]) {
    let mut rest = raw;
    loop {
        let (run, left) = rest.split_at(run_without(rest, [b'\n', b'\r', 0xE2, 0xC2], false));
        out.extend_from_slice(run);
        rest = left;
        let len = match rest.first() {
            None => break,
            Some(b'\n' | b'\r') => put(out, b" "),
            Some(_) => separator(rest, out),
        };
        rest = &rest[len..];
    }
}
