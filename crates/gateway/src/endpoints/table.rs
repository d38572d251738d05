//! Every path of the gateway, grouped by who calls it. The first file to open.

use super::{
    account, admin, chat, conversations, count, gemini, health, mcp, models, openapi, pricing, quote, receipts,
    responses, root, social, video_content, video_create, video_tasks, webhooks,
};
use crate::app::App;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Who may call a path, and whether it can cost money. Tests walk this list: a path without a line here does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Loopback peers only, unless an own port is set.
    Operator,
    /// An admin key.
    Admin,
    /// A key; free of charge.
    Key,
    /// A key; held and charged.
    Paid,
}

pub const PATHS: &[(&str, &str, Access)] = &[
    // applications
    ("POST", "/v1/chat/completions", Access::Paid),
    ("POST", "/v1/messages", Access::Paid),
    ("POST", "/v1/messages/count_tokens", Access::Key),
    ("POST", "/v1/responses", Access::Paid),
    ("GET", "/v1/responses", Access::Paid),
    ("POST", "/v1/responses/compact", Access::Paid),
    ("POST", "/v1/responses/input_tokens", Access::Key),
    ("GET", "/v1/responses/{id}", Access::Key),
    ("DELETE", "/v1/responses/{id}", Access::Key),
    ("POST", "/v1/responses/{id}/cancel", Access::Key),
    ("GET", "/v1/responses/{id}/input_items", Access::Key),
    ("POST", "/v1/conversations", Access::Key),
    ("GET", "/v1/conversations/{id}", Access::Key),
    ("POST", "/v1/conversations/{id}", Access::Key),
    ("DELETE", "/v1/conversations/{id}", Access::Key),
    ("GET", "/v1/conversations/{id}/items", Access::Key),
    ("POST", "/v1/conversations/{id}/items", Access::Key),
    ("GET", "/v1/conversations/{id}/items/{item}", Access::Key),
    ("DELETE", "/v1/conversations/{id}/items/{item}", Access::Key),
    ("POST", "/v1beta/models/{model}:generateContent", Access::Paid),
    ("POST", "/v1beta/models/{model}:streamGenerateContent", Access::Paid),
    ("POST", "/v1beta/models/{model}:countTokens", Access::Key),
    ("POST", "/v1/models/{model}:generateContent", Access::Paid),
    ("POST", "/v1/models/{model}:streamGenerateContent", Access::Paid),
    ("POST", "/v1/models/{model}:countTokens", Access::Key),
    ("GET", "/v1/social/{platform}/{capability}", Access::Paid),
    ("POST", "/v1/videos", Access::Paid),
    ("POST", "/v1/video/generations", Access::Paid),
    ("POST", "/v1/videos/{id}/remix", Access::Paid),
    ("GET", "/v1/videos", Access::Key),
    ("GET", "/v1/videos/{id}", Access::Key),
    ("DELETE", "/v1/videos/{id}", Access::Key),
    ("GET", "/v1/videos/{id}/content", Access::Key),
    ("GET", "/v1/video/generations/{id}", Access::Key),
    ("GET", "/v1/webhooks/secret", Access::Key),
    ("POST", "/mcp", Access::Paid),
    ("POST", "/v1/quote", Access::Key),
    ("GET", "/v1/models", Access::Key),
    ("GET", "/v1/models/{id}", Access::Key),
    ("GET", "/v1beta/models", Access::Key),
    ("GET", "/v1beta/models/{id}", Access::Key),
    ("GET", "/api/pricing", Access::Public),
    ("GET", "/api/pricing/versions/{price_id}", Access::Public),
    // account holders
    ("GET", "/v1/balance", Access::Key),
    ("GET", "/v1/usage", Access::Key),
    ("GET", "/v1/usage/{call_id}", Access::Key),
    ("GET", "/v1/usage/{call_id}/receipt", Access::Key),
    ("GET", "/.well-known/tollgate-receipts", Access::Public),
    // anybody
    ("GET", "/", Access::Public),
    ("GET", "/api/social/catalog", Access::Public),
    // operators
    ("GET", "/api/admin/social/cells", Access::Admin),
    ("POST", "/api/admin/social/pause", Access::Admin),
    ("POST", "/api/admin/social/resume", Access::Admin),
    ("GET", "/api/admin/social/changes", Access::Admin),
    ("GET", "/api/admin/social/days", Access::Admin),
    // machines around us
    ("GET", "/healthz", Access::Public),
    ("GET", "/readyz", Access::Public),
    ("GET", "/openapi.json", Access::Public),
    ("GET", "/metrics", Access::Operator),
];

