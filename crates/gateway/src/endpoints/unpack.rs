//! A body that came packed, unpacked piece by piece: a few bytes can stand for any number, so there
//! is a bound on what comes out and a pause after each piece.

use crate::refusal::Refusal;
use bytes::Bytes;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read as _;
use tollgate_wire::error::Code;

/// Bytes that come out at once.
const PIECE: usize = 64 << 10;

pub struct Unpacked<'a> {
    decoder: Box<StreamingDecoder<&'a [u8], ruzstd::decoding::FrameDecoder>>,
    out: Vec<u8>,
}

impl<'a> Unpacked<'a> {
    pub fn new(packed: &'a [u8]) -> Result<Unpacked<'a>, Refusal> {
        let decoder = StreamingDecoder::new(packed).map_err(|_| broken())?;
        Ok(Unpacked { decoder: Box::new(decoder), out: Vec::new() })
    }

    /// Unpacks a piece more. How long all of it is now; nothing when that was all.
    pub fn more(&mut self, most: usize) -> Result<Option<usize>, Refusal> {
        let before = self.out.len();
        self.out.resize(before + PIECE, 0);
        let read = self.decoder.read(&mut self.out[before..]);
        self.out.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Ok(None),
            Ok(_) if self.out.len() > most => {
                let text = format!("The body has more than {most} bytes when it is unpacked.");
                Err(Refusal::new(Code::BodyTooLarge, text))
            }
            Ok(_) => Ok(Some(self.out.len())),
            Err(_) => Err(broken()),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.out)
    }
}

fn broken() -> Refusal {
    Refusal::about(Code::InvalidRequest, "Content-Encoding", "The body is not packed with zstd as its header says.")
}
