//! Base64 in pieces: a picture that passes as text is checked on the way, and one that comes as
//! bytes is made text, each without ever being held as a whole.

use super::sniff::{ENOUGH, ENOUGH_OF_TEXT, PictureKind, begins_as_text, made_kind};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use fearless_simd::{Level, Simd, SimdBase as _, dispatch, u8x16};
use std::slice::ChunksExact;

/// Letters that are enough to tell what a picture is: whole groups of four.
pub(super) const HEAD: usize = ENOUGH.div_ceil(3) * 4;
/// The same of a drawing.
const TEXT_HEAD: usize = ENOUGH_OF_TEXT.div_ceil(3) * 4;
/// What some put before the letters.
const PREFIX: &[u8] = b"data:image/";
/// The longest that stands between it and them.
const AFTER_PREFIX: usize = 24;
/// Letters at the end that are buffered: enough for the last chunk of a PNG.
const TAIL: usize = 32;
/// The end of every PNG.
const PNG_END: &[u8] = b"IEND\xaeB`\x82";
/// The end of every drawing, whatever stands before its name.
const SVG_END: &[u8] = b"svg>";

/// Takes letters with and without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What may not stand in the lower half of a byte, by its upper half: a bit for each kind of upper
/// half, and one for those that no letter has.
const BY_UPPER: [u8; 16] = [16, 16, 1, 2, 4, 8, 4, 8, 16, 16, 16, 16, 16, 16, 16, 16];
/// The kinds of upper half that do not go with a lower half. `+` and `/` are all that begins with
/// 2, digits begin with 3, `A` and `a` stand behind the first place of 4 and 6, and `Z` and `z` at
/// the eleventh of 5 and 7.
const BY_LOWER: [u8; 16] = [21, 17, 17, 17, 17, 17, 17, 17, 17, 17, 19, 26, 27, 27, 27, 26];

/// Whether these are letters of base64, all of them. As many are looked at in one step as the
/// processor can.
fn are_letters(bytes: &[u8]) -> bool {
    are_letters_by(Level::new(), bytes)
}

fn are_letters_by(level: Level, bytes: &[u8]) -> bool {
    dispatch!(level, simd => strangest(simd, bytes)) == 0
}

/// The upper bit of each of the first 128 bytes that is none: what [`strangeness`] says, as a table
/// that the widest registers hold whole.
const BY_BYTE: [u8; 128] = {
    let mut table = [0; 128];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = if BY_UPPER[byte >> 4] & BY_LOWER[byte & 15] == 0 { 0 } else { UPPER_BIT };
        byte += 1;
    }
    table
};
const UPPER_BIT: u8 = 128;

/// Zero if all of these are letters.
#[inline(always)]
fn strangest<S: Simd>(simd: S, bytes: &[u8]) -> u8 {
    let steps = bytes.chunks_exact(S::u8s::LEN);
    let rest = steps.remainder().iter().fold(0, |most, byte| strangeness(*byte).max(most));
    let whole = if S::u8s::LEN == 64 { by_byte(simd, steps) } else { by_halves(simd, steps) };
    whole.max(rest)
}

/// Each byte is looked up in one table; what is beyond it has the upper bit itself.
#[inline(always)]
fn by_byte<S: Simd>(simd: S, steps: ChunksExact<'_, u8>) -> u8 {
    let (first, second) = BY_BYTE.split_at(S::u8s::LEN);
    let (first, second) = (S::u8s::from_slice(simd, first), S::u8s::from_slice(simd, second));
    let mut strange = S::u8s::splat(simd, 0);
    for step in steps {
        let bytes = S::u8s::from_slice(simd, step);
        strange |= bytes | first.concat_swizzle_dyn(second, bytes & !UPPER_BIT);
    }
    (strange & UPPER_BIT).reduce_max()
}

/// Each half of a byte is looked up in its table, and what both of them object to is none.
#[inline(always)]
fn by_halves<S: Simd>(simd: S, steps: ChunksExact<'_, u8>) -> u8 {
    let table = |entries| S::u8s::block_splat(u8x16::from_slice(simd, entries));
    let (by_upper, by_lower) = (table(&BY_UPPER), table(&BY_LOWER));
    let mut strange = S::u8s::splat(simd, 0);
    for step in steps {
        let bytes = S::u8s::from_slice(simd, step);
        let upper = by_upper.swizzle_dyn_within_blocks(bytes >> 4);
        let lower = by_lower.swizzle_dyn_within_blocks(bytes & 15);
        strange |= upper & lower;
    }
    strange.reduce_max()
}

#[inline(always)]
fn strangeness(byte: u8) -> u8 {
    BY_UPPER[usize::from(byte >> 4)] & BY_LOWER[usize::from(byte & 15)]
}

