//! Speech as events: each piece of audio in base64, and at the end what was used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

const BEFORE: &str = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"";
const AFTER: &str = "\"}\n\n";

/// The event of one piece; each can be decoded by itself.
pub fn speech_delta(audio: &[u8]) -> Bytes {
    let mut event = String::with_capacity(BEFORE.len() + audio.len().div_ceil(3) * 4 + AFTER.len());
    event.push_str(BEFORE);
    STANDARD.encode_string(audio, &mut event);
    event.push_str(AFTER);
    event.into()
}

/// The last event.
pub fn speech_done(input: u64, output: u64) -> Bytes {
    let total = input.saturating_add(output);
    let usage = format!("{{\"input_tokens\":{input},\"output_tokens\":{output},\"total_tokens\":{total}}}");
    format!("data: {{\"type\":\"speech.audio.done\",\"usage\":{usage}}}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_json_and_their_audio_is_the_piece() {
        let json = |event: &Bytes| -> serde_json::Value {
            let text = std::str::from_utf8(event).unwrap().strip_prefix("data: ").unwrap().trim_end();
            serde_json::from_str(text).unwrap()
        };
        let event = json(&speech_delta(b"\x00\xff\x01\x02"));
        assert_eq!(event["type"], "speech.audio.delta");
        assert_eq!(STANDARD.decode(event["audio"].as_str().unwrap()).unwrap(), b"\x00\xff\x01\x02");
        let done = json(&speech_done(5, 17));
        assert_eq!((&done["type"], &done["usage"]["total_tokens"]), (&"speech.audio.done".into(), &22.into()));
    }
}
