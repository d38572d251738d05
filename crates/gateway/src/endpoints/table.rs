//! Every family of endpoints, and the router made of their rows. The first file to open;
//! docs/endpoints.md has all rows on one page.
//!
//! To add a family: write a file with its handlers, rows and schemas, and add a line here.

use super::row::{Access, Family, Row};
use super::{
    account, admin, chat, client_secrets, conversations, decisions, embeddings, gemini, health, images, live, manage,
    mcp, models, music, openapi, people, pricing, quote, realtime, receipts, rerank, responses, root, runs, social,
    speech, statements, topups, transcriptions, usage_sums, videos, webhooks, workflows,
};
use crate::app::App;
use crate::call::lost_refusal;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use http::{HeaderName, HeaderValue, Method, Uri};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use tollgate_store::StoredReply;
use tollgate_wire::error::ErrorFormat;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(super) const FAMILIES: &[Family] = &[
    // applications
    chat::FAMILY,
    responses::FAMILY,
    realtime::FAMILY,
    conversations::FAMILY,
    gemini::FAMILY,
    embeddings::FAMILY,
    rerank::FAMILY,
    decisions::FAMILY,
    social::FAMILY,
    speech::FAMILY,
    music::FAMILY,
    transcriptions::FAMILY,
    images::FAMILY,
    videos::FAMILY,
    client_secrets::FAMILY,
    webhooks::FAMILY,
    mcp::FAMILY,
    quote::FAMILY,
    models::FAMILY,
    pricing::FAMILY,
    workflows::FAMILY,
    runs::FAMILY,
    // people
    people::sessions::FAMILY,
    people::sign_up::FAMILY,
    people::passwords::FAMILY,
    people::totp::FAMILY,
    people::oidc::FAMILY,
    people::passkeys::FAMILY,
    people::members::FAMILY,
    people::playground::FAMILY,
    people::view::FAMILY,
    // account holders
    account::FAMILY,
    usage_sums::FAMILY,
    receipts::FAMILY,
    manage::FAMILY,
    topups::FAMILY,
    statements::FAMILY,
    live::FAMILY,
    // operators
    admin::accounts::FAMILY,
    admin::keys::FAMILY,
    admin::people::FAMILY,
    admin::books::FAMILY,
    admin::catalog::FAMILY,
    admin::house::FAMILY,
    admin::overview::FAMILY,
    admin::jobs::FAMILY,
    admin::money::FAMILY,
    admin::alerts::FAMILY,
    admin::social::FAMILY,
    admin::routes::FAMILY,
    admin::workflows::FAMILY,
    // anybody, and the machines around us
    root::FAMILY,
    health::FAMILY,
    openapi::FAMILY,
];

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| FAMILIES.iter().flat_map(Family::tagged_rows).collect());

/// Every endpoint there is.
pub fn rows() -> &'static [Row] {
    &ROWS
}

/// The endpoint types of the catalog that this build serves, each with how it is asked. A model
/// that offers another one is a mistake in the catalog.
pub fn served() -> impl Iterator<Item = (&'static str, &'static Row)> {
    rows().iter().filter_map(|row| Some((row.serves?, row)))
}

/// What a call of this endpoint leaves under its Idempotency-Key when nobody knows what became of
/// it: something may have been made where making it again costs as much again.
pub fn lost_reply(endpoint: &str) -> Option<StoredReply> {
    let row = rows().iter().find(|row| row.path == endpoint)?;
    if row.begun_once { lost_refusal() } else { None }
}

/// The dialect of whoever asks below this path, whether or not it exists: that of the rows nearest
/// to it, if they have one in common.
pub(super) fn spoken_at(path: &str) -> ErrorFormat {
    let nearest = rows().iter().map(|row| row.shares(path)).max().unwrap_or_default();
    let mut spoken = rows().iter().filter(|row| row.shares(path) == nearest).map(|row| row.errors.dialect());
    let first = spoken.next().unwrap_or(ErrorFormat::OpenAi);
    if spoken.all(|other| other == first) { first } else { ErrorFormat::OpenAi }
}

