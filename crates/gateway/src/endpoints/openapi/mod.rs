//! `GET /openapi.json`: the description of this API, written from the table of paths, the table of errors and one line for each
//! operation (`operations.rs`), so that it cannot forget one.

mod operations;
mod schemas;

use super::root::spoken_at;
use super::table::{Access, PATHS};
use crate::app::App;
use axum::extract::State;
use axum::response::Response;
use operations::Operation;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Param};
use tollgate_wire::error::{Code, Dialect};

pub async fn page(State(app): State<Arc<App>>) -> Response {
    let serving = app.serving.load();
    // Everybody may read it.
    let public = |cell: &&Arc<Cell>| serving.group_for(None, &cell.model).is_some();
    super::reading::json(&document(serving.catalog.social.cells().filter(public)))
}

pub fn document<'a>(cells: impl Iterator<Item = &'a Arc<Cell>>) -> Value {
    let mut paths = Map::new();
    for (method, path, access) in PATHS {
        let described = described(method, path, *access, operations::of(method, path));
        let entry = paths.entry((*path).to_owned()).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(method.to_ascii_lowercase(), described);
        }
    }
    for cell in cells {
        paths.insert(cell.path(), json!({ "get": social_operation(cell) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "admin_key": { "type": "http", "scheme": "bearer", "description": "made with `tollgate admin-key create`" },
            },
            "schemas": schemas::all(),
        },
    })
}

fn described(method: &str, path: &str, access: Access, operation: Operation) -> Value {
    let name = path.trim_matches('/').replace(['/', '{', '}', '.', ':', '-'], "_");
    let parameters = [in_path(path), operation.parameters.clone()].concat();
    let mut value = json!({
        "operationId": format!("{}_{name}", method.to_ascii_lowercase()),
        "summary": operation.summary,
        "parameters": parameters,
        "responses": replies(path, access, &operation),
    });
    let security = match access {
        Access::Key | Access::Paid => Some("key"),
        Access::Admin => Some("admin_key"),
        Access::Public | Access::Operator => None,
    };
    if let Some(scheme) = security {
        value["security"] = json!([{ scheme: [] }]);
    }
    if let Some(content) = operation.body {
        value["requestBody"] = json!({ "required": true, "content": content });
    }
    value
}

/// The parts of a path that stand in braces.
fn in_path(path: &str) -> Vec<Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let schema = json!({ "type": "string", "minLength": 1 });
    names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": schema })).collect()
}

/// A cell as a path of its own, so that clients made from this description know its parameters.
fn social_operation(cell: &Cell) -> Value {
    const GENERAL: &str = "/v1/social/{platform}/{capability}";
    let parameter = |param: &Param| {
        let mut schema = param.schema();
        if let Some(object) = schema.as_object_mut() {
            object.remove("description");
        }
        json!({
            "name": param.name, "in": "query", "required": param.required && param.default.is_none(),
            "description": param.description(), "schema": schema,
        })
    };
    json!({
        "operationId": cell.model.name.replace('-', "_"),
        "summary": cell.summary(),
        "tags": ["social", cell.platform],
        "parameters": cell.params.iter().map(parameter).collect::<Vec<_>>(),
        "x-require-one-of": cell.groups(),
        "responses": replies(GENERAL, Access::Paid, &operations::of("GET", GENERAL)),
        "security": [{ "key": [] }],
    })
}

fn replies(path: &str, access: Access, operation: &Operation) -> Value {
    let mut all = Map::new();
    for (status, content) in &operation.replies {
        let mut reply = json!({ "description": "done" });
        if let Some(content) = content {
            reply["content"] = content.clone();
        }
        all.insert(status.to_string(), reply);
    }
    let error = json!({ "application/json": { "schema": error_at(path) } });
    for status in refusals(path, access, operation) {
        all.entry(status.to_string()).or_insert_with(|| json!({ "description": "refused", "content": error }));
    }
    Value::Object(all)
}

/// What an error looks like below this path: in the dialect of whoever asks there.
fn error_at(path: &str) -> Value {
    let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match path {
        "/v1/video/generations/{id}" => named("LegacyVideoError"),
        // Three SDKs ask here; each is answered in its own dialect.
        "/v1/models" | "/v1/models/{id}" => {
            json!({ "anyOf": [named("Error"), named("AnthropicError"), named("GeminiError")] })
        }
        _ => named(match spoken_at(path) {
            Dialect::OpenAi => "Error",
            Dialect::Anthropic => "AnthropicError",
            Dialect::Gemini => "GeminiError",
        }),
    }
}

/// The statuses of refusals, by what an operation takes.
fn refusals(path: &str, access: Access, operation: &Operation) -> BTreeSet<u16> {
    let mut all: BTreeSet<u16> = match access {
        Access::Public => [503].into(),
        Access::Operator => [404].into(),
        Access::Admin | Access::Key => [401, 403, 500, 503].into(),
        Access::Paid => Code::ALL.iter().map(|code| code.status()).filter(|status| *status != 499).collect(),
    };
    if path.contains('{') {
        all.insert(404);
    }
    if !operation.parameters.is_empty() {
        all.insert(400);
    }
    if operation.body.is_some() {
        all.extend([400, 404, 408, 413, 415, 429]);
    }
    all.extend(operation.refusals);
    all
}
