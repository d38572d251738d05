//! Pictures taken out of an answer as bytes, one after the other, however it was cut into pieces.
//! A [`super::PictureFlow`] that writes [`super::ResultStyle::Letters`] makes the text that is read
//! here: the letters of a picture, a line's end, what became of its prompt, a line's end.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Stands behind letters that turned out to be no picture when they had left already.
pub(super) const SPOILED: u8 = b'!';

/// Padding may be left out, and is so by some.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What comes out of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PicturePart {
    /// The next bytes of a picture.
    Bytes(Vec<u8>),
    /// That was all of it. `whole`: it can be decoded. The prompt is as JSON has it.
    End { whole: bool, prompt: String },
}

/// The text as it is read.
#[derive(Debug, Default)]
pub struct PictureRecords {
    /// Letters that make no whole group yet.
    rest: Vec<u8>,
    spoiled: bool,
    /// The line of the prompt, once the letters are through.
    prompt: Option<Vec<u8>>,
}

impl PictureRecords {
    /// What the next piece of text brings.
    pub fn feed(&mut self, mut text: &[u8]) -> Vec<PicturePart> {
        let mut parts = Vec::new();
        while !text.is_empty() {
            let end = text.iter().position(|byte| *byte == b'\n');
            let (line, rest) = text.split_at(end.unwrap_or(text.len()));
            text = rest.get(1..).unwrap_or_default();
            if let Some(prompt) = &mut self.prompt {
                prompt.extend_from_slice(line);
                if end.is_some() {
                    let prompt = String::from_utf8_lossy(&self.prompt.take().unwrap_or_default()).into_owned();
                    parts.push(PicturePart::End { whole: !std::mem::take(&mut self.spoiled), prompt });
                }
                continue;
            }
            self.letters(line, end.is_some(), &mut parts);
            if end.is_some() {
                self.prompt = Some(Vec::new());
            }
        }
        parts
    }

    fn letters(&mut self, line: &[u8], last: bool, parts: &mut Vec<PicturePart>) {
        let own = line.strip_suffix(&[SPOILED]).unwrap_or(line);
        self.spoiled |= own.len() < line.len();
        self.rest.extend_from_slice(own);
        let whole = if last { self.rest.len() } else { self.rest.len() / 4 * 4 };
        let group: Vec<u8> = self.rest.drain(..whole).collect();
        match LENIENT.decode(&group) {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => parts.push(PicturePart::Bytes(bytes)),
            Err(_) => self.spoiled = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};

    /// All pictures of a text that comes in pieces of this length: bytes, whether whole, prompt.
    fn read(text: &str, piece: usize) -> Vec<(Vec<u8>, bool, String)> {
        let (mut records, mut all, mut bytes) = (PictureRecords::default(), Vec::new(), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            for part in records.feed(piece) {
                match part {
                    PicturePart::Bytes(more) => bytes.extend(more),
                    PicturePart::End { whole, prompt } => all.push((std::mem::take(&mut bytes), whole, prompt)),
                }
            }
        }
        all
    }

    #[test]
    fn pictures_come_out_however_the_text_is_cut() {
        let pictures = [vec![1; 300], vec![2; 301], vec![3; 302]];
        let [one, two, three] = &pictures;
        let text = format!(
            "{}\n\"a cat\"\n{}\n\"\"\n{}!\n\"x\"\n",
            BASE64_STANDARD.encode(one),
            BASE64_STANDARD_NO_PAD.encode(two),
            BASE64_STANDARD.encode(three)
        );
        for piece in [1, 2, 3, 5, 7, 64, 401, 10_000] {
            let all = read(&text, piece);
            assert_eq!(all.len(), 3, "{piece}");
            assert_eq!(all[0], (one.clone(), true, "\"a cat\"".to_owned()), "{piece}");
            assert_eq!(all[1], (two.clone(), true, "\"\"".to_owned()), "{piece}");
            assert!(!all[2].1, "{piece}: it turned out to be none");
        }
    }

    /// A picture of 50 MB: what is held of it never grows.
    #[test]
    fn a_large_picture_is_taken_out_piece_by_piece() {
        let letters = BASE64_STANDARD.encode(vec![7; 50 << 20]);
        let (mut records, mut passed, piece) = (PictureRecords::default(), 0, 64 << 10);
        for part in letters.as_bytes().chunks(piece) {
            for found in records.feed(part) {
                let PicturePart::Bytes(bytes) = found else { panic!("it has not ended") };
                assert!(bytes.len() <= piece && records.rest.capacity() <= 2 * piece);
                passed += bytes.len();
            }
        }
        let last = records.feed(b"\n\"\"\n");
        assert!(passed >= (50 << 20) - 3 && matches!(last.last(), Some(PicturePart::End { whole: true, .. })));
    }

    #[test]
    fn what_is_no_base64_is_not_whole() {
        assert_eq!(read("ab*d\n\"\"\n", 100), [(Vec::new(), false, "\"\"".to_owned())]);
    }
}
