//! A request as it is written: its head, and a body that is all there or read while it is sent.

use super::head::Asked;
use crate::Alarm;
use crate::payload::{Payload, SpoolUnread, SpooledPieces, Streamed};
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{Method, Uri};
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A body up to this size travels in one piece with its head.
const IN_ONE: usize = 16 << 10;
/// The line that says how long a body is, and the end of a head.
const LENGTH_LINE: usize = 48;
/// Longest chunk of a body without a length; each is copied once, behind its size.
const CHUNK: usize = 64 << 10;

pub(crate) struct Written {
    pub asked: Asked,
    head: Bytes,
    body: Rest,
}

/// What of the body is still to be sent.
enum Rest {
    Whole(Bytes),
    Streamed(Box<Outflow>),
}

/// A body on its way from where it arrives.
pub(crate) struct Outflow {
    from: Streamed,
    chunked: bool,
    /// Framed, and not yet written: the only bytes of the body that are held here.
    ready: Bytes,
    /// Read and not yet framed, where it is longer than a chunk.
    piece: Bytes,
    ended: bool,
    /// The last look found nothing to send.
    pub starved: bool,
    /// Rings when nothing went on for so long.
    alarm: Alarm,
    patience: Duration,
}

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// The bytes to be sent did not come as announced.
    Upload,
    /// They lie in a file of ours, which cannot be read.
    OwnFile,
    Connection,
}

impl Stuck {
    /// Why there is nothing more to be sent.
    pub fn at_source(error: &io::Error) -> Stuck {
        if error.get_ref().is_some_and(|cause| cause.is::<SpoolUnread>()) { Stuck::OwnFile } else { Stuck::Upload }
    }
}

impl From<io::Error> for Stuck {
    fn from(_: io::Error) -> Stuck {
        Stuck::Connection
    }
}

impl Written {
    /// `patience`: how long a body that is streamed may stand still.
    pub fn new(request: &Parts, body: Payload, upgrade: bool, patience: Duration) -> Written {
        let asked = Asked {
            method: request.method.clone(),
            protocol: request.headers.get(UPGRADE).filter(|_| upgrade).cloned(),
        };
        let short = match &body {
            Payload::Whole(body) if body.len() <= IN_ONE => body.len(),
            _ => 0,
        };
        let mut head = BytesMut::with_capacity(512 + short);
        let streamed = matches!(body, Payload::Streamed(_));
        lines(&mut head, request, streamed);
        if asked.protocol.is_some() && !request.headers.contains_key(CONNECTION) {
            line(&mut head, "connection", b"upgrade");
        }
        let body = match body {
            Payload::Whole(body) => {
                let says_length =
                    !body.is_empty() || matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
                if says_length && !request.headers.contains_key(CONTENT_LENGTH) {
                    length_line(&mut head, body.len() as u64);
                }
                whole(&mut head, body)
            }
            Payload::Streamed(from) => {
                match from.length() {
                    Some(length) => length_line(&mut head, length),
                    None => line(&mut head, "transfer-encoding", b"chunked"),
                }
                head.extend_from_slice(b"\r\n");
                Rest::Streamed(Box::new(Outflow::new(*from, patience)))
            }
        };
        Written { asked, head: head.freeze(), body }
    }

    /// A `POST` whose head is written but for its length, and whose body is all there.
    pub fn posted(mut head: BytesMut, body: Bytes) -> Written {
        length_line(&mut head, body.len() as u64);
        let body = whole(&mut head, body);
        Written { asked: Asked { method: Method::POST, protocol: None }, head: head.freeze(), body }
    }

    /// What is to be written next; empty when there is nothing at the moment.
    pub fn rest(&mut self) -> &mut Bytes {
        match &mut self.body {
            _ if !self.head.is_empty() => &mut self.head,
            Rest::Whole(body) => body,
            Rest::Streamed(flow) => &mut flow.ready,
        }
    }

    /// The file that is next, where it can go as it is.
    pub fn file(&mut self) -> Option<&mut SpooledPieces> {
        match &mut self.body {
            Rest::Streamed(flow) if !flow.chunked && flow.piece.is_empty() => flow.from.file(),
            _ => None,
        }
    }

    /// Asks for more to write; `false` when the body is at its end.
    pub fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        match &mut self.body {
            Rest::Whole(_) => Poll::Ready(Ok(false)),
            Rest::Streamed(flow) => flow.poll_more(cx),
        }
    }

    /// The body, if it is streamed.
    pub fn flow(&mut self) -> Option<&mut Outflow> {
        match &mut self.body {
            Rest::Whole(_) => None,
            Rest::Streamed(flow) => Some(flow),
        }
    }
}

impl Outflow {
    fn new(from: Streamed, patience: Duration) -> Outflow {
        let chunked = from.length().is_none();
        let alarm = Alarm::at(Instant::now() + patience);
        let (ready, piece) = (Bytes::new(), Bytes::new());
        Outflow { from, chunked, ready, piece, ended: false, starved: false, alarm, patience }
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.ended {
            return Poll::Ready(Ok(false));
        }
        if self.piece.is_empty() {
            self.starved = true;
            // What was written is let go before more is asked for: its memory may serve again.
            self.ready = Bytes::new();
            match ready!(self.from.poll_piece(cx)?) {
                Some(piece) => self.piece = piece,
                None => self.ended = true,
            }
            self.starved = false;
        }
        if !self.chunked {
            self.ready = std::mem::take(&mut self.piece);
            return Poll::Ready(Ok(!self.ended));
        }
        let data = self.piece.split_to(self.piece.len().min(CHUNK));
        // A chunk of no bytes is the last one.
        let size = format!("{:x}\r\n", data.len());
        let mut framed = BytesMut::with_capacity(size.len() + data.len() + 2);
        for part in [size.as_bytes(), &data, b"\r\n"] {
            framed.extend_from_slice(part);
        }
        self.ready = framed.freeze();
        Poll::Ready(Ok(true))
    }

    /// Something went on: it may stand still for so long again.
    pub fn moved(&mut self) {
        self.alarm.set(Instant::now() + self.patience);
    }

    /// Ready when nothing went on for too long.
    pub fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(cx)
    }
}

/// The first line of a request and its headers. How a streamed body is framed is known elsewhere,
/// and must be said in one way.
pub(super) fn lines(head: &mut BytesMut, request: &Parts, streamed: bool) {
    let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
    for part in [request.method.as_str(), " ", path, " HTTP/1.1\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    if !request.headers.contains_key(HOST) {
        line(head, "host", host(&request.uri).as_bytes());
    }
    for (name, value) in &request.headers {
        if !(streamed && (name == CONTENT_LENGTH || name == TRANSFER_ENCODING)) {
            line(head, name.as_str(), value.as_bytes());
        }
    }
}

/// Ends the head. A short body goes with it; what is left of a long one is returned.
fn whole(head: &mut BytesMut, body: Bytes) -> Rest {
    head.extend_from_slice(b"\r\n");
    if body.len() > IN_ONE {
        return Rest::Whole(body);
    }
    head.extend_from_slice(&body);
    Rest::Whole(Bytes::new())
}

/// Room for a head of so many bytes with what comes behind it.
pub(super) fn room(head: usize, body: &Bytes) -> BytesMut {
    let short = if body.len() <= IN_ONE { body.len() } else { 0 };
    BytesMut::with_capacity(head + LENGTH_LINE + short)
}

fn length_line(head: &mut BytesMut, length: u64) {
    line(head, "content-length", length.to_string().as_bytes());
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
