//! Songs: MiniMax music_generation (one document, hexadecimal or a link) and ElevenLabs music (the
//! song itself), as documented. How an answer goes is said in the prompt.

use bytes::Bytes;
use http::Response;
use serde_json::json;

use super::audio::{Format, RATE};
use super::play::{Asked, Heard, Shape};
use super::scenario::Choice;
use super::{elevenlabs, minimax};
use crate::fault::response;

pub(super) fn hear_minimax(heard: &Heard<'_>) -> Result<Asked, Box<Response<Bytes>>> {
    let body = heard.body;
    if !heard.takes(heard.bearer()) {
        return Err(minimax::say(200, "1004", "login fail: not authorized").into());
    }
    let bad = |why: String| minimax::say(200, "2013", &format!("invalid params, {why}"));
    let may = ["prompt", "lyrics", "lyrics_optimizer", "is_instrumental", "audio_setting", "output_format", "stream"];
    let setting = &body["audio_setting"];
    let odd =
        Heard::odd(body, &["model"], &may).or_else(|| Heard::odd(setting, &["format"], &["sample_rate", "bitrate"]));
    if let Some((field, why)) = odd {
        return Err(bad(format!("{field} {why}")).into());
    }
    let (prompt, lyrics) = (body["prompt"].as_str(), body["lyrics"].as_str());
    let instrumental = body["is_instrumental"] == true;
    if prompt.is_some_and(|text| text.chars().count() > 2_000)
        || lyrics.is_some_and(|text| text.chars().count() > 3_500)
    {
        return Err(bad("a text is too long".to_string()).into());
    }
    if prompt.is_none() && (instrumental || lyrics.is_none()) {
        return Err(bad("prompt is required".to_string()).into());
    }
    let format = setting["format"].as_str().filter(|name| ["mp3", "wav"].contains(name)).and_then(Format::named);
    let choice = Choice::of(prompt.or(lyrics).unwrap_or_default()).map_err(|refusal| bad(refusal.message))?;
    Ok(Asked {
        model: body["model"].as_str().unwrap_or_default().to_string(),
        choice,
        format: format.ok_or_else(|| bad("audio_setting.format".to_string()))?,
        rate: RATE,
        shape: Shape::Song { link: body["output_format"] == "url" },
        refuse: minimax::say,
        codes: minimax::CODES,
    })
}

pub(super) fn hear_elevenlabs(heard: &Heard<'_>) -> Result<Asked, Box<Response<Bytes>>> {
    if !heard.takes(heard.header("xi-api-key")) {
        return Err(elevenlabs::say(401, "invalid_api_key", "Invalid API key").into());
    }
    let body = heard.body;
    let wrong = |field: &str, why: &str| {
        let body = json!({"detail": [{"type": "value_error", "loc": ["body", field], "msg": why}]});
        response(422, "application/json", body.to_string().into())
    };
    if let Some((field, why)) = Heard::odd(body, &["prompt"], &["model_id", "music_length_ms", "force_instrumental"]) {
        return Err(wrong(&field, why).into());
    }
    let length = body["music_length_ms"].as_u64().unwrap_or(10_000);
    if !(3_000..=600_000).contains(&length) {
        return Err(wrong("music_length_ms", "must be between 3000 and 600000").into());
    }
    let query = heard.parts.uri.query().unwrap_or_default();
    let format = match query.strip_prefix("output_format=") {
        None | Some("mp3_44100_128") => Format::Mp3,
        Some("opus_48000_128") => Format::Opus,
        Some(_) => return Err(wrong("output_format", "unknown output format").into()),
    };
    let prompt = body["prompt"].as_str().ok_or_else(|| wrong("prompt", "must be a string"))?;
    let choice = Choice::of(prompt).map_err(|refusal| wrong("prompt", &refusal.message))?;
    Ok(Asked {
        model: body["model_id"].as_str().unwrap_or_default().to_string(),
        // As long as was asked for, unless the prompt says otherwise.
        choice: choice.lasting(length),
        format,
        rate: RATE,
        shape: Shape::Bytes,
        refuse: elevenlabs::say,
        codes: elevenlabs::CODES,
    })
}

pub(super) fn write(pieces: &[Vec<u8>], choice: &Choice, link: bool) -> Vec<String> {
    let audio = match link {
        true if pieces.is_empty() => String::new(),
        true => "http://oss.sim.internal/song.mp3?Expires=1767312000".to_string(),
        false => minimax::hex(&pieces.concat()),
    };
    let status = if choice.is("unfinished") { 1 } else { 2 };
    let body = json!({
        "data": {"audio": audio, "status": status}, "trace_id": "sim-0f1e2d3c",
        "extra_info": {"music_duration": choice.millis(), "music_sample_rate": 44100, "music_channel": 2},
        "base_resp": {"status_code": 0, "status_msg": "success"},
    })
    .to_string();
    let length = (body.len() / pieces.len().max(1)).max(1);
    body.as_bytes().chunks(length).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}
