//! From a request of an operator, or of whoever manages an account, to a command of the store and
//! back: one way for every verb.
//!
//! A verb has fields, which are checked, and a function that makes a [`AdminCommand`] of them; the
//! answer is the record that the command line prints with `--json`. Where a field stands follows
//! from the row: in the path if its name stands there, else in the query of a GET and in the body
//! of everything else.

use super::field::{FieldNeed, VerbField, check};
use super::{OPERATOR, Query, reply, unknown, wrong};
use crate::app::App;
use crate::endpoints::changes;
use crate::endpoints::reading;
use crate::endpoints::row::{Access, Row};
use crate::refusal::Refusal;
use crate::who::holder::{self, AccountRole};
use crate::who::operator;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Method;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountId, Attribution, Change, KeyId, KeyScope, PersonId, StoreError};
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
    asking: &'a Asking,
    given: Map<String, Value>,
    /// The version that was seen of what is changed.
    seen: Option<String>,
}

/// Who asks, for what is written down and for what may be touched.
struct Asking {
    actor: String,
    /// They have proved within the last minutes who they are; a key is a proof.
    strong: bool,
    /// What they may in that account; an operator all.
    role: AccountRole,
    /// The only account whose things may be touched; nothing: an operator's are all.
    account: Option<AccountId>,
    /// By which the reply is named, and the row of the log.
    request: String,
    /// The person of an account, where it is no key.
    person: Option<PersonId>,
    /// The person whose keys they see; nothing: all.
    sees_of: Option<PersonId>,
    /// What people call the account.
    account_name: String,
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
    /// A letter was written.
    Mail,
    /// Both.
    KeysAndMail,
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

    /// The version that was seen of what is changed.
    pub fn seen(&self) -> Option<String> {
        self.seen.clone()
    }

    pub fn request(&self) -> Option<String> {
        Some(self.asking.request.clone())
    }

    /// A session has proved within the last minutes who it is; a key always has.
    pub fn strong(&self) -> Result<(), Refusal> {
        self.asking.must_be_strong()
    }

    /// Somebody is there: a person who has proved within the last minutes who they are, and wrote
    /// down the id or the name of the account they are about to lose.
    pub fn confirmed_by_person(&self) -> Result<(), Refusal> {
        if self.asking.person.is_none() {
            let text = "An owner who is signed in closes an account, or the operator; a key does not.";
            return Err(Refusal::new(Code::KeyScope, text));
        }
        self.strong()?;
        let (confirm, id): (String, AccountId) = (self.get("confirm")?, self.get("account")?);
        let named = !confirm.trim().is_empty() && confirm == self.asking.account_name;
        if confirm == id.to_string() || named {
            return Ok(());
        }
        Err(wrong("confirm", "the id or the name of the account, as it is written"))
    }

    /// The person whose keys are seen; nothing: all are.
    pub fn sees_of(&self) -> Option<PersonId> {
        self.asking.sees_of
    }

    /// Refuses a member who sees only their own: what is shown is of all.
    pub fn must_see_all(&self) -> Result<(), Refusal> {
        self.sees_of().map_or(Ok(()), |_| Err(holder::not_for_members()))
    }

    /// Who does it, and why. An operator must say why.
    pub fn done(&self) -> Result<Attribution, Refusal> {
        let reason: Option<String> = match self.asking.account {
            Some(_) => self.may("reason")?,
            None => Some(self.get("reason")?),
        };
        let by = Attribution::by(self.asking.actor.clone(), reason.unwrap_or_default());
        Ok(Attribution { request: Some(self.asking.request.clone()), person: self.asking.person, ..by })
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
    pub fn of_answer(self, answer: Value) -> Value {
        ShownAs::Page(self).of(answer)
    }

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
    access: Access,
}

/// Fields that are not for whoever manages an account: which one it is follows from the key, and a
/// key that manages makes none of its kind.
const OF_OPERATORS: [&str; 2] = ["account", "scope"];

impl VerbPlace {
    fn of(method: &Method, path: &'static str, access: Access) -> VerbPlace {
        VerbPlace { path, reads: method == Method::GET, access }
    }

    fn of_account(self) -> bool {
        matches!(self.access, Access::Account(_))
    }

    /// The field as it is here, if it is not in the path.
    fn field(self, field: &VerbField) -> Option<VerbField> {
        if self.names(field.name) || (self.of_account() && OF_OPERATORS.contains(&field.name)) {
            return None;
        }
        let optional = self.of_account() && field.name == "reason";
        Some(VerbField { need: if optional { FieldNeed::May } else { field.need }, ..*field })
    }

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
        self.row(Method::GET, path, OPERATOR, summary)
    }

    pub fn post(&'static self, path: &'static str, summary: &'static str) -> Row {
        self.row(Method::POST, path, OPERATOR, summary)
    }

    pub fn put(&'static self, path: &'static str, summary: &'static str) -> Row {
        self.row(Method::PUT, path, OPERATOR, summary)
    }

