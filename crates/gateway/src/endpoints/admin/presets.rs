//! What could be on sale: models that come with the product, and providers that are known by name.
//! Nothing of it is secret, and nothing is changed.

use super::field::{FieldKind, VerbField, may};
use super::schemas::record;
use super::{OPERATOR, list, query, reply};
use crate::app::App;
use crate::endpoints::openapi::shapes::{self, named, text, text_or_null};
use crate::endpoints::reading;
use crate::endpoints::row::Row;
use crate::refusal::Refusal;
use crate::settings::{ability_named, preset, preset_record, presets};
use crate::who::operator;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::request::Parts;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_catalog::form::did_you_mean;
use tollgate_catalog::import::{Glob, STALE_DAYS, shipped, shipped_overview};
use tollgate_upstream::Preset;
use tollgate_wire::error::Code;

const STALE: VerbField =
    may("stale_after", FieldKind::Number(0, 36_500), "Days after which a verified price is stale; 90");
const MODEL: VerbField = may("model", FieldKind::Text(200), "Only models of this name; `*` stands for any text");
const ENDPOINT: VerbField =
    may("endpoint", FieldKind::Text(40), "Only those that sell this: chat, embeddings, images, …");

fn parameters(fields: &'static [VerbField]) -> impl Fn() -> Vec<Value> {
    move || {
        let one = |field: &VerbField| json!({ "name": field.name, "in": "query", "schema": field.schema() });
        fields.iter().map(one).collect()
    }
}

/// Beside the catalog that is on sale.
pub fn shipped_rows() -> Vec<Row> {
    let all = "/api/admin/catalog/shipped";
    vec![
        Row::get(all, OPERATOR, overview, "How many models come with the product for each provider")
            .with(parameters(&[STALE]))
            .gives(shapes::list("ShippedProvider")),
        Row::get(
            "/api/admin/catalog/shipped/{provider}",
            OPERATOR,
            of_provider,
            "The shipped models of a provider with its list prices",
        )
        .with(parameters(&[MODEL, STALE]))
        .gives(named("ShippedModels")),
    ]
}

/// Beside the providers of the configuration.
pub fn preset_rows() -> Vec<Row> {
    let all = "/api/admin/provider-presets";
    vec![
        Row::get(all, OPERATOR, known, "The providers that are known by name, and what the configuration uses of them")
            .with(parameters(&[ENDPOINT]))
            .gives(shapes::list("ProviderPreset")),
        Row::get(
            "/api/admin/provider-presets/{name}",
            OPERATOR,
            one,
            "A provider that is known by name, and what to set for it",
        )
        .gives(named("ProviderPreset")),
    ]
}

async fn looked(
    app: &Arc<App>,
    parts: &Parts,
    fields: &[VerbField],
    work: impl FnOnce(&Map<String, Value>) -> Result<Value, Refusal>,
) -> Response {
    let outcome = async {
        operator::authenticate(&app.register(), parts).await?;
        work(&query(parts, fields)?)
    };
    reply(app, reading::guarded(outcome).await)
}

fn stale(given: &Map<String, Value>) -> u32 {
    given.get(STALE.name).and_then(Value::as_u64).and_then(|days| u32::try_from(days).ok()).unwrap_or(STALE_DAYS)
}

async fn overview(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let now = app.world.now_ms();
    let work = |given: &Map<String, Value>| shipped_overview(now, stale(given)).map(list).map_err(broken);
    looked(&app, &parts, &[STALE], work).await
}

/// The files are compiled in and tested.
fn broken(why: String) -> Refusal {
    tracing::error!(%why, "the shipped models cannot be read");
    Refusal::new(Code::Internal, "The shipped models cannot be read.")
}

async fn of_provider(State(app): State<Arc<App>>, Path(provider): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let now = app.world.now_ms();
    let work = |given: &Map<String, Value>| {
        let unknown = |why: String| Refusal::about(Code::NotFound, "provider", format!("{why}."));
        let file = shipped(&provider).map_err(unknown)?;
        let only: Vec<Glob> = given.get(MODEL.name).and_then(Value::as_str).map(Glob::new).into_iter().collect();
        let rows = file.rows(&only, now, stale(given));
        Ok(json!({ "object": "list", "provider": file.provider, "source": file.source, "data": rows }))
    };
    looked(&app, &parts, &[MODEL, STALE], work).await
}

fn shown(app: &App, row: &Preset) -> Value {
    let serving = app.serving.load();
    let uses = serving.providers.values().filter(|one| one.settings.preset.as_ref().unwrap_or(&one.name) == &row.id);
    let mut names: Vec<&str> = uses.map(|provider| provider.name.as_str()).collect();
    names.sort_unstable();
    preset_record(row, &names)
}

async fn known(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let work = |given: &Map<String, Value>| {
        let wrong = |why: String| Refusal::about(Code::InvalidParameter, ENDPOINT.name, format!("`endpoint`: {why}."));
        let ability = given.get(ENDPOINT.name).and_then(Value::as_str).map(ability_named).transpose().map_err(wrong)?;
        let rows = presets().iter().filter(|row| ability.is_none_or(|one| row.endpoints().contains(&one)));
        Ok(list(rows.map(|row| shown(&app, row)).collect()))
    };
    looked(&app, &parts, &[ENDPOINT], work).await
}

async fn one(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let work = |_: &Map<String, Value>| {
        let row = preset(&name).ok_or_else(|| {
            let hint = did_you_mean(&name, presets().iter().map(|row| row.id.as_str()));
            Refusal::about(Code::NotFound, "name", format!("No provider is known by this name{hint}."))
        })?;
        Ok(shown(&app, row))
    };
    looked(&app, &parts, &[], work).await
}

pub fn shipped_schemas() -> Value {
    let mut shipped = record("The shipped models of a provider", &["object", "provider", "source", "data"]);
    shipped["properties"] = json!({
        "object": { "const": "list" }, "provider": text(), "source": text(),
        "data": { "type": "array", "items": named("ShippedModel") },
    });
    let mut model =
        record("A model that comes with the product", &["model", "list", "unverified", "verified_at", "stale"]);
    model["properties"] = json!({
        "model": text(), "context": { "type": ["integer", "null"] },
        "input_usd": text_or_null(), "output_usd": text_or_null(), "cache_read_usd": text_or_null(),
        "unverified": { "type": "array", "items": text() }, "verified_at": text(), "stale": { "type": "boolean" },
        "list": { "type": "object", "additionalProperties": { "type": "integer" }, "description": "Micro-USD, by face" },
    });
    let mut provider = record("How many models are shipped", &["provider", "models", "verified_at", "stale", "source"]);
    provider["properties"] = json!({
        "provider": text(), "models": { "type": "integer" }, "verified_at": text(), "stale": { "type": "integer" },
        "source": text(),
    });
    json!({ "ShippedProvider": provider, "ShippedModels": shipped, "ShippedModel": model })
}

pub fn preset_schemas() -> Value {
    let texts = json!({ "type": "array", "items": text() });
    let mut preset =
        record("A provider that is known by name", &["id", "name", "kind", "base_url", "endpoints", "configured"]);
    preset["properties"] = json!({
        "id": text(), "name": text(), "kind": text(), "base_url": text(), "key": text(), "key_env": text(),
        "access_env": text_or_null(), "settings": texts, "endpoints": texts, "quirks": texts, "configured": texts,
        "bill_on_cancel": { "type": ["boolean", "null"] }, "takes_links": { "type": "boolean" },
        "address": text(), "docs": text(), "note": text(), "next": text(),
    });
    json!({ "ProviderPreset": preset })
}