/// What is known of the letters of one picture so far.
#[derive(Debug, Default)]
pub struct PictureCheck {
    letters: u64,
    padding: u64,
    foreign: bool,
    kind: Option<PictureKind>,
    tail: Vec<u8>,
}

/// The letters of a text that begins so, without what some put before them.
pub(super) fn own_letters(head: &[u8]) -> &[u8] {
    match head.starts_with(PREFIX) {
        true => {
            let comma = head.iter().take(PREFIX.len() + AFTER_PREFIX).position(|byte| *byte == b',');
            comma.map_or(&head[..0], |at| &head[at + 1..])
        }
        false => head,
    }
}

/// Whether the beginning of a text is enough to tell what picture it is.
pub(super) fn is_enough(head: &[u8]) -> bool {
    let letters = HEAD + PREFIX.len() + AFTER_PREFIX;
    head.len() >= letters
        && (head.len() >= letters + TEXT_HEAD
            || !first_bytes(own_letters(head), HEAD).is_some_and(|text| begins_as_text(&text)))
}

/// The bytes of so many first letters.
fn first_bytes(head: &[u8], letters: usize) -> Option<Vec<u8>> {
    let whole = &head[..head.len().min(letters)];
    LENIENT.decode(&whole[..whole.len() / 4 * 4]).ok()
}

impl PictureCheck {
    /// What a picture with these first letters is.
    pub fn begins(head: &[u8]) -> Option<PictureKind> {
        let first = first_bytes(head, HEAD)?;
        if begins_as_text(&first) { made_kind(&first_bytes(head, TEXT_HEAD)?) } else { made_kind(&first) }
    }

    pub fn new(kind: PictureKind) -> PictureCheck {
        PictureCheck { kind: Some(kind), ..PictureCheck::default() }
    }

    /// A piece from the middle of the text: counted if it holds nothing but letters, otherwise left
    /// to be fed.
    pub fn passes(&mut self, piece: &[u8]) -> bool {
        let plain = self.padding == 0 && are_letters(piece);
        if plain {
            self.count(piece);
        }
        plain
    }

    /// The next letters.
    pub fn feed(&mut self, letters: &[u8]) {
        let padding = letters.iter().rev().take_while(|byte| **byte == b'=').count();
        let (own, _) = letters.split_at(letters.len() - padding);
        // Nothing may follow padding.
        self.foreign |= (self.padding > 0 && !own.is_empty()) || !are_letters(own);
        self.padding += padding as u64;
        self.count(own);
    }

    fn count(&mut self, own: &[u8]) {
        self.letters += own.len() as u64;
        if own.len() >= TAIL {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&own[own.len().saturating_sub(TAIL)..]);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// All letters were there: can the picture be decoded, as far as its text tells?
    pub fn is_whole(&self) -> bool {
        let groups = match self.letters % 4 {
            0 => self.padding == 0,
            1 => false,
            // Padding is left out by some.
            rest => self.padding == 0 || self.padding == 4 - rest,
        };
        !self.foreign && groups && self.letters > 0 && self.ends_well()
    }

    /// A PNG says where it ends, and so does a drawing; what was cut at a group of letters shows
    /// there.
    fn ends_well(&self) -> bool {
        let is_drawing = match self.kind {
            Some(PictureKind::Png) => false,
            Some(PictureKind::Svg) => true,
            _ => return true,
        };
        // Groups are counted from the beginning.
        let skip = (4 - (self.letters - self.tail.len() as u64) % 4) % 4;
        let tail = self.tail.get(usize::try_from(skip).unwrap_or(0)..).unwrap_or_default();
        LENIENT.decode(tail).is_ok_and(|bytes| match is_drawing {
            true => bytes.trim_ascii_end().ends_with(SVG_END),
            false => bytes.ends_with(PNG_END),
        })
    }
}

/// Bytes that become letters, three to four, as they come.
#[derive(Debug, Default)]
pub struct Base64Encoder {
    rest: Vec<u8>,
}

impl Base64Encoder {
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            let wanted = (3 - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.rest.len() < 3 {
                return;
            }
            let group = std::mem::take(&mut self.rest);
            write(&group, out);
        }
        let whole = bytes.len() / 3 * 3;
        write(&bytes[..whole], out);
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.rest);
        write(&rest, out);
    }
}

