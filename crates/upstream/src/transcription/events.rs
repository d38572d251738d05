//! The events of a transcript, read while they pass: `transcript.text.delta`, `…segment`, and at
//! the end `…done` with the whole text. Without the last one a stream is no answer.

use super::{LengthReport, TranscriptionUsage};
use crate::{Fault, making};
use bytes::Bytes;
use serde_json::Value;
use tollgate_wire::UpstreamError;
use tollgate_wire::sse::{Cutter, EventData, Frame, TooLong, join};

/// Reads one stream.
#[derive(Debug)]
pub struct TranscriptEvents {
    cutter: Cutter,
    events: u64,
    done: bool,
    usage: TranscriptionUsage,
}

impl TranscriptEvents {
    /// The last event repeats the whole text, so it may be long.
    pub fn new(longest: usize) -> TranscriptEvents {
        TranscriptEvents { cutter: Cutter::new(longest), events: 0, done: false, usage: TranscriptionUsage::default() }
    }

    /// The next bytes; an error inside is the provider's failure.
    pub fn feed(&mut self, chunk: Bytes) -> Result<(), Fault> {
        let long = |_: TooLong| Fault::too_long();
        let Some(mut bytes) = self.cutter.take(chunk).map_err(long)? else { return Ok(()) };
        while let Some(frame) = self.cutter.next(&bytes).map_err(long)? {
            let raw = bytes.split_to(frame.end);
            self.event(&raw, &frame)?;
        }
        self.cutter.hold(&bytes).map_err(long)
    }

    /// That was all of it.
    pub fn finish(&mut self) -> Result<TranscriptionUsage, Fault> {
        if let Some((raw, frame)) = self.cutter.rest() {
            self.event(&raw, &frame)?;
        }
        if self.done { Ok(std::mem::take(&mut self.usage)) } else { Err(Fault::truncated()) }
    }

    /// How many events have come.
    pub fn count(&self) -> u64 {
        self.events
    }

    fn event(&mut self, raw: &[u8], frame: &Frame) -> Result<(), Fault> {
        let joined;
        let data = match &frame.data {
            EventData::None => return Ok(()),
            EventData::One(place) => &raw[place.clone()],
            EventData::Many => {
                joined = join(raw, b'\n');
                &joined
            }
        };
        // Some clones end with it.
        if data == b"[DONE]" {
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data).map_err(|_| Fault::garbage())?;
        if event["type"] == "error" || event.get("error").is_some_and(|error| !error.is_null()) {
            let said = UpstreamError::read(data);
            return Err(said.map_or_else(Fault::garbage, |error| making::openai_inside(&error)));
        }
        self.events += 1;
        if event["type"] == "transcript.text.done" {
            self.done = true;
            self.usage = LengthReport { usage: &event["usage"], seconds: None }.read();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hel\"}\n\n: still here\n\n\
        event: x\ndata: {\"type\":\"transcript.text.delta\",\"delta\":\"lo\"}\n\n\
        data: {\"type\":\"transcript.text.done\",\"text\":\"Hello\",\"usage\":{\"type\":\"duration\",\"seconds\":3}}\n\n";

    fn read(text: &str, piece: usize) -> Result<TranscriptionUsage, Fault> {
        let mut events = TranscriptEvents::new(1 << 20);
        for chunk in text.as_bytes().chunks(piece) {
            events.feed(Bytes::copy_from_slice(chunk))?;
        }
        events.finish()
    }

    #[test]
    fn a_stream_is_complete_with_its_last_event_only() {
        for piece in [1, 7, 10_000] {
            assert_eq!(read(STREAM, piece).expect("complete").millis, Some(3_000), "{piece}");
            assert!(read(&format!("{STREAM}data: [DONE]\n\n"), piece).is_ok());
            let cut = STREAM.find("data: {\"type\":\"transcript.text.done").expect("there");
            assert_eq!(read(&STREAM[..cut], piece).expect_err("cut"), Fault::truncated());
            let failed =
                format!("{}data: {{\"error\":{{\"message\":\"no\",\"type\":\"server_error\"}}}}\n\n", &STREAM[..cut]);
            assert!(read(&failed, piece).is_err_and(|fault| !fault.try_other));
            assert!(read("data: {\"type\":\n\n", piece).is_err());
        }
    }
}