pub fn router(app: Arc<App>) -> Router {
    let named = middleware::map_response_with_state(app.clone(), with_request_id);
    let mut router = Router::new();
    let mut patterns = BTreeSet::new();
    for row in rows() {
        if let Some(pattern) = row.routed_by
            && !patterns.insert((pattern, row.method.as_str()))
        {
            continue;
        }
        let mut handler = row.handler.clone();
        // axum answers HEAD by what answers GET, and that would fetch and charge.
        if row.access == Access::Paid && row.method == Method::GET {
            handler = handler.head(move |uri: Uri| root::not_by_head(uri, allowed(row.path)));
        }
        if !row.names_itself {
            handler = handler.layer(named.clone());
        }
        router = router.route(row.routed_by.unwrap_or(row.path), handler);
    }
    router
        .merge(Router::new().fallback(root::no_such_path).layer(named))
        .method_not_allowed_fallback(root::no_such_method)
        .with_state(app)
}

/// The methods that a path takes, as the header `Allow` lists them.
fn allowed(path: &str) -> String {
    let methods: Vec<&str> = rows().iter().filter(|row| row.path == path).map(|row| row.method.as_str()).collect();
    methods.join(",")
}

/// Every reply can be named in a question to the operator.
async fn with_request_id(State(app): State<Arc<App>>, mut reply: Response) -> Response {
    if !reply.headers().contains_key(REQUEST_ID)
        && let Ok(id) = HeaderValue::try_from(app.new_call_id().to_string())
    {
        reply.headers_mut().insert(REQUEST_ID, id);
    }
    reply
}

/// The operator's own port.
pub fn metrics_router(app: Arc<App>) -> Router {
    Router::new().route(health::METRICS, get(health::metrics_for_all)).with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::row::Quoted;

    #[test]
    fn a_path_that_is_missing_is_missing_in_its_own_dialect() {
        for (path, dialect) in [
            ("/v1/messages", ErrorFormat::Anthropic),
            ("/v1/messages/batches", ErrorFormat::Anthropic),
            ("/v1beta/cachedContents", ErrorFormat::Gemini),
            ("/v1beta/models/m", ErrorFormat::Gemini),
            ("/v1/models/m:generateContent", ErrorFormat::Gemini),
            ("/v1/models/m", ErrorFormat::OpenAi),
            ("/v1/models", ErrorFormat::OpenAi),
            ("/v1/messagesx", ErrorFormat::OpenAi),
            ("/v1/embeddings", ErrorFormat::OpenAi),
            ("/v1/models/m:embedContent", ErrorFormat::Gemini),
            ("/wp-login.php", ErrorFormat::OpenAi),
        ] {
            assert_eq!(spoken_at(path), dialect, "{path}");
        }
    }

    #[test]
    fn whatever_is_paid_says_how_it_is_quoted() {
        let quoted = |path: &str| rows().iter().any(|row| row.path == path && matches!(row.quoted, Quoted::By { .. }));
        for row in rows() {
            let paid = row.access == Access::Paid;
            match row.quoted {
                Quoted::Free => assert!(!paid, "{} {} has no quote", row.method, row.path),
                Quoted::By { .. } => assert!(paid, "{} {} costs nothing", row.method, row.path),
                Quoted::As(path) => assert!(paid && quoted(path), "{} is quoted as {path}", row.path),
            }
        }
    }

    #[test]
    fn a_method_and_path_stand_in_one_row() {
        let mut seen = BTreeSet::new();
        for row in rows() {
            assert!(seen.insert((row.path, row.method.as_str())), "{} {}", row.method, row.path);
            assert!(!row.summary.is_empty() && !row.replies.is_empty(), "{} {}", row.method, row.path);
        }
    }
}
