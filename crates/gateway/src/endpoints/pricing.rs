//! `GET /api/pricing`: what is on sale to everybody and at what price; with a key, what that
//! account can buy at its own prices. Closed groups and models with `login_required` are for those
//! who may buy them.

use super::openapi::shapes::{named, text};
use super::row::{Access, Family, Row};
use super::{reading, served};
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::price_list::Viewer;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_wire::error::ErrorFormat;

pub const FAMILY: Family = Family { tag: "prices", rows, schemas };

fn rows() -> Vec<Row> {
    let row = Row::get("/api/pricing", Access::Public, list, "The price list; with a key, the account's own prices");
    vec![row.gives(named("PriceList")).refused_with(&[401, 403, 500])]
}

fn schemas() -> Value {
    let names = json!({ "type": "array", "items": text() });
    json!({
        "PriceList": { "type": "object", "required": ["pricing_version", "auto_groups", "data"], "properties": {
            "pricing_version": text(), "auto_groups": names, "groups": names, "paid_prices": { "type": "boolean" },
            "data": { "type": "array", "items": { "type": "object", "required": ["model_name", "billing_unit", "book_faces"] } },
        } },
    })
}

pub async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match handle(&app, &parts).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn handle(app: &App, parts: &Parts) -> Result<Response, Refusal> {
    let serving = app.serving.load_full();
    let (viewer, cache) = match reading::caller_if_any(app, parts).await? {
        Some(caller) => {
            let groups = serving.catalog.in_order(&caller.account.groups).map(str::to_owned).collect();
            (Viewer::Account { groups, topped_up: caller.account.topped_up }, "private, no-cache")
        }
        None => (Viewer::Anybody, "public, no-cache"),
    };
    let served: Vec<_> = served().map(|(kind, row)| (kind, row.method.as_str(), row.path)).collect();
    let page = app.price_list.page(&serving, viewer, &served)?;
    let known = parts.headers.get_all(header::IF_NONE_MATCH).iter();
    let known = known.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let mut reply = if known.map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == page.etag) {
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        reply
    } else {
        let mut reply = Response::new(Body::from(page.body.clone()));
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        reply
    };
    let headers = reply.headers_mut();
    headers.insert(header::ETAG, page.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::VARY, HeaderValue::from_static("authorization, x-api-key, x-goog-api-key"));
    Ok(reply)
}
