//! What waits to be written to a socket, as bytes: several messages go out in one write. It is
//! bounded, because nobody reads for it from the other side while it is full.

use super::buffers;
use super::frames::{FrameKind, put_frame};
use super::rooms::MessageRoom;
use crate::door::bodies::BodyShare;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// What is written is forgotten when it is so much: a side that always lags never takes all.
const WRITTEN: usize = 256 << 10;

pub struct OutgoingFrames {
    bytes: Vec<u8>,
    /// So many of them are written.
    at: usize,
    unflushed: bool,
    room: MessageRoom,
    full: bool,
    masks: Option<Masks>,
}

/// Keys of frames that a client sends. They are to keep what a client says from being read as
/// another protocol on the way, and are no secret.
pub struct Masks(u64);

impl Masks {
    pub fn new(seed: [u8; 8]) -> Masks {
        Masks(u64::from_ne_bytes(seed) | 1)
    }

    fn next(&mut self) -> [u8; 4] {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let [_, _, key @ .., _, _] = self.0.to_ne_bytes();
        key
    }
}

impl OutgoingFrames {
    /// `masks`: we are the client.
    pub fn new(room: MessageRoom, masks: Option<Masks>) -> OutgoingFrames {
        OutgoingFrames { bytes: Vec::new(), at: 0, unflushed: false, room, full: false, masks }
    }

    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.unflushed
    }

    /// There was no room for what was said.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// There may be room for something short.
    pub fn excuse(&mut self) {
        self.full = false;
    }

    /// The room of what is said next.
    pub fn adopt(&mut self, room: BodyShare) {
        self.room.adopt(room);
    }

    /// It has no buffer.
    #[cfg(test)]
    pub fn is_bare(&self) -> bool {
        self.bytes.capacity() == 0
    }

    pub fn let_room_go(&mut self) {
        self.room.leave();
    }

    pub fn say(&mut self, kind: FrameKind, payload: &[u8]) {
        if self.bytes.capacity() == 0 {
            self.bytes = buffers::to_write();
        }
        if self.at >= WRITTEN {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        if self.room.cover(self.bytes.len() + payload.len()).is_err() {
            // Half of a session is none: it ends.
            self.full = true;
            return;
        }
        let key = self.masks.as_mut().map(Masks::next);
        put_frame(&mut self.bytes, kind, payload, key);
    }

    /// Writes what there is, and goes on where it could not write more. `moved` says whether any of
    /// it went.
    pub fn poll_write<T: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
        moved: &mut bool,
    ) -> Poll<io::Result<()>> {
        while self.at < self.bytes.len() {
            let written = ready!(Pin::new(&mut *io).poll_write(cx, &self.bytes[self.at..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.at += written;
            (self.unflushed, *moved) = (true, true);
        }
        if self.unflushed {
            ready!(Pin::new(&mut *io).poll_flush(cx))?;
            (self.unflushed, *moved) = (false, true);
        }
        if self.bytes.capacity() > 0 {
            buffers::was_written(std::mem::take(&mut self.bytes));
        }
        self.at = 0;
        self.room.leave();
        Poll::Ready(Ok(()))
    }
}
