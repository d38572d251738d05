//! What changes over HTTP have in common: they can be repeated with an `Idempotency-Key`, they say
//! by `If-Match` which version they were made for, and their replies carry the request id that
//! stands in the log and the `ETag` of what is there now.
//!
//! A secret is shown once: the reply that is given again has none.

use super::reading;
use crate::app::App;
use crate::refusal::Refusal;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tollgate_store::{Account, AccountId, ChangeClaim, ChangeKey, Key};
use tollgate_wire::error::Code;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The headers of a change, for its description.
pub fn parameters(edits: bool, required: bool) -> Vec<Value> {
    let header = |name: &str, required: bool, about: &str| json!({ "name": name, "in": "header", "required": required, "description": about, "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" } });
    let mut all = vec![header("Idempotency-Key", false, "Repeated with it within a day, the change is made once")];
    if edits {
        all.push(header("If-Match", required, "The `ETag` that was read; `*`: whatever is there"));
    }
    all
}

/// The version that was seen; nothing where any is meant.
pub fn seen(parts: &Parts, required: bool) -> Result<Option<String>, Refusal> {
    let Some(value) = parts.headers.get(header::IF_MATCH) else {
        if required {
            let why = "A change says by `If-Match` which version it was made for: the `ETag` of what was read.";
            return Err(Refusal::about(Code::PreconditionRequired, "If-Match", why));
        }
        return Ok(None);
    };
    match value.to_str().unwrap_or_default().trim() {
        "*" => Ok(None),
        // What is no tag of ours is no version there is.
        text => Ok(Some(text.trim_matches('"').to_owned())),
    }
}

/// A request that says it has no body.
pub fn has_no_body(parts: &Parts) -> bool {
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.is_none_or(|length| length == "0") && !parts.headers.contains_key(header::TRANSFER_ENCODING)
}

/// Adds the version to what has one.
pub fn with_versions(command: &str, answer: &mut Value) {
    let tagged = |version: String| json!(format!("\"{version}\""));
    let account = |value: &Value| serde_json::from_value::<Account>(value.clone()).ok().map(|one| one.version());
    let key = |value: &Value| serde_json::from_value::<Key>(value.clone()).ok().map(|one| one.version());
    let version: &dyn Fn(&Value) -> Option<String> = match command {
        "account_show" | "account_change" | "account_webhook" | "account_create" | "account_list" | "account_close"
        | "account_reopen" => &account,
        "key_change" | "key_create" | "key_revoke" | "key_rotate" | "key_list" => &key,
        _ => return,
    };
    let records: Vec<&mut Value> = match answer {
        Value::Array(records) => records.iter_mut().collect(),
        one => vec![one],
    };
    for record in records {
        if let Some(version) = version(record) {
            record["etag"] = tagged(version);
        }
    }
}

/// The tag of what a reply shows.
pub fn tag(shown: &Value) -> Option<HeaderValue> {
    HeaderValue::try_from(shown.get("etag")?.as_str()?).ok()
}

/// The reply with its name, and with the tag of what it shows.
pub fn named(mut reply: Response, id: &str, tag: Option<HeaderValue>) -> Response {
    if let Ok(id) = HeaderValue::try_from(id) {
        reply.headers_mut().insert(REQUEST_ID, id);
    }
    if let Some(tag) = tag {
        reply.headers_mut().insert(header::ETAG, tag);
    }
    reply
}

const DAY_MS: i64 = 86_400_000;
/// Changes that an account makes by itself within a day: each leaves a row for good.
const MOST_A_DAY: u32 = 1_000;
/// Keys that an account makes by itself, those that ended among them.
pub const MOST_KEYS: usize = 1_000;

/// Whether an account may change something by itself once more. It need have no money for that, so
/// there is an end to it.
pub async fn admit(app: &App, account: AccountId) -> Result<(), Refusal> {
    let since = app.world.now_ms().saturating_sub(DAY_MS);
    if app.store.changes_since(account, since, MOST_A_DAY).await? < MOST_A_DAY {
        return Ok(());
    }
    let text = format!("{MOST_A_DAY} things were changed in this account within a day; wait, or ask the operator.");
    Err(Refusal::new(Code::RateLimitExceeded, text).because("changes").after(3_600))
}

/// The same for one more key.
pub async fn admit_key(app: &App, account: AccountId) -> Result<(), Refusal> {
    if app.store.keys(account).await?.len() < MOST_KEYS {
        return Ok(());
    }
    let text = format!("This account has {MOST_KEYS} keys, those that ended among them; the operator can make more.");
    Err(Refusal::new(Code::Conflict, text))
}

/// Makes a change, or answers as it was answered when it was made before.
pub async fn once(
    app: &App,
    owner: String,
    parts: &Parts,
    body: &[u8],
    work: impl Future<Output = Result<Value, Refusal>>,
) -> Result<Value, Refusal> {
    let hash = Sha256::new().chain_update(parts.method.as_str()).chain_update(" ").chain_update(parts.uri.path());
    let Some(idem) = reading::repeated(&parts.headers, hash.chain_update("\n").chain_update(body))? else {
        return work.await;
    };
    let key = ChangeKey { owner, key_hash: idem.key_hash, fingerprint: idem.fingerprint };
    match app.store.claim_change(&key).await? {
        ChangeClaim::Begun => {}
        ChangeClaim::Before(_, body) => return Ok(serde_json::from_str(&body).unwrap_or_default()),
        ChangeClaim::Another => {
            let why = "This Idempotency-Key came with another request before.";
            return Err(Refusal::about(Code::IdempotencyConflict, "Idempotency-Key", why));
        }
        ChangeClaim::UnderWay => {
            let why = "A change with this Idempotency-Key is under way, or broke off: look whether it was made.";
            return Err(Refusal::about(Code::IdempotencyInProgress, "Idempotency-Key", why));
        }
        ChangeClaim::Full => {
            let why = "Too many changes with an Idempotency-Key were made in a day; leave it out, or wait.";
            return Err(Refusal::about(Code::RateLimitExceeded, "Idempotency-Key", why).after(60));
        }
    }
    let done = work.await;
    let reply = match &done {
        Ok(value) => Some((200, without_secret(value).to_string())),
        // It may have been made all the same.
        Err(refusal) if matches!(refusal.code, Code::LedgerUnavailable | Code::Internal) => return done,
        Err(_) => None,
    };
    if let Err(error) = app.store.end_change(&key, reply).await {
        tracing::warn!(%error, "the reply to a change could not be written down");
    }
    done
}

fn without_secret(value: &Value) -> Value {
    let mut value = value.clone();
    for name in ["secret", "token", "link"] {
        if let Some(secret) = value.get_mut(name) {
            *secret = Value::Null;
        }
    }
    value
}
