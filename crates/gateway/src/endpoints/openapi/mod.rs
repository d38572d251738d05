//! `GET /openapi.json`: the description of this API, written from the rows of all endpoints and the
//! table of errors, so that it cannot forget one.

mod errors;
pub mod shapes;

use super::row::{Access, AccessRole, Family, Row, no_schemas};
use super::social;
use super::table::{FAMILIES, rows as all_rows};
use crate::app::App;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};
use shapes::anything;
use std::collections::BTreeSet;
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Param};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "description", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    vec![Row::get("/openapi.json", Access::Public, page, "This description").gives(anything())]
}

pub async fn page(State(app): State<Arc<App>>) -> Response {
    let serving = app.serving.load();
    // Everybody may read it.
    let public = |cell: &&Arc<Cell>| serving.group_for(None, &cell.model).is_some();
    super::reading::json(&document(serving.catalog.social.cells().filter(public)))
}

pub fn document<'a>(cells: impl Iterator<Item = &'a Arc<Cell>>) -> Value {
    let mut paths = Map::new();
    for row in all_rows() {
        let entry = paths.entry(row.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(row.method.as_str().to_ascii_lowercase(), described(row));
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
                "manage_key": { "type": "http", "scheme": "bearer", "description": "made with `tollgate key create --scope manage`" },
                "session": { "type": "apiKey", "in": "cookie", "name": "tollgate_session", "description": "set by POST /api/session; `__Host-tollgate` over https" },
                "admin_key": { "type": "http", "scheme": "bearer", "description": "made with `tollgate admin-key create`" },
            },
            "schemas": schemas(),
        },
    })
}

/// One operation, with all that its request is made of.
pub struct Operation {
    /// Where it stands in the description.
    pub place: String,
    /// Its id, its parameters, its body, and every named shape in them.
    pub described: Value,
}

/// The operation of a method at a path.
pub fn operation(method: &http::Method, path: &str) -> Option<Operation> {
    let row = all_rows().iter().find(|row| row.method == method && row.path == path)?;
    let whole = described(row);
    let method = method.as_str().to_ascii_lowercase();
    let place = format!("/openapi.json#/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1"));
    let mut asked = json!({
        "operationId": whole["operationId"], "parameters": whole["parameters"], "requestBody": whole["requestBody"],
    });
    let (all, mut used) = (schemas(), Map::new());
    add_named(&asked, &all, &mut used);
    asked["schemas"] = Value::Object(used);
    Some(Operation { place, described: asked })
}

/// The shapes that a value names, and those that they name.
fn add_named(value: &Value, all: &Value, used: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
            if let Some(name) = name
                && !used.contains_key(name)
            {
                used.insert(name.to_owned(), all[name].clone());
                add_named(&all[name], all, used);
            }
            members.values().for_each(|inner| add_named(inner, all, used));
        }
        Value::Array(items) => items.iter().for_each(|inner| add_named(inner, all, used)),
        _ => {}
    }
}

impl Operation {
    /// Whether the body has a field, in dots where it is inside another. Below an object whose
    /// members are not described anything may stand.
    pub fn takes(&self, field: &str) -> bool {
        let content = self.described["requestBody"]["content"].as_object();
        content.into_iter().flat_map(Map::values).any(|media| self.has(&media["schema"], field))
    }

    fn has(&self, schema: &Value, field: &str) -> bool {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.has(&self.described["schemas"][name], field);
        }
        let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
        match (schema.get("properties").and_then(|known| known.get(first)), rest) {
            (None, _) => schema.get("properties").is_none(),
            (Some(_), None) => true,
            (Some(inner), Some(rest)) => self.has(inner, rest),
        }
    }
}

/// Every named shape.
fn schemas() -> Value {
    let parts = FAMILIES.iter().map(|family| (family.schemas)()).chain([errors::schemas()]);
    let named = parts.filter_map(|part| if let Value::Object(named) = part { Some(named) } else { None });
    Value::Object(named.flatten().collect())
}

fn described(row: &Row) -> Value {
    let name = row.path.trim_matches('/').replace(['/', '{', '}', '.', ':', '-'], "_");
    let parameters = [in_path(row), row.parameters()].concat();
    let mut value = json!({
        "operationId": format!("{}_{name}", row.method.as_str().to_ascii_lowercase()),
        "summary": row.summary,
        "tags": [row.tag],
        "parameters": parameters,
        "responses": replies(row),
    });
    if let Some(about) = row.members.about() {
        value["description"] = json!(about);
    }
    // Each of them opens it.
    let security: &[&str] = match row.access {
        Access::Key | Access::Paid => &["key"],
        Access::Account(_) => &["manage_key", "session"],
        Access::Role(AccessRole::Operator) => &["admin_key", "session"],
        Access::Session => &["session"],
        Access::Public | Access::Local => &[],
    };
    if !security.is_empty() {
        value["security"] = security.iter().map(|scheme| json!({ *scheme: [] })).collect();
    }
    if let Some(content) = &row.body {
        value["requestBody"] = json!({ "required": true, "content": content });
    }
    value
}

/// The parts of a path that vary.
fn in_path(row: &Row) -> Vec<Value> {
    let schema = json!({ "type": "string", "minLength": 1 });
    row.in_path().map(|name| json!({ "name": name, "in": "path", "required": true, "schema": schema })).collect()
}

/// A cell as a path of its own, so that clients made from this description know its parameters.
fn social_operation(cell: &Cell) -> Value {
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
        "responses": social::general().map(replies),
        "security": [{ "key": [] }],
    })
}

fn replies(row: &Row) -> Value {
    let mut all = Map::new();
    for (status, content) in &row.replies {
        let mut reply = json!({ "description": "done" });
        if let Some(content) = content {
            reply["content"] = content.clone();
        }
        all.insert(status.to_string(), reply);
    }
    let error = json!({ "application/json": { "schema": errors::shape(row.errors) } });
    for status in refusals(row) {
        all.entry(status.to_string()).or_insert_with(|| json!({ "description": "refused", "content": error }));
    }
    Value::Object(all)
}

/// The statuses of refusals, by what an endpoint takes.
fn refusals(row: &Row) -> BTreeSet<u16> {
    let mut all: BTreeSet<u16> = match row.access {
        Access::Public => [503].into(),
        Access::Local => [404].into(),
        Access::Role(_) | Access::Account(_) | Access::Key | Access::Session => [401, 403, 500, 503].into(),
        Access::Paid => Code::ALL.iter().map(|code| code.status()).filter(|status| *status != 499).collect(),
    };
    if row.in_path().next().is_some() {
        all.insert(404);
    }
    if !row.parameters().is_empty() {
        all.insert(400);
    }
    if row.body.is_some() {
        all.extend([400, 404, 408, 413, 415, 429]);
    }
    all.extend(row.refusals);
    all
}
