//! Speech of Gemini models: a conversation whose answer is bare samples, as base64 in one document.

use super::chat::in_a_path;
use crate::chat::key_in;
use crate::speech::{AudioInJson, AudioReader, AudioText, Documents, Repeats, SpeechAsk, SpeechMaker, no_audio, post};
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate_media::speech::{Base64Pieces, SpeechFormat};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeminiSpeech;

/// Reasons of an end by which the content is refused.
const CONTENT: &[&str] = &["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"];

impl SpeechMaker for GeminiSpeech {
    fn makes(&self, format: SpeechFormat) -> bool {
        format == SpeechFormat::Pcm
    }

    fn takes(&self, field: &str) -> bool {
        field == "instructions"
    }

    fn own(&self) -> &'static [&'static str] {
        &[]
    }

    /// How it is to be said stands before what is to be said.
    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let text = match &speech.instructions {
            Some(instructions) => format!("{instructions}\n\n{}", speech.text),
            None => speech.text.clone(),
        };
        let voice = json!({ "prebuiltVoiceConfig": { "voiceName": speech.voice.id() } });
        let body = json!({
            "contents": [{ "role": "user", "parts": [{ "text": text }] }],
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "speechConfig": { "voiceConfig": voice },
            },
        });
        let path = format!("/v1beta/models/{}:generateContent", in_a_path(ask.model));
        let mut request = post(provider, &path, "application/json", &body, ask.call_id)?;
        key_in(&mut request, "x-goog-api-key", provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        making::openai(reply)
    }

    fn reader(&self, ask: &SpeechAsk<'_>, _: &HeaderMap) -> Box<dyn AudioReader> {
        let documents = Answer { rate: ask.rate, report: None };
        Box::new(AudioInJson::new(documents, false, &["data"], AudioText::Base64(Base64Pieces::default()), 0))
    }
}

struct Answer {
    rate: u32,
    report: Option<String>,
}

impl Documents for Answer {
    fn read(&mut self, document: &Value) -> Result<Repeats, Fault> {
        let candidate = &document["candidates"][0];
        let blocked = document["promptFeedback"]["blockReason"].as_str();
        let ended = candidate["finishReason"].as_str().filter(|reason| CONTENT.contains(reason));
        if let Some(reason) = blocked.or(ended) {
            return Err(Fault::content(&format!("The provider refused the content ({reason}).")));
        }
        let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
        for kind in parts.filter_map(|part| part["inlineData"]["mimeType"].as_str()) {
            if rate(kind).is_some_and(|rate| rate != self.rate) {
                return Err(Fault::garbage());
            }
        }
        self.report = document["usageMetadata"].is_object().then(|| document["usageMetadata"].to_string());
        Ok(Repeats::No)
    }

    /// An answer without audio is a known whim: nothing was made, and another route may do better.
    fn end(&mut self, any: bool) -> Result<Option<String>, Fault> {
        if any { Ok(self.report.take()) } else { Err(Fault { maybe_charged: false, ..no_audio() }) }
    }
}

/// Samples in a second, as `audio/L16;codec=pcm;rate=24000` says it.
fn rate(kind: &str) -> Option<u32> {
    kind.split(';').find_map(|part| part.trim().strip_prefix("rate=")).and_then(|rate| rate.parse().ok())
}
