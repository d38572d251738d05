//! Transcripts of ElevenLabs: a form, and a reply that has the time of every word. Options that it
//! charges more for (several channels, key terms, entities) are never sent.

use super::refused;
use crate::chat::key_in;
use crate::transcription::{Heard, LengthReport, Transcriber, TranscriptionAsk, upload};
use crate::{Fault, FormPayload, Outgoing, Provider, WholeReply};
use serde_json::Value;
use tollgate_media::transcription::{TimedText, Transcript, TranscriptFormat, file_ending, media_type};

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
        let form = form.file("file", &name, media_type(ask.measured), ask.file.part());
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

    fn heard(&self, ask: &TranscriptionAsk<'_>, reply: &WholeReply) -> Result<Heard, Fault> {
        let object = reply.json();
        let text = object["text"].as_str().ok_or_else(Fault::garbage)?;
        let usage = LengthReport { usage: &Value::Null, seconds: object["audio_duration_secs"].as_f64() }.read();
        let transcript = Transcript {
            text: text.to_owned(),
            language: object["language_code"].as_str().map(str::to_owned),
            millis: usage.millis,
            words: object["words"].as_array().into_iter().flatten().filter_map(word).collect(),
            lines: Vec::new(),
        };
        let with_words = ask.request.has("timestamp_granularities[]", "word");
        let body = transcript.write(ask.request.format, false, with_words).ok_or_else(Fault::garbage)?;
        Ok(Heard { body, usage })
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }
}

fn word(word: &Value) -> Option<TimedText> {
    if word["type"] == "spacing" {
        return None;
    }
    let time = |name: &str| LengthReport { usage: &Value::Null, seconds: word[name].as_f64() }.read().millis;
    Some(TimedText { start_ms: time("start")?, end_ms: time("end")?, text: word["text"].as_str()?.to_owned() })
}