/// The endpoint types of the catalog that this build serves, each with how it is asked. A model that offers another one is a
/// mistake in the catalog.
pub const SERVED: &[(&str, &str, &str)] = &[
    ("openai", "POST", "/v1/chat/completions"),
    ("anthropic", "POST", "/v1/messages"),
    ("openai-response", "POST", "/v1/responses"),
    ("gemini", "POST", "/v1beta/models/{model}:generateContent"),
    ("openai-video", "POST", "/v1/videos"),
];

pub fn router(app: Arc<App>) -> Router {
    let free = Router::new()
        .route("/v1/quote", post(quote::quote))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one).post(gemini::ask))
        .route("/v1beta/models", get(models::list))
        .route("/v1beta/models/{*id}", get(models::one).post(gemini::ask))
        .route("/v1/messages/count_tokens", post(count::of_messages))
        .route("/v1/responses/input_tokens", post(responses::stored::input_tokens))
        .route("/v1/responses/{id}", get(responses::stored::get).delete(responses::stored::delete))
        .route("/v1/responses/{id}/cancel", post(responses::stored::cancel))
        .route("/v1/responses/{id}/input_items", get(responses::stored::input_items))
        .route("/v1/conversations", post(conversations::create))
        .route(
            "/v1/conversations/{id}",
            get(conversations::get).post(conversations::update).delete(conversations::delete),
        )
        .route("/v1/conversations/{id}/items", get(conversations::list_items).post(conversations::add_items))
        .route("/v1/conversations/{id}/items/{item}", get(conversations::get_item).delete(conversations::delete_item))
        .route("/api/pricing", get(pricing::list))
        .route("/api/pricing/versions/{price_id}", get(receipts::price))
        .route("/v1/balance", get(account::balance))
        .route("/v1/usage", get(account::usage))
        .route("/v1/usage/{call_id}", get(account::usage_of))
        .route("/v1/usage/{call_id}/receipt", get(receipts::receipt))
        .route("/.well-known/tollgate-receipts", get(receipts::keys))
        .route("/api/social/catalog", get(social::catalog))
        .route("/mcp", post(mcp::message))
        .route("/v1/videos", get(video_tasks::list))
        .route("/v1/videos/{id}", get(video_tasks::one).delete(video_tasks::delete))
        .route("/v1/videos/{id}/content", get(video_content::content))
        .route("/v1/video/generations/{id}", get(video_tasks::legacy))
        .route("/v1/webhooks/secret", get(webhooks::secret))
        .route("/api/admin/social/cells", get(admin::social::cells))
        .route("/api/admin/social/pause", post(admin::social::pause))
        .route("/api/admin/social/resume", post(admin::social::resume))
        .route("/api/admin/social/changes", get(admin::social::changes))
        .route("/api/admin/social/days", get(admin::social::days))
        .route("/", get(root::welcome))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/openapi.json", get(openapi::page))
        .route("/metrics", get(health::metrics))
        .fallback(root::no_such_path)
        .layer(middleware::map_response_with_state(app.clone(), with_request_id));
    // A paid call names itself.
    Router::new()
        .route("/v1/chat/completions", post(chat::completions))
        .route("/v1/messages", post(chat::messages))
        .route("/v1/responses", post(responses::create).get(responses::socket::open))
        .route("/v1/responses/compact", post(responses::compact::compact))
        // axum answers HEAD by what answers GET, and that would fetch and charge.
        .route("/v1/social/{platform}/{capability}", get(social::fetch).head(root::only_get))
        .route("/v1/videos", post(video_create::videos))
        .route("/v1/video/generations", post(video_create::generations))
        .route("/v1/videos/{id}/remix", post(video_create::remix))
        .merge(free)
        .method_not_allowed_fallback(root::no_such_method)
        .with_state(app)
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
    Router::new().route("/metrics", get(health::metrics_for_all)).with_state(app)
}
