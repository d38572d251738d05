//! Music of MiniMax: one document, with the song as hexadecimal text or as a link.

use super::speech::refused;
use super::video::base_code;
use crate::chat::bearer;
use crate::music::{MusicAsk, MusicMaker};
use crate::speech::{AudioInJson, AudioText, Documents, Repeats, no_audio, post};
use crate::{AudioReader, Fault, Outgoing, Provider, WholeReply};
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate_media::speech::{HexPieces, SpeechFormat};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MiniMaxMusic;

/// The rate and the rest of the best that it makes.
const RATE: u32 = 44_100;
const BITRATE: u32 = 256_000;

impl MusicMaker for MiniMaxMusic {
    fn makes(&self, format: SpeechFormat) -> bool {
        matches!(format, SpeechFormat::Mp3 | SpeechFormat::Wav)
    }

    fn takes(&self, field: &str) -> bool {
        matches!(field, "lyrics" | "link")
    }

    fn request(&self, provider: &Provider, ask: &MusicAsk<'_>) -> Option<Outgoing> {
        let song = ask.song;
        let mut body = json!({
            "model": ask.model,
            "audio_setting": { "sample_rate": RATE, "bitrate": BITRATE, "format": song.format.name() },
            "output_format": if song.link { "url" } else { "hex" },
        });
        let fields = [
            ("prompt", song.prompt.as_deref().map(Value::from)),
            ("lyrics", song.lyrics.as_deref().map(Value::from)),
            ("is_instrumental", song.instrumental.then_some(Value::Bool(true))),
            ("lyrics_optimizer", song.writes_lyrics.then_some(Value::Bool(true))),
        ];
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            body[name] = value;
        }
        let mut request = post(provider, "/v1/music_generation", "application/json", &body, ask.call_id)?;
        bearer(&mut request, provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        refused(reply)
    }

    fn reader(&self, _: &HeaderMap) -> Box<dyn AudioReader> {
        let text = AudioText::Hex(HexPieces::default());
        Box::new(AudioInJson::new(Answer { report: None }, false, &["audio"], text, 0))
    }

    fn link(&self, reply: &WholeReply) -> Result<(String, u64), Fault> {
        let json = reply.json();
        if base_code(&json).is_some() {
            return Err(refused(reply));
        }
        let link = json["data"]["audio"].as_str().filter(|link| link.starts_with("http"));
        let link = link.ok_or_else(no_audio)?;
        Ok((link.to_owned(), json["extra_info"]["music_duration"].as_u64().unwrap_or(0)))
    }
}

struct Answer {
    report: Option<String>,
}

impl Documents for Answer {
    fn read(&mut self, document: &Value) -> Result<Repeats, Fault> {
        if base_code(document).is_some() {
            return Err(refused(&WholeReply::inside(document)));
        }
        if document["extra_info"].is_object() {
            self.report = Some(document["extra_info"].to_string());
        }
        // One that is not finished says 1.
        if document["data"]["status"] != 2 {
            return Err(Fault::truncated());
        }
        Ok(Repeats::No)
    }

    fn end(&mut self, _: bool) -> Result<Option<String>, Fault> {
        Ok(self.report.take())
    }
}
