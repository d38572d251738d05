//! `GET /v1/social/{platform}/{capability}` and `GET /api/social/catalog`.
//!
//! The order of checks: key, pair, pause, top-up, parameters; then the till asks for the balance, and the work for the day's
//! capacity. None of these refusals is charged or reaches the source.

use super::reading;
use crate::app::App;
use crate::call::{self, Ask};
use crate::caller::Caller;
use crate::given;
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::social::call::{SocialCall, paused};
use crate::social::{Asked, Track};
use crate::switches::Door;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Checked, Wrong};
use tollgate_media::social::{BadQuery, pairs};
use tollgate_store::{CallId, Idem};
use tollgate_wire::error::{Code, Dialect};

const ENDPOINT: &str = "/v1/social/{platform}/{capability}";

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
        run(&app, id, caller, &platform, &capability, idem, |cell| check(cell, query)).await
    };
    match reading::guarded(work).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, &id.to_string()),
    }
}

/// What an Idempotency-Key of a GET stands for: its path and its parameters, in whatever order they came.
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

/// One call, wherever it comes from; `read` gives its parameters once it is known that they matter.
pub async fn run(
    app: &Arc<App>,
    id: CallId,
    caller: Arc<Caller>,
    platform: &str,
    capability: &str,
    idem: Option<Idem>,
    read: impl FnOnce(&Cell) -> Result<Checked, Refusal>,
) -> Result<Response, Refusal> {
    let serving = app.serving.load_full();
    let cell = &cell(&Shop { serving: &serving, caller: Some(&caller) }, platform, capability)?;
    let door = app.switches.door(&cell.model.name, app.world.now_ms(), app.settings.social.probe_after);
    if door == Door::Paused {
        return Err(paused(cell));
    }
    // When it is time to try a paused cell again, only a call that nothing stands in the way of can; for others it is paused.
    let probing = door == Door::Probe;
    let or_paused = |refusal| if probing { paused(cell) } else { refusal };
    let caller = topped_up(app, cell, caller).await.map_err(or_paused)?;
    let checked = read(cell).map_err(or_paused)?;
    for (name, value) in checked.pairs(cell) {
        given::text(app, name, &value.to_string(), &[]).map_err(or_paused)?;
    }
    let asked = Asked { cell: cell.clone(), checked };
    let track = Track::new(app, cell, id, caller.account.id, asked.fingerprint());
    let work = SocialCall { asked, track: track.clone(), probing };
    let outcome = call::run(app, caller, Ask { id, endpoint: ENDPOINT, work, idem }).await;
    let admitted = track.was_admitted();
    track.end().await;
    outcome.map_err(|refusal| if admitted { refusal } else { or_paused(refusal) })
}

/// Social data is for accounts that have topped up once, perhaps since their key was last read.
async fn topped_up(app: &App, cell: &Cell, mut caller: Arc<Caller>) -> Result<Arc<Caller>, Refusal> {
    if cell.model.requires_topup && !caller.account.topped_up {
        caller = app.keys.read_again(&app.store, &caller).await?;
        if !caller.account.topped_up {
            return Err(Refusal::new(
                Code::ModelRequiresTopup,
                "Social data needs paid credit: top up the account once. Trial credit cannot be spent on it.",
            ));
        }
    }
    Ok(caller)
}

/// The cell on sale under this name, to this caller: one that is sold to closed groups only does not exist for others.
pub fn cell(shop: &Shop<'_>, platform: &str, capability: &str) -> Result<Arc<Cell>, Refusal> {
    let sold =
        |cell: &&Arc<Cell>| shop.caller.is_none_or(|caller| shop.serving.group_of(caller, &cell.model).is_some());
    shop.serving.catalog.social.cell(platform, capability).filter(sold).cloned().ok_or_else(|| {
        let name = |text: &str| text.chars().take(64).collect::<String>();
        let message =
            format!("There is no `{}` of `{}` on sale; see GET /api/social/catalog.", name(capability), name(platform));
        Refusal::new(Code::SocialEndpointNotFound, message)
    })
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

/// Parameters against their cell, with the refusal that the specification and the decisions name.
pub fn checked<N: AsRef<str>, V: AsRef<str>>(cell: &Cell, pairs: &[(N, V)]) -> Result<Checked, Refusal> {
    cell.check(pairs).map_err(|bad| {
        let code = match bad.wrong {
            Wrong::Unknown => Code::UnknownParameter,
            Wrong::Missing | Wrong::NoneOfGroup => Code::MissingParameter,
            _ => Code::InvalidParameter,
        };
        Refusal::about(code, &bad.param, bad.message).because(bad.wrong.reason())
    })
}

pub async fn catalog(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match reading::caller_if_any(&app, &parts).await {
        Ok(caller) => reading::json(&document(&app, caller.as_deref())),
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, ""),
    }
}

/// The catalog: the authority on what is on sale and what is paused. With a key, what that account can buy at its own prices;
/// without, what everybody can.
pub fn document(app: &App, caller: Option<&Caller>) -> Value {
    let now = app.world.now_ms();
    let serving = app.serving.load();
    let record = |cell: &Arc<Cell>| {
        let group = serving.group_for(caller, &cell.model)?;
        let mut record = cell.record_in(group, app.switches.model_is_paused(&cell.model.name));
        record["health"] = app.social.health.record(&cell.model.name, now);
        Some(record)
    };
    let cells: Vec<Value> = serving.catalog.social.cells().filter_map(record).collect();
    json!({ "cells": cells })
}
