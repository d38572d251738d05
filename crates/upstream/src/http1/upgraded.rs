//! A connection that speaks another protocol after status 101: bytes in both directions. It belongs
//! to whoever asked and never goes back to the pool; dropped, it is closed.

use super::connection::Connection;
use bytes::{Buf as _, Bytes};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads and writes the bytes of the new protocol, from the first one behind the reply's head on.
/// Its limits are those of whoever speaks it.
pub struct Upgraded {
    connection: Box<Connection>,
    /// What came together with the head.
    read: Bytes,
}

impl Upgraded {
    pub(crate) fn new(connection: Box<Connection>, read: Bytes) -> Upgraded {
        Upgraded { connection, read }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return self.connection.io().poll_read(cx, into);
        }
        let length = self.read.len().min(into.remaining());
        into.put_slice(&self.read[..length]);
        self.read.advance(length);
        if self.read.is_empty() {
            // The buffer that it was part of is not held by a quiet connection.
            self.read = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.connection.io().poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.io().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.io().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.io().poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgraded")
    }
}
