//! What comes over a socket, until it is messages. A message that is whole in what was read is
//! taken from there. Of another one the pieces are put together, and it is counted among all bodies
//! while they are; when there is no room for more of it, the connection is over.

use super::buffers;
use super::frames::{FrameHead, FrameKind, LONGEST_HEAD, mask, read_close};
use super::rooms::MessageRoom;
use super::socket::SocketInput;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// By so much a message grows that is put together.
const STEP: usize = 64 << 10;

pub struct IncomingFrames {
    /// Frames of this side are masked: it is a client.
    masked: bool,
    room: MessageRoom,
    filled: Option<Filled>,
    /// The beginning of a head that is not whole.
    stub: [u8; LONGEST_HEAD],
    stub_length: usize,
    /// The frame that is being read, and what has come of it.
    frame: Option<(FrameHead, usize)>,
    /// What the message is of which some frames have come.
    message: Option<FrameKind>,
    collected: Vec<u8>,
    /// A ping, a pong or a close that came in pieces: it may stand between frames of a message.
    aside: Vec<u8>,
    /// The last ping that was not answered yet.
    pub ping: Option<Vec<u8>>,
}

/// What was read and not looked at yet.
struct Filled {
    bytes: Box<[u8]>,
    at: usize,
    end: usize,
}

impl IncomingFrames {
    pub fn new(masked: bool, room: MessageRoom) -> IncomingFrames {
        IncomingFrames {
            masked,
            room,
            filled: None,
            stub: [0; LONGEST_HEAD],
            stub_length: 0,
            frame: None,
            message: None,
            collected: Vec::new(),
            aside: Vec::new(),
            ping: None,
        }
    }

    /// It has no buffer.
    #[cfg(test)]
    pub fn is_bare(&self) -> bool {
        self.filled.is_none() && self.collected.capacity() == 0 && self.aside.capacity() == 0
    }

    /// Not all that was read is taken.
    pub fn is_filled(&self) -> bool {
        self.filled.is_some()
    }

    /// What was read and what was put together of it is nobody's any more.
    pub fn forget(&mut self) {
        if let Some(filled) = self.filled.take() {
            buffers::was_read(filled.bytes);
        }
        (self.frame, self.message, self.ping, self.stub_length) = (None, None, None, 0);
        (self.collected, self.aside) = (Vec::new(), Vec::new());
    }

