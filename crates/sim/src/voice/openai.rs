//! OpenAI's speech, as published; clones speak alike.

use bytes::Bytes;
use http::Response;
use serde_json::json;

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::{refuse, response};
use crate::refusal::Refusal;

const MUST: &[&str] = &["model", "input", "voice"];
const MAY: &[&str] = &["response_format", "speed", "instructions", "stream_format", "volume", "sample_rate"];

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Response<Bytes>> {
    read(heard).map_err(|refusal| refuse(&refusal))
}

fn read(heard: &Heard<'_>) -> Result<Asked, Refusal> {
    let body = heard.body;
    // As its conversations: a key is asked for only where this simulator insists on one.
    if heard.require_key.is_some() && !heard.takes(heard.bearer()) {
        return Err(Refusal::new(401, "Incorrect API key provided."));
    }
    if let Some((field, why)) = Heard::odd(body, MUST, MAY) {
        return Err(Refusal::bad(&field, &format!("'{field}' {why}.")));
    }
    let text =
        |name: &str| body[name].as_str().ok_or_else(|| Refusal::bad(name, &format!("'{name}' must be a string.")));
    let (model, input) = (text("model")?, text("input")?);
    if input.is_empty() || input.chars().count() > 4096 {
        return Err(Refusal::bad("input", "String should have 1 to 4096 characters."));
    }
    if body["voice"].as_str().or_else(|| body["voice"]["id"].as_str()).is_none_or(str::is_empty) {
        return Err(Refusal::bad("voice", "Input should be a voice."));
    }
    if body.get("speed").is_some_and(|speed| !speed.as_f64().is_some_and(|speed| (0.25..=4.0).contains(&speed))) {
        return Err(Refusal::bad("speed", "Input should be between 0.25 and 4."));
    }
    if body.get("instructions").is_some() && model.contains("tts-1") {
        return Err(Refusal::bad("instructions", "This model does not take instructions."));
    }
    if body.get("stream_format").is_some_and(|format| format != "audio") {
        return Err(Refusal::bad("stream_format", "Only audio is played here."));
    }
    let format = body.get("response_format").map_or(Some("mp3"), |format| format.as_str()).and_then(Format::named);
    Ok(Asked {
        model: model.to_string(),
        choice: Choice::of(input)?,
        format: format
            .ok_or_else(|| Refusal::bad("response_format", "Input should be mp3, opus, aac, flac, wav or pcm."))?,
        rate: RATE,
        shape: Shape::Bytes,
        refuse: say,
        codes: [
            (400, "content_policy_violation"),
            (429, "rate_limit_exceeded"),
            (400, "invalid_value"),
            (429, "insufficient_quota"),
            (500, "server_error"),
        ],
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    let param = (code == "invalid_value").then_some("voice");
    let body = json!({"error": {"message": text, "type": kind, "param": param, "code": code}});
    response(status, "application/json", body.to_string().into())
}
