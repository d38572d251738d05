//! `GET /v1/models`, `GET /v1/models/{id}` and the same under `/v1beta`: what this key can use, in
//! the shape of the SDK that asks. Several SDKs ask for the same path, so the headers decide:
//! Gemini's key, Anthropic's version, System One's own header, else OpenAI.

use super::openapi::shapes::{anything, list as shapes_list, named, text};
use super::reading;
use super::row::{Access, Errors, Family, Row};
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::{Serving, pictures};
use crate::who::caller::Caller;
use crate::work::{decisions, embeddings};
use crate::world::Millis;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::{Model, View};
use tollgate_wire::Dialect as Chat;
use tollgate_wire::error::{Code, ErrorFormat};

/// The specification gives models no date; clients want one.
const CREATED: i64 = 1_700_000_000;
const CREATED_AT: &str = "2023-11-14T22:13:20Z";
const RELEASED: &str = "2023-11-14";

/// System One's SDK says so that it is one.
const SYSTEM_ONE: &str = "x-typesafe-sdk";

/// The limits Gemini's shape demands of a model for which the catalog gives none.
const UNKNOWN_LIMIT: u64 = 0;

pub const FAMILY: Family = Family { tag: "models", rows, schemas };

fn rows() -> Vec<Row> {
    // OpenAI's shape, unless another SDK asks.
    let shaped = |openai: &str| json!({ "anyOf": [named(openai), anything()] });
    let gemini = Errors::In(ErrorFormat::Gemini);
    vec![
        Row::get("/v1/models", Access::Key, list, "The models this key can use, in the shape of the SDK that asks")
            .gives(shaped("ModelList"))
            .errors(Errors::AsAsked),
        Row::get("/v1/models/{id}", Access::Key, one, "One model")
            .routed_by("/v1/models/{*id}")
            .gives(shaped("Model"))
            .errors(Errors::AsAsked),
        Row::get("/v1beta/models", Access::Key, list_for_gemini, "The models this key can use on Gemini's paths")
            .gives(anything())
            .errors(gemini),
        Row::get("/v1beta/models/{id}", Access::Key, one_for_gemini, "One of them")
            .routed_by("/v1beta/models/{*id}")
            .gives(anything())
            .errors(gemini),
    ]
}

fn schemas() -> Value {
    let texts = json!({ "type": "array", "items": text() });
    json!({
        "Model": { "type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
            "id": text(), "object": { "const": "model" }, "created": { "type": "integer" }, "owned_by": text(),
            "supported_endpoint_types": { "type": "array", "items": text() },
            "name": text(), "description": text(), "context_length": { "type": "integer" },
            "architecture": { "type": "object", "properties": {
                "input_modalities": texts, "output_modalities": texts,
            } },
            "pricing": { "type": "object", "required": ["prompt", "completion"], "additionalProperties": text() },
            "top_provider": { "type": "object" },
            "supported_parameters": texts,
        } },
        "ModelList": shapes_list("Model"),
    })
}

/// Whose SDK asks where all of them do.
fn shape(parts: &Parts) -> ErrorFormat {
    let in_query = parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("key=")));
    if in_query || parts.headers.contains_key("x-goog-api-key") {
        ErrorFormat::Gemini
    } else if parts.headers.contains_key("anthropic-version") {
        ErrorFormat::Anthropic
    } else {
        ErrorFormat::OpenAi
    }
}

fn card(shape: ErrorFormat, serving: &Serving, caller: &Caller, model: &Model, at_ms: Millis) -> Value {
    match shape {
        ErrorFormat::OpenAi => {
            let mut card = json!({
                "id": model.name, "object": "model", "created": CREATED,
                "owned_by": model.owner(&serving.catalog).unwrap_or("tollgate"),
                "supported_endpoint_types": model.supported_endpoint_types,
            });
            extend(&mut card, serving, caller, model, at_ms);
            card
        }
        ErrorFormat::Anthropic => {
            json!({
                "type": "model", "id": model.name, "display_name": model.name, "created_at": CREATED_AT,
                "max_input_tokens": model.max_input_tokens.or(model.context_window),
                "max_tokens": model.max_output_tokens,
            })
        }
        ErrorFormat::Gemini => json!({
            "name": format!("models/{}", model.name), "baseModelId": model.name, "version": "001",
            "displayName": model.name, "description": model.description,
            "inputTokenLimit": model.max_input_tokens.or(model.context_window).unwrap_or(UNKNOWN_LIMIT),
            "outputTokenLimit": model.max_output_tokens.unwrap_or(UNKNOWN_LIMIT),
            "supportedGenerationMethods": methods(model),
        }),
    }
}

