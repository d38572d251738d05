//! Speech of DashScope (Qwen-TTS): events with bare samples as base64; the last one has a link to
//! the whole file and no samples.

use super::CosyVoice;
use super::video::CODES;
use crate::chat::bearer;
use crate::speech::{AudioInJson, AudioReader, AudioText, Documents, Repeats, SpeechAsk, SpeechMaker, add_extra, post};
use crate::video::judge::ProviderError;
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tollgate_media::speech::{Base64Pieces, SpeechFormat};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DashScopeSpeech;

const PATH: &str = "/api/v1/services/aigc/multimodal-generation/generation";
pub(super) const SSE: HeaderName = HeaderName::from_static("x-dashscope-sse");
const CONTENT: &[&str] = &["DataInspectionFailed", "data_inspection_failed"];
/// Audio of one event.
const EVENT: usize = 1 << 20;

impl SpeechMaker for DashScopeSpeech {
    fn of_model(&self, upstream_model: &str) -> Option<&'static dyn SpeechMaker> {
        CosyVoice::has(upstream_model).then_some(&CosyVoice)
    }

    fn makes(&self, format: SpeechFormat) -> bool {
        format == SpeechFormat::Pcm
    }

    fn takes(&self, field: &str) -> bool {
        matches!(field, "instructions" | "extra")
    }

    fn own(&self) -> &'static [&'static str] {
        &["text", "voice", "instructions", "format", "sample_rate"]
    }

    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let mut input = json!({ "text": speech.text, "voice": speech.voice.id() });
        if let Some(instructions) = &speech.instructions {
            input["instructions"] = Value::from(instructions.as_str());
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

/// What an answer with an error status means.
pub(super) fn said(reply: &WholeReply) -> Fault {
    let json = reply.json();
    let text = json["message"].as_str().unwrap_or_default();
    let said = json["code"].as_str().map(|code| ProviderError { code, text });
    making::coded(reply, said, CODES, CONTENT)
}

/// Its events but for their audio.
#[derive(Default)]
pub(super) struct QwenEvents {
    done: bool,
    report: Option<String>,
}

impl Documents for QwenEvents {
    fn read(&mut self, document: &Value) -> Result<Repeats, Fault> {
        if document["code"].as_str().is_some_and(|code| !code.is_empty()) {
            return Err(said(&WholeReply::inside(document)));
        }
        if document["usage"].is_object() {
            self.report = Some(document["usage"].to_string());
        }
        self.done |= document["output"]["finish_reason"] == "stop";
        Ok(Repeats::No)
    }

    fn end(&mut self, _: bool) -> Result<Option<String>, Fault> {
        if self.done { Ok(self.report.take()) } else { Err(Fault::truncated()) }
    }
}
