//! Which HTTP a client speaks, by the first bytes that it sends. They are put in front of the rest
//! again.

use super::tls::ClientStream;
use bytes::{Buf as _, Bytes, BytesMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Most of a first read.
const FIRST_READ: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// A stream of which the beginning was read.
pub struct BegunStream {
    first: Bytes,
    rest: ClientStream,
}

impl BegunStream {
    pub fn new(first: Bytes, rest: ClientStream) -> BegunStream {
        BegunStream { first, rest }
    }

    /// What was read of it, and the rest.
    pub fn into_parts(self) -> (Bytes, ClientStream) {
        (self.first, self.rest)
    }

    /// Waits for the first bytes. `None`: there were none, or they broke off before they said
    /// which protocol it is.
    pub async fn read(mut rest: ClientStream) -> Option<(Protocol, BegunStream)> {
        let mut first = BytesMut::new();
        let protocol = poll_fn(|cx| {
            loop {
                if let Some(protocol) = Protocol::of(&first) {
                    return Poll::Ready(Some(protocol));
                }
                let mut space = [const { MaybeUninit::<u8>::uninit() }; FIRST_READ];
                let mut read = ReadBuf::uninit(&mut space);
                let done = ready!(Pin::new(&mut rest).poll_read(cx, &mut read));
                if done.is_err() || read.filled().is_empty() {
                    return Poll::Ready(None);
                }
                first.extend_from_slice(read.filled());
            }
        })
        .await?;
        Some((protocol, BegunStream { first: first.freeze(), rest }))
    }
}

impl Protocol {
    /// `None`: it can still be either.
    fn of(first: &[u8]) -> Option<Protocol> {
        let seen = first.len().min(PREFACE.len());
        if first[..seen] != PREFACE[..seen] {
            return Some(Protocol::Http1);
        }
        (seen == PREFACE.len()).then_some(Protocol::Http2)
    }
}

impl AsyncRead for BegunStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.first.is_empty() {
            return Pin::new(&mut this.rest).poll_read(cx, buf);
        }
        let taken = this.first.len().min(buf.remaining());
        buf.put_slice(&this.first[..taken]);
        this.first.advance(taken);
        if this.first.is_empty() {
            // Lets go of its memory.
            this.first = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BegunStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.rest.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_known_as_soon_as_it_can_be() {
        for (first, protocol) in [
            (&b""[..], None),
            (b"P", None),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", None),
            (b"PO", Some(Protocol::Http1)),
            (b"PRIVATE", Some(Protocol::Http1)),
            (b"PRI * HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"GET / HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"\r\n", Some(Protocol::Http1)),
            (PREFACE, Some(Protocol::Http2)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04", Some(Protocol::Http2)),
        ] {
            assert_eq!(Protocol::of(first), protocol, "{}", first.escape_ascii());
        }
    }
}