/// Adds what clients of larger lists look for: limits, modalities, and prices as this caller pays
/// them.
fn extend(card: &mut Value, serving: &Serving, caller: &Caller, model: &Model, at_ms: Millis) {
    let groups: Vec<&str> = serving.catalog.in_order(&caller.account.groups).collect();
    let view = View { groups: &groups, topped_up: caller.account.topped_up, known: true, at_ms };
    let offer = model.offer(&serving.catalog, &view).and_then(|offer| serde_json::to_value(offer).ok());
    if let (Value::Object(card), Some(Value::Object(offer))) = (card, offer) {
        card.extend(offer);
    }
}

/// What can be asked of a model on Gemini's paths.
fn methods(model: &Model) -> Vec<&'static str> {
    let talks: &[&str] = if model.supports(Chat::Gemini.word()) {
        &["generateContent", "streamGenerateContent", "countTokens"]
    } else {
        &[]
    };
    let embeds: &[&str] =
        if model.supports(embeddings::ENDPOINT_TYPE) { &["embedContent", "batchEmbedContents"] } else { &[] };
    let draws: &[&str] = if model.supports(pictures::ENDPOINT_TYPE) { &["predict"] } else { &[] };
    [talks, embeds, draws].concat()
}

fn list_of(shape: ErrorFormat, cards: Vec<Value>) -> Value {
    match shape {
        ErrorFormat::OpenAi => json!({ "object": "list", "data": cards }),
        ErrorFormat::Anthropic => json!({
            "first_id": cards.first().map(|card| &card["id"]), "last_id": cards.last().map(|card| &card["id"]),
            "has_more": false, "data": cards,
        }),
        ErrorFormat::Gemini => json!({ "models": cards }),
    }
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if parts.headers.contains_key(SYSTEM_ONE) {
        return that_decide(&app, &parts).await;
    }
    all(&app, shape(&parts), &parts).await
}

async fn list_for_gemini(State(app): State<Arc<App>>, request: Request) -> Response {
    all(&app, ErrorFormat::Gemini, &request.into_parts().0).await
}

async fn one(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    named_so(&app, shape(&parts), &id, &parts).await
}

async fn one_for_gemini(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    named_so(&app, ErrorFormat::Gemini, &id, &request.into_parts().0).await
}

/// The models that decide, as System One's SDK lists them.
async fn that_decide(app: &App, parts: &Parts) -> Response {
    let caller = match reading::caller(app, parts).await {
        Ok(caller) => caller,
        Err(refusal) => return reading::refused(app, ErrorFormat::OpenAi, refusal, ""),
    };
    let serving = app.serving.load();
    let decides = |model: &&Arc<Model>| {
        model.supports(decisions::ENDPOINT_TYPE) && offered(&serving, &caller, model, ErrorFormat::OpenAi)
    };
    let mut models: Vec<&Arc<Model>> = serving.catalog.models.values().filter(decides).collect();
    models.sort_by(|a, b| a.name.cmp(&b.name));
    let card =
        |model: &&Arc<Model>| json!({ "name": model.name, "description": model.description, "release_date": RELEASED });
    reading::json(&json!({ "models": models.iter().map(card).collect::<Vec<_>>() }))
}

async fn all(app: &App, shape: ErrorFormat, parts: &Parts) -> Response {
    match reading::caller(app, parts).await {
        Ok(caller) => {
            let (serving, at) = (app.serving.load(), app.world.now_ms());
            let mut models: Vec<&Arc<Model>> =
                serving.catalog.models.values().filter(|model| offered(&serving, &caller, model, shape)).collect();
            models.sort_by(|a, b| a.name.cmp(&b.name));
            reading::json(&list_of(
                shape,
                models.into_iter().map(|model| card(shape, &serving, &caller, model, at)).collect(),
            ))
        }
        Err(refusal) => reading::refused(app, shape, refusal, ""),
    }
}

async fn named_so(app: &App, shape: ErrorFormat, id: &str, parts: &Parts) -> Response {
    let found = async {
        let caller = reading::caller(app, parts).await?;
        let serving = app.serving.load();
        let model = serving.catalog.models.get(id).filter(|model| offered(&serving, &caller, model, shape));
        model.map(|model| reading::json(&card(shape, &serving, &caller, model, app.world.now_ms()))).ok_or_else(|| {
            Refusal::about(Code::ModelNotFound, "model", format!("The model `{id}` does not exist or is not offered."))
        })
    };
    match found.await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(app, shape, refusal, ""),
    }
}

/// An SDK of one dialect is shown only what it can ask; OpenAI's shape has the whole list, with the
/// formats of each.
fn offered(serving: &Serving, caller: &Caller, model: &Model, shape: ErrorFormat) -> bool {
    let speaks = match shape {
        ErrorFormat::OpenAi => true,
        ErrorFormat::Anthropic => model.supports(Chat::Anthropic.word()),
        ErrorFormat::Gemini => !methods(model).is_empty(),
    };
    speaks && caller.may_use(&model.name) && serving.group_of(caller, model).is_some()
}
