//! `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`: a recording in a form, a
//! transcript out. The recording is measured while it arrives.

use super::form::{self, FormField, FormFile, FormRest, FormRules, TakeFile};
use super::openapi::shapes::{event, idempotency, named, text};
use super::row::{Access, Family, Row};
use super::{reading, transcription_quote};
use crate::app::App;
use crate::call::{self, CallRequest};
use crate::door::passing::MayPass;
use crate::door::spool::FileWatch;
use crate::refusal::Refusal;
use crate::sale::recordings::ENDPOINT_TYPE;
use crate::who::caller::Caller;
use crate::work::transcription::{AskedTranscription, BegunForm, RecordingPass, TranscriptionCall};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::audio::AudioMeter;
use tollgate_media::transcription::{Recording, TranscriptFormat, TranscriptionRequest, what_is_wrong};
use tollgate_store::CallId;
use tollgate_wire::error::{Code, ErrorFormat};
use tollgate_wire::multipart::PartHead;

pub const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
pub const TRANSLATIONS: &str = "/v1/audio/translations";

pub const FAMILY: Family = Family { tag: "audio", rows, schemas };

/// A form has one file, and short fields; how large a file may be, the model says.
const RULES: FormRules = FormRules { parts: 300, field_bytes: 1 << 20, files: 1, file_bytes: u64::MAX, packed: false };

fn rows() -> Vec<Row> {
    let answers = || {
        json!({
            "application/json": { "schema": named("Transcript") },
            "text/plain": { "schema": text() },
            "text/event-stream": { "schema": event() },
        })
    };
    vec![
        Row::post(TRANSCRIPTIONS, Access::Paid, transcriptions, "The text of a recording, whole or streamed")
            .with(idempotency)
            .takes_form(named("TranscriptionRequest"))
            .gives_one_of(answers())
            .quoted(|_, _, body| transcription_quote::priced(&body, false))
            .serves(ENDPOINT_TYPE)
            .names_itself(),
        Row::post(TRANSLATIONS, Access::Paid, translations, "The text of a recording in English")
            .with(idempotency)
            .takes_form(named("TranslationRequest"))
            .gives_one_of(answers())
            .quoted(|_, _, body| transcription_quote::priced(&body, true))
            .names_itself(),
    ]
}

pub async fn transcriptions(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, TRANSCRIPTIONS, request).await
}

pub async fn translations(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, TRANSLATIONS, request).await
}

async fn answered(app: &Arc<App>, endpoint: &'static str, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle(app, id, endpoint, request)).await {
        Ok(reply) => reply,
        Err(refusal) => {
            // A fault of our own may come after the provider was asked.
            let refusal = if refusal.code == Code::Internal { refusal.once() } else { refusal };
            reading::refused(app, ErrorFormat::OpenAi, refusal, &id.to_string())
        }
    }
}

/// Measures a recording while it passes.
#[derive(Default)]
struct Listening(AudioMeter);

impl FileWatch for Listening {
    fn piece(&mut self, bytes: &[u8]) {
        self.0.feed(bytes);
    }
}

async fn handle(app: &Arc<App>, id: CallId, endpoint: &'static str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let offer = Offer { app, caller: &caller, id, translate: endpoint == TRANSLATIONS };
    let begin = |head: &PartHead, fields: &[FormField], rest: Option<FormRest>| offer.take(head, fields, rest);
    let read = Box::pin(form::read(app, &caller, &parts, body, RULES, begin)).await?;
    let idem = reading::idempotency(&parts.headers, endpoint, &read.print)?;
    let fields = read.fields.iter().map(|field| (field.name.as_str(), field.text.as_str()));
    let request = TranscriptionRequest::read(fields, endpoint == TRANSLATIONS)?;
    let missing = || Refusal::about(Code::MissingParameter, "file", "`file` is required.");
    let FormFile { file, watch, .. } = read.files.into_iter().next().ok_or_else(missing)?;
    let measured = watch.0.finish().map_err(what_is_wrong)?;
    let recording = Recording::of(&measured, file.length());
    let asked = AskedTranscription { request, recording };
    let (spool, outside) = (app.spool.clone(), app.images.outside.clone());
    let work = TranscriptionCall { asked, file, measured, spool, room: read.room, outside };
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

/// Who sends a form, and to where.
struct Offer<'a> {
    app: &'a App,
    caller: &'a Caller,
    id: CallId,
    translate: bool,
}

