//! A file that is spooled before it is sent on: in memory while it is small, else in a temporary
//! file without a name. It is read piece by piece, as often as routes need it and by several at
//! once, since every reader keeps its own place. Disk is read on blocking threads.

use super::{Inner, PayloadPart, sendfile};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::future::Future as _;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Read at once; a multiple of three, so that base64 needs no padding before the end.
const PIECE: u64 = 192 << 10;

/// A file of a caller, whole.
#[derive(Clone)]
pub struct SpooledFile(Arc<Content>);

enum Content {
    Memory(Bytes),
    Disk {
        file: File,
        length: u64,
        /// What it takes of the disk, until the last reader is gone.
        _room: Box<dyn Any + Send + Sync>,
    },
}

impl SpooledFile {
    pub fn in_memory(bytes: Bytes) -> SpooledFile {
        SpooledFile(Arc::new(Content::Memory(bytes)))
    }

    /// `room` lives as long as the file.
    pub fn on_disk(file: File, length: u64, room: impl Any + Send + Sync) -> SpooledFile {
        SpooledFile(Arc::new(Content::Disk { file, length, _room: Box::new(room) }))
    }

    pub fn length(&self) -> u64 {
        match &*self.0 {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Disk { length, .. } => *length,
        }
    }

    /// How long it is in base64.
    pub fn base64_length(&self) -> u64 {
        self.length().div_ceil(3) * 4
    }

    /// The bytes themselves, where they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &*self.0 {
            Content::Memory(bytes) => Some(bytes),
            Content::Disk { .. } => None,
        }
    }

    /// All of it, from its beginning.
    pub fn pieces(&self) -> SpooledPieces {
        SpooledPieces { file: self.clone(), at: 0, reading: None, last: Bytes::new() }
    }

    /// The part of a request in which it is sent.
    pub fn part(&self) -> PayloadPart {
        PayloadPart(Inner::Spooled { pieces: self.pieces(), base64: false })
    }

    /// The same in base64, made while it is sent.
    pub fn base64_part(&self) -> PayloadPart {
        PayloadPart(Inner::Spooled { pieces: self.pieces(), base64: true })
    }
}

impl fmt::Debug for SpooledFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpooledFile").field("length", &self.length()).finish_non_exhaustive()
    }
}

/// A file of ours could not be read while it was sent: neither the caller nor the provider can help
/// it.
#[derive(Debug, thiserror::Error)]
#[error("a spooled file could not be read: {0}")]
pub(crate) struct SpoolUnread(io::Error);

/// A spooled file as it is read.
pub struct SpooledPieces {
    file: SpooledFile,
    at: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    /// The piece before, whose memory serves for the next one when nobody else has it any more.
    last: Bytes,
}

impl SpooledPieces {
    /// How many bytes there are in all.
    pub(super) fn length(&self, base64: bool) -> u64 {
        if base64 { self.file.base64_length() } else { self.file.length() }
    }

    /// The next piece, never empty; `None` at the end. All but the last are a multiple of three
    /// bytes long.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let left = self.file.length() - self.at;
        if left == 0 {
            return Poll::Ready(None);
        }
        let wanted = left.min(PIECE);
        let piece = match &*self.file.0 {
            Content::Memory(bytes) => {
                let (from, to) = (usize_of(self.at), usize_of(self.at + wanted));
                bytes.slice(from..to)
            }
            Content::Disk { .. } => match ready!(self.poll_read(cx, wanted)) {
                Ok(piece) => piece,
                Err(error) => return Poll::Ready(Some(Err(error))),
            },
        };
        self.at += piece.len() as u64;
        Poll::Ready(Some(Ok(piece)))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, wanted: u64) -> Poll<io::Result<Bytes>> {
        let (file, at, last) = (&self.file, self.at, &mut self.last);
        let reading = self.reading.get_or_insert_with(|| {
            let (file, last) = (file.clone(), std::mem::take(last));
            tokio::task::spawn_blocking(move || file.read_at(at, usize_of(wanted), last))
        });
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        self.last = read.as_ref().ok().and_then(|read| read.as_ref().ok()).cloned().unwrap_or_default();
        let read = read.unwrap_or_else(|_| Err(io::Error::other("the file could not be read")));
        Poll::Ready(read.map_err(|error| io::Error::new(error.kind(), SpoolUnread(error))))
    }

    /// Sends on to a plain socket what the system has in its cache. How many bytes it took; `None`
    /// where the next piece has to be asked for.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, to: &TcpStream) -> Poll<io::Result<Option<u64>>> {
        let Content::Disk { file, length, .. } = &*self.file.0 else { return Poll::Ready(Ok(None)) };
        if self.reading.is_some() {
            return Poll::Ready(Ok(None));
        }
        let sent = ready!(sendfile::poll_send(cx, (file, self.at, length - self.at), to))?;
        self.at += sent.unwrap_or(0);
        Poll::Ready(Ok(sent))
    }

    /// The next piece in base64.
    pub(super) fn poll_base64(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.poll_piece(cx).map(|piece| Some(piece?.map(|piece| Bytes::from(BASE64_STANDARD.encode(piece)))))
    }
}

impl SpooledFile {
    fn read_at(&self, at: u64, wanted: usize, last: Bytes) -> io::Result<Bytes> {
        let Content::Disk { file, .. } = &*self.0 else { return Ok(Bytes::new()) };
        let mut piece = last.try_into_mut().unwrap_or_default();
        piece.resize(wanted, 0);
        file.read_exact_at(&mut piece, at)?;
        Ok(piece.freeze())
    }
}

impl fmt::Debug for SpooledPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpooledPieces").field("at", &self.at).finish_non_exhaustive()
    }
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
