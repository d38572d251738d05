//! Speech of DashScope's CosyVoice, over HTTP: events with base64 of the format that was asked for,
//! the last one with a link to the whole file. What it has over its WebSocket only (text that
//! arrives in pieces) is not offered.

use super::speech::{QwenEvents, SSE, said};
use crate::chat::bearer;
use crate::speech::{AudioInJson, AudioReader, AudioText, SpeechAsk, SpeechMaker, add_extra, post};
use crate::{Fault, Outgoing, Provider, WholeReply};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tollgate_media::speech::{Base64Pieces, SpeechFormat};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(super) struct CosyVoice;

const PATH: &str = "/api/v1/services/audio/tts/SpeechSynthesizer";
/// Audio of one event.
const EVENT: usize = 1 << 20;

impl CosyVoice {
    /// Whether a model is asked in this way.
    pub fn has(upstream_model: &str) -> bool {
        upstream_model.starts_with("cosyvoice") || upstream_model.starts_with("qwen-audio-")
    }
}

impl SpeechMaker for CosyVoice {
    /// A wav file in pieces would have a header that does not know its length, so samples are asked
    /// for and wrapped here.
    fn makes(&self, format: SpeechFormat) -> bool {
        matches!(format, SpeechFormat::Mp3 | SpeechFormat::Opus | SpeechFormat::Pcm)
    }

    fn takes(&self, field: &str) -> bool {
        matches!(field, "speed" | "instructions" | "extra")
    }

    fn own(&self) -> &'static [&'static str] {
        &["text", "voice", "instruction", "instructions", "format", "sample_rate", "rate"]
    }

    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let mut input = json!({
            "text": speech.text, "voice": speech.voice.id(), "format": ask.made.name(), "sample_rate": ask.rate,
        });
        if let Some(speed) = &speech.speed {
            input["rate"] = Value::from(speed.clone());
        }
        if let Some(instructions) = &speech.instructions {
            input["instruction"] = Value::from(instructions.as_str());
        }
        add_extra(&mut input, &speech.extra);
        let body = json!({ "model": ask.model, "input": input });
        let mut request = post(provider, PATH, "text/event-stream", &body, ask.call_id)?;
        request.headers_mut().insert(SSE, HeaderValue::from_static("enable"));
        bearer(&mut request, provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        said(reply)
    }

    fn reader(&self, _: &SpeechAsk<'_>, _: &HeaderMap) -> Box<dyn AudioReader> {
        Box::new(AudioInJson::new(
            QwenEvents::default(),
            true,
            &["data"],
            AudioText::Base64(Base64Pieces::default()),
            EVENT,
        ))
    }
}
