//! `GET /v1/webhooks/secret`: what an account verifies our webhooks with.

use super::account::answer;
use super::openapi::shapes::named;
use super::reading;
use super::row::{Access, Family, Row};
use crate::app::App;
use crate::work::video::webhooks;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

pub const FAMILY: Family = Family { tag: "webhooks", rows, schemas };

fn rows() -> Vec<Row> {
    let row = Row::get("/v1/webhooks/secret", Access::Key, secret, "What the account verifies webhooks with");
    vec![row.gives(named("WebhookSecret"))]
}

fn schemas() -> Value {
    json!({ "WebhookSecret": { "type": "object", "additionalProperties": true } })
}

pub async fn secret(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        let all = webhooks::secrets(&app.video, caller.account.id);
        // The first signs what is sent from now on; while an old one is being exchanged, both do.
        Ok(reading::json(&json!({ "object": "webhook.secret", "secret": all.first(), "secrets": all })))
    })
    .await
}
