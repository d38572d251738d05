//! `GET /v1/images/files/{name}`: a picture that was handed over by a link of ours. The link is the
//! right to read it; no key is asked for, as with the links of providers.

use super::reading;
use super::row::{Access, Row};
use super::stored_file::{from_store, outside};
use crate::app::App;
use crate::refusal::Refusal;
use crate::work::files::{Missing, asked, link_ended};
use crate::work::image::store::check;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::{HeaderMap, header};
use serde_json::json;
use std::sync::Arc;
use tollgate_wire::error::{Code, ErrorFormat};

/// What comes before the name of a picture in its link.
pub const FILES: &str = "/v1/images/files/";

pub fn row() -> Row {
    let file = || json!({ "type": "string", "format": "binary" });
    Row::get("/v1/images/files/{name}", Access::Public, picture, "A picture that was handed over by a signed link")
        .with(|| vec![json!({ "name": "Range", "in": "header", "schema": { "type": "string" } })])
        .replies_with(200, "image/png", file())
        .replies_with(206, "image/png", file())
        .replies_bare(416)
        .refused_with(&[403, 502])
}

async fn picture(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match reading::guarded(deliver(&app, &name, &query.unwrap_or_default(), &parts.headers)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn deliver(app: &App, name: &str, query: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    check(&app.secrets, name, query, app.world.now_ms().div_euclid(1000))?;
    let store = app.images.store.as_ref().ok_or_else(link_ended)?;
    // A range of something that may have changed could be put together wrongly.
    let range = headers.get(header::RANGE).filter(|_| !headers.contains_key(header::IF_RANGE));
    match store.get(name, range.and_then(|value| asked(value.to_str().ok()?))).await {
        Ok((file, kind)) => Ok(from_store(file, kind.mime())),
        Err(Missing::Outside(length)) => Ok(outside(Some(length))),
        Err(Missing::Gone) => Err(link_ended()),
        Err(Missing::Trouble(error)) => {
            tracing::warn!(%error, "a picture that is stored could not be read");
            Err(Refusal::new(Code::Internal, "The picture could not be read; try again."))
        }
    }
}
