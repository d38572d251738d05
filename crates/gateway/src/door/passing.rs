//! Files that pass: sent on to a provider while they arrive, watched on the way, and never put
//! down. Their end is withheld until their call is paid for (`tollgate_upstream::PassingUpload`).
//! Of the budget for bodies they take what is under way at a time.

use super::bodies::BodyShare;
use super::spool::FileWatch;
use crate::refusal::Refusal;
use bytes::Bytes;
use http::Response;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tollgate_upstream::{Fault, IncomingBody, PassingUpload, SpooledFile};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// What of such a file is in memory at most: what is withheld, what is being sent, and a piece of a
/// client that has just come.
pub const PASSING: usize = 256 << 10;

/// Where a file goes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassWay {
    pub provider: String,
    pub upstream_model: String,
    /// Random, for the boundary of its form.
    pub drawn: [u8; 16],
}

/// What is decided about a file by its beginning.
pub enum PassLook {
    /// More of it has to be seen.
    More,
    Spool,
    Pass(PassWay, Box<PassingUpload>),
}

/// Decides whether a file passes or is spooled. It is shown the file from its beginning until it
/// has decided.
pub trait MayPass: Send {
    fn look(&mut self, more: &[u8]) -> PassLook;
}

/// A file while it passes.
pub struct ForwardedFile<W> {
    way: PassWay,
    upload: Box<PassingUpload>,
    watch: W,
    length: u64,
    most: u64,
    room: BodyShare,
}

/// A file that has passed, but for its end.
pub struct PassedFile {
    pub way: PassWay,
    pub length: u64,
    /// Until its end is let go.
    upload: Mutex<Option<Box<PassingUpload>>>,
    _room: BodyShare,
}

/// A file of a caller, all of it read.
pub enum UploadedFile {
    Spooled(SpooledFile),
    Passed(PassedFile),
}

impl<W: FileWatch> ForwardedFile<W> {
    /// `length` bytes of it have been watched already, and go on first.
    pub fn new(
        way: PassWay,
        upload: Box<PassingUpload>,
        watch: W,
        (length, most): (u64, u64),
        room: BodyShare,
    ) -> Self {
        ForwardedFile { way, upload, watch, length, most, room }
    }

    /// What came before it was known that the file passes.
    pub async fn start(&mut self, bytes: Bytes) {
        self.upload.push(bytes).await;
    }

    pub async fn push(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.length += piece.len() as u64;
        too_long(self.length, self.most)?;
        self.watch.piece(&piece);
        self.upload.push(piece).await;
        Ok(())
    }

    /// That was all of it.
    pub fn finish(self) -> (PassedFile, W) {
        let ForwardedFile { way, upload, watch, length, room, .. } = self;
        (PassedFile { way, length, upload: Mutex::new(Some(upload)), _room: room }, watch)
    }
}

/// Whether a file of this length is longer than it may be.
pub fn too_long(length: u64, most: u64) -> Result<(), Refusal> {
    if length <= most {
        return Ok(());
    }
    Err(Problem::large_file(most).into())
}

impl PassedFile {
    /// Lets its end go and waits for the answer: once, and along its own way.
    pub async fn release(&self, end: Bytes) -> Result<Response<IncomingBody>, Fault> {
        let upload = self.upload.lock().unwrap_or_else(PoisonError::into_inner).take();
        upload.ok_or_else(Fault::way_gone)?.release(end).await
    }
}

impl UploadedFile {
    pub fn length(&self) -> u64 {
        match self {
            UploadedFile::Spooled(file) => file.length(),
            UploadedFile::Passed(file) => file.length,
        }
    }

    /// The file itself, where it was put down.
    pub fn spooled(&self) -> Option<&SpooledFile> {
        match self {
            UploadedFile::Spooled(file) => Some(file),
            UploadedFile::Passed(_) => None,
        }
    }

    /// The same, for whoever lets no file pass.
    pub fn into_spooled(self) -> Result<SpooledFile, Refusal> {
        match self {
            UploadedFile::Spooled(file) => Ok(file),
            UploadedFile::Passed(_) => Err(Refusal::new(Code::Internal, "The upload was lost.")),
        }
    }
}

impl fmt::Debug for UploadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadedFile").field("length", &self.length()).finish_non_exhaustive()
    }
}
