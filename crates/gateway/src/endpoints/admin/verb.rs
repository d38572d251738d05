//! From a request of an operator to a command of the store and back: one way for every verb.
//!
//! A verb has fields, which are checked, and a function that makes a [`AdminCommand`] of them; the
//! answer is the record that the command line prints with `--json`. Where a field stands follows
//! from the row: in the path if its name stands there, else in the query of a GET and in the body
//! of everything else.

use super::field::{FieldNeed, VerbField, check};
use super::{OPERATOR, Query, reply, unknown, wrong};
use crate::app::App;
use crate::endpoints::reading;
use crate::endpoints::row::Row;
use crate::refusal::Refusal;
use crate::who::operator::{self, Operator};
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{Attribution, Change, StoreError};
use tollgate_wire::error::Code;

/// What an operator can ask for.
pub struct OperatorVerb {
    /// The command of the store, by the name it has on the socket.
    pub command: &'static str,
    pub fields: &'static [VerbField],
    pub plan: fn(&OperatorRequest<'_>) -> Result<PlannedCommand, Refusal>,
}

/// A request whose fields are as they must be.
pub struct OperatorRequest<'a> {
    pub app: &'a Arc<App>,
    pub operator: &'a Operator,
    given: Map<String, Value>,
}

/// What is to be done.
pub struct PlannedCommand {
    pub command: AdminCommand,
    pub shown: ShownAs,
    pub then: Then,
}

/// How the answer of the store is shown.
pub enum ShownAs {
    /// As it is.
    Record,
    /// Rows, under `data`.
    List,
    Page(AnswerPage),
    With(Box<dyn FnOnce(Value) -> Value + Send>),
}

/// A part of a list. The store was asked for one row more, to know whether there are more.
pub struct AnswerPage {
    pub limit: u32,
    /// The field of a row that the next page begins at, and the parameter that takes it.
    pub by: &'static str,
    pub next: &'static str,
    /// The last row of the page before, where the store does not know of pages.
    pub after: Option<String>,
}

/// What is read anew once it is done, so that it is in force here at once; other replicas look
/// every second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Keys,
    Pauses,
    Workflows,
}

impl From<AdminCommand> for PlannedCommand {
    fn from(command: AdminCommand) -> PlannedCommand {
        PlannedCommand { command, shown: ShownAs::Record, then: Then::Nothing }
    }
}

impl PlannedCommand {
    pub fn shown(self, shown: ShownAs) -> PlannedCommand {
        PlannedCommand { shown, ..self }
    }

    pub fn then(self, then: Then) -> PlannedCommand {
        PlannedCommand { then, ..self }
    }

    /// The record with a secret that is shown this once.
    pub fn telling(self, secret: String) -> PlannedCommand {
        self.shown(ShownAs::With(Box::new(move |mut made| {
            made["secret"] = json!(secret);
            made
        })))
    }
}

impl OperatorRequest<'_> {
    /// A field that must be there. Text that is no identifier of its kind is refused here.
    pub fn get<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Refusal> {
        self.may(name)?.ok_or_else(|| Refusal::about(Code::MissingParameter, name, format!("`{name}` is required.")))
    }

    pub fn may<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, Refusal> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match T::deserialize(value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(wrong(name, &error.to_string())),
            },
        }
    }

    /// A field of a change: left out it stays, `null` takes it away.
    pub fn change<T: DeserializeOwned>(&self, name: &'static str) -> Result<Change<T>, Refusal> {
        match self.given.get(name) {
            None => Ok(Change::Keep),
            Some(Value::Null) => Ok(Change::Lift),
            Some(_) => self.get(name).map(Change::Set),
        }
    }

    pub fn or<T: DeserializeOwned>(&self, name: &'static str, default: T) -> Result<T, Refusal> {
        Ok(self.may(name)?.unwrap_or(default))
    }

    /// Who does it, and why.
    pub fn done(&self) -> Result<Attribution, Refusal> {
        Ok(Attribution { actor: self.operator.actor(), reason: self.get("reason")? })
    }
}

impl ShownAs {
    fn of(self, answer: Value) -> Value {
        let rows = |answer: Value| if let Value::Array(rows) = answer { rows } else { Vec::new() };
        match self {
            ShownAs::Record => answer,
            ShownAs::List => super::list(rows(answer)),
            ShownAs::Page(page) => page.of(rows(answer)),
            ShownAs::With(make) => make(answer),
        }
    }
}

impl AnswerPage {
    fn of(self, mut rows: Vec<Value>) -> Value {
        if let Some(after) = &self.after {
            let at = rows.iter().position(|row| row[self.by] == after.as_str());
            rows.drain(..at.map_or(rows.len(), |at| at + 1));
        }
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = more.then(|| rows.last().map(|row| row[self.by].clone())).flatten();
        let mut page = super::list(rows);
        page["has_more"] = json!(more);
        page[self.next] = json!(next);
        page
    }
}

/// Where a verb is found, and so where its fields stand.
#[derive(Clone, Copy)]
struct VerbPlace {
    path: &'static str,
    /// Fields stand in the query, and nothing is changed.
    reads: bool,
}

impl VerbPlace {
    fn names(self, field: &str) -> bool {
        self.path.split('/').any(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(field))
    }

    /// What a path names and nobody knows is not there.
    fn missing(self, refusal: Refusal) -> Refusal {
        match &refusal.param {
            Some(param) if refusal.code == Code::InvalidParameter && self.names(param) => {
                Refusal { code: Code::NotFound, ..refusal }
            }
            _ => refusal,
        }
    }
}

