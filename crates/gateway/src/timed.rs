//! A socket whose writes must make progress. A client that stops reading fills the socket; after the limit the write
//! fails, the connection is dropped, and with it the stream and its upstream connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

pub struct TimedIo<T> {
    inner: T,
    limit: Duration,
    /// Set while a write is waiting; made at the first such moment, so an ordinary connection carries no timer.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<T> TimedIo<T> {
    pub fn new(inner: T, limit: Duration) -> TimedIo<T> {
        TimedIo { inner, limit, timer: None, waiting: false }
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

impl<T: AsyncRead + Unpin> AsyncRead for TimedIo<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TimedIo<T> {
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
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_makes_no_progress_fails_after_the_limit() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut timed = TimedIo::new(ours, Duration::from_secs(30));
        let began = Instant::now();
        let error = timed.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_does_read_is_left_alone() {
        use tokio::io::AsyncReadExt as _;
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut timed = TimedIo::new(ours, Duration::from_secs(30));
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
