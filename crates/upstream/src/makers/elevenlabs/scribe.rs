//! Transcripts of ElevenLabs: a form, and a reply that has the time of every word. Options that it
//! charges more for (several channels, key terms, entities) are never sent.

use super::refused;
use crate::chat::key_in;
use crate::transcription::{HeardFacts, LengthReport, Transcriber, TranscriptionAsk, upload};
use crate::{Fault, FormPayload, Outgoing, Provider, WholeReply};
use serde_json::Value;
use tollgate_media::transcription::{TranscriptFacts, TranscriptFormat, TranscriptShape, file_ending, media_type};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scribe;

const FORMATS: &[TranscriptFormat] = &[
    TranscriptFormat::Json,
    TranscriptFormat::Text,
    TranscriptFormat::Srt,
    TranscriptFormat::Vtt,
    TranscriptFormat::VerboseJson,
];

impl Transcriber for Scribe {
    fn request(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing> {
        let mut form = FormPayload::new(ask.drawn)
            .field("model_id", ask.model)
            .field("timestamps_granularity", "word")
            .field("tag_audio_events", "false");
        if let Some(language) = ask.request.get("language") {
            form = form.field("language_code", language);
        }
        if let Some(temperature) = ask.request.get("temperature") {
            form = form.field("temperature", temperature);
        }
        let name = format!("audio.{}", file_ending(ask.measured));
        let form = form.file("file", &name, media_type(ask.measured), ask.file?.part());
        let mut request = upload(provider, "/v1/speech-to-text", form, ask.call_id)?;
        key_in(&mut request, "xi-api-key", provider);
        Some(request)
    }

    fn formats(&self) -> &'static [TranscriptFormat] {
        FORMATS
    }

    fn drops(&self, field: &str) -> bool {
        !matches!(field, "language" | "temperature" | "timestamp_granularities[]")
    }

    fn shape(&self, _: TranscriptFormat) -> Option<&'static TranscriptShape> {
        Some(&TranscriptShape::SCRIBE)
    }

    fn facts(&self, _: &TranscriptionAsk<'_>, rest: &[u8]) -> Result<HeardFacts, Fault> {
        let object: Value = serde_json::from_slice(rest).map_err(|_| Fault::garbage())?;
        object["text"].as_str().ok_or_else(Fault::garbage)?;
        let usage = LengthReport { usage: &Value::Null, seconds: object["audio_duration_secs"].as_f64() }.read();
        let language = object["language_code"].as_str().map(str::to_owned);
        Ok(HeardFacts { facts: TranscriptFacts { language, millis: usage.millis }, usage })
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }
}
