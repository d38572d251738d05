//! `/api/admin/social/*`: the cells as operators see them, pausing and resuming, who did it, and
//! the day's capacity.

use super::field::{FieldKind, may};
use super::verb::{OperatorVerb, PlannedCommand, ShownAs};
use super::{Form, OPERATOR, list};
use crate::app::App;
use crate::endpoints::openapi::shapes::{named, number};
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use crate::who::operator::Operator;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::social::Cell;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{PauseChange, SocialDay};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "operators: social data", rows, schemas };

fn rows() -> Vec<Row> {
    let cells_of = "The cells of social data with cost, status, who paused them and health";
    let log = "Who paused and resumed what, when and why, newest first";
    let filters = || {
        vec![
            json!({ "name": "platform", "in": "query", "schema": { "type": "string" } }),
            json!({ "name": "paused", "in": "query", "schema": { "type": "boolean" } }),
        ]
    };
    vec![
        Row::get("/api/admin/social/cells", OPERATOR, cells, cells_of).with(filters).gives(named("List")),
        Row::post("/api/admin/social/pause", OPERATOR, pause, "Pause cells, with a reason")
            .takes(named("SocialChangeRequest"))
            .gives(named("List")),
        Row::post("/api/admin/social/resume", OPERATOR, resume, "Sell paused cells again, with a reason")
            .takes(named("SocialChangeRequest"))
            .gives(named("List")),
        Row::get("/api/admin/social/changes", OPERATOR, changes, log)
            .with(|| vec![number("limit", 1, 1_000, 50)])
            .gives(named("List")),
        DAYS.get("/api/admin/social/days", "What was used of a day's capacity for social data").gives(named("List")),
    ]
}

fn schemas() -> Value {
    json!({
        "SocialChangeRequest": { "type": "object", "required": ["cells", "reason"], "additionalProperties": false, "properties": {
            "cells": {
                "type": "array", "minItems": 1, "items": { "type": "string" },
                "description": "`douyin/search`, or a platform for all of its cells",
            },
            "reason": { "type": "string", "minLength": 1, "maxLength": 1000 },
        } },
        "List": { "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": { "type": "object" } },
        } },
    })
}

/// `GET /api/admin/social/cells?platform=weibo&paused=true`
pub async fn cells(State(app): State<Arc<App>>, request: Request) -> Response {
    super::look(&app, request, async |mut query| {
        let (platform, paused) = (query.take("platform"), query.flag("paused")?);
        query.finish()?;
        app.social.refresh().await?;
        let (now, serving) = (app.world.now_ms(), app.serving.load());
        let wanted = |cell: &&Arc<Cell>| {
            platform.as_ref().is_none_or(|own| *own == cell.platform)
                && paused.is_none_or(|own| own == app.routes.switches.model_is_paused(&cell.model.name))
        };
        let record = |cell: &Arc<Cell>| {
            let why = app.routes.switches.last(&cell.model.name);
            let public = cell.record(app.routes.switches.model_is_paused(&cell.model.name));
            json!({
                "platform": cell.platform,
                "capability": cell.capability.name(),
                "model": cell.model.name,
                "price_usd": public["price_usd"],
                "cost_micro_usd": cell.cost(),
                "status": public["status"],
                "changed": why.as_ref().map(change_json),
                "health": app.routes.health.record(&cell.model.name, now),
            })
        };
        Ok(list(serving.catalog.social.cells().filter(wanted).map(record).collect()))
    })
    .await
}

/// `POST /api/admin/social/pause` with `{"cells": ["weibo/search", "douyin"], "reason": "…"}`
pub async fn pause(State(app): State<Arc<App>>, request: Request) -> Response {
    super::change(&app, request, async |operator, form| put(&app, &operator, form, true).await).await
}

/// `POST /api/admin/social/resume`, the same.
pub async fn resume(State(app): State<Arc<App>>, request: Request) -> Response {
    super::change(&app, request, async |operator, form| put(&app, &operator, form, false).await).await
}

/// All cells that are named, or none: an unknown name changes nothing.
async fn put(app: &App, operator: &Operator, mut form: Form, paused: bool) -> Result<Value, Refusal> {
    let (names, reason) = (form.names("cells")?, form.reason()?);
    form.finish()?;
    let serving = app.serving.load_full();
    let mut chosen: Vec<Arc<Cell>> = Vec::new();
    for name in &names {
        let found = serving.catalog.social.named(name);
        if found.is_empty() {
            let name: String = name.chars().take(64).collect();
            let message =
                format!("There is no cell `{name}`: name one as douyin/search, or a platform for all of its cells.");
            return Err(Refusal::about(Code::SocialEndpointNotFound, "cells", message));
        }
        for cell in found {
            if !chosen.iter().any(|one| Arc::ptr_eq(one, &cell)) {
                chosen.push(cell);
            }
        }
    }
    let mut done = Vec::new();
    for cell in chosen {
        done.push(change_json(&app.social.change(&cell.model.name, paused, &operator.actor(), &reason).await?));
    }
    Ok(list(done))
}

/// `GET /api/admin/social/changes?limit=50`, newest first.
pub async fn changes(State(app): State<Arc<App>>, request: Request) -> Response {
    super::look(&app, request, async |mut query| {
        let limit = query.number("limit", 50, 1..=1_000)?;
        query.finish()?;
        let rows = app.store.pause_changes(u32::try_from(limit).unwrap_or(50)).await?;
        Ok(list(rows.iter().map(change_json).collect()))
    })
    .await
}

/// What was used of a UTC day, of all platforms together (an empty name) and of each.
static DAYS: OperatorVerb = OperatorVerb {
    command: "social_days",
    fields: &[may("back", FieldKind::Number(0, 3_650), "So many days ago; today unless said otherwise")],
    plan: |asked| {
        let day = asked.app.world.now_ms().div_euclid(crate::work::social::DAY) - asked.or("back", 0)?;
        let app = asked.app.clone();
        let shown = ShownAs::With(Box::new(move |days| {
            let rows: Vec<SocialDay> = serde_json::from_value(days).unwrap_or_default();
            list(rows.iter().map(|row| day_json(&app, row)).collect())
        }));
        Ok(PlannedCommand::from(AdminCommand::SocialDays { day }).shown(shown))
    },
};

fn day_json(app: &App, one: &SocialDay) -> Value {
    let (all, own) = app.settings.social.limits(&one.platform);
    let limit = if one.platform.is_empty() { all } else { own };
    json!({
        "day": tollgate_store::date(one.day * crate::work::social::DAY),
        "platform": one.platform,
        "calls": one.calls,
        "cost_micro_usd": one.cost,
        "daily_calls": limit.calls,
        "daily_cost_micro_usd": limit.cost,
    })
}

fn change_json(change: &PauseChange) -> Value {
    json!({
        "kind": change.kind.word(),
        "model": change.name,
        "paused": change.paused,
        "at_ms": change.at,
        "actor": change.actor,
        "reason": change.reason,
    })
}
