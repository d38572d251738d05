//! `GET /api/pricing`: what is on sale to everybody and at what price; with a key, what that
//! account can buy at its own prices. Closed groups and models with `login_required` are for those
//! who may buy them. Beside it one record, the schema, and the ratios as maps.

use super::openapi::shapes::{anything, named, text};
use super::reading;
use super::row::{Access, Family, Row};
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::price_list::Viewer;
use crate::sale::price_page::{Packing, PriceBody, PricePage};
use crate::sale::{PriceFilter, Serving, ratio_config};
use crate::world::Millis;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tollgate_catalog::record_schema;
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "prices", rows, schemas };

/// Anybody's list may be a minute old; an account's is asked for each time.
const FRESH: i64 = 60;
const FOR_ANYBODY: &str = "public, max-age=60";
const FOR_ACCOUNTS: &str = "private, no-cache";
const VARY: &str = "authorization, x-api-key, x-goog-api-key, accept-encoding";

fn rows() -> Vec<Row> {
    let about = "The price list; with a key, the account's own prices";
    vec![
        Row::get("/api/pricing", Access::Public, list, about)
            .with(filters)
            .gives(named("PriceList"))
            .refused_with(&[400, 401, 403, 500]),
        Row::get("/api/pricing/schema", Access::Public, schema, "The JSON Schema of the price list and its records")
            .gives(anything()),
        Row::get("/api/pricing/{model}", Access::Public, one, "One record of the price list")
            .routed_by("/api/pricing/{*model}")
            .gives(named("PriceRecord"))
            .refused_with(&[401, 403, 404, 500]),
        Row::get("/api/ratio_config", Access::Public, ratios, "The ratios as maps, where the operator allows it")
            .gives(anything())
            .refused_with(&[404, 500]),
    ]
}

/// As the query string has them.
fn filters() -> Vec<Value> {
    let filter = |name: &str, about: &str, schema: Value| json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema });
    let word = |list: &[&str]| json!({ "type": "string", "enum": list });
    let name = || json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    vec![
        filter("type", "Models of this type", word(tollgate_catalog::MODEL_TYPES)),
        filter("capability", "Models with this capability", word(tollgate_catalog::CAPABILITIES)),
        filter("task", "Models for this task", word(tollgate_catalog::TASKS)),
        filter("endpoint_type", "Models that this endpoint offers", word(&tollgate_catalog::EndpointType::names())),
        filter("vendor", "Models of this vendor: its number, table or name", name()),
        filter("group", "Models sold to this group", name()),
        filter("q", "Models with this in their name, description or tags", name()),
        filter("after", "Models after this name", name()),
        filter("limit", "So many at most", json!({ "type": "integer", "minimum": 1, "maximum": 10_000 })),
    ]
}

fn schemas() -> Value {
    let names = json!({ "type": "array", "items": text() });
    json!({
        "PriceList": { "type": "object", "required": ["success", "pricing_version", "auto_groups", "data"], "properties": {
            "success": { "const": true }, "pricing_version": text(), "auto_groups": names, "groups": names,
            "paid_prices": { "type": "boolean" }, "has_more": { "type": "boolean" },
            "data": { "type": "array", "items": named("PriceRecord") },
        } },
        "PriceRecord": {
            "type": "object",
            "description": "GET /api/pricing/schema has it in full",
            "required": ["model_name", "billing_unit", "book_faces"],
        },
    })
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    answered(&app, reading::guarded(whole(&app, &parts)).await)
}

async fn one(State(app): State<Arc<App>>, Path(model): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    answered(&app, reading::guarded(record(&app, &parts, &model)).await)
}

async fn schema() -> Response {
    static SCHEMA: LazyLock<Bytes> = LazyLock::new(|| record_schema().to_string().into());
    let mut reply = Response::new(Body::from(SCHEMA.clone()));
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_ANYBODY));
    reply
}

async fn ratios(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    answered(&app, reading::guarded(maps(&app, &parts)).await)
}

fn answered(app: &App, outcome: Result<Response, Refusal>) -> Response {
    outcome.unwrap_or_else(|refusal| reading::refused(app, ErrorFormat::OpenAi, refusal, ""))
}

/// What one viewer sees.
struct Seen {
    serving: Arc<Serving>,
    viewer: Viewer,
    at: Millis,
    page: Arc<PricePage>,
}

impl Seen {
    async fn by(app: &App, viewer: impl FnOnce(&Serving) -> Viewer) -> Result<Seen, Refusal> {
        let serving = app.serving.load_full();
        let viewer = viewer(&serving);
        let at = app.world.now_ms();
        let page = app.price_list.page(&serving, viewer.clone(), at, app.routes.switches.paused_names()).await?;
        Ok(Seen { serving, viewer, at, page })
    }

