//! Receipts: the signed proof of what one call cost, and the public keys that verify it.

use super::account::{answer, usage_within};
use super::openapi::shapes::{named, text};
use super::reading;
use super::row::{Access, Family, MembersSee, Row};
use crate::app::App;
use crate::refusal::Refusal;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_store::receipt::price_id;
use tollgate_store::{CallId, CallReach, Receipted, StoreError};
use tollgate_wire::error::{Code, ErrorFormat};

/// Keys change when the operator says so: others may keep the document for a minute.
const KEYS_CACHED: HeaderValue = HeaderValue::from_static("public, max-age=60");

pub const FAMILY: Family = Family { tag: "receipts", rows, schemas };

fn rows() -> Vec<Row> {
    let version = "The price that a receipt names, as it was when the call was held";
    vec![
        Row::get("/v1/usage/{call_id}/receipt", Access::Key, receipt, "The signed receipt of a call that has ended")
            .gives(named("Receipt"))
            .refused_with(&[409])
            .to_members(MembersSee::OwnKeys),
        Row::get("/.well-known/tollgate-receipts", Access::Public, keys, "The public keys that verify receipts")
            .gives(named("ReceiptKeys")),
        Row::get("/api/pricing/versions/{price_id}", Access::Public, price, version)
            .gives(named("PriceVersion"))
            .refused_with(&[500]),
    ]
}

pub async fn receipt(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| receipt_of(&app, caller.reach(&app.store).await?, &id).await).await
}

/// The receipt of a call of an account.
pub(super) async fn receipt_of(app: &App, reach: CallReach, id: &str) -> Result<Response, Refusal> {
    let unknown = || Refusal::about(Code::NotFound, "call_id", format!("There is no call `{id}` of this account."));
    let call: CallId = id.parse().map_err(|_| unknown())?;
    // Whose a call is that runs is not asked: to who sees only their own it is there when it ends.
    if !reach.is_whole() {
        usage_within(app, reach, call).await?.ok_or_else(unknown)?;
    }
    let signed = match app.store.receipt(reach.account, call).await {
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
}

/// A price never changes: whoever has it may keep it.
const PRICE_CACHED: HeaderValue = HeaderValue::from_static("public, max-age=86400, immutable");

/// The price that a receipt names. Its hash is asked for by those who have the receipt, and cannot
/// be guessed by others: no key is needed, and the prices of closed groups stay with those who were
/// charged by them.
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
            headers.insert(header::CACHE_CONTROL, PRICE_CACHED);
            reply
        }
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

pub async fn keys(State(app): State<Arc<App>>) -> Response {
    match app.published.keys(&app.store).await {
        Ok(keys) => {
            let mut reply = reading::json(keys.as_ref());
            reply.headers_mut().insert(header::CACHE_CONTROL, KEYS_CACHED);
            reply
        }
        Err(error) => reading::refused(&app, ErrorFormat::OpenAi, error.into(), ""),
    }
}

fn json_text(text: String) -> Response {
    let mut reply = Response::new(Body::from(text));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

fn schemas() -> Value {
    let (text, int) = (text(), json!({ "type": "integer" }));
    json!({
        "PriceVersion": { "type": "object", "required": ["model", "version", "tier", "group", "paid", "faces", "multiplier"], "properties": {
            "model": text, "version": { "type": "string", "description": "`pricing_version` of the price list it was taken from" },
            "tier": { "type": ["string", "null"] }, "when": { "type": "array" }, "group": text, "paid": { "type": "boolean" },
            "unit": text, "faces": { "type": "object", "description": "Micro-USD per million tokens, per call or per second" },
            "multiplier": text,
        } },
        "Receipt": { "type": "object", "required": ["receipt", "signature"], "properties": {
            "receipt": { "type": "object", "description": "docs/receipts.md says what it contains" },
            "signature": { "type": "string", "description": "Ed25519 over the canonical bytes of `receipt`, base64url" },
        } },
        "ReceiptKeys": { "type": "object", "required": ["keys"], "properties": { "keys": { "type": "array", "items": {
            "type": "object", "required": ["kid", "kty", "crv", "x", "from_ms", "until_ms"], "properties": {
                "kid": text, "kty": { "const": "OKP" }, "crv": { "const": "Ed25519" }, "x": text,
                "from_ms": int, "until_ms": { "type": ["integer", "null"] },
            },
        } } } },
    })
}
