//! The two forms of an answer with audio: the audio itself, and JSON with audio as text in it.

use super::{AudioReader, no_audio};
use crate::{Fault, making};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use tollgate_media::speech::{Base64Pieces, HexPieces, Undecodable};
use tollgate_wire::UpstreamError;
use tollgate_wire::pluck::{Plucked, Plucker, Unplucked};

/// The audio itself, passed on. One that says it is JSON is an error in disguise.
#[derive(Debug, Default)]
pub(crate) struct PassedOn {
    /// What came of an answer that is no audio.
    error: Option<BytesMut>,
    any: bool,
}

/// Longest error text read.
const ERROR: usize = 64 << 10;

impl PassedOn {
    pub(crate) fn of(headers: &HeaderMap) -> PassedOn {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let text = ["application/json", "text/"].iter().any(|start| kind.to_ascii_lowercase().starts_with(start));
        PassedOn { error: text.then(BytesMut::new), any: false }
    }
}

impl AudioReader for PassedOn {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        match &mut self.error {
            Some(error) if error.len() + piece.len() > ERROR => Err(Fault::garbage()),
            Some(error) => {
                error.extend_from_slice(&piece);
                Ok(Bytes::new())
            }
            None => {
                self.any |= !piece.is_empty();
                Ok(piece)
            }
        }
    }

    fn end(&mut self) -> Result<(Bytes, Option<String>), Fault> {
        match &self.error {
            Some(body) => {
                Err(UpstreamError::read(body).map_or_else(Fault::garbage, |error| making::openai_inside(&error)))
            }
            None if !self.any => Err(no_audio()),
            None => Ok((Bytes::new(), None)),
        }
    }
}

/// Whether the audio of a document was there before.
pub(crate) enum Repeats {
    No,
    /// It is that of all documents before it once more, if there were any.
    All,
}

/// What one maker's documents mean.
pub(crate) trait Documents: Send {
    /// A document without its audio.
    fn read(&mut self, document: &Value) -> Result<Repeats, Fault>;

    /// Nothing more comes: was it all? `any`: there was audio. What the provider reports.
    fn end(&mut self, any: bool) -> Result<Option<String>, Fault>;
}

/// How audio is written as text.
#[derive(Debug)]
pub(crate) enum AudioText {
    Hex(HexPieces),
    Base64(Base64Pieces),
}

/// JSON with audio as text in it. The first document's audio passes as it comes. That of a later
/// one is held until its end, because it may turn out to be all of it once more.
pub(crate) struct AudioInJson<D> {
    documents: D,
    plucker: Plucker,
    text: AudioText,
    /// No document with audio is over.
    first: bool,
    /// There was audio.
    any: bool,
    /// The audio of a document that is not over.
    held: Vec<u8>,
    /// It is more than one document should have, and was let go.
    lost: bool,
    most: usize,
}

/// What is collected of a document beside its audio.
const BESIDE: usize = 64 << 10;

impl<D: Documents> AudioInJson<D> {
    /// `keys`: under which the audio stands; `most`: how much audio a document after the first may
    /// have.
    pub(crate) fn new(
        documents: D,
        events: bool,
        keys: &'static [&'static str],
        text: AudioText,
        most: usize,
    ) -> AudioInJson<D> {
        let plucker = if events { Plucker::events(keys, BESIDE) } else { Plucker::whole(keys, BESIDE) };
        AudioInJson { documents, plucker, text, first: true, any: false, held: Vec::new(), lost: false, most }
    }

    fn take(&mut self, found: Vec<Plucked>) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        for one in found {
            match one {
                Plucked::Text(text) => {
                    self.decode(&text)?;
                    self.any |= !self.held.is_empty();
                    if self.first {
                        out.append(&mut self.held);
                    } else if self.held.len() > self.most {
                        (self.held, self.lost) = (Vec::new(), true);
                    }
                }
                Plucked::Document(document) => {
                    self.whole()?;
                    // Ends of other dialects are no documents.
                    let Ok(document) = serde_json::from_slice::<Value>(&document) else { continue };
                    match self.documents.read(&document)? {
                        Repeats::No if self.lost => return Err(Fault::too_long()),
                        Repeats::No => out.append(&mut self.held),
                        Repeats::All => self.held.clear(),
                    }
                    self.lost = false;
                    self.first &= !self.any;
                }
            }
        }
        Ok(out)
    }

    fn decode(&mut self, text: &[u8]) -> Result<(), Fault> {
        let decoded = match &mut self.text {
            AudioText::Hex(hex) => hex.feed(text, &mut self.held),
            AudioText::Base64(base64) => base64.feed(text, &mut self.held),
        };
        decoded.map_err(|Undecodable| Fault::garbage())
    }

    /// The text of a document is over.
    fn whole(&mut self) -> Result<(), Fault> {
        let ended = match &mut self.text {
            AudioText::Hex(hex) => hex.end(),
            AudioText::Base64(base64) => base64.end(),
        };
        ended.map_err(|Undecodable| Fault::garbage())
    }
}

fn unplucked(why: Unplucked) -> Fault {
    match why {
        Unplucked::TooLong => Fault::too_long(),
        Unplucked::Garbage => Fault::garbage(),
    }
}

impl<D: Documents> AudioReader for AudioInJson<D> {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        let mut found = Vec::new();
        let read = self.plucker.feed(&piece, &mut found);
        let out = self.take(found)?;
        read.map_err(unplucked)?;
        Ok(out.into())
    }

    fn end(&mut self) -> Result<(Bytes, Option<String>), Fault> {
        let mut found = Vec::new();
        self.plucker.end(&mut found).map_err(unplucked)?;
        let out = self.take(found)?;
        let report = self.documents.end(self.any)?;
        if self.any { Ok((out.into(), report)) } else { Err(no_audio()) }
    }
}
