//! One endpoint, written down once: method, path, who may call it, what it takes and gives, how its
//! price is quoted, and the function that answers. Router, description, quotes, tests and
//! docs/endpoints.md read these rows; there is no second list.
//!
//! A subject has its rows beside its handlers, as a [`Family`]; `table.rs` lists the families.

use super::openapi::shapes::{anything, event};
use crate::app::App;
use crate::quotes::QuoteReader;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::who::holder::AccountRole;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_wire::error::ErrorFormat;

/// Who may call an endpoint, and whether it can cost money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Requests made on this machine, unless the endpoint has a port of its own.
    Local,
    /// A key of an account; free of charge.
    Key,
    /// A key of an account; held and charged.
    Paid,
    /// Whoever manages an account and may at least this much in it.
    Account(AccountRole),
    /// Somebody who is signed in, by the cookie of a session.
    Session,
    /// Somebody who has this role.
    Role(AccessRole),
}

/// What somebody may do beside what the key of an account may. Admin keys have it, and sessions of
/// people who are operators in the house; auditors read. The roles in an account are
/// [`AccountRole`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRole {
    Operator,
}

/// The shape of an endpoint's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    In(ErrorFormat),
    /// That of the SDK that asks; its headers tell which it is.
    AsAsked,
    /// The shape of the older path for video tasks.
    LegacyVideo,
}

impl Errors {
    /// The dialect of whoever asks there and has not said otherwise.
    pub fn dialect(self) -> ErrorFormat {
        match self {
            Errors::In(dialect) => dialect,
            Errors::AsAsked | Errors::LegacyVideo => ErrorFormat::OpenAi,
        }
    }
}

/// Puts what a call continues into its body, because it is part of the price.
pub type Expand = for<'a> fn(&'a App, &'a Caller, Bytes) -> BoxFuture<'a, Result<Bytes, Refusal>>;

/// What a member of an account sees at an endpoint, unless an owner allows all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembersSee {
    /// The same as everybody in it.
    All,
    /// What the keys they made have used.
    OwnKeys,
    /// Nothing: it is about the money of the whole account.
    Nothing,
}

impl MembersSee {
    /// In words, where there is something to say.
    pub fn about(self) -> Option<&'static str> {
        match self {
            MembersSee::All => None,
            MembersSee::OwnKeys => {
                Some("Members see what the keys they made have used, unless the account has `members_see_all_usage`.")
            }
            MembersSee::Nothing => Some("Not for members, unless the account has `members_see_all_usage`."),
        }
    }
}

/// How the price of a call is found before it is made.
#[derive(Clone, Copy)]
pub enum Quoted {
    /// It costs nothing.
    Free,
    /// By the body of the call.
    By { read: QuoteReader, expand: Option<Expand> },
    /// As a call to this other endpoint.
    As(&'static str),
}

type Parameters = Box<dyn Fn() -> Vec<Value> + Send + Sync>;

/// A handler that is called without a router.
pub type Direct = Arc<dyn Fn(Arc<App>, Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// One endpoint.
pub struct Row {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub summary: &'static str,
    /// The subject it belongs to.
    pub tag: &'static str,
    /// What it takes, by media type.
    pub body: Option<Value>,
    /// What it gives, by status and media type.
    pub replies: Vec<(u16, Option<Value>)>,
    /// Statuses of refusals that are its own.
    pub refusals: &'static [u16],
    pub errors: Errors,
    pub quoted: Quoted,
    /// The endpoint type of the catalog that this endpoint serves.
    pub serves: Option<&'static str>,
    /// What was begun there is not begun again under the same Idempotency-Key, even if nobody knows
    /// what became of it.
    pub begun_once: bool,
    /// The operator's command that it carries out.
    pub command: Option<&'static str>,
    /// What members see of it.
    pub members: MembersSee,
    /// The pattern it is routed by, where the router cannot express its path. Rows with the same
    /// pattern have one handler.
    pub(super) routed_by: Option<&'static str>,
    /// Its replies carry their request id already.
    pub(super) names_itself: bool,
    pub(super) handler: MethodRouter<Arc<App>>,
    /// The same handler, without a router.
    direct: Option<Direct>,
    parameters: Vec<Parameters>,
}

impl Row {
    fn new(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: MethodRouter<Arc<App>>,
    ) -> Row {
        Row {
            method,
            path,
            access,
            summary,
            tag: "",
            body: None,
            replies: Vec::new(),
            refusals: &[],
            errors: Errors::In(ErrorFormat::OpenAi),
            quoted: Quoted::Free,
            serves: None,
            begun_once: false,
            command: None,
            members: MembersSee::All,
            routed_by: None,
            names_itself: false,
            handler,
            direct: None,
            parameters: Vec::new(),
        }
    }

    pub fn get<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
        summary: &'static str,
    ) -> Row {
        Row::new(Method::GET, path, access, summary, routing::get(handler))
    }

    pub fn post<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
        summary: &'static str,
    ) -> Row {
        let direct = handler.clone();
        let direct: Direct = Arc::new(move |app, request| Box::pin(direct.clone().call(request, app)));
        Row { direct: Some(direct), ..Row::new(Method::POST, path, access, summary, routing::post(handler)) }
    }

