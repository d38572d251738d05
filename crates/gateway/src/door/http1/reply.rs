//! A reply on its way to the client. Head and small pieces are put together and written at once; a
//! large piece goes as it is, behind them. Nothing is kept while the body has nothing to send.

use super::channel::Channel;
use super::date;
use axum::body::{Body, Bytes, HttpBody as _};
use bytes::{Buf as _, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Response, StatusCode, Version};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Pieces above this are not copied.
const SMALL: usize = 8 << 10;
/// So much is put together at most before it is written.
const TOGETHER: usize = 16 << 10;

/// What of the request, and of its connection, decides how a reply is written.
pub(super) struct ReplyTo {
    pub method: Method,
    pub version: Version,
    /// The connection can be used again afterwards.
    pub stays: bool,
}

/// How the client sees where the body ends.
enum Ends {
    /// There is none.
    Nowhere,
    /// After so many bytes more.
    After(u64),
    WithChunks,
    WithConnection,
}

/// How a reply came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    /// The connection can be used again.
    Whole,
    /// The connection is closed, as was said or as the body needs it.
    Last,
    /// The body broke off: the client must see that it did.
    Broken,
}

pub(super) struct Sending {
    body: Body,
    ends: Ends,
    stays: bool,
    ended: bool,
    broken: bool,
    /// To be written, in this order.
    front: BytesMut,
    large: Bytes,
    tail: &'static [u8],
}

impl Sending {
    pub fn new(reply: Response<Body>, to: &ReplyTo) -> Sending {
        let (head, body) = reply.into_parts();
        let ends = ends(head.status, &head.headers, &body, to);
        let stays = to.stays && !matches!(ends, Ends::WithConnection);
        let mut front = BytesMut::with_capacity(1 << 10);
        write_head(&mut front, head.status, &head.headers, to.version);
        match (&ends, head.headers.get(CONTENT_LENGTH)) {
            (Ends::After(length), _) => line(&mut front, b"content-length", digits(*length, 10, &mut [0; 20])),
            (Ends::WithChunks, _) => line(&mut front, b"transfer-encoding", b"chunked"),
            // How long the body would be.
            (Ends::Nowhere, Some(length)) if tells_length(head.status) => {
                line(&mut front, b"content-length", length.as_bytes());
            }
            (Ends::Nowhere | Ends::WithConnection, _) => {}
        }
        match (stays, to.version) {
            _ if head.status == StatusCode::SWITCHING_PROTOCOLS => {}
            (false, _) => line(&mut front, b"connection", b"close"),
            (true, Version::HTTP_10) => line(&mut front, b"connection", b"keep-alive"),
            (true, _) => {}
        }
        front.extend_from_slice(b"\r\n");
        let ended = matches!(ends, Ends::Nowhere | Ends::After(0));
        Sending { body, ends, stays, ended, broken: false, front, large: Bytes::new(), tail: b"" }
    }

