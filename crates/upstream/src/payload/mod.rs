//! The body of a request: bytes that are all there, or parts of which some still arrive while the
//! others are sent.
//!
//! Whole bytes can be sent as often as one likes, and so can a [`SpooledFile`]. An [`UploadStream`]
//! is read once: until its first piece is taken it can go along another route, and from then on
//! [`UploadStream::part`] gives nothing any more.

mod form;
mod passing;
mod sendfile;
mod spooled;

pub use form::FormPayload;
pub use passing::{PassingForm, PassingUpload};
pub(crate) use spooled::SpoolUnread;
pub use spooled::{SpooledFile, SpooledPieces};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Body as Pieces;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// The body of a request.
pub enum Payload {
    Whole(Bytes),
    Streamed(Box<Streamed>),
}

impl Payload {
    /// A body of several parts, one after the other: the fields of a form, a file that still
    /// arrives, and the form's end. It is sent with its length where every part has one, and in
    /// chunks where one has none.
    pub fn of_parts(parts: impl IntoIterator<Item = PayloadPart>) -> Payload {
        let parts: VecDeque<PayloadPart> = parts.into_iter().collect();
        let length = parts.iter().map(PayloadPart::length).try_fold(0u64, |sum, one| sum.checked_add(one?));
        Payload::Streamed(Box::new(Streamed { parts, length }))
    }

    /// In bytes, where it is known beforehand.
    pub fn length(&self) -> Option<u64> {
        match self {
            Payload::Whole(bytes) => Some(bytes.len() as u64),
            Payload::Streamed(body) => body.length,
        }
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::Whole(Bytes::new())
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload::Whole(bytes)
    }
}

type Source = UnsyncBoxBody<Bytes, io::Error>;

/// Bytes that arrive while they are sent on, such as a file of a client. They pass piece by piece:
/// the next one is asked for when the one before has left.
#[derive(Clone)]
pub struct UploadStream {
    length: Option<u64>,
    /// `None` from the moment a request has asked for the first piece.
    source: Arc<Mutex<Option<Source>>>,
}

impl UploadStream {
    /// `length`: how many bytes will come, where that is known. Fewer of them, or a piece that goes
    /// beyond, break the request.
    pub fn new<P>(length: Option<u64>, pieces: P) -> UploadStream
    where
        P: Pieces<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let source = pieces.map_err(|error| io::Error::other(error.into())).boxed_unsync();
        UploadStream { length, source: Arc::new(Mutex::new(Some(source))) }
    }

    /// The part of a request in which it is sent; `None` once a piece of it was taken: what is gone
    /// cannot be sent again.
    pub fn part(&self) -> Option<PayloadPart> {
        if self.has_begun() {
            return None;
        }
        let taking = Taking { length: self.length, left: self.length, from: Origin::Shared(self.source.clone()) };
        Some(PayloadPart(Inner::Upload(taking)))
    }

    pub fn has_begun(&self) -> bool {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// One part of a body.
pub struct PayloadPart(Inner);

enum Inner {
    Bytes(Bytes),
    Upload(Taking),
    Spooled { pieces: SpooledPieces, base64: bool },
    Passing(passing::PassingPieces),
}

impl From<Bytes> for PayloadPart {
    fn from(bytes: Bytes) -> PayloadPart {
        PayloadPart(Inner::Bytes(bytes))
    }
}

impl PayloadPart {
    fn length(&self) -> Option<u64> {
        match &self.0 {
            Inner::Bytes(bytes) => Some(bytes.len() as u64),
            Inner::Upload(upload) => upload.length,
            Inner::Spooled { pieces, base64 } => Some(pieces.length(*base64)),
            Inner::Passing(pieces) => Some(pieces.length()),
        }
    }
}

/// An upload inside one request.
struct Taking {
    length: Option<u64>,
    /// Bytes that must still come.
    left: Option<u64>,
    from: Origin,
}

enum Origin {
    /// Not begun: another request may still take it.
    Shared(Arc<Mutex<Option<Source>>>),
    Own(Source),
}

impl Taking {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Origin::Shared(shared) = &self.from {
            let taken = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
            match taken {
                Some(source) => self.from = Origin::Own(source),
                None => return Poll::Ready(Some(Err(io::Error::other("sent with another request already")))),
            }
        }
        let Origin::Own(source) = &mut self.from else { return Poll::Ready(None) };
        loop {
            // All that was announced is there: the provider has a whole request, whatever else the
            // source may do.
            if self.left == Some(0) {
                return Poll::Ready(None);
            }
            let Some(frame) = ready!(Pin::new(&mut *source).poll_frame(cx)?) else {
                return Poll::Ready(self.left.map(|_| Err(io::ErrorKind::UnexpectedEof.into())));
            };
            // Trailers say nothing about the bytes.
            let Ok(piece) = frame.into_data() else { continue };
            if piece.is_empty() {
                continue;
            }
            if let Some(left) = &mut self.left {
                let Some(rest) = left.checked_sub(piece.len() as u64) else {
                    return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
                };
                *left = rest;
            }
            return Poll::Ready(Some(Ok(piece)));
        }
    }
}

/// A body that is read while it is sent.
pub struct Streamed {
    parts: VecDeque<PayloadPart>,
    length: Option<u64>,
}

impl Streamed {
    /// Of all parts together, where every one has a length.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The file that is next, where it is sent as it is.
    pub(crate) fn file(&mut self) -> Option<&mut SpooledPieces> {
        match self.parts.front_mut().map(|part| &mut part.0) {
            Some(Inner::Spooled { pieces, base64: false }) => Some(pieces),
            _ => None,
        }
    }

    /// The next piece, never empty; `None` at the end. Anything else than the announced length is
    /// an error.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        while let Some(part) = self.parts.front_mut() {
            let piece = match &mut part.0 {
                Inner::Bytes(bytes) if bytes.is_empty() => None,
                Inner::Bytes(bytes) => Some(Ok(std::mem::take(bytes))),
                Inner::Upload(upload) => ready!(upload.poll_piece(cx)),
                Inner::Spooled { pieces, base64: false } => ready!(pieces.poll_piece(cx)),
                Inner::Spooled { pieces, base64: true } => ready!(pieces.poll_base64(cx)),
                Inner::Passing(pieces) => ready!(pieces.poll_piece()),
            };
            if piece.is_some() {
                return Poll::Ready(piece);
            }
            self.parts.pop_front();
        }
        Poll::Ready(None)
    }
}

/// Without the bytes, which are a caller's.
macro_rules! shown_by_length {
    ($($type:ident, $value:ident => $length:expr;)*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $value = self;
                f.debug_struct(stringify!($type)).field("length", &$length).finish_non_exhaustive()
            }
        })*
    };
}

shown_by_length! {
    Payload, payload => payload.length();
    PayloadPart, part => part.length();
    Streamed, body => body.length;
    UploadStream, upload => upload.length;
}