impl Offer<'_> {
    /// How a file of the form is taken. Where the model is known already, so is its largest file,
    /// and the file may pass.
    fn take(
        &self,
        head: &PartHead,
        fields: &[FormField],
        rest: Option<FormRest>,
    ) -> Result<TakeFile<Listening>, Refusal> {
        if head.name != "file" {
            let text = format!("`{}` cannot be a file; only `file` can.", head.name);
            return Err(Refusal::about(Code::InvalidParameter, &head.name, text));
        }
        let serving = self.app.serving.load();
        let named = fields.iter().find(|field| field.name == "model");
        let model = named.and_then(|field| serving.catalog.model(&field.text));
        let most = model.and_then(|model| model.transcription.as_ref()?.max_bytes);
        let pass = rest.and_then(|rest| self.passes(fields, rest)).map(|pass| Box::new(pass) as Box<dyn MayPass>);
        Ok(TakeFile { watch: Listening::default(), most, pass })
    }

    fn passes(&self, fields: &[FormField], FormRest { most, closing }: FormRest) -> Option<RecordingPass> {
        let fields = fields.iter().map(|field| (field.name.as_str(), field.text.as_str()));
        let request = TranscriptionRequest::read(fields, self.translate).ok()?;
        RecordingPass::offered(&self.app.till, self.caller, BegunForm { call: self.id, request, most, closing })
    }
}

fn schemas() -> Value {
    let formats = TranscriptFormat::ALL.map(TranscriptFormat::name);
    let file = json!({ "type": "string", "format": "binary", "description": "The recording, known by its content" });
    let model = json!({ "type": "string", "minLength": 1 });
    let list = json!({ "type": "array", "items": text() });
    let common = json!({
        "model": model, "file": file, "prompt": text(), "temperature": { "type": "number", "minimum": 0, "maximum": 1 },
        "response_format": { "enum": formats, "description": "The model's record and docs say which of them it gives" },
    });
    let mut more = common.clone();
    more["language"] = text();
    more["stream"] = json!({ "type": "boolean" });
    more["timestamp_granularities[]"] = json!({ "type": "array", "items": { "enum": ["word", "segment"] } });
    more["include[]"] = json!({ "type": "array", "items": { "enum": ["logprobs"] } });
    more["chunking_strategy"] = text();
    for name in ["known_speaker_names[]", "known_speaker_references[]", "keywords[]", "languages[]"] {
        more[name] = list.clone();
    }
    json!({
        "TranscriptionRequest": { "type": "object", "required": ["model", "file"], "properties": more },
        "TranslationRequest": { "type": "object", "required": ["model", "file"], "properties": common },
        "Transcript": transcript(),
    })
}

/// What comes as JSON. With `verbose_json` and `diarized_json` there is more than the text.
fn transcript() -> Value {
    let (number, tokens) = (json!({ "type": "number" }), json!({ "type": "integer", "minimum": 0 }));
    let segment = json!({ "type": "object", "required": ["id", "start", "end", "text"], "properties": {
        "id": { "type": ["integer", "string"] }, "start": number, "end": number, "text": text(),
        "type": text(), "speaker": text(), "seek": { "type": "integer" },
        "tokens": { "type": "array", "items": { "type": "integer" } }, "temperature": number, "avg_logprob": number,
        "compression_ratio": number, "no_speech_prob": number,
    } });
    let word = json!({ "type": "object", "required": ["word", "start", "end"], "properties": {
        "word": text(), "start": number, "end": number,
    } });
    let usage = json!({ "type": ["object", "null"], "required": ["type"], "properties": {
        "type": { "enum": ["duration", "tokens"] }, "seconds": number,
        "input_tokens": tokens, "output_tokens": tokens, "total_tokens": tokens,
        "input_token_details": { "type": "object", "properties": { "text_tokens": tokens, "audio_tokens": tokens } },
    } });
    json!({ "type": "object", "required": ["text"], "additionalProperties": true, "properties": {
        "text": text(), "task": { "enum": ["transcribe", "translate"] }, "language": text(), "duration": number,
        "segments": { "type": "array", "items": segment }, "words": { "type": "array", "items": word },
        "logprobs": { "type": "array", "items": { "type": "object" } }, "usage": usage,
    } })
}
