//! OpenAI's transcripts as documented. A model with `4o` in its name gives JSON only and streams;
//! one with `whisper` has all formats, ignores `stream` and reports the length it heard.

use super::form::Form;
use super::scenario::Wish;
use super::{Act, Heard, is_named_rightly, text};
use bytes::Bytes;
use serde_json::{Value, json};

/// Every field, and whether a translation takes it.
const FIELDS: &[(&str, bool)] = &[
    ("model", true),
    ("prompt", true),
    ("response_format", true),
    ("temperature", true),
    ("language", false),
    ("stream", false),
    ("timestamp_granularities[]", false),
    ("include[]", false),
    ("chunking_strategy", false),
    ("chunking_strategy[type]", false),
    ("known_speaker_names[]", false),
    ("known_speaker_references[]", false),
    ("keywords[]", false),
    ("languages[]", false),
];

fn refuse(status: u16, code: &str, param: Option<&str>, message: &str) -> Act {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    Act::refused(status, &json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
}

pub(super) fn answer(heard: &Heard<'_>, translate: bool) -> Act {
    if heard.header("authorization").starts_with("Bearer wrong") {
        return refuse(401, "invalid_api_key", None, "Incorrect API key provided: sk-sim-****wxyz.");
    }
    let form = match Form::read(heard) {
        Ok(form) => form,
        Err(why) => return refuse(400, "invalid_form", None, &format!("Could not parse multipart form: {why}")),
    };
    for (name, _) in &form.fields {
        if !FIELDS.iter().any(|(known, both)| known == name && (*both || !translate)) {
            return refuse(400, "unknown_parameter", Some(name), &format!("Unknown parameter: '{name}'."));
        }
    }
    let Some(file) = form.file.as_ref().filter(|file| file.field == "file") else {
        return refuse(400, "missing_required_parameter", Some("file"), "Missing required parameter: 'file'.");
    };
    let named = is_named_rightly(&file.name, &file.start) && file.content_type.contains('/');
    if !named {
        let message =
            "Unrecognized file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'ogg', 'wav', 'webm']";
        return refuse(400, "invalid_value", Some("file"), message);
    }
    let prompt = form.get("prompt").unwrap_or_default();
    let (model, wish) = match Wish::of(form.get("model").unwrap_or_default(), prompt) {
        Ok(found) => found,
        Err(why) => return refuse(400, "invalid_value", Some("prompt"), &why),
    };
    if !["whisper", "4o", "sim", "transcribe"].iter().any(|word| model.contains(word)) {
        return refuse(404, "model_not_found", Some("model"), "The model does not exist.");
    }
    let format = form.get("response_format").unwrap_or("json");
    let modern = model.contains("4o");
    if (modern && !matches!(format, "json" | "diarized_json")) || (translate && !model.contains("whisper")) {
        let message = format!("response_format '{format}' is not compatible with model '{model}'.");
        return refuse(400, "unsupported_value", Some("response_format"), &message);
    }
    if let Some(act) = trouble(&wish) {
        return Act { model: model.to_string(), wish, ..act };
    }
    let stream = form.get("stream") == Some("true") && modern && !wish.is("whole");
    speak(&Said { file: file.length, model, format, stream, translate }, &form, wish)
}

/// What is refused or fails in so many words.
fn trouble(wish: &Wish) -> Option<Act> {
    Some(match wish.name() {
        "error400" => refuse(400, "audio_too_short", Some("file"), "Audio file is too short at edge-3.sim.internal."),
        "error401" => refuse(401, "invalid_api_key", None, "Incorrect API key provided: sk-sim-****wxyz."),
        "error429" => refuse(429, "rate_limit_exceeded", None, "Rate limit reached."),
        "error500" => refuse(500, "server_error", None, "The server had an error."),
        "error503" => refuse(503, "overloaded", None, "The engine is overloaded."),
        "moderation" => {
            refuse(400, "content_policy_violation", None, "The recording was refused by our safety system.")
        }
        "html502" => Act {
            content_type: "text/html",
            pieces: vec![Bytes::from_static(b"<html>502 Bad Gateway edge-3.sim.internal</html>")],
            ..Act::refused(502, &Value::Null)
        },
        "garbage" => {
            Act { pieces: vec![Bytes::from_static(b"{\"text\": \"half a")], ..Act::refused(200, &Value::Null) }
        }
        "textless" => Act::refused(200, &json!({"id": "sim", "usage": {"type": "duration", "seconds": 3}})),
        _ => return None,
    })
}

struct Said<'a> {
    file: usize,
    model: &'a str,
    format: &'a str,
    stream: bool,
    translate: bool,
}

