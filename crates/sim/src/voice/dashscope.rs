//! DashScope's Qwen-TTS and CosyVoice, as documented: events with base64, bare samples of the one
//! and the format that was asked for of the other; the last one has a link.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::response;

const CODES: [(u16, &str); 5] = [
    (400, "DataInspectionFailed"),
    (429, "Throttling.RateQuota"),
    (400, "InvalidParameter"),
    (400, "Arrearage"),
    (500, "InternalError"),
];

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Box<Response<Bytes>>> {
    let body = heard.body;
    if !heard.takes(heard.bearer()) {
        return Err(say(401, "InvalidApiKey", "Invalid API-key provided.").into());
    }
    let bad = |why: String| say(400, "InvalidParameter", &why);
    let input = &body["input"];
    let odd = Heard::odd(body, &["model", "input"], &["parameters"])
        .or_else(|| Heard::odd(input, &["text", "voice"], &["language_type", "instructions"]));
    if let Some((field, why)) = odd {
        return Err(bad(format!("{field} {why}")).into());
    }
    // A header that is spelt otherwise is not seen, and the answer is then a link.
    if heard.header("x-dashscope-sse") != Some("enable") {
        return Err(bad("only streams are played here".to_string()).into());
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
        codes: CODES,
    })
}

/// CosyVoice: the same but for its path, its names and its formats.
pub(super) fn hear_cosyvoice(heard: &Heard<'_>) -> Result<Asked, Box<Response<Bytes>>> {
    let body = heard.body;
    if !heard.takes(heard.bearer()) {
        return Err(say(401, "InvalidApiKey", "Invalid API-key provided.").into());
    }
    let bad = |why: String| say(400, "InvalidParameter", &why);
    let input = &body["input"];
    let may = ["volume", "rate", "pitch", "instruction", "seed", "language_hints", "enable_ssml", "bit_rate"];
    let odd = Heard::odd(body, &["model", "input"], &[])
        .or_else(|| Heard::odd(input, &["text", "voice", "format", "sample_rate"], &may));
    if let Some((field, why)) = odd {
        return Err(bad(format!("{field} {why}")).into());
    }
    let model = body["model"].as_str().unwrap_or_default();
    if !model.starts_with("cosyvoice-") && !model.starts_with("qwen-audio-") {
        return Err(say(400, "InvalidParameter", "url error, please check url!").into());
    }
    if heard.header("x-dashscope-sse") != Some("enable") {
        return Err(bad("only streams are played here".to_string()).into());
    }
    let format = input["format"].as_str().and_then(Format::named);
    let offered = [Format::Mp3, Format::Wav, Format::Pcm, Format::Opus];
    let format = format.filter(|format| offered.contains(format)).ok_or_else(|| bad("format".to_string()))?;
    let rate = &input["rate"];
    if !rate.is_null() && !rate.as_f64().is_some_and(|rate| (0.5..=2.0).contains(&rate)) {
        return Err(bad("rate".to_string()).into());
    }
    let text = input["text"].as_str().filter(|text| text.chars().count() <= 20_000);
    let text = text.ok_or_else(|| bad("text".to_string()))?;
    Ok(Asked {
        model: model.to_string(),
        choice: Choice::of(text).map_err(|refusal| bad(refusal.message))?,
        format,
        rate: u32::try_from(input["sample_rate"].as_u64().unwrap_or(0)).unwrap_or(RATE),
        shape: Shape::CosyVoice,
        refuse: say,
        codes: CODES,
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let body = json!({"code": code, "message": text, "request_id": "sim-0f1e2d3c-4b5a-6978"});
    response(status, "application/json", body.to_string().into())
}

/// `spread`: a document stands in several lines, as CosyVoice says it may.
pub(super) fn write(pieces: &[Vec<u8>], choice: &Choice, characters: u64, spread: bool) -> Vec<String> {
    let mut number = 0;
    let mut event = |body: Value| {
        number += 1;
        let text = if spread { format!("{body:#}").replace('\n', "\ndata:") } else { body.to_string() };
        format!("id:{number}\nevent:result\n:HTTP_STATUS/200\ndata:{text}\n\n")
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
