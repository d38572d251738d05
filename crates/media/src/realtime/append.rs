//! Audio of a client that goes to its provider in pieces.

use serde_json::{Value, json};
use std::time::Duration;

use super::count::AudioFormat;

/// Letters of base64 that are whole samples of every format.
const LETTERS: usize = 16;
const MIME: &str = "gemini_mime";

/// The format of audio that has one of its own, whatever its session says.
pub fn append_format(event: &str) -> Option<AudioFormat> {
    let at = event.find(MIME)?;
    let value = event.get(at + MIME.len()..)?.split('"').nth(2)?;
    let rate = value.split(';').find_map(|part| part.trim().strip_prefix("rate="));
    Some(AudioFormat::named("audio/pcm", Some(rate.and_then(|rate| rate.parse().ok()).unwrap_or(16_000))))
}

/// An `input_audio_buffer.append` as several, none of them longer than `longest`; nothing where it
/// is no longer than that.
pub fn split_append(event: &str, format: AudioFormat, longest: Duration) -> Option<Vec<String>> {
    let bytes = u128::from(format.bytes_per_second) * longest.as_millis() / 1_000;
    let letters = usize::try_from(bytes * 4 / 3).ok()? / LETTERS * LETTERS;
    // Twice, so that what is split off is no mere rest.
    if letters == 0 || event.len() <= letters * 2 {
        return None;
    }
    let mut event: Value = serde_json::from_str(event).ok()?;
    let Value::String(audio) = event.get_mut("audio")?.take() else { return None };
    if !audio.is_ascii() || audio.len() <= letters {
        return None;
    }
    let mut pieces = Vec::with_capacity(audio.len() / letters + 1);
    for piece in audio.as_bytes().chunks(letters) {
        event["audio"] = json!(std::str::from_utf8(piece).ok()?);
        pieces.push(event.to_string());
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_and_none_is_long() {
        let audio: String = "AAAABBBBCCCCDDDD".repeat(5_000);
        let event = json!({"type": "input_audio_buffer.append", "event_id": "e", "audio": audio}).to_string();
        let longest = Duration::from_millis(200);
        let pieces = split_append(&event, AudioFormat::PCM, longest).expect("pieces");
        let mut whole = String::new();
        for piece in &pieces {
            let piece: Value = serde_json::from_str(piece).expect("JSON");
            assert_eq!((&piece["type"], &piece["event_id"]), (&json!("input_audio_buffer.append"), &json!("e")));
            let audio = piece["audio"].as_str().expect("audio");
            assert!(audio.len().is_multiple_of(16) && audio.len() <= 12_800);
            whole.push_str(audio);
        }
        assert_eq!(whole, audio);
        assert_eq!(split_append(&pieces[0], AudioFormat::PCM, longest), None, "it is short enough");
        let strange = json!({"type": "input_audio_buffer.append", "audio": ["A".repeat(90_000)]}).to_string();
        assert_eq!(split_append(&strange, AudioFormat::PCM, longest), None);
    }

    #[test]
    fn audio_may_say_its_own_rate() {
        let of = |mime: &str| append_format(&json!({"type": "a", "audio": "AAAA", "gemini_mime": mime}).to_string());
        assert_eq!(of("audio/pcm;rate=24000"), Some(AudioFormat::PCM));
        assert_eq!(of("audio/pcm"), Some(AudioFormat { bytes_per_second: 32_000 }));
        assert_eq!(append_format(r#"{"type":"a","audio":"AAAA"}"#), None);
    }
}
