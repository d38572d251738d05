//! `GET /v1/social/{platform}/{capability}` and `GET /api/social/catalog`.
//!
//! The order of checks: key, pair, pause, top-up, parameters; then the till asks for the balance,
//! and the work for the day's capacity. None of these refusals is charged or reaches the source.

use super::openapi::shapes::{named, text};
use super::reading;
use super::row::{Access, Family, Row};
use crate::app::App;
use crate::call::Priced;
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::social::{self as desk, AskedCell, SocialCallRequest, checked};
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Checked};
use tollgate_media::social::{BadQuery, pairs};
use tollgate_wire::error::{Code, ErrorFormat};

pub const ENDPOINT: &str = "/v1/social/{platform}/{capability}";

pub const FAMILY: Family = Family { tag: "social", rows, schemas };

fn rows() -> Vec<Row> {
    let on_sale = "The social data on sale: parameters, prices, status, health";
    vec![
        Row::get(ENDPOINT, Access::Paid, fetch, "Public data of a social platform")
            .gives(named("SocialResult"))
            .quoted(priced)
            .names_itself(),
        Row::get("/api/social/catalog", Access::Public, catalog, on_sale).gives(named("SocialCatalog")),
    ]
}

pub async fn fetch(
    State(app): State<Arc<App>>,
    Path((platform, capability)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let id = app.new_call_id();
    let (parts, _) = request.into_parts();
    let work = async {
        let caller = reading::caller(&app, &parts).await?;
        let query = query.as_deref().unwrap_or("");
        let idem = reading::idempotency(&parts.headers, ENDPOINT, &asked_for(&platform, &capability, query))?;
        let which = SocialCallRequest { id, endpoint: ENDPOINT, platform: &platform, capability: &capability, idem };
        app.social.run(caller, which, |cell| check(cell, query)).await
    };
    match reading::guarded(work).await {
        Ok(answer) => answer.into_reply(),
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, &id.to_string()),
    }
}

/// What an Idempotency-Key of a GET stands for: its path and its parameters, in whatever order they
/// came.
fn asked_for(platform: &str, capability: &str, query: &str) -> Vec<u8> {
    // One that cannot be read is refused later.
    let mut pairs = pairs(query).unwrap_or_default();
    pairs.sort();
    pairs.insert(0, (platform.into(), capability.into()));
    let mut printed = Vec::new();
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        printed.extend((text.len() as u64).to_be_bytes());
        printed.extend(text.as_bytes());
    }
    printed
}

fn check(cell: &Cell, query: &str) -> Result<Checked, Refusal> {
    let pairs = pairs(query).map_err(|bad| {
        Refusal::new(
            Code::InvalidParameter,
            match bad {
                BadQuery::Encoding => "The query string is not percent-encoded UTF-8.",
                BadQuery::TooMany => "The query string has too many parameters.",
            },
        )
        .because("encoding")
    })?;
    checked(cell, &pairs)
}

pub async fn catalog(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match reading::caller_if_any(&app, &parts).await {
        Ok(caller) => reading::json(&document(&app, caller.as_deref())),
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

/// The catalog: the authority on what is on sale and what is paused. With a key, what that account
/// can buy at its own prices; without, what everybody can.
pub fn document(app: &App, caller: Option<&Caller>) -> Value {
    let now = app.world.now_ms();
    let serving = app.serving.load();
    let record = |cell: &Arc<Cell>| {
        let group = serving.group_for(caller, &cell.model)?;
        let mut record = cell.record_in(group, app.routes.switches.model_is_paused(&cell.model.name));
        record["health"] = app.routes.health.record(&cell.model.name, now);
        Some(record)
    };
    let cells: Vec<Value> = serving.catalog.social.cells().filter_map(record).collect();
    json!({ "cells": cells })
}

/// A call as far as its price depends on it; its parameters are a JSON object.
fn priced(shop: &Shop<'_>, parts: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    let [platform, capability] = parts else {
        return Err(Refusal::about(Code::InvalidParameter, "endpoint", "The path names platform and capability."));
    };
    let cell = &desk::cell(shop.serving, shop.caller, platform, capability)?;
    let wrong = || Refusal::new(Code::InvalidJson, "The body is a JSON object with the parameters of the call.");
    let given: serde_json::Map<String, Value> = serde_json::from_slice(&body).map_err(|_| wrong())?;
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(wrong()),
    };
    let pairs = given.into_iter().map(|(name, value)| Ok((name, text(value)?)));
    let checked = checked(cell, &pairs.collect::<Result<Vec<_>, Refusal>>()?)?;
    Ok(Box::new(AskedCell { cell: cell.clone(), checked }))
}

/// The row that all cells share.
pub(super) fn general() -> Option<&'static Row> {
    super::table::rows().iter().find(|row| row.path == ENDPOINT)
}

fn schemas() -> Value {
    let text = text();
    json!({
        "SocialResult": { "type": "object", "required": ["object", "platform", "capability", "data"], "properties": {
            "object": { "const": "social.result" }, "platform": text, "capability": text,
            "data": { "type": "object", "description": "The platform's own fields", "additionalProperties": true },
            "next": { "type": "object", "description": "Parameters of the next page, ready to be sent", "additionalProperties": text },
        } },
        "SocialCatalog": { "type": "object", "required": ["cells"], "properties": { "cells": { "type": "array", "items": {
            "type": "object", "required": ["platform", "capability", "model", "method", "path", "params", "price_usd", "unit", "status"],
            "properties": {
                "platform": text, "capability": text, "model": text, "method": { "const": "GET" }, "path": text,
                "params": { "type": "array", "items": { "type": "object", "required": ["name", "type", "required", "description"] } },
                "require_one_of": { "type": "array", "items": { "type": "array", "items": text } },
                "price_usd": { "type": "number" }, "unit": { "const": "call" }, "status": { "enum": ["available", "paused"] },
                "health": { "type": ["object", "null"] },
            },
        } } } },
    })
}
