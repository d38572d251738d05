//! MiniMax t2a_v2, as documented: status 200 for nearly everything, audio as hexadecimal text in
//! events, and in the last event all of it once more unless that is excluded.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use crate::fault::response;

const MUST: &[&str] = &["model", "text", "voice_setting"];
const MAY: &[&str] =
    &["stream", "stream_options", "audio_setting", "output_format", "language_boost", "pronunciation_dict"];

pub(super) fn hear(heard: &Heard<'_>) -> Result<Asked, Response<Bytes>> {
    let body = heard.body;
    if !heard.takes(heard.bearer()) {
        return Err(say(200, "1004", "login fail: not authorized"));
    }
    let bad = |why: String| say(200, "2013", &format!("invalid params, {why}"));
    let voice = &body["voice_setting"];
    let audio = &body["audio_setting"];
    let odd = Heard::odd(body, MUST, MAY)
        .or_else(|| Heard::odd(voice, &["voice_id"], &["speed", "vol", "pitch", "emotion"]))
        .or_else(|| Heard::odd(audio, &["format"], &["sample_rate", "bitrate", "channel"]));
    if let Some((field, why)) = odd {
        return Err(bad(format!("{field} {why}")));
    }
    if body["stream"] != true || body["output_format"] != "hex" {
        return Err(bad("only streams of hex are played here".to_string()));
    }
    let text =
        body["text"].as_str().filter(|text| text.chars().count() < 10_000).ok_or_else(|| bad("text".to_string()))?;
    if voice.get("speed").is_some_and(|speed| !speed.as_f64().is_some_and(|speed| (0.5..=2.0).contains(&speed))) {
        return Err(bad("voice_setting.speed".to_string()));
    }
    // Its wav does not come in a stream.
    let format = audio["format"].as_str().filter(|name| ["mp3", "pcm", "flac"].contains(name)).and_then(Format::named);
    let rate = audio["sample_rate"].as_u64().and_then(|rate| u32::try_from(rate).ok()).unwrap_or(32_000);
    if ![8_000, 16_000, 22_050, 24_000, 32_000, 44_100].contains(&rate) {
        return Err(bad("audio_setting.sample_rate".to_string()));
    }
    let format = format.ok_or_else(|| bad("audio_setting.format".to_string()))?;
    let choice = Choice::of(text).map_err(|refusal| bad(refusal.message))?;
    Ok(Asked {
        model: body["model"].as_str().unwrap_or_default().to_string(),
        rate: if format == Format::Pcm { rate } else { RATE },
        format,
        shape: Shape::MiniMax {
            again: body["stream_options"]["exclude_aggregated_audio"] != true || choice.is("again"),
        },
        choice,
        refuse: say,
        codes: [(200, "1026"), (200, "1002"), (200, "2013"), (200, "1008"), (200, "1024")],
    })
}

fn say(status: u16, code: &str, text: &str) -> Response<Bytes> {
    let code: i64 = code.parse().unwrap_or(1000);
    let body = json!({"trace_id": "sim-0f1e2d3c4b5a6978", "base_resp": {"status_code": code, "status_msg": text}});
    response(status, "application/json", body.to_string().into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn write(pieces: &[Vec<u8>], choice: &Choice, again: bool, characters: u64) -> Vec<String> {
    let fine = json!({"status_code": 0, "status_msg": ""});
    let event =
        |data: Value| format!("data: {}\n\n", json!({"data": data, "trace_id": "sim-0f1e2d3c", "base_resp": fine}));
    let mut events: Vec<String> =
        pieces.iter().map(|piece| event(json!({"audio": hex(piece), "status": 1, "ced": ""}))).collect();
    if choice.is("odd")
        && let Some(last) = events.last_mut()
    {
        *last = event(json!({"audio": "abc", "status": 1}));
    }
    if choice.is("error_midway") {
        events.truncate(1);
        let wrong = json!({"status_code": 1024, "status_msg": "internal error at sim-3.internal"});
        events.push(format!("data: {}\n\n", json!({"base_resp": wrong})));
        return events;
    }
    if !choice.is("unfinished") {
        let all = if again { hex(&pieces.concat()) } else { String::new() };
        let info = json!({
            "audio_length": choice.millis(), "audio_sample_rate": 24000, "audio_format": "mp3", "usage_characters": characters,
        });
        let last = json!({
            "data": {"audio": all, "status": 2}, "extra_info": info, "trace_id": "sim-0f1e2d3c", "base_resp": fine,
        });
        events.push(format!("data: {last}\n\n"));
    }
    events
}
