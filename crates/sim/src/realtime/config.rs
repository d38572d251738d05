//! The session object: its defaults, what an update changes, and what follows from it.

use serde_json::{Value, json};

use super::fields::{Wrong, check_session};
use super::sound::Coding;

/// A session's settings, in the shape of the current interface.
pub(super) struct Config {
    pub object: Value,
    /// Audio was said, so that the voice stays.
    pub spoken: bool,
}

impl Config {
    pub(super) fn new(id: &str, model: &str, transcribes: bool) -> Config {
        let pcm = json!({"type": "audio/pcm", "rate": 24_000});
        let vad = json!({
            "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 200,
            "idle_timeout_ms": null, "create_response": true, "interrupt_response": true,
        });
        let input = json!({"format": pcm, "transcription": null, "noise_reduction": null, "turn_detection": vad});
        let expires_at = crate::reply::CREATED + 3600;
        let object = if transcribes {
            json!({
                "type": "transcription", "object": "realtime.transcription_session", "id": id, "expires_at": expires_at,
                "audio": {"input": input}, "include": null,
            })
        } else {
            json!({
                "type": "realtime", "object": "realtime.session", "id": id, "model": model,
                "output_modalities": ["audio"], "instructions": "You are a helpful voice.", "tools": [],
                "tool_choice": "auto", "max_output_tokens": "inf", "tracing": null, "truncation": "auto", "prompt": null,
                "expires_at": expires_at, "include": null,
                "audio": {"input": input, "output": {"format": pcm, "voice": "marin", "speed": 1.0}},
            })
        };
        Config { object, spoken: false }
    }

    pub(super) fn update(&mut self, session: &Value) -> Result<(), Wrong> {
        check_session(session)?;
        let kind = &session["type"];
        if *kind == "transcription" && self.object["type"] == "realtime" {
            let id = self.object["id"].as_str().unwrap_or_default().to_string();
            self.object = Config::new(&id, "", true).object;
        }
        if *kind != self.object["type"] {
            let message = "Passing a realtime session update event to a transcription session is not allowed.";
            return Err(Wrong::field("invalid_session_type", "session.type", message));
        }
        if let Some(model) = session["model"].as_str()
            && self.object["model"] != model
        {
            let message = "The model of a session cannot be changed.";
            return Err(Wrong::field("invalid_parameter", "session.model", message));
        }
        check_values(session)?;
        let voice = &session["audio"]["output"]["voice"];
        if self.spoken && !voice.is_null() && *voice != self.object["audio"]["output"]["voice"] {
            let message = "Cannot update a conversation's voice if assistant audio is present.";
            return Err(Wrong::field("cannot_update_voice", "session.audio.output.voice", message));
        }
        merge(&mut self.object, session);
        Ok(())
    }

    pub(super) fn transcribes_only(&self) -> bool {
        self.object["type"] == "transcription"
    }

    pub(super) fn turn_detection(&self) -> &Value {
        &self.object["audio"]["input"]["turn_detection"]
    }

    pub(super) fn transcription(&self) -> &Value {
        &self.object["audio"]["input"]["transcription"]
    }

    pub(super) fn coding(&self, side: &str) -> Coding {
        let format = &self.object["audio"][side]["format"];
        match format["type"].as_str() {
            Some("audio/pcmu") => Coding::Ulaw,
            Some("audio/pcma") => Coding::Alaw,
            _ => Coding::Pcm(format["rate"].as_u64().and_then(|rate| u32::try_from(rate).ok()).unwrap_or(24_000)),
        }
    }
}

/// Values that the provider looks at.
fn check_values(session: &Value) -> Result<(), Wrong> {
    check_said("session", session)?;
    for side in ["input", "output"] {
        let format = &session["audio"][side]["format"];
        let known = ["audio/pcm", "audio/pcmu", "audio/pcma"];
        if !format.is_null() && !known.iter().any(|known| format["type"] == *known) {
            return Err(Wrong::value(&format!("session.audio.{side}.format.type"), &format["type"]));
        }
        let rate = &format["rate"];
        if !rate.is_null() && (*rate != 24_000 || format["type"] != "audio/pcm") {
            return Err(Wrong::value(&format!("session.audio.{side}.format.rate"), rate));
        }
    }
    let vad = &session["audio"]["input"]["turn_detection"];
    if !vad.is_null() && vad["type"] != "server_vad" && vad["type"] != "semantic_vad" {
        return Err(Wrong::value("session.audio.input.turn_detection.type", &vad["type"]));
    }
    let heard = &session["audio"]["input"]["transcription"];
    if heard.is_object() && !heard["model"].is_string() {
        return Err(Wrong::missing("session.audio.input.transcription.model"));
    }
    Ok(())
}

/// What a session and a response have in common.
pub(super) fn check_said(path: &str, value: &Value) -> Result<(), Wrong> {
    let modalities = &value["output_modalities"];
    if !modalities.is_null() && *modalities != json!(["text"]) && *modalities != json!(["audio"]) {
        return Err(Wrong::value(&format!("{path}.output_modalities"), modalities));
    }
    let most = &value["max_output_tokens"];
    let fits = most.is_null() || *most == "inf" || most.as_u64().is_some_and(|most| (1..=4096).contains(&most));
    if !fits {
        return Err(Wrong::value(&format!("{path}.max_output_tokens"), most));
    }
    for (index, tool) in value["tools"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.tools[{index}]");
        match tool["type"].as_str() {
            Some("function") if tool["name"].is_string() => {
                super::fields::check(tool, "tool", &[("tool", "type name description parameters")])?;
            }
            Some("function") => return Err(Wrong::missing(&format!("{path}.name"))),
            Some("mcp") => {}
            _ => return Err(Wrong::value(&format!("{path}.type"), &tool["type"])),
        }
    }
    Ok(())
}

/// Objects field by field, everything else whole.
pub(super) fn merge(into: &mut Value, change: &Value) {
    match (into.as_object_mut(), change.as_object()) {
        (Some(into), Some(change)) => {
            for (name, value) in change {
                merge(into.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        _ => *into = change.clone(),
    }
}
