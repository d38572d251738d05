//! Speech of MiniMax: events with audio as hexadecimal text. An error comes with status 200, and
//! the last event has all of the audio once more unless it is asked not to.

use super::video::{CODES, base_code};
use crate::chat::bearer;
use crate::speech::{AudioInJson, AudioReader, AudioText, Documents, Repeats, SpeechAsk, SpeechMaker, add_extra, post};
use crate::video::judge::ProviderError;
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate_media::speech::{HexPieces, SpeechFormat};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MiniMaxSpeech;

/// What was asked, or what came of it, is not wanted.
const CONTENT: &[&str] = &["1026", "1027"];
/// Audio of one event.
const EVENT: usize = 1 << 20;

impl SpeechMaker for MiniMaxSpeech {
    /// Its wav does not come in events, but its bare samples do.
    fn makes(&self, format: SpeechFormat) -> bool {
        matches!(format, SpeechFormat::Mp3 | SpeechFormat::Pcm | SpeechFormat::Flac)
    }

    fn takes(&self, field: &str) -> bool {
        matches!(field, "speed" | "extra")
    }

    fn own(&self) -> &'static [&'static str] {
        &[
            "model",
            "text",
            "stream",
            "stream_options",
            "voice_setting",
            "audio_setting",
            "output_format",
            "timbre_weights",
            "timber_weights",
        ]
    }

    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let mut voice = json!({ "voice_id": speech.voice.id() });
        if let Some(speed) = &speech.speed {
            voice["speed"] = Value::Number(speed.clone());
        }
        let mut body = json!({
            "model": ask.model,
            "text": speech.text,
            "stream": true,
            "stream_options": { "exclude_aggregated_audio": true },
            "voice_setting": voice,
            "audio_setting": { "sample_rate": ask.rate, "format": ask.made.name(), "channel": 1 },
            "output_format": "hex",
        });
        add_extra(&mut body, &speech.extra);
        let mut request = post(provider, "/v1/t2a_v2", "text/event-stream, application/json", &body, ask.call_id)?;
        bearer(&mut request, provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }

    fn reader(&self, _: &SpeechAsk<'_>, headers: &HeaderMap) -> Box<dyn AudioReader> {
        let documents = Events { done: false, report: None };
        let text = AudioText::Hex(HexPieces::default());
        Box::new(AudioInJson::new(documents, is_events(headers), &["audio"], text, EVENT))
    }
}

/// What an answer that is no success means, whatever was asked for.
pub(super) fn refused(reply: &WholeReply) -> Fault {
    let json = reply.json();
    let base = base_code(&json);
    let said = base.as_ref().map(|(code, text)| ProviderError { code, text });
    making::coded(reply, said, CODES, CONTENT)
}

/// A refusal comes as one document, whatever was asked for.
fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("text/event-stream")
}

struct Events {
    done: bool,
    report: Option<String>,
}

impl Documents for Events {
    fn read(&mut self, document: &Value) -> Result<Repeats, Fault> {
        if base_code(document).is_some() {
            return Err(refused(&WholeReply::inside(document)));
        }
        if document["extra_info"].is_object() {
            self.report = Some(document["extra_info"].to_string());
        }
        let last = document["data"]["status"] == 2;
        self.done |= last;
        Ok(if last { Repeats::All } else { Repeats::No })
    }

    fn end(&mut self, _: bool) -> Result<Option<String>, Fault> {
        if self.done { Ok(self.report.take()) } else { Err(Fault::truncated()) }
    }
}
