//! Which fields an object may have, as the provider checks them: an unknown one is refused by its
//! full name.

use serde_json::{Value, json};

/// A refusal as the `error` object of an error event.
#[derive(Debug)]
pub(super) struct Wrong {
    pub code: &'static str,
    pub param: Option<String>,
    pub message: String,
}

impl Wrong {
    pub(super) fn new(code: &'static str, message: &str) -> Wrong {
        Wrong { code, param: None, message: message.to_string() }
    }

    pub(super) fn field(code: &'static str, param: &str, message: &str) -> Wrong {
        Wrong { param: Some(param.to_string()), ..Wrong::new(code, message) }
    }

    pub(super) fn missing(param: &str) -> Wrong {
        Wrong::field("missing_required_parameter", param, &format!("Missing required parameter: '{param}'."))
    }

    pub(super) fn value(param: &str, value: &Value) -> Wrong {
        Wrong::field("invalid_value", param, &format!("Invalid value: {value}. for '{param}'."))
    }

    pub(super) fn json(&self, event_id: &Value) -> Value {
        json!({
            "type": "invalid_request_error", "code": self.code, "message": self.message,
            "param": self.param, "event_id": event_id,
        })
    }
}

/// The fields of each object of a session, by its path. What is not listed is not looked into.
const SESSION: &[(&str, &str)] = &[
    (
        "session",
        "type model output_modalities instructions audio tools tool_choice max_output_tokens truncation tracing prompt \
         include reasoning parallel_tool_calls",
    ),
    ("session.audio", "input output"),
    ("session.audio.input", "format noise_reduction transcription turn_detection"),
    ("session.audio.input.format", "type rate"),
    ("session.audio.input.transcription", "model language languages prompt delay keywords"),
    (
        "session.audio.input.turn_detection",
        "type threshold prefix_padding_ms silence_duration_ms idle_timeout_ms create_response interrupt_response eagerness",
    ),
    ("session.audio.output", "format voice speed"),
    ("session.audio.output.format", "type rate"),
];

const TRANSCRIPTION: &[(&str, &str)] = &[("session", "type audio include"), ("session.audio", "input")];

const RESPONSE: &[(&str, &str)] = &[
    (
        "response",
        "conversation output_modalities instructions audio tools tool_choice max_output_tokens metadata prompt input \
         reasoning parallel_tool_calls",
    ),
    ("response.audio", "output"),
    ("response.audio.output", "format voice"),
    ("response.audio.output.format", "type rate"),
];

/// Events and the fields of each.
pub(super) const EVENTS: &[(&str, &str)] = &[
    ("session.update", "session"),
    ("input_audio_buffer.append", "audio"),
    ("input_audio_buffer.commit", ""),
    ("input_audio_buffer.clear", ""),
    ("conversation.item.create", "item previous_item_id"),
    ("conversation.item.retrieve", "item_id"),
    ("conversation.item.truncate", "item_id content_index audio_end_ms"),
    ("conversation.item.delete", "item_id"),
    ("response.create", "response"),
    ("response.cancel", "response_id"),
];

pub(super) fn check_session(session: &Value) -> Result<(), Wrong> {
    let kind = session["type"].as_str().ok_or_else(|| Wrong::missing("session.type"))?;
    match kind {
        "realtime" => check(session, "session", SESSION),
        "transcription" => {
            check(session, "session", TRANSCRIPTION)?;
            check(&session["audio"], "session.audio", &SESSION[1..])
        }
        _ => Err(Wrong::value("session.type", &session["type"])),
    }
}

pub(super) fn check_response(response: &Value) -> Result<(), Wrong> {
    check(response, "response", RESPONSE)
}

pub(super) fn check(value: &Value, path: &str, table: &[(&str, &str)]) -> Result<(), Wrong> {
    let (Some(object), Some((_, known))) = (value.as_object(), table.iter().find(|row| row.0 == path)) else {
        return Ok(());
    };
    for (name, inner) in object {
        let path = format!("{path}.{name}");
        if !known.split_whitespace().any(|known| known == name) {
            return Err(Wrong::field("unknown_parameter", &path, &format!("Unknown parameter: '{path}'.")));
        }
        check(inner, &path, table)?;
    }
    Ok(())
}