    pub fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
        summary: &'static str,
    ) -> Row {
        Row::new(Method::DELETE, path, access, summary, routing::delete(handler))
    }

    pub fn put<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
        summary: &'static str,
    ) -> Row {
        Row::new(Method::PUT, path, access, summary, routing::put(handler))
    }

    pub fn patch<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
        summary: &'static str,
    ) -> Row {
        Row::new(Method::PATCH, path, access, summary, routing::patch(handler))
    }

    /// Takes these parameters beside those in its path.
    pub fn with(mut self, parameters: impl Fn() -> Vec<Value> + Send + Sync + 'static) -> Row {
        self.parameters.push(Box::new(parameters));
        self
    }

    /// Takes JSON of this shape.
    pub fn takes(mut self, schema: Value) -> Row {
        self.body = Some(json!({ "application/json": { "schema": schema } }));
        self
    }

    /// Takes the same as a form.
    pub fn or_a_form(mut self) -> Row {
        if let Some(body) = &mut self.body {
            body["multipart/form-data"] = body["application/json"].clone();
        }
        self
    }

    /// Takes a form of this shape, and nothing else.
    pub fn takes_form(mut self, schema: Value) -> Row {
        self.body = Some(json!({ "multipart/form-data": { "schema": schema } }));
        self
    }

    /// Takes JSON of this shape as well.
    pub fn or_json(mut self, schema: Value) -> Row {
        if let Some(body) = &mut self.body {
            body["application/json"] = json!({ "schema": schema });
        }
        self
    }

    /// Gives one of these, by media type.
    pub fn gives_one_of(mut self, by_media: Value) -> Row {
        self.replies.push((200, Some(by_media)));
        self
    }

    /// Gives JSON of this shape.
    pub fn gives(self, schema: Value) -> Row {
        self.replies_with(200, "application/json", schema)
    }

    pub fn gives_text(self) -> Row {
        self.replies_with(200, "text/plain", json!({ "type": "string" }))
    }

    pub fn replies_with(mut self, status: u16, media: &str, schema: Value) -> Row {
        self.replies.push((status, Some(json!({ media: { "schema": schema } }))));
        self
    }

    /// Replies with a status and nothing that could be described.
    pub fn replies_bare(mut self, status: u16) -> Row {
        self.replies.push((status, None));
        self
    }

    /// Gives an answer in a conversation: whole, or streamed as events.
    pub fn answers(mut self) -> Row {
        let either = json!({
            "application/json": { "schema": anything() }, "text/event-stream": { "schema": event() },
        });
        self.replies.push((200, Some(either)));
        self
    }

    /// May also be refused with these.
    pub fn refused_with(mut self, statuses: &'static [u16]) -> Row {
        self.refusals = statuses;
        self
    }

    pub fn errors(mut self, errors: Errors) -> Row {
        self.errors = errors;
        self
    }

    /// Is quoted by the body of the call.
    pub fn quoted(mut self, read: QuoteReader) -> Row {
        self.quoted = Quoted::By { read, expand: None };
        self
    }

    /// Is quoted by the body of the call and what that continues.
    pub fn quoted_whole(mut self, expand: Expand, read: QuoteReader) -> Row {
        self.quoted = Quoted::By { read, expand: Some(expand) };
        self
    }

    /// Is another way to call the endpoint at this path, and quoted as that.
    pub fn quoted_as(mut self, path: &'static str) -> Row {
        self.quoted = Quoted::As(path);
        self
    }

    /// Is how models of this endpoint type are asked.
    pub fn serves(mut self, endpoint_type: &'static str) -> Row {
        self.serves = Some(endpoint_type);
        self
    }

    /// What was begun is not begun again by whoever repeats the key.
    pub fn begun_once(mut self) -> Row {
        self.begun_once = true;
        self
    }

    /// Shows members so much.
    pub fn to_members(mut self, members: MembersSee) -> Row {
        self.members = members;
        self
    }

    /// Carries out this command of the store.
    pub fn carries_out(mut self, command: &'static str) -> Row {
        self.command = Some(command);
        self
    }

    /// Has a path that the router knows by this pattern only.
    pub fn routed_by(mut self, pattern: &'static str) -> Row {
        self.routed_by = Some(pattern);
        self
    }

    /// Every reply of the handler carries its request id, so nobody else needs to look.
    pub fn names_itself(mut self) -> Row {
        self.names_itself = true;
        self
    }

    /// Its handler, where nothing has to be found in its path or added to its replies.
    pub(super) fn direct(&self) -> Option<&Direct> {
        let plain = self.names_itself && self.routed_by.is_none() && !self.path.contains('{');
        self.direct.as_ref().filter(|_| plain)
    }

    /// The parameters beside those in its path.
    pub fn parameters(&self) -> Vec<Value> {
        self.parameters.iter().flat_map(|some| some()).collect()
    }

    /// The names in the parts of its path that vary.
    pub fn in_path(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
    }

    /// What stands in the parts of the path that vary, if this is its path.
    pub fn fits<'a>(&self, path: &'a str) -> Option<Vec<&'a str>> {
        let (own, given) = (self.path.split('/'), path.split('/'));
        if own.clone().count() != given.clone().count() {
            return None;
        }
        let parts: Option<Vec<Part<'a>>> = own.zip(given).map(|(own, given)| Part::of(own, given)).collect();
        Some(parts?.into_iter().filter_map(|part| part.varies).collect())
    }

    /// How much of a path it shares from the beginning: parts, and letters of those that do not
    /// vary.
    pub(super) fn shares(&self, path: &str) -> (usize, usize) {
        let parts = self.path.split('/').zip(path.split('/')).map_while(|(own, given)| Part::of(own, given));
        parts.fold((0, 0), |(parts, letters), part| (parts + 1, letters + part.fixed))
    }
}

