//! From a request of a person to an answer: who asks, from which page, fields that are checked.
//! Fields stand in the path if their name stands there, else in the body, which is JSON.

use crate::app::App;
use crate::endpoints::admin::field::{FieldNeed, VerbField, check};
use crate::endpoints::admin::{Query, object};
use crate::endpoints::changes;
use crate::endpoints::reading;
use crate::endpoints::row::{Access, Row};
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use crate::who::caller::client_address;
use crate::who::person::{self, Person};
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Method, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tollgate_wire::error::{Code, ErrorFormat};

type Answering = for<'a> fn(&'a PersonRequest) -> BoxFuture<'a, Result<PersonAnswer, Refusal>>;

/// Whether a change can be sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    No,
    /// With an `Idempotency-Key`.
    Once,
    /// With that, and by `If-Match` of one version only.
    Edits,
}

/// What a person can ask for.
pub struct PersonVerb {
    pub fields: &'static [VerbField],
    pub answer: Answering,
}

/// A request whose fields are as they must be.
pub struct PersonRequest {
    pub app: Arc<App>,
    pub parts: Parts,
    /// Nobody, where nobody needs to be signed in.
    person: Option<Person>,
    given: Map<String, Value>,
    /// The version that was seen of what is changed.
    seen: Option<String>,
}

pub struct PersonAnswer {
    pub value: Value,
    cookies: Vec<HeaderValue>,
}

impl From<Value> for PersonAnswer {
    fn from(value: Value) -> PersonAnswer {
        PersonAnswer { value, cookies: Vec::new() }
    }
}

impl PersonAnswer {
    pub fn with_cookie(value: Value, cookie: Option<HeaderValue>) -> PersonAnswer {
        PersonAnswer { value, cookies: cookie.into_iter().collect() }
    }

    pub fn into_cookies(self) -> Vec<HeaderValue> {
        self.cookies
    }

    pub fn and_cookie(mut self, cookie: Option<HeaderValue>) -> PersonAnswer {
        self.cookies.extend(cookie);
        self
    }
}

impl PersonRequest {
    /// One that is read elsewhere, by nobody who needs to be signed in.
    pub fn by_anybody(app: Arc<App>, parts: Parts, given: Map<String, Value>) -> PersonRequest {
        PersonRequest { app, parts, person: None, given, seen: None }
    }

    /// The version that was seen of what is changed.
    pub fn seen(&self) -> Option<String> {
        self.seen.clone()
    }

    /// Whoever is signed in.
    pub fn person(&self) -> Result<&Person, Refusal> {
        self.person.as_ref().ok_or_else(|| Refusal::new(Code::NotSignedIn, "Sign in first: POST /api/session."))
    }

    /// They have proved within the last minutes who they are.
    pub fn strong(&self) -> Result<&Person, Refusal> {
        let person = self.person()?;
        person.must_be_strong()?;
        Ok(person)
    }

    pub fn get<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Refusal> {
        self.may(name)?.ok_or_else(|| Refusal::about(Code::MissingParameter, name, format!("`{name}` is required.")))
    }

    pub fn may<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, Refusal> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value).map(Some).map_err(|error| {
                Refusal::about(Code::InvalidParameter, name, format!("`{name}` is not what it must be: {error}."))
            }),
        }
    }

    pub fn text(&self, name: &'static str) -> Result<String, Refusal> {
        self.get(name)
    }

    pub fn address(&self) -> IpAddr {
        address_of(&self.app, &self.parts)
    }

    /// What the browser says it is.
    pub fn agent(&self) -> String {
        let agent = self.parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        agent.unwrap_or_default().chars().take(200).collect()
    }

    pub fn now(&self) -> i64 {
        self.app.world.now_ms()
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        self.app.world.fill(bytes);
    }
}

impl PersonVerb {
    pub fn get(&'static self, path: &'static str, access: Access, summary: &'static str) -> Row {
        self.described(path, Row::get(path, access, self.handler(path, access, Repeats::No), summary))
    }

    /// A change that an `Idempotency-Key` makes once, as in the account API.
    pub fn once(&'static self, method: &Method, path: &'static str, summary: &'static str) -> Row {
        let (access, edits) = (Access::Session, *method == Method::PATCH);
        let handler = self.handler(path, access, if edits { Repeats::Edits } else { Repeats::Once });
        let row = match *method {
            Method::PATCH => Row::patch(path, access, handler, summary),
            Method::DELETE => Row::delete(path, access, handler, summary),
            _ => Row::post(path, access, handler, summary),
        };
        let statuses: &'static [u16] =
            if edits { &[401, 403, 404, 409, 412, 415, 428, 429, 503] } else { &[401, 403, 404, 409, 415, 429, 503] };
        self.described(path, row).refused_with(statuses).with(move || changes::parameters(edits, edits))
    }

