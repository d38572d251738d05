//! Receipts: the signed proof of what one call cost, and the public keys that verify it.

use super::account::answer;
use super::reading;
use crate::app::App;
use crate::refusal::Refusal;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderValue, header};
use std::sync::Arc;
use tollgate_store::receipt::price_id;
use tollgate_store::{CallId, Receipted, StoreError};
use tollgate_wire::error::{Code, Dialect};

/// Keys change when the operator says so: others may keep the document for a minute.
const KEYS_KEPT: HeaderValue = HeaderValue::from_static("public, max-age=60");

pub async fn receipt(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        let unknown = || Refusal::about(Code::NotFound, "call_id", format!("There is no call `{id}` of this account."));
        let call: CallId = id.parse().map_err(|_| unknown())?;
        let signed = match app.store.receipt(caller.account.id, call).await {
            Ok(Receipted::Signed(signed)) => signed,
            Ok(Receipted::StillOpen) => {
                let message = "The call has not ended yet; its receipt is made from its end.";
                return Err(Refusal::about(Code::CallInProgress, "call_id", message));
            }
            Ok(Receipted::NoSuchCall) => return Err(unknown()),
            Err(StoreError::Broken(why)) => {
                tracing::error!(%call, why, "no receipt");
                return Err(Refusal::new(Code::Internal, "No receipt can be signed for this call; ask the operator."));
            }
            Err(error) => return Err(error.into()),
        };
        app.published.know(&app.store, &signed.receipt.kid).await?;
        Ok(json_text(signed.text()))
    })
    .await
}

/// A price never changes: whoever has it may keep it.
const PRICE_KEPT: HeaderValue = HeaderValue::from_static("public, max-age=86400, immutable");

/// The price that a receipt names. Its hash is asked for by those who have the receipt, and cannot be guessed by others: no key is needed, and
/// the prices of closed groups stay with those who were charged by them.
pub async fn price(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    let unknown = || Refusal::about(Code::NotFound, "price_id", format!("No call was ever charged by a price `{id}`."));
    let found = match price_id(&id) {
        Some(id) => app.price_versions.find(&app.store, id).await,
        None => Ok(None),
    };
    match found.and_then(|price| price.ok_or_else(unknown)) {
        Ok(price) => {
            let mut reply = Response::new(Body::from(price));
            let headers = reply.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CACHE_CONTROL, PRICE_KEPT);
            reply
        }
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, ""),
    }
}

pub async fn keys(State(app): State<Arc<App>>) -> Response {
    match app.published.keys(&app.store).await {
        Ok(keys) => {
            let mut reply = reading::json(keys.as_ref());
            reply.headers_mut().insert(header::CACHE_CONTROL, KEYS_KEPT);
            reply
        }
        Err(error) => reading::refused(&app, Dialect::OpenAi, error.into(), ""),
    }
}

fn json_text(text: String) -> Response {
    let mut reply = Response::new(Body::from(text));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
