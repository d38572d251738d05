//! Writing: strings in quotes, and texts with a few places replaced.

use std::ops::Range;

/// A splice: the bytes of a place and what stands there instead.
pub(crate) type Edit<'a> = (Range<usize>, &'a [u8]);

/// The text with some places replaced; `edits` in order of place, not overlapping.
pub(crate) fn splice(text: &[u8], edits: &[Edit<'_>]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = Vec::with_capacity(text.len() + added);
    let mut done = 0;
    for (place, new) in edits {
        out.extend_from_slice(&text[done..place.start]);
        out.extend_from_slice(new);
        done = place.end;
    }
    out.extend_from_slice(&text[done..]);
    out
}

/// A JSON string as bytes, quotes included.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_str(&mut out, text);
    out
}

/// Writes a JSON string. U+2028, U+2029 and U+0085 are escaped too: some clients split lines there.
pub(crate) fn write_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(letter)).as_bytes());
            }
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
