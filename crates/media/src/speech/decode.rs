//! Bytes out of text that comes in pieces: hexadecimal, as one maker sends audio, and base64, as
//! two others do. A piece may end anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text is none of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;

/// Hexadecimal.
#[derive(Clone, Copy, Debug, Default)]
pub struct HexPieces {
    half: Option<u8>,
}

impl HexPieces {
    pub fn feed(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        out.reserve(text.len() / 2 + 1);
        for digit in text {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return Err(Undecodable),
            };
            match self.half.take() {
                Some(high) => out.push(high << 4 | value),
                None => self.half = Some(value),
            }
        }
        Ok(())
    }

    /// The text is over; half a byte is a fault.
    pub fn end(&mut self) -> Result<(), Undecodable> {
        self.half.take().map_or(Ok(()), |_| Err(Undecodable))
    }
}

/// Base64 of the usual alphabet, with padding.
#[derive(Clone, Debug, Default)]
pub struct Base64Pieces {
    /// The beginning of a group of four.
    group: Vec<u8>,
    padded: bool,
}

impl Base64Pieces {
    pub fn feed(&mut self, mut text: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        if !self.group.is_empty() {
            let more = (4 - self.group.len()).min(text.len());
            self.group.extend_from_slice(&text[..more]);
            text = &text[more..];
            if self.group.len() < 4 {
                return Ok(());
            }
            let group = std::mem::take(&mut self.group);
            self.groups(&group, out)?;
        }
        let whole = text.len() / 4 * 4;
        self.groups(&text[..whole], out)?;
        self.group.extend_from_slice(&text[whole..]);
        Ok(())
    }

    fn groups(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        if text.is_empty() {
            return Ok(());
        }
        // Nothing follows its padding.
        if self.padded {
            return Err(Undecodable);
        }
        STANDARD.decode_vec(text, out).map_err(|_| Undecodable)?;
        self.padded = text.ends_with(b"=");
        Ok(())
    }

    /// The text is over; what follows is another one.
    pub fn end(&mut self) -> Result<(), Undecodable> {
        let rest = std::mem::take(self);
        if rest.group.is_empty() { Ok(()) } else { Err(Undecodable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_text_of_its_kind_is_reported() {
        for bad in ["abc", "zz", "0x12"] {
            let (mut hex, mut out) = (HexPieces::default(), Vec::new());
            assert!(hex.feed(bad.as_bytes(), &mut out).and_then(|()| hex.end()).is_err(), "{bad}");
        }
        for bad in ["AA", "AAA", "AA==AAAA", "A-_A", "AA =", "===="] {
            let (mut text, mut out) = (Base64Pieces::default(), Vec::new());
            assert!(text.feed(bad.as_bytes(), &mut out).and_then(|()| text.end()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back_in_whatever_pieces(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1usize..30) {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let (mut pieces, mut out) = (HexPieces::default(), Vec::new());
            for part in hex.as_bytes().chunks(piece) {
                pieces.feed(part, &mut out).unwrap();
            }
            prop_assert!(pieces.end().is_ok());
            prop_assert_eq!(&out, &bytes);
            let text = STANDARD.encode(&bytes);
            let (mut pieces, mut out) = (Base64Pieces::default(), Vec::new());
            for part in text.as_bytes().chunks(piece) {
                pieces.feed(part, &mut out).unwrap();
            }
            prop_assert!(pieces.end().is_ok());
            prop_assert_eq!(&out, &bytes);
        }
    }
}
