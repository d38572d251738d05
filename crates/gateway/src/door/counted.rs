//! The bytes of a WebSocket on their way to becoming messages, counted in the budget for all
//! bodies. A message is put together inside the protocol's library, where nobody can wait: when
//! there is no room for more of it, the connection is over.

use crate::door::bodies::{Bodies, BodyShare, SMALL, Whose};
use bytes::{Buf as _, Bytes};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is read at once by whoever reads ahead.
const AHEAD: usize = 32 << 10;

thread_local! {
    /// Where connections read to: one for all of a thread, so that a quiet one has no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; AHEAD].into());
}

pub struct Counted<T> {
    inner: T,
    bodies: Arc<Bodies>,
    whose: Whose,
    /// No message is longer; what comes beyond is framing, or part of the next one.
    longest: usize,
    /// For the message that is coming, and what has come of it.
    room: Option<BodyShare>,
    bytes: usize,
    full: bool,
    reads_ahead: bool,
    /// What was read and not asked for yet.
    ahead: Bytes,
}

impl<T> Counted<T> {
    pub fn new(inner: T, bodies: Arc<Bodies>, whose: Whose, longest: usize) -> Counted<T> {
        let (room, ahead) = (None, Bytes::new());
        Counted { inner, bodies, whose, longest, room, bytes: 0, full: false, reads_ahead: false, ahead }
    }

    /// The same connection, which reads many small messages at once, however little is asked for:
    /// the protocol's library can do with a small buffer.
    pub fn reading_ahead(self) -> Counted<T> {
        Counted { reads_ahead: true, ..self }
    }

    /// A message is whole: its room goes with it. What has come of the next one is counted with the
    /// first of its bytes to come.
    pub fn message(&mut self) -> Option<BodyShare> {
        self.bytes = 0;
        self.room.take()
    }

    /// The connection, and the room of what was read since the last message.
    pub fn into_parts(self) -> (T, Option<BodyShare>) {
        (self.inner, self.room)
    }

    /// Whether the connection ended because there was no room.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// In steps that double, so that a long message is counted now and then and not with each of
    /// its bytes.
    fn count(&mut self, more: usize) -> io::Result<()> {
        self.bytes += more;
        let has = self.room.as_ref().map_or(0, BodyShare::bytes);
        if self.bytes.min(self.longest) <= has {
            return Ok(());
        }
        let wanted = self.bytes.max(has * 2).max(SMALL).min(self.longest);
        let got = match &mut self.room {
            Some(room) => room.grow_now(wanted),
            None => self.bodies.room_now(self.whose, wanted).map(|room| self.room = Some(room)),
        };
        got.map_err(|_| {
            self.full = true;
            io::Error::from(io::ErrorKind::OutOfMemory)
        })
    }
}

impl<T: AsyncRead + Unpin> Counted<T> {
    fn poll_ahead(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.remaining();
        if self.ahead.is_empty() {
            let rest = SCRATCH.with_borrow_mut(|scratch| {
                let mut wide = ReadBuf::new(scratch);
                ready!(Pin::new(&mut self.inner).poll_read(cx, &mut wide))?;
                let (now, later) = wide.filled().split_at(wide.filled().len().min(before));
                buf.put_slice(now);
                Poll::Ready(io::Result::Ok(Bytes::copy_from_slice(later)))
            });
            self.ahead = ready!(rest)?;
        } else {
            let now = self.ahead.len().min(before);
            buf.put_slice(&self.ahead[..now]);
            self.ahead.advance(now);
            if self.ahead.is_empty() {
                // Its room is not held by a quiet connection.
                self.ahead = Bytes::new();
            }
        }
        Poll::Ready(self.count(before - buf.remaining()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.full {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        if this.reads_ahead {
            return this.poll_ahead(cx, buf);
        }
        let before = buf.filled().len();
        match Pin::new(&mut this.inner).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => Poll::Ready(this.count(buf.filled().len() - before)),
            other => other,
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const MIB: usize = 1 << 20;

    #[tokio::test]
    async fn whoever_reads_ahead_reads_the_same() {
        let bodies = Bodies::new(16 * MIB, 4 * MIB);
        let (mut theirs, ours) = tokio::io::duplex(MIB);
        let mut ours = Counted::new(ours, bodies.clone(), Whose::Penniless, 8 * MIB).reading_ahead();
        let sent: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
        theirs.write_all(&sent).await.expect("sent");
        drop(theirs);
        let mut came = Vec::new();
        for size in [1, 7, 2_048, 40_000].into_iter().cycle() {
            let mut piece = vec![0; size];
            let got = ours.read(&mut piece).await.expect("read");
            if got == 0 {
                break;
            }
            came.extend_from_slice(&piece[..got]);
        }
        assert_eq!(came, sent);
        assert!(bodies.used() >= 100_000, "{}", bodies.used());
    }

    #[tokio::test]
    async fn a_message_is_counted_while_it_comes_and_until_it_is_done() {
        let bodies = Bodies::new(16 * MIB, 4 * MIB);
        let (mut theirs, ours) = tokio::io::duplex(MIB);
        let mut ours = Counted::new(ours, bodies.clone(), Whose::Penniless, 8 * MIB);
        let mut buf = vec![0; MIB];
        theirs.write_all(&vec![1; MIB]).await.expect("sent");
        ours.read_exact(&mut buf).await.expect("read");
        assert!(bodies.used() >= MIB, "{}", bodies.used());
        let first = ours.message();
        assert!(bodies.used() >= MIB, "its room is with the message");
        drop(first);
        assert_eq!(bodies.used(), 0);
        for _ in 0..4 {
            theirs.write_all(&vec![1; MIB]).await.expect("sent");
            ours.read_exact(&mut buf).await.expect("read");
        }
        theirs.write_all(&[1]).await.expect("sent");
        let error = ours.read_exact(&mut buf[..1]).await.expect_err("more than a part of the budget");
        assert_eq!((error.kind(), ours.is_full()), (io::ErrorKind::OutOfMemory, true));
        drop(ours);
        assert_eq!(bodies.used(), 0);
    }
}
