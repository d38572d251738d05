//! A session's settings in the one form and in the other.

use serde_json::{Map, Value, json};

use super::super::form::LiveFault;
use super::super::json::put;
use super::keys::{at, get, unknown};

/// Names of voices that only OpenAI has.
const VOICES: &[&str] = &["alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"];

/// What Gemini cannot do at all: the field and why. Nothing is taken over then.
pub(super) fn check(update: &Value) -> Result<(), (String, &'static str)> {
    for side in ["input", "output"] {
        let format = &update["audio"][side]["format"];
        let pcm = format["type"] == "audio/pcm" && (format["rate"].is_null() || format["rate"] == 24_000);
        if !format.is_null() && !pcm {
            let param = format!("session.audio.{side}.format");
            return Err((param, "this model takes audio/pcm at 24000 samples a second"));
        }
    }
    if update["audio"]["input"]["turn_detection"]["create_response"] == false {
        let param = "session.audio.input.turn_detection.create_response".to_string();
        return Err((param, "this model answers each turn; take turn_detection null and end turns yourself"));
    }
    if update["type"] == "transcription" {
        return Err(("session.type".to_string(), "this model makes no transcription sessions"));
    }
    let tools = update["tools"].as_array().into_iter().flatten();
    if tools.into_iter().any(|tool| tool["type"] != "function") {
        return Err(("session.tools".to_string(), "this model takes functions only"));
    }
    Ok(())
}

/// What is left out because Gemini knows no such thing, in words.
pub(super) fn dropped(update: &Value) -> Vec<String> {
    let mut said = Vec::new();
    let mut note = |is: bool, field: &str, why: &str| {
        if is {
            said.push(format!("session.{field} {why}"));
        }
    };
    let left_out = "is not known to this model and was left out";
    let set = |value: &Value| !value.is_null();
    for field in ["tracing", "include", "reasoning", "prompt", "parallel_tool_calls"] {
        note(set(&update[field]), field, left_out);
    }
    note(set(&update["truncation"]) && update["truncation"] != "auto", "truncation", left_out);
    let (input, output) = (&update["audio"]["input"], &update["audio"]["output"]);
    note(set(&input["noise_reduction"]), "audio.input.noise_reduction", left_out);
    note(set(&output["speed"]) && output["speed"] != 1 && output["speed"] != 1.0, "audio.output.speed", left_out);
    let vad = &input["turn_detection"];
    note(set(&vad["idle_timeout_ms"]), "audio.input.turn_detection.idle_timeout_ms", left_out);
    let threshold = vad["threshold"].as_f64();
    note(threshold.is_some_and(|level| level != 0.5), "audio.input.turn_detection.threshold", left_out);
    let heard = &input["transcription"];
    note(set(&heard["model"]), "audio.input.transcription.model", "is this model itself");
    let choice = &update["tool_choice"];
    note(set(choice) && *choice != "auto" && *choice != "none", "tool_choice", left_out);
    let voice = output["voice"].as_str().unwrap_or_default();
    note(VOICES.contains(&voice), "audio.output.voice", "is not a voice of this model; it speaks with its own");
    said
}

/// A session as `setup` says it.
pub(super) fn to_setup(session: &Value, model: &str) -> Value {
    let mut setup = Map::new();
    let mut set = |path: &[&str], value: Value| put(&mut setup, path, value);
    set(&["model"], json!(format!("models/{model}")));
    let speaks = session["output_modalities"] != json!(["text"]);
    set(&["generationConfig", "responseModalities"], json!([if speaks { "AUDIO" } else { "TEXT" }]));
    if let Some(most) = session["max_output_tokens"].as_u64() {
        set(&["generationConfig", "maxOutputTokens"], json!(most));
    }
    let output = &session["audio"]["output"];
    if let Some(voice) = output["voice"].as_str().filter(|voice| !VOICES.contains(voice)) {
        let path = ["generationConfig", "speechConfig", "voiceConfig", "prebuiltVoiceConfig", "voiceName"];
        set(&path, json!(voice));
    }
    if let Some(text) = session["instructions"].as_str().filter(|text| !text.is_empty()) {
        set(&["systemInstruction"], json!({"parts": [{"text": text}]}));
    }
    let tools = session["tools"].as_array().filter(|tools| !tools.is_empty() && session["tool_choice"] != "none");
    if let Some(tools) = tools {
        let declared = tools.iter().map(|tool| {
            let mut out = json!({"name": tool["name"]});
            if !tool["description"].is_null() {
                out["description"] = tool["description"].clone();
            }
            if !tool["parameters"].is_null() {
                out["parametersJsonSchema"] = tool["parameters"].clone();
            }
            out
        });
        set(&["tools"], json!([{"functionDeclarations": Value::from_iter(declared)}]));
    }
    let input = &session["audio"]["input"];
    let vad = &input["turn_detection"];
    let detection = ["realtimeInputConfig", "automaticActivityDetection"];
    if vad.is_null() {
        set(&[detection[0], detection[1], "disabled"], json!(true));
    } else {
        for (theirs, ours) in [("prefixPaddingMs", "prefix_padding_ms"), ("silenceDurationMs", "silence_duration_ms")] {
            if vad[ours].is_u64() && vad["type"] == "server_vad" {
                set(&[detection[0], detection[1], theirs], vad[ours].clone());
            }
        }
        let end = match vad["eagerness"].as_str() {
            Some("high") => Some("END_SENSITIVITY_HIGH"),
            Some("low") => Some("END_SENSITIVITY_LOW"),
            _ => None,
        };
        if let Some(end) = end {
            set(&[detection[0], detection[1], "endOfSpeechSensitivity"], json!(end));
        }
        if vad["interrupt_response"] == false {
            set(&["realtimeInputConfig", "activityHandling"], json!("NO_INTERRUPTION"));
        }
    }
    if input["transcription"].is_object() {
        set(&["inputAudioTranscription"], json!({}));
    }
    if speaks {
        set(&["outputAudioTranscription"], json!({}));
    }
    Value::Object(setup)
}