    pub fn post(&'static self, path: &'static str, access: Access, summary: &'static str) -> Row {
        self.described(path, Row::post(path, access, self.handler(path, access, Repeats::No), summary))
    }

    pub fn patch(&'static self, path: &'static str, access: Access, summary: &'static str) -> Row {
        self.described(path, Row::patch(path, access, self.handler(path, access, Repeats::No), summary))
    }

    pub fn delete(&'static self, path: &'static str, access: Access, summary: &'static str) -> Row {
        self.described(path, Row::delete(path, access, self.handler(path, access, Repeats::No), summary))
    }

    fn beside(&'static self, path: &'static str) -> impl Iterator<Item = &'static VerbField> {
        let named = move |name: &str| {
            path.split('/').any(|part| part.trim_matches(['{', '}']) == name && part.starts_with('{'))
        };
        self.fields.iter().filter(move |field| !named(field.name))
    }

    fn described(&'static self, path: &'static str, row: Row) -> Row {
        let row = row.refused_with(&[401, 403, 404, 409, 415, 429, 503]);
        if self.beside(path).next().is_none() {
            return row;
        }
        let properties: Map<String, Value> =
            self.beside(path).map(|field| (field.name.to_owned(), field.schema())).collect();
        let must = self.beside(path).filter(|field| field.need == FieldNeed::Must);
        let required: Vec<&str> = must.map(|field| field.name).collect();
        row.takes(json!({
            "type": "object", "required": required, "additionalProperties": false, "properties": properties,
        }))
    }

    fn handler(
        &'static self,
        path: &'static str,
        access: Access,
        repeats: Repeats,
    ) -> impl Fn(State<Arc<App>>, Result<RawPathParams, RawPathParamsRejection>, Request) -> BoxFuture<'static, Response>
    + Clone
    + Send
    + Sync
    + 'static {
        move |State(app), params, request| {
            async move {
                let work = self.answered(app.clone(), (path, access, repeats), params.ok(), request);
                match reading::guarded(work).await {
                    Ok(answer) => replied(answer),
                    Err(refusal) => {
                        let mut reply = reading::refused(&app, ErrorFormat::OpenAi, refusal, "");
                        no_store(&mut reply);
                        reply
                    }
                }
            }
            .boxed()
        }
    }

    async fn answered(
        &'static self,
        app: Arc<App>,
        (path, access, repeats): (&'static str, Access, Repeats),
        params: Option<RawPathParams>,
        request: Request,
    ) -> Result<PersonAnswer, Refusal> {
        let (parts, body) = request.into_parts();
        let people = &app.settings.people;
        let person = if access == Access::Session {
            let person = person::authenticate(&app.register(), &parts).await?;
            if !person::reads(&parts.method) {
                let address = address_of(&app, &parts);
                app.people.waits.begin(GuardedAct::Change, &person.id.to_string(), address, app.world.now_ms())?;
            }
            Some(person)
        } else {
            person::enabled(people)?;
            if !person::reads(&parts.method) {
                person::from_no_other_page(people, &parts)?;
            }
            None
        };
        let (mut given, text) = self.given(&app, path, &parts, body).await?;
        for (name, value) in params.iter().flatten() {
            given.insert(name.to_owned(), json!(value));
        }
        let seen = if repeats == Repeats::Edits { changes::seen(&parts, true)? } else { None };
        let owner = person.as_ref().map(|person| person.id.to_string()).unwrap_or_default();
        let asked = PersonRequest { app, parts, person, given, seen };
        if repeats == Repeats::No {
            return (self.answer)(&asked).await;
        }
        let work = async { (self.answer)(&asked).await.map(|answer| answer.value) };
        changes::once(&asked.app, owner, &asked.parts, &text, work).await.map(PersonAnswer::from)
    }

    async fn given(
        &'static self,
        app: &App,
        path: &'static str,
        parts: &Parts,
        body: Body,
    ) -> Result<(Map<String, Value>, Bytes), Refusal> {
        let fields: Vec<&VerbField> = self.beside(path).collect();
        Query::read(parts.uri.query().unwrap_or(""))?.finish()?;
        if fields.is_empty() {
            return Ok((Map::new(), Bytes::new()));
        }
        let text = reading::small_json_body(app, parts, body).await?;
        let given = object(&text)?;
        check(&fields, &given)?;
        Ok((given, text))
    }
}

fn address_of(app: &App, parts: &Parts) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    client_address(&app.settings.trusted_proxies, parts).unwrap_or(unknown)
}

fn replied(answer: PersonAnswer) -> Response {
    let mut reply = reading::json(&answer.value);
    for cookie in answer.cookies {
        reply.headers_mut().append(header::SET_COOKIE, cookie);
    }
    no_store(&mut reply);
    reply
}

/// What one person sees is stored by nobody on the way.
pub(super) fn no_store(reply: &mut Response) {
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