impl OperatorVerb {
    pub fn get(&'static self, path: &'static str, summary: &'static str) -> Row {
        let place = VerbPlace { path, reads: true };
        self.described(place, Row::get(path, OPERATOR, self.handler(place), summary))
    }

    pub fn post(&'static self, path: &'static str, summary: &'static str) -> Row {
        let place = VerbPlace { path, reads: false };
        self.described(place, Row::post(path, OPERATOR, self.handler(place), summary))
    }

    pub fn put(&'static self, path: &'static str, summary: &'static str) -> Row {
        let place = VerbPlace { path, reads: false };
        self.described(place, Row::put(path, OPERATOR, self.handler(place), summary))
    }

    pub fn patch(&'static self, path: &'static str, summary: &'static str) -> Row {
        let place = VerbPlace { path, reads: false };
        self.described(place, Row::patch(path, OPERATOR, self.handler(place), summary))
    }

    /// The fields that do not stand in the path.
    fn beside(&'static self, place: VerbPlace) -> impl Iterator<Item = &'static VerbField> {
        self.fields.iter().filter(move |field| !place.names(field.name))
    }

    fn described(&'static self, place: VerbPlace, row: Row) -> Row {
        let row = row.carries_out(self.command);
        let must = |field: &VerbField| field.need == FieldNeed::Must;
        if self.beside(place).next().is_none() {
            return if place.reads { row } else { row.refused_with(&[409]) };
        }
        if place.reads {
            let parameter = move |field: &VerbField| json!({ "name": field.name, "in": "query", "required": must(field), "schema": field.schema() });
            return row.with(move || self.beside(place).map(parameter).collect());
        }
        let properties: Map<String, Value> =
            self.beside(place).map(|field| (field.name.to_owned(), field.schema())).collect();
        let required: Vec<&str> = self.beside(place).filter(|field| must(field)).map(|field| field.name).collect();
        row.refused_with(&[409]).takes(json!({
            "type": "object", "required": required, "additionalProperties": false, "properties": properties,
        }))
    }

    fn handler(
        &'static self,
        place: VerbPlace,
    ) -> impl Fn(State<Arc<App>>, Result<RawPathParams, RawPathParamsRejection>, Request) -> BoxFuture<'static, Response>
    + Clone
    + Send
    + Sync
    + 'static {
        move |State(app), params, request| {
            async move {
                let done = reading::guarded(self.answer(&app, place, params.ok(), request)).await;
                reply(&app, done)
            }
            .boxed()
        }
    }

    async fn answer(
        &'static self,
        app: &Arc<App>,
        place: VerbPlace,
        params: Option<RawPathParams>,
        request: Request,
    ) -> Result<Value, Refusal> {
        let (parts, body) = request.into_parts();
        let operator = operator::authenticate(&app.register(), &parts).await?;
        let mut given = self.given(app, place, &parts, body).await?;
        for (name, value) in params.iter().flatten() {
            given.insert(name.to_owned(), json!(value));
        }
        let plan = (self.plan)(&OperatorRequest { app, operator: &operator, given });
        let PlannedCommand { command, shown, then } = plan.map_err(|refusal| place.missing(refusal))?;
        debug_assert_eq!(json!(command)["command"], self.command, "{}", place.path);
        let answer = app.store.execute(command).await.map_err(refused)?;
        if !place.reads {
            tracing::info!(actor = operator.actor(), command = self.command, path = parts.uri.path(), "operator");
        }
        then.happen(app).await;
        Ok(shown.of(answer))
    }

    /// What was given in the query or the body, checked.
    async fn given(
        &'static self,
        app: &App,
        place: VerbPlace,
        parts: &Parts,
        body: Body,
    ) -> Result<Map<String, Value>, Refusal> {
        let fields: Vec<&VerbField> = self.beside(place).collect();
        let mut given = Map::new();
        if !place.reads && !fields.is_empty() {
            given = super::object(&reading::small_json_body(app, parts, body).await?)?;
        }
        for (name, value) in Query::read(parts.uri.query().unwrap_or(""))?.0 {
            let field = fields.iter().find(|field| place.reads && field.name == name);
            let field = field.ok_or_else(|| unknown(&name))?;
            if given.insert(name, field.kind.parsed(value)).is_some() {
                return Err(wrong(field.name, "given twice"));
            }
        }
        check(&fields, &given)?;
        Ok(given)
    }
}

impl Then {
    async fn happen(self, app: &App) {
        let read = match self {
            Then::Nothing => Ok(()),
            Then::Keys => app.keys.refresh(&app.store, &app.world).await,
            Then::Pauses => app.routes.switches.read(&app.store, &app.metrics).await,
            Then::Workflows => app.workflows.look(&app.store, &app.serving.load_full(), app.world.now_ms()).await,
        };
        if let Err(error) = read {
            tracing::warn!(%error, "an operator's change is in force here with the next regular look");
        }
    }
}

/// Why the store did not do it.
fn refused(error: StoreError) -> Refusal {
    match error {
        StoreError::NotFound(what) => Refusal::new(Code::NotFound, format!("There is no such thing: {what}.")),
        StoreError::Conflict(why) => Refusal::new(Code::Conflict, format!("Not done: {why}.")),
        StoreError::Broken(why) => {
            tracing::error!(why, "a command of an operator failed");
            Refusal::new(Code::Internal, "The store is damaged or misconfigured; the log says how.")
        }
        error @ (StoreError::Unavailable(_) | StoreError::InUse(_)) => error.into(),
    }
}
