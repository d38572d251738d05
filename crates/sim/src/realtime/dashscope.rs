//! The words of OpenAI's beta interface, as Azure's older form has them, and as DashScope has them
//! with some of its own. DashScope hears 16 kHz and says 24 kHz.

use serde_json::{Value, json};

use super::fields::{Wrong, check};

/// Whose words they are.
pub(super) struct Words {
    session: &'static str,
    response: &'static str,
    /// What the limit of the output is called.
    most: &'static str,
    said: &'static str,
    formats: [(&'static str, [&'static str; 2]); 2],
    /// Details of usage have a name in the plural, and less in them.
    own_usage: bool,
}

pub(super) const DASHSCOPE: Words = Words {
    session: SESSION,
    response: "instructions modalities",
    most: "max_tokens",
    said: "pcm24",
    formats: [("input_audio_format", ["pcm16", "pcm"]), ("output_audio_format", ["pcm24", "pcm16"])],
    own_usage: true,
};

pub(super) const AZURE: Words = Words {
    session: "modalities voice input_audio_format output_audio_format input_audio_transcription turn_detection \
              input_audio_noise_reduction instructions tools tool_choice temperature max_response_output_tokens speed",
    response: "instructions modalities voice output_audio_format tools tool_choice temperature \
               max_response_output_tokens conversation metadata input max_output_tokens",
    most: "max_response_output_tokens",
    said: "pcm16",
    formats: [("input_audio_format", ["pcm16", "g711_ulaw"]), ("output_audio_format", ["pcm16", "g711_ulaw"])],
    own_usage: false,
};

const SESSION: &str = "modalities voice input_audio_format output_audio_format input_audio_transcription \
     turn_detection instructions tools temperature top_p top_k max_tokens repetition_penalty presence_penalty seed \
     smooth_output enable_search";

/// Their name, the current one.
const NAMES: &[(&str, &str)] = &[
    ("response.text.", "response.output_text."),
    ("response.audio.", "response.output_audio."),
    ("response.audio_transcript.", "response.output_audio_transcript."),
];

/// A client's event in the current words.
pub(super) fn hears(event: &mut Value, words: &Words) -> Result<(), Wrong> {
    match event["type"].as_str() {
        Some("session.update") => {
            let session = event["session"].take();
            check(&session, "session", &[("session", words.session)])?;
            for (name, known) in words.formats {
                let value = &session[name];
                if !value.is_null() && !known.iter().any(|known| value == known) {
                    return Err(Wrong::value(&format!("session.{name}"), value));
                }
            }
            event["session"] = current(&session, words);
        }
        Some("response.create") if event["response"].is_object() => {
            let response = event["response"].take();
            check(&response, "response", &[("response", words.response)])?;
            event["response"] = current(&response, words);
            if let Some(inner) = event["response"].as_object_mut() {
                inner.remove("type");
            }
        }
        Some("session.finish") => event["type"] = json!("response.cancel"),
        Some("conversation.item.create") => {
            for part in event["item"]["content"].as_array().into_iter().flatten() {
                if part["type"] != "input_text" && part["type"] != "text" {
                    return Err(Wrong::value("item.content.type", &part["type"]));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn current(session: &Value, words: &Words) -> Value {
    let mut out = json!({"type": "realtime"});
    for (theirs, path) in [
        ("instructions", "/instructions"),
        ("tools", "/tools"),
        ("voice", "/audio/output/voice"),
        ("turn_detection", "/audio/input/turn_detection"),
        ("input_audio_transcription", "/audio/input/transcription"),
        (words.most, "/max_output_tokens"),
    ] {
        let Some(value) = session.get(theirs) else { continue };
        let names: Vec<_> = path.split('/').skip(1).collect();
        let nested = names.iter().rev().fold(value.clone(), |inner, name| json!({*name: inner}));
        super::config::merge(&mut out, &nested);
    }
    if let Some(list) = session["modalities"].as_array() {
        let audio = list.iter().any(|word| word == "audio");
        out["output_modalities"] = json!([if audio { "audio" } else { "text" }]);
    }
    out
}

/// A server's event in their words; false where they say nothing.
pub(super) fn says(event: &mut Value, words: &Words) -> bool {
    let kind = event["type"].as_str().unwrap_or_default().to_string();
    if let Some((theirs, ours)) = NAMES.iter().find(|(_, ours)| kind.starts_with(ours)) {
        event["type"] = json!(kind.replacen(ours, theirs, 1));
    }
    match kind.as_str() {
        "conversation.item.done" | "rate_limits.updated" => return false,
        "conversation.item.added" => {
            event["type"] = json!("conversation.item.created");
            item(&mut event["item"]);
        }
        "response.output_item.added" | "response.output_item.done" => item(&mut event["item"]),
        "session.created" | "session.updated" => {
            let session = event["session"].take();
            let input = &session["audio"]["input"];
            event["session"] = json!({
                "object": "realtime.session", "id": session["id"], "model": session["model"],
                "modalities": modalities(&session["output_modalities"]), "instructions": session["instructions"],
                "voice": session["audio"]["output"]["voice"], "input_audio_format": "pcm16",
                "output_audio_format": words.said, "input_audio_transcription": input["transcription"],
                "turn_detection": input["turn_detection"], "tools": session["tools"], "tool_choice": "auto",
                "temperature": 0.8,
            });
            event["session"][words.most] = session["max_output_tokens"].clone();
        }
        "response.function_call_arguments.done" => {
            if let Some(object) = event.as_object_mut() {
                object.remove("name");
            }
        }
        "response.created" | "response.done" => response(&mut event["response"], words),
        _ => {}
    }
    true
}

fn modalities(words: &Value) -> Value {
    if *words == json!(["text"]) { json!(["text"]) } else { json!(["text", "audio"]) }
}

fn item(item: &mut Value) {
    for part in item["content"].as_array_mut().into_iter().flatten() {
        let kind = part["type"].as_str().unwrap_or_default().trim_start_matches("output_").to_string();
        part["type"] = json!(kind);
    }
}

fn response(response: &mut Value, words: &Words) {
    let modalities = modalities(&response["output_modalities"]);
    response["voice"] = response["audio"]["output"]["voice"].take();
    response["output_audio_format"] = json!(words.said);
    for one in response["output"].as_array_mut().into_iter().flatten() {
        item(one);
    }
    let Some(object) = response.as_object_mut() else { return };
    for name in ["output_modalities", "audio", "max_output_tokens", "metadata"] {
        object.remove(name);
    }
    object.insert("modalities".to_string(), modalities);
    let usage = object.get_mut("usage").filter(|_| words.own_usage);
    if let Some(usage) = usage.and_then(Value::as_object_mut) {
        for side in ["input", "output"] {
            if let Some(details) = usage.remove(&format!("{side}_token_details")) {
                let mut details = details;
                if let Some(inner) = details.as_object_mut() {
                    inner.remove("cached_tokens_details");
                }
                usage.insert(format!("{side}_tokens_details"), details);
            }
        }
    }
}