    /// By whoever asks.
    async fn by_caller(app: &App, parts: &Parts) -> Result<Seen, Refusal> {
        let caller = reading::caller_if_any(app, parts).await?;
        let viewer = |serving: &Serving| match &caller {
            None => Viewer::Anybody,
            Some(caller) => {
                let groups = serving.catalog.in_order(&caller.account.groups).map(str::to_owned).collect();
                Viewer::Account { groups, topped_up: caller.account.topped_up }
            }
        };
        Seen::by(app, viewer).await
    }

    /// Nobody keeps a price beyond its end.
    fn cache_control(&self) -> HeaderValue {
        if self.viewer != Viewer::Anybody {
            return HeaderValue::from_static(FOR_ACCOUNTS);
        }
        let left = self.serving.catalog.next_change(self.at).map(|next| (next - self.at).div_euclid(1_000));
        match left.filter(|left| *left < FRESH) {
            Some(left) => HeaderValue::try_from(format!("public, max-age={left}"))
                .unwrap_or_else(|_| HeaderValue::from_static(FOR_ACCOUNTS)),
            None => HeaderValue::from_static(FOR_ANYBODY),
        }
    }

    /// Whether the viewer may know of a group.
    fn knows(&self, group: &str) -> bool {
        let own = match &self.viewer {
            Viewer::Anybody => false,
            Viewer::Account { groups, .. } => groups.iter().any(|own| own == group),
        };
        own || self.serving.catalog.groups.get(group).is_some_and(|group| group.public)
    }
}

async fn whole(app: &App, parts: &Parts) -> Result<Response, Refusal> {
    let filter = PriceFilter::read(parts.uri.query().unwrap_or(""))?;
    let seen = Seen::by_caller(app, parts).await?;
    let health = app.routes.figures.now();
    let body = match filter {
        None => seen.page.whole(health.generation, &health.models),
        Some(filter) => {
            let wanted = |model: &_| filter.wants(&seen.serving.catalog, model, |group| seen.knows(group));
            Arc::new(seen.page.some(&health.models, wanted, filter.limit))
        }
    };
    reply(parts, body, seen.cache_control()).await
}

async fn record(app: &App, parts: &Parts, model: &str) -> Result<Response, Refusal> {
    let seen = Seen::by_caller(app, parts).await?;
    let health = app.routes.figures.now();
    let body = seen.page.one(model, &health.models).ok_or_else(|| {
        let shown: String = model.chars().take(200).collect();
        let text = format!("The model `{shown}` does not exist or is not offered.");
        Refusal::about(Code::ModelNotFound, "model", text)
    })?;
    reply(parts, Arc::new(body), seen.cache_control()).await
}

async fn maps(app: &App, parts: &Parts) -> Result<Response, Refusal> {
    if !app.settings.price_list.ratio_config {
        return Err(Refusal::new(Code::NotFound, "The operator does not publish ratios here; ask GET /api/pricing."));
    }
    let seen = Seen::by(app, |_| Viewer::Anybody).await?;
    let cache_control = seen.cache_control();
    let written = tokio::task::spawn_blocking(move || ratio_config::written(seen.page.records())).await;
    let failed = || Refusal::new(Code::Internal, "The ratios could not be written.");
    let body = written.map_err(|_| failed())?.ok_or_else(failed)?;
    reply(parts, Arc::new(PriceBody::new(0, body.into())), cache_control).await
}

/// A body in the form that the client takes, or the news that it has it already.
async fn reply(parts: &Parts, body: Arc<PriceBody>, cache_control: HeaderValue) -> Result<Response, Refusal> {
    let lines = |name| parts.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    let accepted = lines(header::ACCEPT_ENCODING).collect::<Vec<_>>().join(",");
    let packing = body.packing(Packing::accepted(&accepted));
    let tag = body.tag(packing);
    let known = lines(header::IF_NONE_MATCH).flat_map(|line| line.split(',')).any(|tag| body.known_by(tag));
    let mut reply = if known {
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        reply
    } else {
        let bytes = match body.ready(packing) {
            Some(bytes) => bytes,
            // Compressing takes its time: not on a thread that serves.
            None => tokio::task::spawn_blocking(move || body.pack(packing))
                .await
                .map_err(|_| Refusal::new(Code::Internal, "The price list could not be compressed."))?,
        };
        let mut reply = Response::new(Body::from(bytes));
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(name) = packing.name() {
            reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        reply
    };
    let headers = reply.headers_mut();
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, cache_control);
    headers.insert(header::VARY, HeaderValue::from_static(VARY));
    Ok(reply)
}
