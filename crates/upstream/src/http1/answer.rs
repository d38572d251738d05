//! The body of a reply, read from its connection as it is asked for, in the pieces it was sent in:
//! a stream's cover, its marks and a client that makes no room all go by pieces. Read to its end,
//! the connection goes back to the pool; dropped before, it is closed.
//!
//! Where much of a piece is still to come, as of a picture or of audio, it is read in large steps
//! and into memory of its own, which is used again when the pieces before are gone.

use super::connection::{Connection, closed};
use super::head::Framing;
use super::pool::PoolSlot;
use super::upgraded::Upgraded;
use bytes::Bytes;
use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};
use tollgate_wire::http1::BodySpace;

/// A body that is still coming.
pub struct IncomingBody {
    framing: Framing,
    /// What was read and not yet asked for.
    read: Bytes,
    /// Where large steps are read into.
    space: BodySpace,
    /// `None` once there is nothing more to read.
    from: Option<Box<Connection>>,
    /// Where the connection goes afterwards, if it can be used again.
    back: Option<PoolSlot>,
}

impl IncomingBody {
    pub(crate) fn new(framing: Framing, read: Bytes, from: Box<Connection>, back: Option<PoolSlot>) -> IncomingBody {
        let mut answer = IncomingBody { framing, read, space: BodySpace::trusted(), from: Some(from), back };
        if answer.framing.is_done() {
            answer.end();
        }
        answer
    }

    /// The next piece; `None` at the end.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.from.is_none() {
                return Poll::Ready(None);
            }
            if self.read.is_empty() {
                match ready!(self.poll_read(cx)) {
                    Ok(0) => {
                        let ends = matches!(self.framing, Framing::UntilClosed);
                        self.close();
                        return Poll::Ready((!ends).then(|| Err(closed())));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        self.close();
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            match self.framing.take(&mut self.read) {
                Ok(data) => {
                    if self.framing.is_done() {
                        self.end();
                    }
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Err(error) => {
                    self.close();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Reads once; 0 at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(from) = &mut self.from else { return Poll::Ready(Ok(0)) };
        let Some(room) = self.space.room(self.framing.ahead()) else {
            return from.poll_read(cx, |bytes| self.read = Bytes::copy_from_slice(bytes));
        };
        let Poll::Ready(read) = from.poll_read_into(cx, room) else {
            self.space.release();
            return Poll::Pending;
        };
        self.read = self.space.take();
        Poll::Ready(read)
    }

    fn close(&mut self) {
        self.from = None;
        self.back = None;
    }

    /// The reply is over. A connection on which something came that nobody asked for is closed.
    fn end(&mut self) {
        if let (Some(connection), Some(place), true) = (self.from.take(), self.back.take(), self.read.is_empty()) {
            place.put_back(connection);
        }
    }

    /// The connection itself, with what was already read of it, after a change of protocol.
    pub(crate) fn into_upgraded(self) -> Option<Upgraded> {
        Some(Upgraded::new(self.from?, self.read))
    }

    /// True when nothing more can come.
    pub fn is_end(&self) -> bool {
        self.from.is_none()
    }

    /// At least so many bytes are still to come.
    pub fn expected(&self) -> u64 {
        match self.framing {
            Framing::Length(left) => left,
            _ => 0,
        }
    }
}

impl Framing {
    fn is_done(&self) -> bool {
        match self {
            Framing::Length(left) => *left == 0,
            Framing::Chunked(chunks) => chunks.is_done(),
            Framing::UntilClosed => false,
        }
    }

    /// So many bytes are known to follow in one piece.
    fn ahead(&self) -> u64 {
        match self {
            Framing::Length(left) => *left,
            Framing::Chunked(chunks) => chunks.ahead(),
            Framing::UntilClosed => 0,
        }
    }

    /// Takes the next piece of the body from what was read.
    fn take(&mut self, read: &mut Bytes) -> io::Result<Bytes> {
        match self {
            Framing::UntilClosed => Ok(std::mem::take(read)),
            Framing::Length(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(read.len());
                *left -= length as u64;
                Ok(read.split_to(length))
            }
            Framing::Chunked(chunks) => chunks.take(read).map_err(|_| io::ErrorKind::InvalidData.into()),
        }
    }
}

impl fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("framing", &self.framing).field("ended", &self.is_end()).finish_non_exhaustive()
    }
}
