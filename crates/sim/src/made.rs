//! Pictures and voices that a model of a conversation makes beside its words: which of them a
//! request asks for, what they are, and what they count for.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// What is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Made {
    #[default]
    Nothing,
    /// Gemini with `IMAGE` among its modalities, or the tool `image_generation` of Responses.
    Picture,
    /// Chat completions with `audio` among its modalities, or Gemini with `AUDIO`; in this format.
    Voice(String),
}

/// How long a voice speaks.
const VOICE_MS: u64 = 1_000;

impl Made {
    /// What chat completions ask for.
    pub fn of_chat(body: &serde_json::Map<String, Value>) -> Made {
        let modalities = body.get("modalities").and_then(Value::as_array);
        let voice = modalities.is_some_and(|list| list.iter().any(|one| one == "audio"));
        let format = body.get("audio").and_then(|audio| audio["format"].as_str());
        if voice { Made::Voice(format.unwrap_or("wav").to_string()) } else { Made::Nothing }
    }

    /// What Gemini is to answer with; of its voices bare samples come, and no words.
    pub fn of_gemini(modalities: Option<&Vec<Value>>) -> Made {
        let has = |name: &str| modalities.is_some_and(|list| list.iter().any(|one| one == name));
        match (has("IMAGE"), has("AUDIO")) {
            (true, _) => Made::Picture,
            (_, true) => Made::Voice("pcm".to_string()),
            _ => Made::Nothing,
        }
    }

    pub fn is_voice(&self) -> bool {
        matches!(self, Made::Voice(_))
    }

    /// Tokens of it, beside those of the words.
    pub fn tokens(&self) -> u64 {
        match self {
            Made::Nothing => 0,
            Made::Picture => 1_290,
            Made::Voice(_) => 20,
        }
    }

    /// It as base64.
    pub fn letters(&self) -> String {
        match self {
            Made::Nothing => String::new(),
            Made::Picture => BASE64_STANDARD.encode(crate::image::pixel()),
            Made::Voice(format) => BASE64_STANDARD.encode(crate::voice::sample(format, VOICE_MS)),
        }
    }

    /// The `audio` of a message that is said so.
    pub fn voice(&self, transcript: &str) -> Option<Value> {
        let audio =
            json!({"id": "audio_sim", "data": self.letters(), "expires_at": 1_767_229_200, "transcript": transcript});
        self.is_voice().then_some(audio)
    }

    /// The same in pieces of a stream.
    pub fn voice_pieces(&self, words: &[String]) -> Option<Vec<Value>> {
        let Made::Voice(_) = self else { return None };
        let mut pieces = vec![json!({"audio": {"id": "audio_sim", "transcript": ""}})];
        pieces.extend(words.iter().map(|word| json!({"audio": {"transcript": word}})));
        let letters = self.letters();
        let cuts = letters.as_bytes().chunks(4_000);
        pieces.extend(cuts.map(|cut| json!({"audio": {"data": String::from_utf8_lossy(cut)}})));
        pieces.push(json!({"audio": {"expires_at": 1_767_229_200}}));
        Some(pieces)
    }
}