/// A part of a path that fits the one of a row.
struct Part<'a> {
    varies: Option<&'a str>,
    /// Letters that had to be these.
    fixed: usize,
}

impl<'a> Part<'a> {
    fn of(own: &str, given: &'a str) -> Option<Part<'a>> {
        if !own.starts_with('{') {
            return (own == given).then_some(Part { varies: None, fixed: own.len() });
        }
        let after = own.split_once('}').map_or("", |(_, after)| after);
        let varies = given.strip_suffix(after).filter(|varies| !varies.is_empty())?;
        Some(Part { varies: Some(varies), fixed: after.len() })
    }
}

/// The endpoints of one subject, and the named shapes that they take and give.
pub struct Family {
    /// The subject in a word.
    pub tag: &'static str,
    pub rows: fn() -> Vec<Row>,
    pub schemas: fn() -> Value,
}

impl Family {
    pub(super) fn tagged_rows(&self) -> impl Iterator<Item = Row> + use<> {
        let tag = self.tag;
        (self.rows)().into_iter().map(move |row| Row { tag, ..row })
    }
}

/// Schemas of a family that has none of its own.
pub fn no_schemas() -> Value {
    json!({})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &'static str) -> Row {
        Row::get(path, Access::Public, async || "", "")
    }

    #[test]
    fn a_path_fits_with_something_in_every_part_that_varies() {
        for (path, given, parts) in [
            ("/v1/videos", "/v1/videos", Some(vec![])),
            ("/v1/videos/{id}/content", "/v1/videos/a/content", Some(vec!["a"])),
            ("/v1/models/{model}:countTokens", "/v1/models/m:countTokens", Some(vec!["m"])),
            ("/v1/models/{model}:countTokens", "/v1/models/:countTokens", None),
            ("/v1/models/{model}:countTokens", "/v1/models/m:generateContent", None),
            ("/v1/videos/{id}", "/v1/videos/", None),
            ("/v1/videos/{id}", "/v1/videos", None),
            ("/v1/videos/{id}", "/v1/videos/a/b", None),
        ] {
            assert_eq!(row(path).fits(given), parts, "{path} {given}");
        }
    }

    #[test]
    fn a_fixed_end_is_nearer_than_anything() {
        let (any, fixed) = (row("/v1/models/{id}"), row("/v1/models/{model}:countTokens"));
        let path = "/v1/models/m:countTokens";
        assert!(fixed.shares(path) > any.shares(path));
        assert!(any.shares("/v1/models/m") > fixed.shares("/v1/models/m"));
    }
}
