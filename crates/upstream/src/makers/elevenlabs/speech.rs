//! Speech of ElevenLabs: the voice stands in the path, the format in the query.

use super::refused;
use crate::chat::key_in;
use crate::speech::{AudioReader, PassedOn, SpeechAsk, SpeechMaker, add_extra, post};
use crate::video::read::path_part;
use crate::{Fault, Outgoing, Provider, WholeReply};
use http::HeaderMap;
use serde_json::json;
use tollgate_media::speech::SpeechFormat;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElevenLabsSpeech;

impl SpeechMaker for ElevenLabsSpeech {
    fn makes(&self, format: SpeechFormat) -> bool {
        matches!(format, SpeechFormat::Mp3 | SpeechFormat::Opus | SpeechFormat::Pcm | SpeechFormat::Wav)
    }

    fn takes(&self, field: &str) -> bool {
        matches!(field, "speed" | "extra")
    }

    fn own(&self) -> &'static [&'static str] {
        &["text", "model_id", "voice_settings", "output_format"]
    }

    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let format = match ask.made {
            SpeechFormat::Opus => "opus_48000_64".to_owned(),
            SpeechFormat::Pcm => format!("pcm_{}", ask.rate),
            SpeechFormat::Wav => format!("wav_{}", ask.rate),
            _ => "mp3_44100_128".to_owned(),
        };
        let mut body = json!({ "text": speech.text, "model_id": ask.model });
        if let Some(speed) = &speech.speed {
            body["voice_settings"] = json!({ "speed": speed });
        }
        add_extra(&mut body, &speech.extra);
        let path = format!("/v1/text-to-speech/{}/stream?output_format={format}", path_part(speech.voice.id())?);
        let mut request = post(provider, &path, "audio/*", &body, ask.call_id)?;
        key_in(&mut request, "xi-api-key", provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }

    fn reader(&self, _: &SpeechAsk<'_>, headers: &HeaderMap) -> Box<dyn AudioReader> {
        Box::new(PassedOn::of(headers))
    }
}
