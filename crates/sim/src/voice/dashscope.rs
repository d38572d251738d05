//! DashScope's Qwen-TTS, as documented: events with bare samples as base64, the last one with a
//! link.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::response;

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Response<Bytes>> {
    let body = heard.body;
    if !heard.takes(heard.bearer()) {
        return Err(say(401, "InvalidApiKey", "Invalid API-key provided."));
    }
    let bad = |why: String| say(400, "InvalidParameter", &why);
    let input = &body["input"];
    let odd = Heard::odd(body, &["model", "input"], &["parameters"])
        .or_else(|| Heard::odd(input, &["text", "voice"], &["language_type", "instructions"]));
    if let Some((field, why)) = odd {
        return Err(bad(format!("{field} {why}")));
    }
    // A header that is spelt otherwise is not seen, and the answer is then a link.
    if heard.header("x-dashscope-sse") != Some("enable") {
        return Err(bad("only streams are played here".to_string()));
    }
    let text =
        input["text"].as_str().filter(|text| text.chars().count() <= 600).ok_or_else(|| bad("text".to_string()))?;
    Ok(Asked {
        model: body["model"].as_str().unwrap_or_default().to_string(),
        choice: Choice::of(text).map_err(|refusal| bad(refusal.message))?,
        format: Format::Pcm,
        rate: RATE,
        shape: Shape::DashScope,
        refuse: say,
        codes: [
            (400, "DataInspectionFailed"),
            (429, "Throttling.RateQuota"),
            (400, "InvalidParameter"),
            (400, "Arrearage"),
            (500, "InternalError"),
        ],
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let body = json!({"code": code, "message": text, "request_id": "sim-0f1e2d3c-4b5a-6978"});
    response(status, "application/json", body.to_string().into())
}

pub(super) fn write(pieces: &[Vec<u8>], choice: &Choice, characters: u64) -> Vec<String> {
    let mut number = 0;
    let mut event = |body: Value| {
        number += 1;
        format!("id:{number}\nevent:result\n:HTTP_STATUS/200\ndata:{body}\n\n")
    };
    let audio =
        |data: String, url: &str| json!({"data": data, "url": url, "id": "audio_sim", "expires_at": 1_767_312_000});
    let mut events: Vec<String> = Vec::new();
    for piece in pieces {
        events.push(event(json!({"output": {"audio": audio(STANDARD.encode(piece), ""), "finish_reason": "null"}})));
    }
    if choice.is("error_midway") {
        events.truncate(1);
        let body = json!({"code": "InternalError.Algo", "message": "sim-3.internal failed", "request_id": "sim-1"});
        events.push(format!("id:2\nevent:error\n:HTTP_STATUS/500\ndata:{body}\n\n"));
        return events;
    }
    if !choice.is("unfinished") {
        let last = audio(String::new(), "http://oss.sim.internal/a.wav?Expires=1767312000");
        let body = json!({"output": {"audio": last, "finish_reason": "stop"}, "usage": {"characters": characters}});
        events.push(event(body));
    }
    events
}
