//! The result of music: the shape of an image result, with one song. The song passes as base64
//! while it comes, so that nobody holds it.

use crate::speech::SpeechFormat;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// A result with the song itself in it, written piece by piece.
#[derive(Debug)]
pub struct SongText {
    created: i64,
    format: SpeechFormat,
    begun: bool,
    /// What is too little for a group of three.
    rest: Vec<u8>,
}

impl SongText {
    /// `created`: Unix seconds.
    pub fn new(created: i64, format: SpeechFormat) -> SongText {
        SongText { created, format, begun: false, rest: Vec::new() }
    }

    /// What goes out for a piece of the song.
    pub fn feed(&mut self, audio: &[u8]) -> Bytes {
        let mut out = String::with_capacity(audio.len() / 3 * 4 + 80);
        if !std::mem::replace(&mut self.begun, true) {
            out.push_str(&format!("{{\"created\":{},\"data\":[{{\"url\":\"\",\"b64_json\":\"", self.created));
        }
        self.rest.extend_from_slice(audio);
        let whole = self.rest.len() / 3 * 3;
        STANDARD.encode_string(&self.rest[..whole], &mut out);
        self.rest.drain(..whole);
        out.into()
    }

    /// The rest of the result, for a song that plays so many milliseconds.
    pub fn end(&mut self, millis: u64) -> Bytes {
        let rest = STANDARD.encode(std::mem::take(&mut self.rest));
        format!("{rest}\"{}", facts(millis, self.format)).into()
    }
}

/// A result with a link.
pub fn song_link(created: i64, url: &str, millis: u64, format: SpeechFormat) -> Bytes {
    let url = serde_json::Value::from(url);
    format!("{{\"created\":{created},\"data\":[{{\"url\":{url},\"b64_json\":\"\"{}", facts(millis, format)).into()
}

fn facts(millis: u64, format: SpeechFormat) -> String {
    let (seconds, rest) = (millis / 1000, millis % 1000);
    let counts = "\"metadata\":{\"success_count\":\"1\",\"failed_count\":\"0\"}";
    format!(",\"duration\":{seconds}.{rest:03},\"format\":\"{}\"}}],{counts}}}", format.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_result_is_json_in_whatever_pieces_the_song_comes() {
        let song: Vec<u8> = (0..=255).collect();
        for piece in [1, 2, 3, 100, 256] {
            let mut text = SongText::new(7, SpeechFormat::Mp3);
            let mut out: Vec<u8> = song.chunks(piece).flat_map(|part| text.feed(part)).collect();
            out.extend(text.end(61_005));
            let json: Value = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(STANDARD.decode(json["data"][0]["b64_json"].as_str().unwrap()).unwrap(), song);
            assert_eq!((&json["data"][0]["duration"], &json["data"][0]["format"]), (&json!(61.005), &json!("mp3")));
            assert_eq!(json["metadata"], json!({ "success_count": "1", "failed_count": "0" }));
        }
        let link: Value =
            serde_json::from_slice(&song_link(7, "https://a/\"b", 1_000, SpeechFormat::Wav)).expect("JSON");
        assert_eq!((&link["data"][0]["url"], &link["data"][0]["b64_json"]), (&json!("https://a/\"b"), &json!("")));
    }
}
