//! One connection: a request goes out, the head of its reply comes in. Both are done by the caller's own polling.

use super::head::{self, Head};
use crate::cable::Cable;
use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{Method, Uri};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// Read at once, on the stack: between two reads a connection has no buffer.
const READ: usize = 16 << 10;
/// A body up to this size travels in one piece with its head.
const IN_ONE: usize = 16 << 10;

pub(crate) struct Connection {
    io: TokioIo<Cable>,
}

/// A request as it is sent.
pub(crate) struct Written {
    method: Method,
    head: Bytes,
    body: Bytes,
}

impl Written {
    pub fn new(request: &Parts, body: Bytes) -> Written {
        let mut head = BytesMut::with_capacity(512 + if body.len() <= IN_ONE { body.len() } else { 0 });
        let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
        for part in [request.method.as_str(), " ", path, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        if !request.headers.contains_key(HOST) {
            line(&mut head, "host", host(&request.uri).as_bytes());
        }
        for (name, value) in &request.headers {
            line(&mut head, name.as_str(), value.as_bytes());
        }
        let says_length = !body.is_empty() || matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
        if says_length && !request.headers.contains_key(CONTENT_LENGTH) {
            line(&mut head, "content-length", body.len().to_string().as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        let in_one = body.len() <= IN_ONE;
        if in_one {
            head.extend_from_slice(&body);
        }
        Written { method: request.method.clone(), head: head.freeze(), body: if in_one { Bytes::new() } else { body } }
    }

    fn rest(&mut self) -> &mut Bytes {
        if self.head.is_empty() { &mut self.body } else { &mut self.head }
    }
}

fn line(head: &mut BytesMut, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// Name and port; the port of the scheme is left out.
fn host(uri: &Uri) -> &str {
    let Some(authority) = uri.authority() else { return "" };
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let with_port = authority.as_str().rsplit('@').next().unwrap_or_default();
    if authority.port_u16() == Some(usual) { authority.host() } else { with_port }
}

impl Connection {
    pub fn new(io: Cable) -> Connection {
        Connection { io: TokioIo::new(io) }
    }

    /// Sends a request and waits for the head of its reply. What came with it is the start of the body. A provider may answer
    /// before it has read everything; nothing more is sent then, and the connection is of no further use.
    pub async fn ask(&mut self, mut request: Written) -> io::Result<(Head, Bytes)> {
        let mut read = BytesMut::new();
        let mut broken = None;
        let mut writing = true;
        poll_fn(|cx| {
            if writing {
                match self.poll_write(cx, &mut request) {
                    Poll::Ready(outcome) => {
                        writing = false;
                        broken = outcome.err();
                    }
                    Poll::Pending => {}
                }
            }
            loop {
                if !read.is_empty()
                    && let Some((mut head, rest)) = take_head(&mut read, &request.method)?
                {
                    head.stays &= !writing && broken.is_none();
                    return Poll::Ready(Ok((head, rest)));
                }
                match self.poll_read(cx, |bytes| read.extend_from_slice(bytes)) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(broken.take().unwrap_or_else(closed))),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(broken.take().unwrap_or(error))),
                    Poll::Pending => return broken.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error))),
                }
            }
        })
        .await
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, request: &mut Written) -> Poll<io::Result<()>> {
        loop {
            let rest = request.rest();
            if rest.is_empty() {
                return Pin::new(&mut self.io).poll_flush(cx);
            }
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.advance(written);
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

    /// Nothing has come since the last reply, not even its end: it can be used again.
    pub fn is_quiet(&mut self) -> bool {
        self.poll_read(&mut Context::from_waker(Waker::noop()), |_| ()).is_pending()
    }
}

/// The reply's head, if it is whole, and what follows it.
fn take_head(read: &mut BytesMut, asked: &Method) -> io::Result<Option<(Head, Bytes)>> {
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