    /// Reads what there is, after all that was read before was taken. False at the end.
    pub fn poll_fill<T: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, io: &mut T) -> Poll<io::Result<bool>> {
        let mut bytes = buffers::to_read();
        let mut into = ReadBuf::new(&mut bytes);
        let read = Pin::new(io).poll_read(cx, &mut into);
        let end = into.filled().len();
        if end == 0 {
            buffers::was_read(bytes);
            return read.map_ok(|()| false);
        }
        self.filled = Some(Filled { bytes, at: 0, end });
        Poll::Ready(Ok(true))
    }

    /// The next that is whole; nothing where more has to be read. `passes` may take a text where it
    /// lies.
    pub fn next(&mut self, passes: impl FnOnce(&str) -> bool) -> Option<SocketInput> {
        self.read_on(passes).unwrap_or_else(Some)
    }

    fn read_on(&mut self, passes: impl FnOnce(&str) -> bool) -> Result<Option<SocketInput>, SocketInput> {
        if self.frame.is_none() && !self.read_head()? {
            return Ok(None);
        }
        let Some((head, done)) = self.frame else { return Ok(None) };
        if done == 0 && self.left() as u64 >= head.length && (head.kind.is_control() || self.is_whole(head)) {
            self.frame = None;
            return self.at_once(head, passes).map(Some);
        }
        if !self.collect(head, done)? {
            return Ok(None);
        }
        self.frame = None;
        self.ended(head).map(Some)
    }

    /// A message in one frame.
    fn is_whole(&self, head: FrameHead) -> bool {
        head.last && head.kind != FrameKind::More
    }

    fn left(&self) -> usize {
        self.filled.as_ref().map_or(0, |filled| filled.end - filled.at)
    }

    fn rest(&mut self) -> &mut [u8] {
        self.filled.as_mut().map_or(&mut [], |filled| &mut filled.bytes[filled.at..filled.end])
    }

    /// So many bytes are done with.
    fn used(&mut self, bytes: usize) {
        if let Some(filled) = &mut self.filled {
            filled.at += bytes;
        }
        if let Some(filled) = self.filled.take_if(|filled| filled.at == filled.end) {
            buffers::was_read(filled.bytes);
        }
    }

    /// Is there the head of a frame?
    fn read_head(&mut self) -> Result<bool, SocketInput> {
        let before = self.stub_length;
        let more = self.left().min(LONGEST_HEAD - before);
        if more == 0 {
            return Ok(false);
        }
        let mut stub = self.stub;
        stub[before..before + more].copy_from_slice(&self.rest()[..more]);
        self.stub = stub;
        match FrameHead::read(&stub[..before + more]).map_err(|_| SocketInput::Garbage)? {
            Some((head, size)) => {
                self.check(head)?;
                self.stub_length = 0;
                self.frame = Some((head, 0));
                self.used(size - before);
                Ok(true)
            }
            None => {
                self.stub_length = before + more;
                self.used(more);
                Ok(false)
            }
        }
    }

    fn check(&self, head: FrameHead) -> Result<(), SocketInput> {
        let expected = match head.kind {
            FrameKind::More => self.message.is_some(),
            FrameKind::Text | FrameKind::Binary => self.message.is_none(),
            FrameKind::Close | FrameKind::Ping | FrameKind::Pong => true,
        };
        if !expected || head.key.is_some() != self.masked {
            return Err(SocketInput::Garbage);
        }
        let whole = head.length.saturating_add(self.collected.len() as u64);
        if !head.kind.is_control() && whole > self.room.longest() as u64 {
            return Err(SocketInput::TooLarge);
        }
        Ok(())
    }

    /// A message that is all there.
    fn at_once(&mut self, head: FrameHead, passes: impl FnOnce(&str) -> bool) -> Result<SocketInput, SocketInput> {
        let length = head.length as usize;
        let payload = &mut self.rest()[..length];
        if let Some(key) = head.key {
            mask(payload, key, 0);
        }
        let mut input = match head.kind {
            FrameKind::Text => {
                let text = std::str::from_utf8(payload).map_err(|_| SocketInput::Garbage)?;
                match passes(text) {
                    true => SocketInput::Passed,
                    false => SocketInput::Text(Utf8Bytes::from(text), None),
                }
            }
            FrameKind::More | FrameKind::Binary => SocketInput::Binary(Bytes::copy_from_slice(payload), None),
            FrameKind::Close | FrameKind::Ping | FrameKind::Pong => {
                let payload = payload.to_vec();
                self.said_aside(head.kind, payload)?
            }
        };
        self.used(length);
        if let SocketInput::Text(_, room) | SocketInput::Binary(_, room) = &mut input {
            self.room.cover(length).map_err(|_| SocketInput::NoRoom)?;
            *room = self.room.take(length);
        }
        Ok(input)
    }

    /// Takes what there is of a frame. Is that all of it?
    fn collect(&mut self, head: FrameHead, done: usize) -> Result<bool, SocketInput> {
        let missing = head.length as usize - done;
        let more = self.left().min(missing);
        let control = head.kind.is_control();
        if !control {
            self.room.cover(self.collected.len() + more).map_err(|_| SocketInput::NoRoom)?;
        }
        let IncomingFrames { filled, collected, aside, .. } = self;
        let into = if control { aside } else { collected };
        if let Some(filled) = filled {
            if into.capacity() - into.len() < more {
                into.reserve_exact(missing.min(more.max(into.len()).max(STEP)));
            }
            let before = into.len();
            into.extend_from_slice(&filled.bytes[filled.at..filled.at + more]);
            if let Some(key) = head.key {
                mask(&mut into[before..], key, done);
            }
        }
        self.used(more);
        self.frame = Some((head, done + more));
        Ok(more == missing)
    }

    /// A frame that came in pieces, or that is one piece of a message.
    fn ended(&mut self, head: FrameHead) -> Result<SocketInput, SocketInput> {
        if head.kind.is_control() {
            let payload = std::mem::take(&mut self.aside);
            return self.said_aside(head.kind, payload);
        }
        let kind = *self.message.get_or_insert(head.kind);
        if !head.last {
            return Ok(SocketInput::Aside);
        }
        self.message = None;
        let whole = std::mem::take(&mut self.collected);
        let room = self.room.take(whole.len());
        let whole = Bytes::from(whole);
        match kind {
            FrameKind::Text => {
                let text = Utf8Bytes::try_from(whole).map_err(|_| SocketInput::Garbage)?;
                Ok(SocketInput::Text(text, room))
            }
            _ => Ok(SocketInput::Binary(whole, room)),
        }
    }

    fn said_aside(&mut self, kind: FrameKind, payload: Vec<u8>) -> Result<SocketInput, SocketInput> {
        match kind {
            FrameKind::Close => {
                let close = read_close(&payload).map_err(|_| SocketInput::Garbage)?;
                return Ok(SocketInput::Closed(close));
            }
            // Of several only the last has to be answered.
            FrameKind::Ping => self.ping = Some(payload),
            _ => {}
        }
        Ok(SocketInput::Aside)
    }
}
