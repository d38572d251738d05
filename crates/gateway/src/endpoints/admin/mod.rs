//! `/api/admin/*`: what operators do over HTTP, with an admin key. What the store keeps the reason
//! of has a `reason`; whatever is changed is in the log with who changed it.
//!
//! A command of the store is a verb (`verb.rs`): fields (`field.rs`), and a function that makes the
//! command of them. `social.rs` has besides what needs more than the store.

pub mod accounts;
pub mod alerts;
pub mod books;
pub mod catalog;
mod catalog_draft;
mod catalog_preview;
mod export_file;
pub(super) mod field;
pub mod house;
mod job_runs;
pub mod jobs;
pub mod keys;
pub mod money;
pub mod overview;
pub mod people;
mod presets;
mod provider_test;
pub mod routes;
pub(super) mod schemas;
pub mod social;
mod verb;
pub mod workflows;

use super::reading;
use super::row::{Access, AccessRole};
use crate::app::App;
use crate::refusal::Refusal;
use crate::who::operator::{self, Operator};
use axum::extract::Request;
use axum::response::Response;
use field::{FieldKind, VerbField, may, must};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_catalog::Snapshot;
use tollgate_media::social::pairs;
use tollgate_store::MOST_IN_ACCOUNT;
use tollgate_wire::error::{Code, ErrorFormat};
use verb::OperatorRequest;

/// Who may do all of it.
pub(super) const OPERATOR: Access = Access::Role(AccessRole::Operator);

/// Longest reason that is stored.
const LONGEST_REASON: usize = 1_000;

const TEXT: FieldKind = FieldKind::Text(200);
/// A limit of spending: up to what an account can have.
const LIMIT: FieldKind = FieldKind::Number(0, MOST_IN_ACCOUNT.nano());
pub(super) const ACCOUNT: VerbField = must("account", FieldKind::Id("acct_"), "The account");
pub(super) const REASON: VerbField =
    must("reason", FieldKind::Text(LONGEST_REASON), "Why; it is stored with the change");
const PAGE: VerbField = may("limit", FieldKind::Number(1, 500), "Rows of a page; 50 unless said otherwise");

/// How many rows are wanted.
fn limit(asked: &OperatorRequest<'_>) -> Result<u32, Refusal> {
    asked.or(PAGE.name, 50)
}

/// Names that the catalog knows.
fn known(
    asked: &OperatorRequest<'_>,
    field: &str,
    names: &[String],
    unknown: impl Fn(&Snapshot, &[String]) -> Option<String>,
) -> Result<(), Refusal> {
    let why = unknown(&asked.app.serving.load().catalog, names);
    why.map_or(Ok(()), |why| Err(Refusal::about(Code::InvalidParameter, field, format!("`{field}`: {why}."))))
}

fn missing(field: &str, wanted: &str) -> Refusal {
    Refusal::about(Code::MissingParameter, field, format!("`{field}` is required: {wanted}."))
}

/// The words of a query as these fields have them; none is unknown or said twice.
pub(super) fn query(parts: &http::request::Parts, fields: &[VerbField]) -> Result<Map<String, Value>, Refusal> {
    let mut given = Map::new();
    for (name, value) in Query::read(parts.uri.query().unwrap_or(""))?.0 {
        let field = fields.iter().find(|field| field.name == name).ok_or_else(|| unknown(&name))?;
        if given.insert(name, field.kind.parsed(value)).is_some() {
            return Err(wrong(field.name, "given twice"));
        }
    }
    field::check(&fields.iter().collect::<Vec<_>>(), &given)?;
    Ok(given)
}

/// A body that is a JSON object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Refusal::new(Code::InvalidJson, "The body is not a JSON object.")),
    }
}

/// Finds the operator, runs, and turns a refusal into a reply.
async fn look(app: &Arc<App>, request: Request, work: impl AsyncFnOnce(Query) -> Result<Value, Refusal>) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = async {
        operator::authenticate(&app.register(), &parts).await?;
        work(Query::read(parts.uri.query().unwrap_or(""))?).await
    };
    reply(app, reading::guarded(outcome).await)
}

/// The same for a change, whose body is a JSON object.
async fn change(
    app: &Arc<App>,
    request: Request,
    work: impl AsyncFnOnce(Operator, Form) -> Result<Value, Refusal>,
) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        let operator = operator::authenticate(&app.register(), &parts).await?;
        let body = reading::small_json_body(app, &parts, body).await?;
        work(operator, Form(object(&body)?)).await
    };
    reply(app, reading::guarded(outcome).await)
}

fn reply(app: &App, outcome: Result<Value, Refusal>) -> Response {
    match outcome {
        Ok(value) => reading::json(&value),
        Err(refusal) => reading::refused(app, ErrorFormat::OpenAi, refusal, ""),
    }
}

fn list(data: Vec<Value>) -> Value {
    json!({ "object": "list", "data": data })
}

pub(super) fn unknown(name: &str) -> Refusal {
    let name: String = name.chars().take(64).collect();
    Refusal::about(Code::UnknownParameter, &name, format!("`{name}` is not a parameter of this endpoint."))
}

pub(super) fn wrong(name: &str, message: &str) -> Refusal {
    Refusal::about(Code::InvalidParameter, name, format!("`{name}` is {message}."))
}

/// The fields of a body; what is not taken is unknown.
struct Form(Map<String, Value>);

impl Form {
    /// Why something is done: it is stored with what was done.
    fn reason(&mut self) -> Result<String, Refusal> {
        let missing =
            || Refusal::about(Code::MissingParameter, "reason", "`reason` says why; it is stored with the change.");
        match self.0.remove("reason") {
            None | Some(Value::Null) => Err(missing()),
            Some(Value::String(text)) if text.trim().is_empty() => Err(missing()),
            Some(Value::String(text)) if text.chars().count() <= LONGEST_REASON => Ok(text),
            Some(_) => Err(wrong("reason", &format!("a text of at most {LONGEST_REASON} characters"))),
        }
    }

    /// A list of names that is not empty.
    fn names(&mut self, field: &str) -> Result<Vec<String>, Refusal> {
        let bad = || wrong(field, "a list of names");
        let list = match self.0.remove(field) {
            None | Some(Value::Null) => {
                return Err(Refusal::about(Code::MissingParameter, field, format!("`{field}` is a list of names.")));
            }
            Some(Value::Array(list)) if !list.is_empty() => list,
            Some(_) => return Err(bad()),
        };
        list.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(bad)).collect()
    }

    fn finish(self) -> Result<(), Refusal> {
        self.0.keys().next().map_or(Ok(()), |name| Err(unknown(name)))
    }
}

/// The query string; what is not taken is unknown.
pub(super) struct Query(pub(in crate::endpoints) Vec<(String, String)>);

impl Query {
    pub fn read(text: &str) -> Result<Query, Refusal> {
        let all = pairs(text).map_err(|_| Refusal::new(Code::InvalidRequest, "The query string cannot be read."))?;
        Ok(Query(all.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()))
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(own, _)| own == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.take(name).as_deref() {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(wrong(name, "`true` or `false`")),
        }
    }

    fn number(&mut self, name: &str, default: i64, range: std::ops::RangeInclusive<i64>) -> Result<i64, Refusal> {
        let Some(text) = self.take(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| wrong(name, &format!("a number from {} to {}", range.start(), range.end())))
    }

    pub fn finish(self) -> Result<(), Refusal> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(unknown(name)))
    }
}