fn write(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + bytes.len().div_ceil(3) * 4, 0);
    // The room is exact, so this cannot fail.
    let _ = BASE64_STANDARD.encode_slice(bytes, &mut out[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(extra: usize) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        bytes.extend(std::iter::repeat_n(7, extra));
        bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
        bytes
    }

    #[test]
    fn a_whole_picture_is_whole_in_any_pieces() {
        for extra in 0..7 {
            let text = BASE64_STANDARD.encode(png(extra));
            assert_eq!(PictureCheck::begins(text.as_bytes()), Some(PictureKind::Png));
            for size in [1, 3, 7, 64, 1_000] {
                let mut check = PictureCheck::new(PictureKind::Png);
                text.as_bytes().chunks(size).for_each(|piece| check.feed(piece));
                assert!(check.is_whole(), "{extra} {size}");
            }
        }
    }

    /// What this processor has, and what others would have instead.
    fn levels() -> Vec<Level> {
        let own = Level::new();
        #[cfg(target_arch = "x86_64")]
        let less = own.as_avx2().map(Level::Avx2);
        #[cfg(not(target_arch = "x86_64"))]
        let less = None;
        [Some(own), less, Some(Level::baseline())].into_iter().flatten().collect()
    }

    /// Also where no processor has registers that are wide enough to use it.
    #[test]
    fn the_table_of_bytes_has_the_letters_and_nothing_else() {
        for byte in 0..128_u8 {
            let is_letter = STANDARD.as_str().as_bytes().contains(&byte);
            assert_eq!(BY_BYTE[usize::from(byte)], if is_letter { 0 } else { UPPER_BIT }, "{byte}");
        }
    }

    #[test]
    fn letters_are_known_wherever_they_stand() {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for byte in 0..=255 {
            for (before, after) in [(0, 0), (0, 40), (40, 0), (5_000, 17)] {
                let text = [vec![b'Q'; before], vec![byte], vec![b'z'; after]].concat();
                // On this processor, and on those that have less.
                for level in levels() {
                    assert_eq!(are_letters_by(level, &text), letters.contains(&byte), "{byte} after {before}");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_or_foreign_is_not_whole() {
        let text = BASE64_STANDARD.encode(png(30));
        let whole = |text: &str| {
            let mut check = PictureCheck::new(PictureKind::Png);
            check.feed(text.as_bytes());
            check.is_whole()
        };
        assert!(whole(&text));
        assert!(whole(text.trim_end_matches('=')), "padding may be left out");
        for end in 1..text.len() - 2 {
            assert!(!whole(&text[..end]), "{end} of {} letters", text.len());
        }
        for broken in [text.replace('A', "*"), format!("{text}AAAA"), format!("={text}"), String::new()] {
            assert!(!whole(&broken));
        }
    }

    #[test]
    fn a_drawing_is_whole_with_its_end() {
        let long = format!("<?xml version=\"1.0\"?><!--{}--><svg xmlns='x'><path d='M0 0'/></svg>\n", "x".repeat(900));
        for drawing in ["<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0h9'/></svg>", &long] {
            let text = BASE64_STANDARD.encode(drawing);
            assert_eq!(PictureCheck::begins(text.as_bytes()), Some(PictureKind::Svg));
            for end in 1..text.len() {
                let mut check = PictureCheck::new(PictureKind::Svg);
                check.feed(&text.as_bytes()[..end]);
                let so_far = &drawing[..drawing.len().min(end * 3 / 4)];
                assert!(!check.is_whole() || so_far.trim_end().ends_with("</svg>"), "{end} of {drawing}");
            }
            let mut check = PictureCheck::new(PictureKind::Svg);
            check.feed(text.as_bytes());
            assert!(check.is_whole(), "{drawing}");
        }
    }

    #[test]
    fn a_text_is_looked_at_for_longer_than_a_picture() {
        let drawing = BASE64_STANDARD.encode(format!("<?xml version=\"1.0\"?>{}<svg xmlns='x'>", " ".repeat(600)));
        let picture = BASE64_STANDARD.encode(png(900));
        for (letters, enough) in [(&picture, 79), (&drawing, 1_443)] {
            let text = format!("data:image/any;base64,{letters}{letters}");
            assert_eq!(own_letters(text.as_bytes()), format!("{letters}{letters}").as_bytes());
            let first = (1..text.len()).find(|end| is_enough(&text.as_bytes()[..*end]));
            assert_eq!(first, Some(enough), "{letters}");
        }
        assert_eq!(own_letters(b"data:image/png"), b"");
    }

    #[test]
    fn bytes_become_the_same_letters_in_any_pieces() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        for size in [1, 2, 3, 4, 100, 1_000] {
            let (mut encoder, mut out) = (Base64Encoder::default(), Vec::new());
            bytes.chunks(size).for_each(|piece| encoder.feed(piece, &mut out));
            encoder.finish(&mut out);
            assert_eq!(String::from_utf8(out).expect("letters"), BASE64_STANDARD.encode(&bytes), "{size}");
        }
    }
}