const SETUP: &[&str] = &[
    "model",
    "generationConfig",
    "systemInstruction",
    "tools",
    "realtimeInputConfig",
    "inputAudioTranscription",
    "outputAudioTranscription",
    "sessionResumption",
    "contextWindowCompression",
];

/// What is refused on every way: it costs extra or shows what is not the client's.
pub(super) fn check_setup(setup: &Value) -> Result<(), LiveFault> {
    if !at(setup, &["sessionResumption", "handle"]).is_null() {
        return Err(LiveFault("setup.sessionResumption.handle: sessions cannot be resumed here".to_string()));
    }
    for tool in get(setup, "tools").as_array().into_iter().flatten() {
        if let Some(name) = unknown(tool, &["functionDeclarations"]) {
            return Err(LiveFault(format!("setup.tools.{name}: only functionDeclarations are offered here")));
        }
    }
    Ok(())
}

/// `setup` as a session's settings. `transcriber` is the model that writes down what the client
/// says. What a provider of OpenAI's interface has no word for is refused by name, because Gemini's
/// clients have no place where a warning could be read.
pub(super) fn to_session(setup: &Value, transcriber: Option<&str>, strict: bool) -> Result<Value, LiveFault> {
    check_setup(setup)?;
    let generation = get(setup, "generationConfig");
    if strict {
        let refuse = |path: &str, name: String| {
            Err(LiveFault(format!("{path}{name}: the model behind this name has no such setting")))
        };
        if let Some(name) = unknown(setup, SETUP) {
            return refuse("setup.", name);
        }
        if let Some(name) = unknown(generation, &["responseModalities", "speechConfig", "maxOutputTokens"]) {
            return refuse("setup.generationConfig.", name);
        }
    }
    let mut session = Map::new();
    let mut set = |path: &[&str], value: Value| put(&mut session, path, value);
    set(&["type"], json!("realtime"));
    let modality = &get(generation, "responseModalities")[0];
    // Nothing said is audio, as the interface has it.
    set(&["output_modalities"], json!([if *modality == "TEXT" { "text" } else { "audio" }]));
    if let Some(most) = get(generation, "maxOutputTokens").as_u64() {
        set(&["max_output_tokens"], json!(most));
    }
    let voice = at(generation, &["speechConfig", "voiceConfig", "prebuiltVoiceConfig", "voiceName"]);
    if voice.is_string() {
        set(&["audio", "output", "voice"], voice.clone());
    }
    let system = get(setup, "systemInstruction");
    let instructions = match system.as_str() {
        Some(text) => text.to_string(),
        None => get(system, "parts")
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    };
    if !instructions.is_empty() {
        set(&["instructions"], json!(instructions));
    }
    let lists = get(setup, "tools").as_array().into_iter().flatten();
    let functions: Vec<Value> =
        lists.flat_map(|list| get(list, "functionDeclarations").as_array()).flatten().map(function).collect();
    if !functions.is_empty() {
        set(&["tools"], json!(functions));
    }
    let realtime = get(setup, "realtimeInputConfig");
    let detection = get(realtime, "automaticActivityDetection");
    if *get(detection, "disabled") == true {
        set(&["audio", "input", "turn_detection"], Value::Null);
    } else {
        let mut vad = json!({"type": "server_vad"});
        for (theirs, ours) in [("prefixPaddingMs", "prefix_padding_ms"), ("silenceDurationMs", "silence_duration_ms")] {
            if let Some(ms) = get(detection, theirs).as_u64() {
                vad[ours] = json!(ms);
            }
        }
        if *get(realtime, "activityHandling") == "NO_INTERRUPTION" {
            vad["interrupt_response"] = json!(false);
        }
        set(&["audio", "input", "turn_detection"], vad);
    }
    if !get(setup, "inputAudioTranscription").is_null() {
        match transcriber {
            Some(model) => set(&["audio", "input", "transcription"], json!({"model": model})),
            None if strict => {
                let why = "setup.inputAudioTranscription: the model behind this name writes down nothing";
                return Err(LiveFault(why.to_string()));
            }
            None => {}
        }
    }
    Ok(Value::Object(session))
}

fn function(declared: &Value) -> Value {
    let mut tool = json!({"type": "function", "name": declared["name"]});
    if !declared["description"].is_null() {
        tool["description"] = declared["description"].clone();
    }
    let schema = get(declared, "parametersJsonSchema");
    if !schema.is_null() {
        tool["parameters"] = schema.clone();
    } else if !declared["parameters"].is_null() {
        tool["parameters"] = lower_types(&declared["parameters"]);
    }
    tool
}

/// Gemini's own schema writes `OBJECT` where JSON Schema writes `object`.
fn lower_types(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let change = |(name, value): (&String, &Value)| {
                let value = match value {
                    Value::String(kind) if name == "type" => json!(kind.to_ascii_lowercase()),
                    other => lower_types(other),
                };
                (name.clone(), value)
            };
            Value::Object(object.iter().map(change).collect())
        }
        Value::Array(list) => Value::from_iter(list.iter().map(lower_types)),
        other => other.clone(),
    }
}
