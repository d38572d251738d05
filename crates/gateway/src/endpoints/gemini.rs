//! Gemini's paths: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent`,
//! `:countTokens`, `:embedContent`, `:batchEmbedContents`, `:predict`, and the same under `/v1`,
//! where newer SDKs look for them. The path says what is asked of which model; the body does not.

use super::openapi::shapes::{anything, named, text};
use super::row::{Access, Errors, Family, Row};
use super::{chat, count, embeddings, images, reading};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::refusal::Refusal;
use crate::work::conversation::Conversation;
use crate::work::embeddings::EmbeddingCall;
use axum::extract::{Path as InPath, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_dialects::{CheckedRequest, Path};
use tollgate_store::CallId;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "gemini", rows, schemas };

/// Where its SDKs look: older ones below the first, newer ones below the second.
static PLACES: [Place; 2] = [
    Place {
        pattern: "/v1beta/models/{*id}",
        paths: [
            "/v1beta/models/{model}:generateContent",
            "/v1beta/models/{model}:streamGenerateContent",
            "/v1beta/models/{model}:countTokens",
            "/v1beta/models/{model}:embedContent",
            "/v1beta/models/{model}:batchEmbedContents",
            "/v1beta/models/{model}:predict",
        ],
    },
    Place {
        pattern: "/v1/models/{*id}",
        paths: [
            "/v1/models/{model}:generateContent",
            "/v1/models/{model}:streamGenerateContent",
            "/v1/models/{model}:countTokens",
            "/v1/models/{model}:embedContent",
            "/v1/models/{model}:batchEmbedContents",
            "/v1/models/{model}:predict",
        ],
    },
];

struct Place {
    /// What the router knows it by: the name of a model may contain slashes.
    pattern: &'static str,
    /// In the order of [`Verb`].
    paths: [&'static str; 6],
}

/// What can be asked of a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Generate,
    Stream,
    Count,
    Embed,
    EmbedBatch,
    Predict,
}

const VERBS: [(&str, Verb); 6] = [
    ("generateContent", Verb::Generate),
    ("streamGenerateContent", Verb::Stream),
    ("countTokens", Verb::Count),
    ("embedContent", Verb::Embed),
    ("batchEmbedContents", Verb::EmbedBatch),
    ("predict", Verb::Predict),
];

/// What is asked of a model in a conversation.
const CONTENTS: &str = "GeminiRequest";

fn rows() -> Vec<Row> {
    let of = |place: &'static Place| {
        let [generate, stream, count, embed, batch, predict] = place.paths;
        let post = |path, access, takes: &str, summary| {
            let handler =
                move |app: State<Arc<App>>, path: InPath<String>, request: Request| ask(app, path, request, place);
            let row = Row::post(path, access, handler, summary).routed_by(place.pattern);
            row.takes(named(takes)).errors(Errors::In(Dialect::Gemini.errors())).names_itself()
        };
        [
            post(generate, Access::Paid, CONTENTS, "A whole reply in Gemini's format, for models named gemini-…")
                .answers()
                .quoted(|_, parts, body| priced(parts, body, false)),
            post(
                stream,
                Access::Paid,
                CONTENTS,
                "A streamed reply in Gemini's format: events with `alt=sse`, else one JSON array",
            )
            .with(|| vec![json!({ "name": "alt", "in": "query", "schema": { "enum": ["sse", "json"] } })])
            .answers()
            .quoted(|_, parts, body| priced(parts, body, true)),
            post(count, Access::Key, CONTENTS, "The tokens of a prompt in Gemini's format, by the gateway's own count")
                .gives(anything()),
            post(embed, Access::Paid, "GeminiEmbedRequest", "The vector of a text, in Gemini's format")
                .gives(named("GeminiEmbedding"))
                .quoted(|_, parts, body| embeddings::priced_for_gemini(parts, body, false)),
            post(batch, Access::Paid, "GeminiBatchEmbedRequest", "The vectors of several texts, in Gemini's format")
                .gives(named("GeminiEmbeddings"))
                .quoted(|_, parts, body| embeddings::priced_for_gemini(parts, body, true)),
            post(predict, Access::Paid, "PredictRequest", "Pictures from a prompt, in the form of Imagen")
                .gives(named("Predictions"))
                .quoted(|shop, parts, body| images::priced_predict(shop, parts, &body))
                .begun_once(),
        ]
    };
    let mut all: Vec<Row> = PLACES.iter().flat_map(of).collect();
    // The price list names the place that every SDK knows.
    if let Some(first) = all.first_mut() {
        first.serves = Some(Dialect::Gemini.word());
    }
    all
}