fn usage(model: &str, wish: &Wish) -> Value {
    match wish.text("usage") {
        Some("none") => Value::Null,
        Some("mistral") => json!({"prompt_audio_seconds": wish.seconds().unwrap_or(3.0), "prompt_tokens": 5}),
        _ if model.contains("whisper") || wish.seconds().is_some() => {
            json!({"type": "duration", "seconds": wish.seconds().unwrap_or(3.0).ceil()})
        }
        _ => json!({
            "type": "tokens", "input_tokens": 14, "input_token_details": {"text_tokens": 0, "audio_tokens": 14},
            "output_tokens": 4, "total_tokens": 18,
        }),
    }
}

fn speak(said: &Said<'_>, form: &Form, wish: Wish) -> Act {
    let mut text = text(said.file, &wish);
    if let Some(mib) = wish.number("mib").filter(|_| wish.is("huge")) {
        text = "abcdefg ".repeat(usize::try_from(mib).unwrap_or(1) << 17);
    }
    let usage = usage(said.model, &wish);
    if said.stream {
        let pieces = events(&text, &usage, &wish);
        let (model, stream, content_type) = (said.model.to_string(), true, "text/event-stream; charset=utf-8");
        return Act { model, wish, stream, status: 200, content_type, pieces };
    }
    let format = if wish.is("json") { "json" } else { said.format };
    let seconds = wish.seconds().unwrap_or(3.0);
    let body = match format {
        "text" => format!("{text}\n"),
        "srt" => format!("1\n00:00:00,000 --> 00:00:03,000\n{text}\n\n"),
        "vtt" => format!("WEBVTT\n\n00:00:00.000 --> 00:00:03.000\n{text}\n\n"),
        "verbose_json" => {
            let segment = json!({
                "id": 0, "seek": 0, "start": 0.0, "end": 3.0, "text": text, "tokens": [1, 2], "temperature": 0.0,
                "avg_logprob": -0.2, "compression_ratio": 0.9, "no_speech_prob": 0.01,
            });
            let mut verbose = json!({
                "task": if said.translate { "translate" } else { "transcribe" }, "language": "english",
                "duration": seconds, "text": text, "segments": [segment], "usage": usage,
            });
            if form.fields.iter().any(|(name, value)| name == "timestamp_granularities[]" && value == "word") {
                verbose["words"] = json!([{"word": "sim", "start": 0.0, "end": 0.5}]);
            }
            verbose.to_string()
        }
        "diarized_json" => {
            let segment = json!({"id": "seg_1", "type": "transcript.text.segment", "start": 0.0, "end": 3.0, "text": text, "speaker": "A"});
            json!({"task": "transcribe", "duration": seconds, "text": text, "segments": [segment], "usage": usage})
                .to_string()
        }
        // One of the clones puts its own id there.
        _ => json!({"text": text, "usage": usage, "x_groq": {"id": "req_sim_secret"}}).to_string(),
    };
    let json = format.ends_with("json");
    let content_type = if json { "application/json" } else { "text/plain; charset=utf-8" };
    let body = Bytes::from(body);
    let pieces = body.chunks(256 << 10).map(Bytes::copy_from_slice).collect();
    Act { model: said.model.to_string(), wish, stream: false, status: 200, content_type, pieces }
}

fn events(text: &str, usage: &Value, wish: &Wish) -> Vec<Bytes> {
    let event = |data: Value| Bytes::from(format!("data: {data}\n\n"));
    let mut pieces: Vec<Bytes> =
        text.split_inclusive(' ').map(|word| event(json!({"type": "transcript.text.delta", "delta": word}))).collect();
    match wish.name() {
        "no_done" => {}
        "late_error" => {
            pieces.truncate(2);
            pieces.push(event(
                json!({"error": {"message": "The server had an error.", "type": "server_error", "code": null}}),
            ));
        }
        _ => pieces.push(event(json!({"type": "transcript.text.done", "text": text, "usage": usage}))),
    }
    pieces
}
