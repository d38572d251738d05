//! Transcripts and translations as OpenAI takes them, and everybody who copied it: a form, and
//! replies in the caller's own format.

use crate::chat::bearer;
use crate::transcription::{
    Heard, HeardFacts, LengthReport, PassingAsk, Transcriber, TranscriptionAsk, TranscriptionUsage, upload,
    without_body,
};
use crate::{Fault, FormPayload, Outgoing, PassingForm, Provider, WholeReply, making};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use tollgate_media::transcription::{
    TranscriptFacts, TranscriptFormat, TranscriptShape, TranscriptionRequest, file_ending, media_type, named_by,
};
use tollgate_wire::UpstreamError;

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiTranscriber;

/// Members of a reply that are the caller's affair.
const SHOWN: &[&str] = &["text", "task", "language", "languages", "duration", "segments", "words", "usage", "logprobs"];

impl Transcriber for OpenAiTranscriber {
    fn request(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing> {
        let form = with_fields(FormPayload::new(ask.drawn).field("model", ask.model), ask.request, ask.stream);
        // Providers go by the name's ending, and callers send `blob` or `upload`.
        let name = format!("audio.{}", file_ending(ask.measured));
        let form = form.file("file", &name, media_type(ask.measured), ask.file?.part());
        let mut request = upload(provider, path(ask.request), form, ask.call_id)?;
        bearer(&mut request, provider);
        Some(request)
    }

    /// Fields may stand behind the caller's file, so all but the model stand behind it here.
    fn pass(&self, provider: &Provider, ask: &PassingAsk<'_>) -> Option<PassingForm> {
        let (ending, kind) = named_by(ask.container)?;
        let form = FormPayload::passing(ask.drawn).field("model", ask.model);
        let mut request = without_body(provider, path(ask.request), form.content_type(), ask.call_id)?;
        bearer(&mut request, provider);
        let before = form.up_to_file("file", &format!("audio.{ending}"), kind);
        let end = with_fields(FormPayload::behind_file(ask.drawn), ask.request, ask.request.stream).end();
        Some(PassingForm { request, before, length: ask.most.checked_add(end.len() as u64)? })
    }

    fn pass_end(&self, ask: &TranscriptionAsk<'_>) -> Option<Bytes> {
        Some(with_fields(FormPayload::behind_file(ask.drawn), ask.request, ask.stream).end())
    }

    fn formats(&self) -> &'static [TranscriptFormat] {
        &TranscriptFormat::ALL
    }

    fn translates(&self) -> bool {
        true
    }

    fn streams(&self) -> bool {
        true
    }

    fn shape(&self, format: TranscriptFormat) -> Option<&'static TranscriptShape> {
        (format == TranscriptFormat::Text).then_some(&TranscriptShape::OPENAI)
    }

    fn heard(&self, ask: &TranscriptionAsk<'_>, reply: &WholeReply) -> Result<Heard, Fault> {
        let format = ask.request.format;
        if matches!(format, TranscriptFormat::Srt | TranscriptFormat::Vtt) {
            return subtitles(format, reply);
        }
        let (mut object, usage) = read(&reply.body)?;
        let Some(members) = object.as_object_mut() else { return Err(Fault::garbage()) };
        let before = members.len();
        members.retain(|name, _| SHOWN.contains(&name.as_str()));
        let body = if members.len() == before { reply.body.clone() } else { object.to_string().into() };
        Ok(Heard { body, usage })
    }

    fn facts(&self, _: &TranscriptionAsk<'_>, rest: &[u8]) -> Result<HeardFacts, Fault> {
        let (_, usage) = read(rest)?;
        Ok(HeardFacts { facts: TranscriptFacts { millis: usage.millis, language: None }, usage })
    }
}

fn path(request: &TranscriptionRequest) -> &'static str {
    if request.translate { "/audio/translations" } else { "/audio/transcriptions" }
}

/// All fields but the model.
fn with_fields(form: FormPayload, request: &TranscriptionRequest, stream: bool) -> FormPayload {
    // Of a text alone everybody has the JSON form, and it brings the report of usage.
    let format = match request.format {
        TranscriptFormat::Text => TranscriptFormat::Json,
        other => other,
    };
    let mut form = form.field("response_format", format.name());
    for (name, text) in &request.others {
        form = form.field(name, text);
    }
    if stream { form.field("stream", "true") } else { form }
}

/// A reply with a text, and what it reports.
fn read(body: &[u8]) -> Result<(Value, TranscriptionUsage), Fault> {
    let object: Value = serde_json::from_slice(body).map_err(|_| Fault::garbage())?;
    if !object["text"].is_string() {
        let said = UpstreamError::read(body);
        return Err(said.map_or_else(Fault::garbage, |error| making::openai_inside(&error)));
    }
    let usage = LengthReport { usage: &object["usage"], seconds: object["duration"].as_f64() }.read();
    Ok((object, usage))
}

fn subtitles(format: TranscriptFormat, reply: &WholeReply) -> Result<Heard, Fault> {
    let kind = reply.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let text = std::str::from_utf8(&reply.body).map_err(|_| Fault::garbage())?;
    let fits = format == TranscriptFormat::Srt || text.trim_start_matches('\u{feff}').starts_with("WEBVTT");
    if kind.starts_with("application/json") || text.starts_with('{') || !fits {
        return Err(Fault::garbage());
    }
    Ok(Heard { body: reply.body.clone(), usage: TranscriptionUsage::default() })
}