fn priced(parts: &[&str], body: Bytes, stream: bool) -> Result<Box<dyn Priced>, Refusal> {
    let path = Path { model: parts.first().copied().unwrap_or_default(), stream };
    chat::priced(Dialect::Gemini, body, Some(path))
}

async fn ask(
    State(app): State<Arc<App>>,
    InPath(path): InPath<String>,
    request: Request,
    place: &'static Place,
) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Gemini, id, || handle(&app, id, &path, request, place)).await
}

async fn handle(
    app: &Arc<App>,
    id: CallId,
    path: &str,
    request: Request,
    place: &'static Place,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let (model, verb) = asked(path)?;
    let endpoint = place.paths[verb as usize];
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let path = Path { model, stream: verb == Verb::Stream };
    if verb == Verb::Count {
        return count::counted(app, &caller, CheckedRequest::read_prompt(Dialect::Gemini, body, Some(path))?);
    }
    // The model stands in the path only, so the path is part of what is repeated.
    let idem = reading::idempotency(&parts.headers, parts.uri.path(), &body)?;
    if matches!(verb, Verb::Embed | Verb::EmbedBatch) {
        let asked = embeddings::of_gemini(model, body, verb == Verb::EmbedBatch)?;
        let work = EmbeddingCall { asked, spool: app.spool.clone(), replies: app.images.replies.clone() };
        return Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply());
    }
    if verb == Verb::Predict {
        return images::predict(app, caller, id, endpoint, (&parts, model), body, idem).await;
    }
    let mut asked = Conversation::new(CheckedRequest::read(Dialect::Gemini, body, Some(path))?, &parts.headers);
    asked.array = verb == Verb::Stream && !wants_events(&parts);
    let work = app.conversations.call(asked);
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

/// The model and the verb of a path such as `gemini-x:generateContent`.
fn asked(path: &str) -> Result<(&str, Verb), Refusal> {
    let unknown = || Refusal::new(Code::NotFound, "There is no such path.");
    let (model, word) = path.rsplit_once(':').ok_or_else(unknown)?;
    let (_, verb) = VERBS.into_iter().find(|(name, _)| *name == word).ok_or_else(unknown)?;
    Ok((model, verb))
}

/// `?alt=sse`; else the chunks are the elements of one array.
fn wants_events(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"))
}

fn schemas() -> Value {
    json!({
        "GeminiRequest": { "type": "object", "required": ["contents"], "additionalProperties": true, "properties": {
            "contents": { "type": ["array", "object"] }, "generationConfig": { "type": ["object", "null"] },
        } },
        "PredictRequest": { "type": "object", "required": ["instances"], "properties": {
            "instances": { "type": "array", "minItems": 1, "maxItems": 1, "items": {
                "type": "object", "required": ["prompt"], "properties": { "prompt": { "type": "string", "minLength": 1 } },
            } },
            "parameters": { "type": ["object", "null"], "properties": {
                "sampleCount": { "type": ["integer", "null"], "minimum": 1 },
                "aspectRatio": { "type": ["string", "null"] }, "sampleImageSize": { "type": ["string", "null"] },
            } },
        } },
        "Predictions": { "type": "object", "required": ["predictions"], "properties": {
            "predictions": { "type": "array", "items": {
                "type": "object", "required": ["bytesBase64Encoded", "mimeType"],
                "properties": { "bytesBase64Encoded": text(), "mimeType": text(), "prompt": text() },
            } },
        } },
    })
}
