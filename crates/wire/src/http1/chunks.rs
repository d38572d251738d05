//! Takes a chunked body apart (RFC 9112, 7.1), however it is cut into reads. Strict: what two
//! readers could read in two ways is refused.

use bytes::{Buf as _, Bytes};
use std::ops::Range;

/// Extensions of one chunk, and all trailers together, may not be longer than this.
const MOST_ASIDE: u32 = 16 << 10;

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the size; whether a digit was there.
    Size(bool),
    /// In what follows the size on its line.
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    Done,
}

#[derive(Debug)]
pub struct Chunks {
    at: At,
    /// Bytes left of the current chunk.
    left: u64,
    aside: u32,
}

/// Not a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadChunk;

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { at: At::Size(false), left: 0, aside: 0 }
    }
}

impl Chunks {
    pub fn new() -> Chunks {
        Chunks::default()
    }

    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// What is left of the chunk whose data is being read.
    pub fn ahead(&self) -> u64 {
        if self.at == At::Data { self.left } else { 0 }
    }

    /// Takes the next piece of data from what was read; empty when more has to be read, or at the
    /// end. What follows a piece may be the end of its chunk, or of all of them: then nothing more
    /// has to be waited for.
    pub fn take(&mut self, read: &mut Bytes) -> Result<Bytes, BadChunk> {
        let mut used = 0;
        let piece = self.next(read, &mut used)?;
        let data = piece.map_or_else(Bytes::new, |piece| read.slice(piece));
        if !data.is_empty() {
            self.finish_chunk(read, &mut used)?;
        }
        read.advance(used);
        Ok(data)
    }

    /// Goes on at `from` and gives the next piece of data and where it ends; `None` when all of the
    /// input, or of the body, is read.
    fn next(&mut self, input: &[u8], from: &mut usize) -> Result<Option<Range<usize>>, BadChunk> {
        while let Some(&byte) = input.get(*from) {
            if self.at == At::Done {
                return Ok(None);
            }
            if self.at == At::Data {
                let room = input.len() - *from;
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(room);
                let piece = *from..*from + taken;
                self.left -= taken as u64;
                *from += taken;
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                return Ok(Some(piece));
            }
            *from += 1;
            self.at = self.step(byte)?;
        }
        Ok(None)
    }

    /// Reads on up to the next data, so that an end which is already there is seen with the last
    /// piece.
    fn finish_chunk(&mut self, input: &[u8], from: &mut usize) -> Result<(), BadChunk> {
        while let Some(&byte) = input.get(*from)
            && !matches!(self.at, At::Data | At::Done)
        {
            *from += 1;
            self.at = self.step(byte)?;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<At, BadChunk> {
        Ok(match (self.at, byte) {
            (At::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).ok_or(BadChunk)?;
                self.left = self.left.checked_mul(16).ok_or(BadChunk)? + u64::from(digit);
                At::Size(true)
            }
            (At::Size(true), b'\r') | (At::Extension, b'\r') => At::SizeLf,
            (At::Size(true), b';' | b' ' | b'\t') => At::Extension,
            (At::Extension, b'\n') => return Err(BadChunk),
            (At::Extension, _) => self.aside(At::Extension)?,
            (At::SizeLf, b'\n') if self.left == 0 => {
                self.aside = 0;
                At::Trailer
            }
            (At::SizeLf, b'\n') => {
                self.aside = 0;
                At::Data
            }
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size(false),
            (At::Trailer, b'\r') => At::EndLf,
            (At::Trailer | At::TrailerLine, b'\n') => return Err(BadChunk),
            (At::TrailerLine, b'\r') => At::TrailerLf,
            (At::Trailer | At::TrailerLine, _) => self.aside(At::TrailerLine)?,
            (At::TrailerLf, b'\n') => At::Trailer,
            (At::EndLf, b'\n') => At::Done,
            _ => return Err(BadChunk),
        })
    }

    fn aside(&mut self, at: At) -> Result<At, BadChunk> {
        self.aside += 1;
        if self.aside > MOST_ASIDE { Err(BadChunk) } else { Ok(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The body, or how far it was sound; and what follows it.
    fn read(input: &[u8], cut: usize) -> (Result<Vec<u8>, BadChunk>, bool, usize) {
        let mut chunks = Chunks::new();
        let mut all = Vec::new();
        let mut used = 0;
        for part in input.chunks(cut) {
            let mut from = 0;
            loop {
                match chunks.next(part, &mut from) {
                    Ok(Some(piece)) => all.extend_from_slice(&part[piece]),
                    Ok(None) => break,
                    Err(bad) => return (Err(bad), false, 0),
                }
            }
            used += from;
        }
        (Ok(all), chunks.is_done(), used)
    }

    #[test]
    fn bodies_in_chunks() {
        let table: [(&str, Option<(&str, bool)>); 20] = [
            ("5\r\nhello\r\n0\r\n\r\n", Some(("hello", true))),
            ("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", Some(("hello!", true))),
            ("a;name=\"v\"\r\n0123456789\r\n0\r\n\r\n", Some(("0123456789", true))),
            ("A \r\n0123456789\r\n00\r\n\r\n", Some(("0123456789", true))),
            ("1\r\nx\r\n0\r\nDigest: abc\r\nMore: 1\r\n\r\n", Some(("x", true))),
            ("0\r\n\r\n", Some(("", true))),
            ("5\r\nhel", Some(("hel", false))),
            ("5\r\nhello\r\n", Some(("hello", false))),
            ("0\r\n", Some(("", false))),
            ("", Some(("", false))),
            ("\r\n", None),
            ("5\nhello\r\n0\r\n\r\n", None),
            ("5\r\nhello!\r\n0\r\n\r\n", None),
            ("g\r\n", None),
            ("-1\r\n", None),
            ("0x5\r\nhello\r\n", None),
            (";ext\r\n", None),
            ("1;a\nb\r\nx\r\n0\r\n\r\n", None),
            ("1\r\nx\r\n0\r\nTrailer: x\n\r\n", None),
            ("10000000000000000\r\n", None),
        ];
        for (input, expected) in table {
            let (body, done, _) = read(input.as_bytes(), 7);
            let found = body.ok().map(|body| (String::from_utf8(body).expect("text"), done));
            assert_eq!(found, expected.map(|(body, done)| (body.to_owned(), done)), "{input:?}");
        }
    }

    #[test]
    fn what_stands_beside_the_data_is_bounded() {
        let long = "x".repeat(20_000);
        assert!(read(format!("1;{long}\r\nx\r\n0\r\n\r\n").as_bytes(), 999).0.is_err());
        assert!(read(format!("0\r\n{}\r\n", "A: b\r\n".repeat(5_000)).as_bytes(), 999).0.is_err());
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(parts in proptest::collection::vec("[a-z]{1,40}", 0..6), cut in 1usize..50, after in "[a-z]{0,9}") {
            let chunks: String = parts.iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len())).collect();
            let body = format!("{chunks}0\r\n\r\n");
            let (found, done, used) = read(format!("{body}{after}").as_bytes(), cut);
            prop_assert_eq!(found, Ok(parts.concat().into_bytes()));
            prop_assert!(done);
            prop_assert_eq!(used, body.len(), "what follows is left alone");
        }

        #[test]
        fn any_bytes_end_well(input in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b';'), any::<u8>()], 0..60), cut in 1usize..9) {
            prop_assert_eq!(read(&input, cut).0, read(&input, 60).0);
        }
    }
}
