//! The framing of Amazon's event streams: length, headers, payload, and two checksums.

use crate::Fault;
use bytes::{Buf as _, Bytes, BytesMut};

/// One message of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AwsFrame {
    /// `event`, `exception` or `error`.
    pub message: String,
    /// What kind of event or exception.
    pub kind: String,
    pub payload: Bytes,
}

/// Frames out of bytes, however they are cut.
#[derive(Debug, Default)]
pub(super) struct AwsFrames {
    bytes: BytesMut,
}

/// Two lengths and their checksum before, one checksum behind.
const PRELUDE: usize = 12;
const CHECK: usize = 4;
/// Longer than any frame that Amazon allows.
const MOST: usize = 16 << 20;
/// The type of a header whose value is text.
const TEXT: u8 = 7;

impl AwsFrames {
    pub fn feed(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Bytes that are no whole frame are left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next whole frame.
    pub fn next(&mut self) -> Result<Option<AwsFrame>, Fault> {
        if self.bytes.len() < PRELUDE {
            return Ok(None);
        }
        let number = |at: usize| self.bytes.get(at..at + 4).map(|mut four| four.get_u32());
        let (Some(length), Some(headers), Some(check)) = (number(0), number(4), number(8)) else { return Ok(None) };
        let (length, headers) = (length as usize, headers as usize);
        let fits = (PRELUDE + CHECK..=MOST).contains(&length) && headers <= length - PRELUDE - CHECK;
        if !fits || crc32fast::hash(&self.bytes[..8]) != check {
            return Err(Fault::garbage());
        }
        if self.bytes.len() < length {
            return Ok(None);
        }
        let frame = self.bytes.split_to(length).freeze();
        let end = length - CHECK;
        if crc32fast::hash(&frame[..end]) != (&frame[end..]).get_u32() {
            return Err(Fault::garbage());
        }
        let mut read =
            AwsFrame { message: String::new(), kind: String::new(), payload: frame.slice(PRELUDE + headers..end) };
        read_headers(&frame[PRELUDE..PRELUDE + headers], &mut read).ok_or_else(Fault::garbage)?;
        Ok(Some(read))
    }
}

/// `None` where they cannot be read.
fn read_headers(mut bytes: &[u8], frame: &mut AwsFrame) -> Option<()> {
    while !bytes.is_empty() {
        let name = take(&mut bytes, 1)?;
        let name = take(&mut bytes, usize::from(name[0]))?;
        let kind = take(&mut bytes, 1)?[0];
        let length = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | TEXT => usize::from(take(&mut bytes, 2)?.get_u16()),
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, length)?;
        if kind == TEXT {
            let value = String::from_utf8_lossy(value).into_owned();
            match name {
                b":message-type" => frame.message = value,
                b":event-type" | b":exception-type" | b":error-code" => frame.kind = value,
                _ => {}
            }
        }
    }
    Some(())
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A frame as Amazon writes it.
    pub fn frame(message: &str, kind: &str, payload: &str) -> Vec<u8> {
        let kind_name = if message == "event" { ":event-type" } else { ":exception-type" };
        let mut headers = Vec::new();
        for (name, value) in [(kind_name, kind), (":content-type", "application/json"), (":message-type", message)] {
            headers.push(name.len() as u8);
            headers.extend(name.as_bytes());
            headers.push(TEXT);
            headers.extend((value.len() as u16).to_be_bytes());
            headers.extend(value.as_bytes());
        }
        let length = PRELUDE + headers.len() + payload.len() + CHECK;
        let mut out = Vec::from((length as u32).to_be_bytes());
        out.extend((headers.len() as u32).to_be_bytes());
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out.extend(headers);
        out.extend(payload.as_bytes());
        out.extend(crc32fast::hash(&out).to_be_bytes());
        out
    }

    /// Made with another implementation (botocore reads it as an event `messageStop`).
    const PUBLISHED: &str = "0000007a00000051ca2c46650b3a6576656e742d7479706507000b6d65737361676553746f700d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b2273746f70526561736f6e223a22656e645f7475726e227d5fbf09fc";

    #[test]
    fn a_frame_of_another_implementation() {
        let bytes: Vec<u8> =
            (0..PUBLISHED.len()).step_by(2).map(|at| u8::from_str_radix(&PUBLISHED[at..at + 2], 16).unwrap()).collect();
        let mut frames = AwsFrames::default();
        frames.feed(&bytes);
        let read = frames.next().unwrap().unwrap();
        assert_eq!((read.message.as_str(), read.kind.as_str()), ("event", "messageStop"));
        assert_eq!(read.payload, r#"{"stopReason":"end_turn"}"#);
        assert_eq!(bytes, frame("event", "messageStop", r#"{"stopReason":"end_turn"}"#));
        assert!(frames.is_empty());
    }

    #[test]
    fn however_it_is_cut() {
        let whole = [frame("event", "a", "{}"), frame("exception", "b", "{\"message\":\"x\"}")].concat();
        for cut in 0..whole.len() {
            let mut frames = AwsFrames::default();
            let mut read = Vec::new();
            for piece in [&whole[..cut], &whole[cut..]] {
                frames.feed(piece);
                while let Some(frame) = frames.next().unwrap() {
                    read.push(format!("{} {}", frame.message, frame.kind));
                }
            }
            assert_eq!(read, ["event a", "exception b"], "cut at {cut}");
        }
    }

    #[test]
    fn a_byte_that_changed_on_the_way_is_seen() {
        let whole = frame("event", "a", "{\"k\":1}");
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1;
            let mut frames = AwsFrames::default();
            frames.feed(&broken);
            assert!(!matches!(frames.next(), Ok(Some(_))), "byte {at}");
        }
    }
}
