//! ElevenLabs' Scribe: a form with `model_id` and `file`, the key in a header of its own, words
//! with their times, and the length that is billed. Options that cost more are there, and noticed.

use super::form::Form;
use super::scenario::Wish;
use super::{Act, Heard, is_named_rightly, text};
use bytes::Bytes;
use serde_json::{Value, json};

const FIELDS: &[&str] = &[
    "model_id",
    "language_code",
    "tag_audio_events",
    "timestamps_granularity",
    "diarize",
    "temperature",
    "use_multi_channel",
    "keyterms",
    "entity_detection",
];

fn refuse(status: u16, word: &str, message: &str) -> Act {
    Act::refused(status, &json!({"detail": {"status": word, "message": message}}))
}

pub(super) fn answer(heard: &Heard<'_>) -> Act {
    let key = heard.header("xi-api-key");
    if key.is_empty() || key.starts_with("wrong") {
        return refuse(401, "invalid_api_key", "Invalid API key");
    }
    let form = match Form::read(heard) {
        Ok(form) => form,
        Err(why) => return refuse(422, "invalid_form", &why),
    };
    if let Some((name, _)) = form.fields.iter().find(|(name, _)| !FIELDS.contains(&name.as_str())) {
        let detail = json!([{"loc": ["body", name], "msg": "extra fields not permitted", "type": "value_error.extra"}]);
        return Act::refused(422, &json!({"detail": detail}));
    }
    let Some(file) = form.file.as_ref().filter(|file| file.field == "file") else {
        return Act::refused(
            422,
            &json!({"detail": [{"loc": ["body", "file"], "msg": "field required", "type": "value_error.missing"}]}),
        );
    };
    if !is_named_rightly(&file.name, &file.start) {
        return refuse(400, "invalid_audio", "The file cannot be read.");
    }
    let (model, wish) = match Wish::of(form.get("model_id").unwrap_or_default(), "") {
        Ok(found) => found,
        Err(why) => return refuse(400, "invalid_scenario", &why),
    };
    if !model.starts_with("scribe") {
        return refuse(400, "invalid_model_id", "No such model.");
    }
    match wish.name() {
        "error400" => return refuse(400, "audio_too_short", "Audio is too short at api-7.sim.internal."),
        "error429" => return refuse(429, "too_many_concurrent_requests", "Too many concurrent requests."),
        "error500" => return refuse(500, "internal_error", "Something went wrong."),
        "moderation" => return refuse(400, "content_moderation", "The content violates our terms."),
        "garbage" => {
            let pieces = vec![Bytes::from_static(b"{\"text\": \"half")];
            return Act { model: model.to_string(), wish, pieces, ..Act::refused(200, &Value::Null) };
        }
        _ => {}
    }
    let text = text(file.length, &wish);
    let mut words = Vec::new();
    for (at, word) in text.split(' ').filter(|word| !word.is_empty()).enumerate() {
        let start = f64::from(u32::try_from(at).unwrap_or(0)) * 0.5;
        if at > 0 {
            words.push(json!({"text": " ", "start": start, "end": start, "type": "spacing", "speaker_id": null}));
        }
        words.push(json!({"text": word, "start": start, "end": start + 0.4, "type": "word", "speaker_id": "speaker_0", "logprob": -0.1}));
    }
    let body = json!({
        "language_code": "eng", "language_probability": 0.98, "text": text, "words": words,
        "transcription_id": "sim-id", "audio_duration_secs": wish.seconds().unwrap_or(3.0),
    });
    Act::json(model, wish, &body)
}
