//! ElevenLabs' text to speech, as documented: the voice in the path, the format in the query.

use bytes::Bytes;
use http::Response;
use serde_json::json;

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::response;

const FORMATS: &[(&str, Format, u32)] = &[
    ("mp3_44100_128", Format::Mp3, RATE),
    ("opus_48000_64", Format::Opus, 48_000),
    ("pcm_16000", Format::Pcm, 16_000),
    ("pcm_24000", Format::Pcm, 24_000),
    ("pcm_44100", Format::Pcm, 44_100),
    ("wav_24000", Format::Wav, 24_000),
    ("wav_44100", Format::Wav, 44_100),
];
const MAY: &[&str] = &["model_id", "language_code", "voice_settings", "seed", "previous_text", "next_text"];

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Response<Bytes>> {
    if !heard.takes(heard.header("xi-api-key")) {
        return Err(say(401, "invalid_api_key", "Invalid API key"));
    }
    let wrong = |field: &str, why: &str| {
        let body = json!({"detail": [{"type": "value_error", "loc": ["body", field], "msg": why}]});
        response(422, "application/json", body.to_string().into())
    };
    let (path, query) = (heard.parts.uri.path(), heard.parts.uri.query().unwrap_or_default());
    let voice = path.trim_start_matches("/video/elevenlabs/v1/text-to-speech/").strip_suffix("/stream");
    if voice.is_none_or(|voice| voice.is_empty() || voice.contains('/')) {
        return Err(say(404, "voice_not_found", "A voice was not found."));
    }
    if let Some((field, why)) = Heard::odd(heard.body, &["text"], MAY) {
        return Err(wrong(&field, why));
    }
    let settings = &heard.body["voice_settings"];
    let known = ["stability", "similarity_boost", "style", "speed", "use_speaker_boost"];
    if let Some((field, why)) = settings.as_object().and_then(|_| Heard::odd(settings, &[], &known)) {
        return Err(wrong(&field, why));
    }
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("output_format=")).unwrap_or("mp3_44100_128");
    let Some((_, format, rate)) = FORMATS.iter().find(|(name, _, _)| *name == asked) else {
        return Err(wrong("output_format", "unknown output format"));
    };
    let text = heard.body["text"].as_str().ok_or_else(|| wrong("text", "must be a string"))?;
    Ok(Asked {
        model: heard.body["model_id"].as_str().unwrap_or_default().to_string(),
        choice: Choice::of(text).map_err(|refusal| wrong("text", &refusal.message))?,
        format: *format,
        rate: *rate,
        shape: Shape::Bytes,
        refuse: say,
        codes: [
            (400, "content_against_policy"),
            (429, "too_many_concurrent_requests"),
            (400, "voice_not_found"),
            (401, "quota_exceeded"),
            (500, "internal_server_error"),
        ],
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let body = json!({"detail": {"status": code, "message": text}});
    response(status, "application/json", body.to_string().into())
}
