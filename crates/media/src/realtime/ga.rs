//! Events of the GA interface, as a form says them in the place of a provider.

use serde_json::{Value, json};

/// An error event that names the field.
pub(super) fn error(id: &str, about: &Value, param: &str, message: &str) -> String {
    let error = json!({
        "type": "invalid_request_error", "code": "unsupported_by_provider", "message": format!("{param}: {message}"),
        "param": param, "event_id": about["event_id"],
    });
    json!({"type": "error", "event_id": id, "error": error}).to_string()
}

/// A session with everything at its default.
pub(super) fn session(id: &str, model: &str) -> Value {
    let pcm = json!({"type": "audio/pcm", "rate": 24_000});
    json!({
        "type": "realtime", "object": "realtime.session", "id": id, "model": model, "output_modalities": ["audio"],
        "instructions": "", "tools": [], "tool_choice": "auto", "max_output_tokens": "inf", "tracing": null,
        "truncation": "auto", "prompt": null, "include": null,
        "audio": {
            "input": {
                "format": pcm, "transcription": null, "noise_reduction": null,
                "turn_detection": {
                    "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500,
                    "idle_timeout_ms": null, "create_response": true, "interrupt_response": true,
                },
            },
            "output": {"format": pcm, "voice": null, "speed": 1.0},
        },
    })
}
