//! The socket of a client, with its place among all connections. Its writes must make progress: a
//! client that stops reading fills the socket; after the limit the write fails, the connection is
//! dropped, and with it the stream and its upstream connection.
//!
//! Where a reply went out before all of its request had come, the socket is closed in two steps:
//! our side at once, the other when the client has had time to read the reply. Closing both at once
//! would reset the connection, and the reply with it.

use crate::door::connections::SocketPlace;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long, and how much, is read and thrown away after the last reply.
pub const LINGER: Duration = Duration::from_secs(5);
pub const LINGER_BYTES: usize = 64 << 20;

pub struct WriteTimeoutIo<T> {
    inner: T,
    place: SocketPlace,
    limit: Duration,
    /// Set while a write is waiting; made at the first such moment, so an ordinary connection
    /// carries no timer.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
    /// What may still be thrown away; set when our side is closed.
    lingering: Option<usize>,
}

impl<T> WriteTimeoutIo<T> {
    pub fn new(inner: T, limit: Duration, place: SocketPlace) -> WriteTimeoutIo<T> {
        WriteTimeoutIo { inner, place, limit, timer: None, waiting: false, lingering: None }
    }

    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Passes a write's outcome on, or ends it when it has waited too long.
    fn watch<R>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.waiting = false;
            return outcome;
        }
        let until = Instant::now() + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(until);
        }
        if std::future::Future::poll(timer.as_mut(), cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
        }
        Poll::Pending
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeoutIo<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            this.place.seat().heard();
        }
        read
    }
}

impl<T: AsyncRead + Unpin> WriteTimeoutIo<T> {
    /// Reads what still comes, until the client is done or out of time.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut left = self.lingering.unwrap_or(0);
        let mut scratch = [0; 8 << 10];
        while left > 0 && std::future::Future::poll(timer.as_mut(), cx).is_pending() {
            let mut buf = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                break;
            }
            left = left.saturating_sub(buf.filled().len());
            self.lingering = Some(left);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WriteTimeoutIo<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.watch(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.watch(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.inner).poll_flush(cx);
        this.watch(cx, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            if !this.place.seat().lingers() {
                return Poll::Ready(Ok(()));
            }
            (this.lingering, this.timer) = (Some(LINGER_BYTES), None);
        }
        this.poll_linger(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::connections::test_place;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// A reply that went out before its request was read: the rest is waited for, within limits.
    #[tokio::test(start_paused = true)]
    async fn what_still_comes_is_read_and_thrown_away() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut timed = WriteTimeoutIo::new(ours, Duration::from_secs(30), test_place());
        timed.place.seat().linger();
        let client = async {
            theirs.write_all(&[0; 64 << 10]).await.expect("taken, though nobody wants it");
            let mut rest = Vec::new();
            theirs.read_to_end(&mut rest).await.expect("our side is closed");
            drop(theirs);
        };
        let (shut, ()) = tokio::join!(timed.shutdown(), client);
        shut.expect("closed");

        let (ours, _silent) = tokio::io::duplex(16);
        let mut timed = WriteTimeoutIo::new(ours, Duration::from_secs(30), test_place());
        timed.place.seat().linger();
        let began = Instant::now();
        timed.shutdown().await.expect("closed");
        assert_eq!(began.elapsed(), LINGER, "a client that neither reads nor leaves is not waited for any longer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_makes_no_progress_fails_after_the_limit() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut timed = WriteTimeoutIo::new(ours, Duration::from_secs(30), test_place());
        let began = Instant::now();
        let error = timed.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_does_read_is_left_alone() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut timed = WriteTimeoutIo::new(ours, Duration::from_secs(30), test_place());
        let reader = async {
            let mut all = Vec::new();
            let mut buf = [0; 8];
            while all.len() < 64 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                let n = theirs.read(&mut buf).await.expect("read");
                all.extend_from_slice(&buf[..n]);
            }
        };
        let (written, ()) = tokio::join!(timed.write_all(&[0; 64]), reader);
        written.expect("each part took less than the limit");
    }
}
