//! Transcripts of DashScope (Qwen-ASR): a conversation whose one message is the recording, as a
//! data link that is made while it is sent. It takes 10 MB of that; models that take files by their
//! address are asked in another way (`files.rs`).

use super::DashScopeFiles;
use super::video::CODES;
use crate::chat::{bearer, post};
use crate::transcription::{HeardFacts, LengthReport, Transcriber, TranscriptionAsk};
use crate::video::judge::ProviderError;
use crate::{Fault, Outgoing, Payload, PayloadPart, Provider, WholeReply, making};
use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::transcription::{TranscriptFacts, TranscriptFormat, TranscriptShape, media_type};
use tollgate_wire::Problem;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DashScopeRecognition;

const PATH: &str = "/compatible-mode/v1/chat/completions";
/// Of the data link.
const MOST: u64 = 10_000_000;
const CONTENT: &[&str] = &["DataInspectionFailed", "data_inspection_failed"];

impl Transcriber for DashScopeRecognition {
    fn request(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing> {
        let uri = provider.base_url.join(PATH).ok()?;
        let mut options = json!({ "enable_itn": false });
        if let Some(language) = ask.request.get("language") {
            options["language"] = Value::from(language);
        }
        let model = Value::from(ask.model);
        let link = format!("data:{};base64,", link_type(ask));
        let before = format!(
            "{{\"model\":{model},\"messages\":[{{\"role\":\"user\",\"content\":[{{\"type\":\"input_audio\",\"input_audio\":{{\"data\":\"{link}"
        );
        let after = format!("\"}}}}]}}],\"asr_options\":{options},\"stream\":false}}");
        let text = |text: String| PayloadPart::from(Bytes::from(text));
        let mut request = post(uri, Bytes::new(), ask.call_id);
        *request.body_mut() = Payload::of_parts([text(before), ask.file?.base64_part(), text(after)]);
        bearer(&mut request, provider);
        Some(request)
    }

    fn formats(&self) -> &'static [TranscriptFormat] {
        &TranscriptFormat::PLAIN
    }

    fn drops(&self, field: &str) -> bool {
        field != "language"
    }

    fn takes(&self, ask: &TranscriptionAsk<'_>) -> Result<(), Problem> {
        if ask.file.is_some_and(|file| file.base64_length() > MOST) {
            let text = format!("`file` is larger than this model's provider takes: {MOST} bytes in base64.");
            return Err(Problem::unsupported("file", text));
        }
        Ok(())
    }

    fn of_model(&self, upstream_model: &str) -> Option<&'static dyn Transcriber> {
        DashScopeFiles::has(upstream_model).then_some(&DashScopeFiles)
    }

    fn shape(&self, _: TranscriptFormat) -> Option<&'static TranscriptShape> {
        Some(&TranscriptShape::CHAT)
    }

    fn facts(&self, _: &TranscriptionAsk<'_>, rest: &[u8]) -> Result<HeardFacts, Fault> {
        let object: Value = serde_json::from_slice(rest).map_err(|_| Fault::garbage())?;
        object["choices"][0]["message"]["content"].as_str().ok_or_else(Fault::garbage)?;
        let usage = &object["usage"];
        // Where it counts tokens only: 25 of them are a second.
        let by_tokens = || usage["prompt_tokens_details"]["audio_tokens"].as_f64().map(|tokens| tokens / 25.0);
        let seconds = if usage["seconds"].is_number() { None } else { by_tokens() };
        let usage = LengthReport { usage, seconds }.read();
        Ok(HeardFacts { facts: TranscriptFacts { millis: usage.millis, language: None }, usage })
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        // Its own errors, or those of the form that it copies.
        let error = if json["error"].is_object() { &json["error"] } else { &json };
        let text = error["message"].as_str().unwrap_or_default();
        let said = error["code"].as_str().map(|code| ProviderError { code, text });
        making::coded(reply, said, CODES, CONTENT)
    }
}

/// It reads sound only, so a video is called what its sound is.
fn link_type(ask: &TranscriptionAsk<'_>) -> String {
    media_type(ask.measured).replace("video/x-", "audio/").replace("video/", "audio/")
}
