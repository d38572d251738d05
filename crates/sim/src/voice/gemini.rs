//! Gemini's speech, as documented: generateContent with AUDIO, bare samples as base64 in one
//! document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use serde_json::json;

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::response;

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Response<Bytes>> {
    let body = heard.body;
    if !heard.takes(heard.header("x-goog-api-key")) {
        return Err(say(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."));
    }
    let config = &body["generationConfig"];
    let voice = &config["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"];
    let odd = Heard::odd(body, &["contents", "generationConfig"], &["safetySettings"])
        .or_else(|| Heard::odd(config, &["responseModalities", "speechConfig"], &["temperature"]));
    let wrong = match odd {
        Some((field, why)) => Some(format!("{field} {why}")),
        None if config["responseModalities"] != json!(["AUDIO"]) => {
            Some("responseModalities must be AUDIO".to_string())
        }
        None if !voice.is_string() => Some("voiceName is required".to_string()),
        None => None,
    };
    if let Some(why) = wrong {
        return Err(say(400, "INVALID_ARGUMENT", &why));
    }
    let text = body["contents"][0]["parts"][0]["text"].as_str().unwrap_or_default();
    let choice = Choice::of(text).map_err(|refusal| say(400, "INVALID_ARGUMENT", &refusal.message))?;
    let model = heard.parts.uri.path().rsplit('/').next().unwrap_or_default();
    Ok(Asked {
        model: model.trim_end_matches(":generateContent").to_string(),
        rate: if choice.is("other_rate") { 16_000 } else { RATE },
        choice,
        format: Format::Pcm,
        shape: Shape::Gemini,
        refuse: say,
        codes: [
            (200, "PROHIBITED_CONTENT"),
            (429, "RESOURCE_EXHAUSTED"),
            (400, "INVALID_ARGUMENT"),
            (403, "PERMISSION_DENIED"),
            (500, "INTERNAL"),
        ],
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let body = match status {
        // A refusal of the text is an answer without candidates.
        200 => json!({"promptFeedback": {"blockReason": code}, "modelVersion": "sim"}),
        _ => json!({"error": {"code": status, "message": text, "status": code}}),
    };
    response(status, "application/json", body.to_string().into())
}

/// One document, in pieces that end anywhere.
pub(super) fn write(pieces: &[Vec<u8>], choice: &Choice) -> Vec<String> {
    let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 50, "totalTokenCount": 59});
    if pieces.is_empty() {
        // A known whim: an answer that ended for no reason, without content.
        let body = json!({"candidates": [{"finishReason": "OTHER", "index": 0}], "usageMetadata": usage});
        return vec![body.to_string()];
    }
    let rate = if choice.is("other_rate") { 16_000 } else { RATE };
    let data = STANDARD.encode(pieces.concat());
    let part = json!({"inlineData": {"data": data, "mimeType": format!("audio/L16;codec=pcm;rate={rate}")}});
    let body = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    });
    // Google's writer makes escapes of the padding.
    let body = body.to_string().replace("=\"", "\\u003d\"").replace("=\\u003d", "\\u003d\\u003d");
    let length = (body.len() / pieces.len()).max(1);
    body.as_bytes().chunks(length).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}
