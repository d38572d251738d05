//! `GET /v1/models` and `GET /v1/models/{id}`: what this key can use, in OpenAI's shape.

use super::reading;
use crate::app::{App, Serving};
use crate::caller::Caller;
use crate::refusal::Refusal;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde::Serialize;
use std::sync::Arc;
use tollgate_catalog::Model;
use tollgate_wire::error::{Code, Dialect};

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Card>,
}

#[derive(Serialize)]
struct Card {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
    supported_endpoint_types: Vec<String>,
}

/// The specification gives models no date; clients want a number.
const CREATED: i64 = 1_700_000_000;

fn card(model: &Model) -> Card {
    Card {
        id: model.name.clone(),
        object: "model",
        created: CREATED,
        owned_by: model.owner_by.clone().unwrap_or_else(|| "tollgate".to_owned()),
        supported_endpoint_types: model.supported_endpoint_types.clone(),
    }
}

pub async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match reading::caller(&app, &parts).await {
        Ok(caller) => {
            let serving = app.serving.load();
            let mut data: Vec<Card> = serving
                .catalog
                .models
                .values()
                .filter(|model| offered(&serving, &caller, model))
                .map(|model| card(model))
                .collect();
            data.sort_by(|a, b| a.id.cmp(&b.id));
            reading::json(&List { object: "list", data })
        }
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, ""),
    }
}

pub async fn one(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let found = async {
        let caller = reading::caller(&app, &parts).await?;
        let serving = app.serving.load();
        let model = serving.catalog.models.get(&id).filter(|model| offered(&serving, &caller, model));
        model.map(|model| reading::json(&card(model))).ok_or_else(|| {
            Refusal::about(Code::ModelNotFound, "model", format!("The model `{id}` does not exist or is not offered."))
        })
    };
    match found.await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, ""),
    }
}

fn offered(serving: &Serving, caller: &Caller, model: &Model) -> bool {
    caller.may_use(&model.name) && serving.group_of(caller, model).is_some()
}