    pub fn patch(&'static self, path: &'static str, summary: &'static str) -> Row {
        self.row(Method::PATCH, path, OPERATOR, summary)
    }

    /// The same for whoever manages an account and may so much in it: about that account alone.
    pub fn own(&'static self, method: Method, path: &'static str, role: AccountRole, summary: &'static str) -> Row {
        self.row(method, path, Access::Account(role), summary)
    }

    fn row(&'static self, method: Method, path: &'static str, access: Access, summary: &'static str) -> Row {
        let place = VerbPlace::of(&method, path, access);
        let handler = self.handler(place);
        let row = match method {
            Method::GET => Row::get(path, access, handler, summary),
            Method::PUT => Row::put(path, access, handler, summary),
            Method::PATCH => Row::patch(path, access, handler, summary),
            _ => Row::post(path, access, handler, summary),
        };
        self.described(place, row)
    }

    /// The fields that do not stand in the path.
    fn beside(&'static self, place: VerbPlace) -> impl Iterator<Item = VerbField> {
        self.fields.iter().filter_map(move |field| place.field(field))
    }

    fn described(&'static self, place: VerbPlace, row: Row) -> Row {
        let row = if place.of_account() { row } else { row.carries_out(self.command) };
        let row =
            if place.reads { row } else { row.with(move || changes::parameters(place.edits(), place.of_account())) };
        let must = |field: &VerbField| field.need == FieldNeed::Must;
        if self.beside(place).next().is_none() {
            return if place.reads { row } else { row.refused_with(place.refusals()) };
        }
        if place.reads {
            let parameter = move |field: VerbField| json!({ "name": field.name, "in": "query", "required": must(&field), "schema": field.schema() });
            return row.with(move || self.beside(place).map(parameter).collect());
        }
        let properties: Map<String, Value> =
            self.beside(place).map(|field| (field.name.to_owned(), field.schema())).collect();
        let required: Vec<&str> = self.beside(place).filter(must).map(|field| field.name).collect();
        row.refused_with(place.refusals()).takes(json!({
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
                let id = app.new_call_id().to_string();
                let done = reading::guarded(self.answer(&app, place, params.ok(), request, &id)).await;
                let tag = done.as_ref().ok().and_then(changes::tag);
                changes::named(reply(&app, done), &id, tag)
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
        id: &str,
    ) -> Result<Value, Refusal> {
        let (parts, body) = request.into_parts();
        let asking = place.asking(app, &parts, id).await?;
        let (mut given, text) = self.given(app, place, &parts, body).await?;
        for (name, value) in params.iter().flatten() {
            given.insert(name.to_owned(), json!(value));
        }
        if let Some(account) = asking.account {
            given.insert("account".to_owned(), json!(account));
            own_key(app, (account, &asking), &given, place).await?;
            if !place.reads {
                changes::admit(app, account).await?;
            }
            if self.command == "key_create" {
                changes::admit_key(app, account).await?;
            }
        }
        let seen = if place.edits() { changes::seen(&parts, place.of_account())? } else { None };
        let asked = OperatorRequest { app, asking: &asking, given, seen };
        let plan = (self.plan)(&asked).map_err(|refusal| place.missing(refusal))?;
        if place.reads {
            return self.carry_out(app, plan).await;
        }
        let owner = asking.account.map_or_else(|| asking.actor.clone(), |account| account.to_string());
        let done = changes::once(app, owner, &parts, &text, self.carry_out(app, plan)).await?;
        tracing::info!(actor = asking.actor, command = self.command, path = parts.uri.path(), "changed");
        Ok(done)
    }

    async fn carry_out(&'static self, app: &App, plan: PlannedCommand) -> Result<Value, Refusal> {
        let PlannedCommand { command, shown, then } = plan;
        debug_assert_eq!(json!(command)["command"], self.command);
        let mut answer = app.store.execute(command).await.map_err(refused)?;
        changes::with_versions(self.command, &mut answer);
        then.happen(app).await;
        Ok(shown.of(answer))
    }

    /// What was given in the query or the body, checked, and the text of the body.
    async fn given(
        &'static self,
        app: &App,
        place: VerbPlace,
        parts: &Parts,
        body: Body,
    ) -> Result<(Map<String, Value>, Bytes), Refusal> {
        let fields: Vec<VerbField> = self.beside(place).collect();
        let (mut given, mut text) = (Map::new(), Bytes::new());
        let optional = place.of_account() && fields.iter().all(|field| field.need != FieldNeed::Must);
        let empty = optional && changes::has_no_body(parts);
        if !(place.reads || fields.is_empty() || empty) {
            text = reading::small_json_body(app, parts, body).await?;
            given = super::object(&text)?;
        }
        for (name, value) in Query::read(parts.uri.query().unwrap_or(""))?.0 {
            let field = fields.iter().find(|field| place.reads && field.name == name);
            let field = field.ok_or_else(|| unknown(&name))?;
            if given.insert(name, field.kind.parsed(value)).is_some() {
                return Err(wrong(field.name, "given twice"));
            }
        }
        check(&fields.iter().collect::<Vec<_>>(), &given)?;
        Ok((given, text))
    }
}

impl VerbPlace {
    /// Changes something that has a version.
    fn edits(self) -> bool {
        !self.reads && EDITED.contains(&self.path)
    }

    fn refusals(self) -> &'static [u16] {
        if self.edits() { &[409, 412, 428] } else { &[409] }
    }

    async fn asking(self, app: &App, parts: &Parts, id: &str) -> Result<Asking, Refusal> {
        let request = id.to_owned();
        let Access::Account(role) = self.access else {
            let operator = operator::authenticate(&app.register(), parts).await?;
            let strong = operator.must_be_strong().is_ok();
            let (role, account) = (AccountRole::Owner, None);
            let (person, sees_of, account_name) = (None, None, String::new());
            return Ok(Asking {
                actor: operator.actor(),
                strong,
                role,
                account,
                request,
                person,
                sees_of,
                account_name,
            });
        };
        let holder = holder::authenticate(&app.register(), parts).await?;
        holder.must_be(role)?;
        if !self.reads {
            holder.may_change()?;
        }
        let (account, role, strong) = (Some(holder.id()), holder.role, holder.strong);
        let (sees_of, account_name) = (holder.reach().person, holder.account.name);
        Ok(Asking { actor: holder.actor, strong, role, account, request, person: holder.person, sees_of, account_name })
    }
}

/// Paths of what is edited: a change of it says which version was seen.
const EDITED: [&str; 4] =
    ["/api/admin/accounts/{account}", "/api/admin/keys/{key}", "/api/account", "/api/account/keys/{key}"];

/// A key that is named belongs to the account. One that manages is changed by operators: it could
/// lift what it is held to.
async fn own_key(
    app: &App,
    (account, asking): (AccountId, &Asking),
    given: &Map<String, Value>,
    place: VerbPlace,
) -> Result<(), Refusal> {
    let Some(text) = given.get("key").and_then(Value::as_str).filter(|_| place.names("key")) else { return Ok(()) };
    let missing = || Refusal::about(Code::NotFound, "key", "There is no such key of this account.");
    let id: KeyId = text.parse().map_err(|_| missing())?;
    let key = app.store.key(id).await?.filter(|key| key.account == account).ok_or_else(missing)?;
    if key.scope == KeyScope::Manage && place.edits() {
        let why = "A key of scope `manage` is changed by the operator; it can be rotated and revoked here.";
        return Err(Refusal::new(Code::KeyScope, why));
    }
    let theirs = asking.person.is_some() && key.person == asking.person;
    if asking.role < AccountRole::Owner && !theirs && !place.reads {
        let why = "This key is not yours: a member changes the keys they made, owners change all.";
        return Err(Refusal::about(Code::RoleNotAllowed, "key", why));
    }
    // Whoever has a new secret of it may what an owner may.
    if key.scope == KeyScope::Manage && !place.reads {
        if asking.role < AccountRole::Owner {
            return Err(Refusal::new(Code::RoleNotAllowed, "A key of scope `manage` is the affair of owners."));
        }
        return asking.must_be_strong();
    }
    Ok(())
}

impl Asking {
    fn must_be_strong(&self) -> Result<(), Refusal> {
        if self.strong {
            return Ok(());
        }
        let text = "Prove again who you are: POST /api/session/step-up, then within ten minutes this.";
        Err(Refusal::new(Code::StepUpRequired, text))
    }
}

impl Then {
    async fn happen(self, app: &App) {
        let read = match self {
            Then::Nothing => Ok(()),
            Then::Mail => {
                app.people.ring();
                Ok(())
            }
            Then::Keys => app.keys.refresh(&app.store, &app.world).await,
            Then::KeysAndMail => {
                app.people.ring();
                app.keys.refresh(&app.store, &app.world).await
            }
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
        StoreError::Stale(what) => {
            let why = format!("{what} was changed since it was read. Nothing was changed; read it again.");
            Refusal::about(Code::PreconditionFailed, "If-Match", why)
        }
        StoreError::NotFound(what) => Refusal::new(Code::NotFound, format!("There is no such thing: {what}.")),
        StoreError::Conflict(why) => Refusal::new(Code::Conflict, format!("Not done: {why}.")),
        StoreError::ConflictOf { field, why } => Refusal::about(Code::Conflict, field, format!("Not done: {why}.")),
        StoreError::Broken(why) => {
            tracing::error!(why, "a command of an operator failed");
            Refusal::new(Code::Internal, "The store is damaged or misconfigured; the log says how.")
        }
        error @ (StoreError::Unavailable(_) | StoreError::InUse(_)) => error.into(),
    }
}
