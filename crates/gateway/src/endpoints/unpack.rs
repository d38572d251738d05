//! A body that came packed with zstd, unpacked block by block while it arrives. A few bytes can
//! stand for any number, so one block comes out at a time, and whoever takes them counts.

use crate::refusal::Refusal;
use bytes::{Buf as _, Bytes, BytesMut};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::Read as _;
use tollgate_wire::error::Code;

/// What a decoder must be able to look back at; writers that want to be understood stay within it.
const WINDOW: usize = 8 << 20;
/// The longest block, as it comes and as it goes.
const BLOCK: usize = 128 << 10;
/// The longest head of a frame.
const HEAD: usize = 18;

pub struct Unpacking {
    decoder: Box<FrameDecoder>,
    /// What has come and is no whole block yet.
    packed: BytesMut,
    begun: bool,
    /// Bytes that have come out.
    length: usize,
}

impl Unpacking {
    pub fn new() -> Unpacking {
        let mut decoder = Box::new(FrameDecoder::new());
        decoder.set_max_window_size(WINDOW as u64);
        Unpacking { decoder, packed: BytesMut::new(), begun: false, length: 0 }
    }

    /// The next bytes of the body.
    pub fn push(&mut self, piece: &[u8]) {
        self.packed.extend_from_slice(piece);
    }

    /// How much memory it takes: what can be looked back at, and what is no block yet.
    pub fn held(&self) -> usize {
        self.packed.len() + self.length.min(WINDOW)
    }

    /// The next piece, where there is one; with `last`, nothing more is pushed.
    pub fn piece(&mut self, last: bool) -> Result<Option<Bytes>, Refusal> {
        loop {
            let mut out = BytesMut::zeroed(BLOCK);
            let read = if self.begun { self.decoder.read(&mut out).map_err(|_| broken())? } else { 0 };
            if read > 0 {
                self.length = self.length.saturating_add(read);
                out.truncate(read);
                return Ok(Some(out.freeze()));
            }
            if !self.block(last)? {
                return Ok(None);
            }
        }
    }

    /// Decodes one block, if it is there.
    fn block(&mut self, last: bool) -> Result<bool, Refusal> {
        if self.begun && self.decoder.is_finished() {
            // What follows a frame is not looked at.
            self.packed.clear();
            return Ok(false);
        }
        let enough = if self.begun { self.whole_block() } else { self.packed.len() >= HEAD };
        if !enough && !last {
            return Ok(false);
        }
        let mut rest = &self.packed[..];
        let before = rest.len();
        if self.begun {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut rest, one).map_err(|_| broken())?;
        } else {
            self.decoder.init(&mut rest).map_err(|_| broken())?;
            self.begun = true;
        }
        let taken = before - rest.len();
        self.packed.advance(taken);
        Ok(true)
    }

    /// Whether a block is there from its head to its end, and the checksum behind the last one.
    fn whole_block(&self) -> bool {
        let [a, b, c, ..] = self.packed[..] else { return false };
        let head = u32::from_le_bytes([a, b, c, 0]);
        // One byte that is repeated, or so many.
        let content = if head >> 1 & 3 == 1 { 1 } else { (head >> 3) as usize };
        let sum = if head & 1 == 1 { 4 } else { 0 };
        // A block that is longer than any may be is for the decoder to refuse.
        self.packed.len() >= 3 + content.min(BLOCK) + sum
    }
}

fn broken() -> Refusal {
    let text = "The body is not packed with zstd as its header says, or with a window above 8 MiB.";
    Refusal::about(Code::InvalidRequest, "Content-Encoding", text)
}
