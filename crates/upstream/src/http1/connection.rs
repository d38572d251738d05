//! One connection: a request goes out, the head of its reply comes in. Both are done by the
//! caller's own polling.

use super::head::{self, Asked, ResponseHead};
use super::request::{Outflow, Stuck, Written};
use crate::cable::Cable;
use bytes::{Buf as _, Bytes, BytesMut};
use hyper_util::rt::TokioIo;
use std::future::{Future as _, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, ReadBuf};

/// Read at once, on the stack: between two reads a connection has no buffer.
pub(super) const READ: usize = 16 << 10;

pub(crate) struct Connection {
    io: TokioIo<Cable>,
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    Connection,
    /// What was to be sent broke off, or was not as long as announced.
    Upload,
    /// It lies in a file of ours, which cannot be read.
    OwnFile,
    /// It did not come for too long.
    UploadLate,
    /// The provider took nothing more for too long, or did not answer what it had taken.
    Late,
}

impl From<io::Error> for Unanswered {
    fn from(_: io::Error) -> Unanswered {
        Unanswered::Connection
    }
}

impl Connection {
    pub fn new(io: Cable) -> Connection {
        Connection { io: TokioIo::new(io) }
    }

    /// Sends a request and waits for the head of its reply. What came with it is the start of the
    /// body. A provider may answer before it has read everything; nothing more is sent then, and
    /// the connection is of no further use.
    pub async fn ask(&mut self, mut request: Written) -> Result<(ResponseHead, Bytes), Unanswered> {
        // Until there was a connection nothing stood still.
        request.flow().into_iter().for_each(Outflow::moved);
        let mut read = BytesMut::new();
        let mut broken = false;
        let mut writing = true;
        poll_fn(|cx| {
            if writing {
                match self.poll_write(cx, &mut request) {
                    Poll::Ready(Err(Stuck::Upload)) => return Poll::Ready(Err(Unanswered::Upload)),
                    Poll::Ready(Err(Stuck::OwnFile)) => return Poll::Ready(Err(Unanswered::OwnFile)),
                    Poll::Ready(outcome) => {
                        writing = false;
                        broken = outcome.is_err();
                    }
                    Poll::Pending => {}
                }
            }
            loop {
                if !read.is_empty()
                    && let Some((mut head, rest)) = take_head(&mut read, &request.asked)?
                {
                    head.stays &= !writing && !broken;
                    return Poll::Ready(Ok((head, rest)));
                }
                match self.poll_read(cx, |bytes| read.extend_from_slice(bytes)) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Unanswered::Connection)),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending if broken => return Poll::Ready(Err(Unanswered::Connection)),
                    Poll::Pending => return poll_late(&mut request, cx),
                }
            }
        })
        .await
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, request: &mut Written) -> Poll<Result<(), Stuck>> {
        loop {
            let rest = request.rest();
            if rest.is_empty() {
                if let (Some(socket), Some(file)) = (self.io.inner().plain(), request.file())
                    && ready!(file.poll_send(cx, socket))?.is_some()
                {
                    request.flow().into_iter().for_each(Outflow::moved);
                    continue;
                }
                let more = request.poll_more(cx).map_err(|error| Stuck::at_source(&error))?;
                match more {
                    Poll::Ready(true) => continue,
                    Poll::Ready(false) => return Pin::new(&mut self.io).poll_flush(cx).map_err(Stuck::from),
                    Poll::Pending => {
                        // What was written may lie in a buffer of TLS, and the next piece may be
                        // long in coming.
                        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
                        return Poll::Pending;
                    }
                }
            }
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(Stuck::Connection));
            }
            rest.advance(written);
            if let Some(flow) = request.flow() {
                flow.moved();
            }
        }
    }

    /// Reads once and hands over what came; 0 at the end.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8])) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::<u8>::uninit() }; READ];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        take(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Reads once, behind what is in the buffer; 0 at the end.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
        pin!(self.io.read_buf(buffer)).poll(cx)
    }

    /// The bytes in both directions, for whoever speaks another protocol from here on.
    pub fn io(&mut self) -> Pin<&mut TokioIo<Cable>> {
        Pin::new(&mut self.io)
    }

    pub fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// Nothing has come since the last reply, not even its end: it can be used again.
    pub fn is_quiet(&mut self) -> bool {
        self.poll_read(&mut Context::from_waker(Waker::noop()), |_| ()).is_pending()
    }
}

/// A streamed body has its own limit: it may take long, but never stand still for long.
fn poll_late(request: &mut Written, cx: &mut Context<'_>) -> Poll<Result<(ResponseHead, Bytes), Unanswered>> {
    let Some(flow) = request.flow() else { return Poll::Pending };
    ready!(flow.poll_late(cx));
    Poll::Ready(Err(if flow.starved { Unanswered::UploadLate } else { Unanswered::Late }))
}

/// The reply's head, if it is whole, and what follows it.
fn take_head(read: &mut BytesMut, asked: &Asked) -> io::Result<Option<(ResponseHead, Bytes)>> {
    loop {
        let mut bytes = std::mem::take(read).freeze();
        match head::read(&bytes, asked).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))? {
            Some((length, Some(head))) => return Ok(Some((head, bytes.split_off(length)))),
            Some((length, None)) => {
                bytes.advance(length);
                *read = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
            }
            None => {
                *read = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
                return Ok(None);
            }
        }
        if read.is_empty() {
            return Ok(None);
        }
    }
}

pub(crate) fn closed() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
