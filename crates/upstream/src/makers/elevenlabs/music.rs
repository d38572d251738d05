//! Music of ElevenLabs: a prompt and a length, and the song itself is the answer.

use super::refused;
use crate::chat::key_in;
use crate::music::{MusicAsk, MusicMaker};
use crate::speech::{PassedOn, no_audio, post};
use crate::{AudioReader, Fault, Outgoing, Provider, WholeReply};
use http::HeaderMap;
use serde_json::json;
use tollgate_media::speech::SpeechFormat;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElevenLabsMusic;

impl MusicMaker for ElevenLabsMusic {
    fn makes(&self, format: SpeechFormat) -> bool {
        matches!(format, SpeechFormat::Mp3 | SpeechFormat::Opus)
    }

    fn takes(&self, field: &str) -> bool {
        field == "duration"
    }

    fn request(&self, provider: &Provider, ask: &MusicAsk<'_>) -> Option<Outgoing> {
        let song = ask.song;
        let mut body = json!({ "prompt": song.prompt, "model_id": ask.model });
        if let Some(seconds) = song.seconds {
            body["music_length_ms"] = json!(seconds * 1_000);
        }
        if song.instrumental {
            body["force_instrumental"] = json!(true);
        }
        let format = if song.format == SpeechFormat::Opus { "opus_48000_128" } else { "mp3_44100_128" };
        let mut request = post(provider, &format!("/v1/music?output_format={format}"), "audio/*", &body, ask.call_id)?;
        key_in(&mut request, "xi-api-key", provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }

    fn reader(&self, headers: &HeaderMap) -> Box<dyn AudioReader> {
        Box::new(PassedOn::of(headers))
    }

    fn link(&self, _: &WholeReply) -> Result<(String, u64), Fault> {
        Err(no_audio())
    }
}
