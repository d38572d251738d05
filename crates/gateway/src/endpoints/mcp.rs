//! `POST /mcp`: the social cells as tools of the Model Context Protocol (streamable HTTP, without
//! sessions: each message is answered at once with JSON). `?platform=a,b&capability=search` narrows
//! the list, because agents choose badly among a hundred tools. A tool call is an ordinary social
//! call of the caller's key: the same checks, price and usage row, and one charge for one
//! `Idempotency-Key`.

use super::openapi::shapes::anything;
use super::reply::REPLAYED;
use super::row::{Access, Family, Row, no_schemas};
use super::{reading, social};
use crate::app::App;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::social::{SocialCallRequest, checked};
use axum::body::Body;
use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Checked};
use tollgate_media::social::pairs;
use tollgate_store::Idem;
use tollgate_wire::error::{Code, ErrorFormat};

/// Versions of the protocol that this speaks, newest first. What it uses is the same in all of
/// them.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const ENDPOINT: &str = "/mcp";

const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

pub const FAMILY: Family = Family { tag: "mcp", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    let summary = "The social data as tools of the Model Context Protocol (streamable HTTP)";
    vec![
        Row::post(ENDPOINT, Access::Paid, message, summary)
            .takes(anything())
            .gives(anything())
            // A notification is taken note of.
            .replies_bare(202)
            .quoted_as(social::ENDPOINT),
    ]
}

pub async fn message(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let work = async {
        let caller = reading::caller(&app, &parts).await?;
        let body = reading::small_json_body(&app, &parts, body).await?;
        let message: Value = serde_json::from_slice(&body)
            .map_err(|_| Refusal::new(Code::InvalidJson, "The body is not a JSON-RPC message."))?;
        // A client that asks again numbers its message anew; what is asked is the same.
        let params = &message["params"];
        let asked = json!([params["name"], params["arguments"]]).to_string();
        let idem = reading::idempotency(&parts.headers, ENDPOINT, asked.as_bytes())?;
        Ok((caller, idem, message))
    };
    let (caller, idem, message) = match reading::guarded(work).await {
        Ok(read) => read,
        Err(refusal) => return reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    };
    let Some(id) = message.get("id").filter(|id| id.is_string() || id.is_number()) else {
        // A notification, or an answer to something that was never asked: taken note of.
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = StatusCode::ACCEPTED;
        return reply;
    };
    let outcome = answer(&app, caller, &Filter::read(query.as_deref()), idem, &message).await;
    let replayed = outcome.as_ref().is_ok_and(|(_, replayed)| *replayed);
    let mut reply = reading::json(&match outcome {
        Ok((result, _)) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, text)) => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } }),
    });
    if replayed {
        reply.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    reply
}

type Failed = (i32, String);

/// What is answered, and whether that was stored by an earlier call.
async fn answer(
    app: &Arc<App>,
    caller: Arc<Caller>,
    filter: &Filter,
    idem: Option<Idem>,
    message: &Value,
) -> Result<(Value, bool), Failed> {
    let params = &message["params"];
    let fresh = |result: Value| Ok((result, false));
    match message["method"].as_str() {
        Some("initialize") => fresh(hello(params["protocolVersion"].as_str())),
        Some("ping") => fresh(json!({})),
        Some("tools/list") => {
            let serving = app.serving.load();
            let open = |cell: &&Arc<Cell>| filter.takes(cell) && !app.routes.switches.model_is_paused(&cell.model.name);
            let offered = |cell: &Arc<Cell>| Some(tool(cell, serving.group_of(&caller, &cell.model)?));
            let tools: Vec<Value> = serving.catalog.social.cells().filter(open).filter_map(offered).collect();
            fresh(json!({ "tools": tools }))
        }
        Some("tools/call") => call(app, caller, filter, idem, params).await,
        Some(other) => Err((NO_METHOD, format!("There is no method {other:?} here."))),
        None => Err((INVALID_REQUEST, "A message has a method.".to_owned())),
    }
}

fn hello(asked: Option<&str>) -> Value {
    let version = asked.filter(|asked| VERSIONS.contains(asked)).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "tollgate", "title": "Tollgate social data", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Public data of social platforms. Each call that returns data is charged at the price in the tool's description; \
            nothing found and failures are free. `next` in an answer has the arguments of the next page.",
    })
}

/// A cell as a tool, at the price of a group.
fn tool(cell: &Cell, group: &str) -> Value {
    let price = cell.price_in(group).map(|price| price.to_string()).unwrap_or_default();
    let mut description = format!("{}. {price} USD per call that returns data.", cell.summary());
    for group in cell.groups() {
        description.push_str(&format!(" At least one of {} is required.", group.join(", ")));
    }
    json!({
        "name": cell.model.name,
        "title": cell.summary(),
        "description": description,
        "inputSchema": cell.schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": true },
    })
}

async fn call(
    app: &Arc<App>,
    caller: Arc<Caller>,
    filter: &Filter,
    idem: Option<Idem>,
    params: &Value,
) -> Result<(Value, bool), Failed> {
    let name = params["name"].as_str().unwrap_or_default();
    let serving = app.serving.load_full();
    let cell = serving.catalog.social.by_model(name).filter(|cell| filter.takes(cell));
    let cell = cell.filter(|cell| serving.group_of(&caller, &cell.model).is_some());
    let Some(cell) = cell else { return Err((INVALID_PARAMS, format!("There is no tool {name:?}."))) };
    let id = app.new_call_id();
    let (mut first, mut replayed) = (id, false);
    let read = |cell: &Cell| arguments(cell, &params["arguments"]);
    let (platform, capability) = (&*cell.platform, cell.capability.name());
    let which = SocialCallRequest { id, endpoint: social::ENDPOINT, platform, capability, idem };
    let work = app.social.run(caller, which, read);
    let (text, failed) = match reading::guarded(work).await {
        Ok(answer) => {
            (first, replayed) = (answer.call, answer.replayed);
            match answer.body.whole().await {
                Ok(body) => (String::from_utf8_lossy(&body).into_owned(), false),
                Err(_) => (format!("{}: The answer broke off.", Code::SocialDataUpstreamError.code()), true),
            }
        }
        Err(refusal) => {
            app.metrics.refused(refusal.code.code());
            (format!("{}: {}", refusal.code.code(), refusal.message), true)
        }
    };
    let meta = json!({ "call_id": first.to_string() });
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": failed, "_meta": meta });
    Ok((result, replayed))
}

/// JSON values as the texts that a query string would carry.
fn arguments(cell: &Cell, given: &Value) -> Result<Checked, Refusal> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (name, value) in given.as_object().into_iter().flatten() {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                let message = format!("`{name}` is a single value.");
                return Err(Refusal::about(Code::InvalidParameter, name, message).because("wrong_type"));
            }
        };
        pairs.push((name, text));
    }
    checked(cell, &pairs)
}

/// Which cells a client wants to see.
#[derive(Default)]
struct Filter {
    platforms: Vec<String>,
    capabilities: Vec<String>,
}

impl Filter {
    fn read(query: Option<&str>) -> Filter {
        let mut filter = Filter::default();
        for (name, value) in pairs(query.unwrap_or("")).unwrap_or_default() {
            let words = value.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned);
            match &*name {
                "platform" => filter.platforms.extend(words),
                "capability" => filter.capabilities.extend(words),
                _ => {}
            }
        }
        filter
    }

    fn takes(&self, cell: &Cell) -> bool {
        let fits = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        fits(&self.platforms, &cell.platform) && fits(&self.capabilities, cell.capability.name())
    }
}
