//! Transcripts that pass: events as they come, and replies that are too large to be held.

use super::call::Measuring;
use crate::call::{Meter, Rewrite};
use bytes::Bytes;
use tollgate_media::transcription::TranscriptFormat;
use tollgate_upstream::Fault;
use tollgate_upstream::transcription::{TranscriptEvents, TranscriptionUsage};

/// The events of a transcript on their way.
pub struct Streaming {
    events: TranscriptEvents,
    measuring: Measuring,
    usage: TranscriptionUsage,
}

impl Streaming {
    pub fn new(events: TranscriptEvents, measuring: Measuring) -> Streaming {
        Streaming { events, measuring, usage: TranscriptionUsage::default() }
    }
}

impl Rewrite for Streaming {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        self.events.feed(piece.clone())?;
        Ok(piece)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        self.usage = self.events.finish()?;
        Ok(Bytes::new())
    }

    fn meter(&mut self) -> Option<Meter> {
        Some(self.measuring.meter(std::mem::take(&mut self.usage)))
    }
}

/// A reply that is too large to be held. That it is whole shows in its last byte.
pub struct LargeTranscript {
    json: bool,
    first: Option<u8>,
    last: Option<u8>,
}

impl LargeTranscript {
    pub fn new(format: TranscriptFormat) -> LargeTranscript {
        LargeTranscript { json: format.is_json(), first: None, last: None }
    }

    pub fn see(&mut self, piece: &[u8]) {
        let seen = |byte: &&u8| !byte.is_ascii_whitespace();
        self.first = self.first.or_else(|| piece.iter().find(seen).copied());
        self.last = piece.iter().rev().find(seen).copied().or(self.last);
    }
}

impl Rewrite for LargeTranscript {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        self.see(&piece);
        Ok(piece)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let whole = !self.json || (self.first, self.last) == (Some(b'{'), Some(b'}'));
        if whole { Ok(Bytes::new()) } else { Err(Fault::garbage()) }
    }
}
