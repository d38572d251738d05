//! The bytes of a WebSocket on their way to becoming messages, counted in the budget for all
//! bodies. A message is put together inside the protocol's library, where nobody can wait: when
//! there is no room for more of it, the connection is over.

use crate::door::bodies::{Bodies, BodyShare, SMALL, Whose};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
}

impl<T> Counted<T> {
    pub fn new(inner: T, bodies: Arc<Bodies>, whose: Whose, longest: usize) -> Counted<T> {
        Counted { inner, bodies, whose, longest, room: None, bytes: 0, full: false }
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

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.full {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
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
