//! The words that say what a model is for: its type, capabilities and tasks. Closed lists, because
//! clients choose models by them; what a catalog leaves out follows from endpoints and modalities.

use crate::EndpointType;

/// The values of `type` in `specs`.
pub const MODEL_TYPES: &[&str] =
    &["llm", "image", "video", "asr", "tts", "music", "decision", "embedding", "rerank", "voice"];

/// The values of `capabilities`.
pub const CAPABILITIES: &[&str] =
    &["text-multimodal", "image", "video", "audio-speech", "music", "decision", "embedding", "rerank"];

/// The values of `tasks`.
pub const TASKS: &[&str] = &[
    "chat",
    "reasoning",
    "vision",
    "tools",
    "text-to-image",
    "image-editing",
    "text-to-video",
    "image-to-video",
    "reference-to-video",
    "video-editing",
    "text-to-speech",
    "transcription",
    "translation",
    "voice-conversation",
    "music",
    "embedding",
    "rerank",
    "decision",
];

/// The type of a model that converses, and of one that says nothing of itself.
pub(crate) const CHAT: &str = "llm";

/// What an endpoint says of the models it offers.
struct Meaning {
    kind: &'static str,
    capabilities: &'static [&'static str],
    tasks: &'static [&'static str],
    /// Tasks that need this input besides.
    with: &'static [(&'static str, &'static str)],
}

const fn meaning(kind: &'static str, capabilities: &'static [&'static str], tasks: &'static [&'static str]) -> Meaning {
    Meaning { kind, capabilities, tasks, with: &[] }
}

fn meaning_of(endpoint_type: &EndpointType) -> Meaning {
    match endpoint_type.name {
        "image-generation" => {
            Meaning { with: &[("image", "image-editing")], ..meaning("image", &["image"], &["text-to-image"]) }
        }
        "openai-video" => Meaning {
            with: &[("image", "image-to-video"), ("video", "video-editing")],
            ..meaning("video", &["video"], &["text-to-video"])
        },
        "audio-speech" => meaning("tts", &["audio-speech"], &["text-to-speech"]),
        "audio-transcription" => meaning("asr", &["audio-speech"], &["transcription"]),
        "realtime" => meaning("voice", &["text-multimodal", "audio-speech"], &["voice-conversation"]),
        "music-generation" => meaning("music", &["music"], &["music"]),
        "system-one" => meaning("decision", &["decision"], &["decision"]),
        "embeddings" => meaning("embedding", &["embedding"], &["embedding"]),
        "jina-rerank" => meaning("rerank", &["rerank"], &["rerank"]),
        // openai, anthropic, openai-response, gemini
        _ => {
            let with = &[("image", "vision"), ("video", "vision")];
            Meaning { with, ..meaning(CHAT, &["text-multimodal"], &["chat"]) }
        }
    }
}

fn meanings(endpoint_types: &[String]) -> impl Iterator<Item = Meaning> {
    endpoint_types.iter().filter_map(|name| EndpointType::named(name)).map(meaning_of)
}

/// The type that the first of its endpoints gives a model; one that converses too is of that type.
pub(crate) fn usual_type(endpoint_types: &[String]) -> &'static str {
    let mut kinds = meanings(endpoint_types).map(|meaning| meaning.kind);
    let first = kinds.next().unwrap_or(CHAT);
    if kinds.any(|kind| kind == CHAT) { CHAT } else { first }
}

pub(crate) fn usual_capabilities(endpoint_types: &[String]) -> Vec<String> {
    once(meanings(endpoint_types).flat_map(|meaning| meaning.capabilities).copied())
}

pub(crate) fn usual_tasks(endpoint_types: &[String], input: &[String], reasons: bool) -> Vec<String> {
    let mut tasks = Vec::new();
    for meaning in meanings(endpoint_types) {
        tasks.extend(meaning.tasks);
        if reasons && meaning.kind == CHAT {
            tasks.push("reasoning");
        }
        tasks.extend(
            meaning.with.iter().filter(|(needs, _)| input.iter().any(|own| own == needs)).map(|(_, task)| task),
        );
    }
    once(tasks.into_iter())
}

/// Each word once, in the order of its first use.
fn once<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for word in words {
        if !list.iter().any(|own| own == word) {
            list.push(word.to_owned());
        }
    }
    list
}