    /// Sends as much as there is, and is ready when all is sent.
    pub fn poll(&mut self, cx: &mut Context<'_>, channel: &Channel) -> Poll<io::Result<ReplyEnd>> {
        loop {
            let waits = self.gather(cx);
            while !self.front.is_empty() || !self.large.is_empty() || !self.tail.is_empty() {
                let written = ready!(self.poll_write(cx, channel))?;
                self.written(written);
            }
            if self.ended {
                ready!(channel.poll_flush(cx))?;
                return Poll::Ready(Ok(match (self.broken, self.stays) {
                    (true, _) => ReplyEnd::Broken,
                    (false, true) => ReplyEnd::Whole,
                    (false, false) => ReplyEnd::Last,
                }));
            }
            if waits {
                self.front = BytesMut::new();
                ready!(channel.poll_flush(cx))?;
                // A reply of which nothing comes has no other way to learn that its client left.
                if channel.poll_gone(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                return Poll::Pending;
            }
        }
    }

    /// Takes what the body has, until that is worth a write. True: it has nothing at the moment.
    fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while !self.ended && self.large.is_empty() && self.tail.is_empty() && self.front.len() < TOGETHER {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return true,
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are not sent.
                    if let Ok(data) = frame.into_data() {
                        self.add(data);
                    }
                }
                Poll::Ready(Some(Err(_))) => (self.ended, self.broken) = (true, true),
                Poll::Ready(None) => self.end(),
            }
        }
        false
    }

    fn add(&mut self, mut data: Bytes) {
        if data.is_empty() {
            return;
        }
        match &mut self.ends {
            Ends::Nowhere => return,
            Ends::WithConnection => {}
            Ends::After(left) => {
                // More than was announced would be read as the next reply.
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(data.len());
                self.broken |= data.len() > length;
                data.truncate(length);
                *left -= length as u64;
            }
            Ends::WithChunks => {
                self.front.extend_from_slice(digits(data.len() as u64, 16, &mut [0; 20]));
                self.front.extend_from_slice(b"\r\n");
            }
        }
        let chunked = matches!(self.ends, Ends::WithChunks);
        if data.len() <= SMALL {
            self.front.extend_from_slice(&data);
            self.front.extend_from_slice(if chunked { b"\r\n" } else { b"" });
        } else {
            self.large = data;
            self.tail = if chunked { b"\r\n" } else { b"" };
        }
        if self.body.is_end_stream() || matches!(self.ends, Ends::After(0)) {
            self.end();
        }
    }

    /// The body came to its end.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        match self.ends {
            Ends::WithChunks if self.large.is_empty() => self.front.extend_from_slice(b"0\r\n\r\n"),
            Ends::WithChunks => self.tail = b"\r\n0\r\n\r\n",
            Ends::After(left) => self.broken |= left > 0,
            Ends::Nowhere | Ends::WithConnection => {}
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, channel: &Channel) -> Poll<io::Result<usize>> {
        if self.large.is_empty() && self.tail.is_empty() {
            return channel.poll_write(cx, &[IoSlice::new(&self.front)]);
        }
        let parts = [IoSlice::new(&self.front), IoSlice::new(&self.large), IoSlice::new(self.tail)];
        channel.poll_write(cx, if self.front.is_empty() { &parts[1..] } else { &parts })
    }

    fn written(&mut self, mut count: usize) {
        let front = count.min(self.front.len());
        self.front.advance(front);
        count -= front;
        let large = count.min(self.large.len());
        self.large.advance(large);
        if self.large.is_empty() {
            // Its memory may serve again.
            self.large = Bytes::new();
        }
        self.tail = &self.tail[count - large..];
    }
}

fn ends(status: StatusCode, headers: &HeaderMap, body: &Body, to: &ReplyTo) -> Ends {
    let without = to.method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if without {
        return Ends::Nowhere;
    }
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match (said.or_else(|| body.size_hint().exact()), to.version) {
        (Some(length), _) => Ends::After(length),
        (None, Version::HTTP_10) => Ends::WithConnection,
        (None, _) => Ends::WithChunks,
    }
}

/// The status and all headers but those that say where the body ends and what becomes of the
/// connection.
fn write_head(front: &mut BytesMut, status: StatusCode, headers: &HeaderMap, version: Version) {
    let version: &[u8] = if version == Version::HTTP_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " };
    let reason = status.canonical_reason().unwrap_or_default();
    for part in [version, status.as_str().as_bytes(), b" ", reason.as_bytes(), b"\r\n"] {
        front.extend_from_slice(part);
    }
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in headers {
        let ours = name == TRANSFER_ENCODING || name == CONTENT_LENGTH || name == CONNECTION && !switches;
        if !ours {
            line(front, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    if !headers.contains_key(DATE) {
        date::with_now(|now| line(front, b"date", now));
    }
}

/// RFC 9110, 8.6: a reply to HEAD and 304 may say how long the body would be.
fn tells_length(status: StatusCode) -> bool {
    !status.is_informational() && status != StatusCode::NO_CONTENT
}

fn line(front: &mut BytesMut, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        front.extend_from_slice(part);
    }
}

/// A number as text, in ten or sixteen digits.
fn digits(mut number: u64, base: u64, space: &mut [u8; 20]) -> &[u8] {
    let mut at = space.len();
    loop {
        at -= 1;
        space[at] = b"0123456789abcdef"[(number % base) as usize];
        number /= base;
        if number == 0 {
            return &space[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everywhere() {
        for number in [0, 1, 9, 10, 15, 16, 255, 4_096, 65_536, u64::MAX] {
            assert_eq!(digits(number, 10, &mut [0; 20]), number.to_string().as_bytes());
            assert_eq!(digits(number, 16, &mut [0; 20]), format!("{number:x}").as_bytes());
        }
    }
}
