//! `POST /v1/responses`, and beneath it what was stored (`stored.rs`), compaction (`compact.rs`)
//! and the WebSocket (`socket.rs`).
//!
//! A request that names an earlier response is made whole before it is admitted ([`stored`]), so
//! that any provider can serve it, also one that keeps nothing. The finished answer is stored
//! before its last event leaves, unless `store` is false.

pub mod compact;
pub mod socket;
pub mod stored;

use super::openapi::shapes::{anything, item_page, named};
use super::row::{Access, Family, Row};
use super::{chat, reading};
use crate::app::App;
use crate::call::{self, CallAnswer, CallRequest};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::stored::{self as stored_responses, Keeper, Past, ResponseKeeper, keeping};
use crate::work::conversation::{Conversation, Reshape};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tollgate_dialects::CheckedRequest;
use tollgate_store::{CallId, Idem};
use tollgate_wire::Dialect;

const ENDPOINT: &str = "/v1/responses";

pub const FAMILY: Family = Family { tag: "responses", rows, schemas };

fn rows() -> Vec<Row> {
    let count = "The tokens of a prompt in the Responses format, by the gateway's own count";
    let compaction = "A conversation compacted into one item by its model; a paid call";
    let one = "/v1/responses/{id}";
    vec![
        Row::post(ENDPOINT, Access::Paid, create, "A response, streamed or whole, in OpenAI's Responses format")
            .with(chat::conversation_headers)
            .takes(named("ResponsesRequest"))
            .answers()
            .quoted_whole(whole_body, |_, _, body| chat::priced(Dialect::Responses, body, None))
            .serves(Dialect::Responses.word())
            .names_itself(),
        Row::get(ENDPOINT, Access::Paid, socket::open, "The same over a WebSocket: one response after another")
            .replies_bare(101)
            .refused_with(&[426])
            .quoted_as(ENDPOINT)
            .names_itself(),
        Row::post(compact::ENDPOINT, Access::Paid, compact::compact, compaction)
            .takes(named("ResponsesRequest"))
            .gives(anything())
            .quoted_whole(compact::whole_body, |_, _, body| chat::priced(Dialect::Responses, body, None))
            .names_itself(),
        Row::post("/v1/responses/input_tokens", Access::Key, stored::input_tokens, count)
            .takes(named("ResponsesCountRequest"))
            .gives(anything()),
        Row::get(one, Access::Key, stored::get, "A stored response").gives(anything()).refused_with(&[400]),
        Row::delete(one, Access::Key, stored::delete, "Erases a stored response")
            .gives(anything())
            .refused_with(&[400]),
        Row::post(
            "/v1/responses/{id}/cancel",
            Access::Key,
            stored::cancel,
            "Ends a response that runs in the background; none does",
        )
        .gives(anything())
        .refused_with(&[400]),
        Row::get(
            "/v1/responses/{id}/input_items",
            Access::Key,
            stored::input_items,
            "What a stored response was given",
        )
        .with(item_page)
        .gives(anything()),
    ]
}

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, || handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let asked = CheckedRequest::read(Dialect::Responses, body, None)?;
    let past = stored_responses::find(&app.conversations, caller.account.id, asked, None, false).await?;
    stored_responses::has_room(&app.conversations, &caller, &past).await?;
    let after = After { keeper: keeper(app, &caller, id, &past), ..After::default() };
    let which = Which { id, endpoint: ENDPOINT, idem };
    Ok(respond(app, caller, past, after, &parts.headers, which).await?.into_reply())
}

/// Which call this is.
struct Which {
    id: CallId,
    endpoint: &'static str,
    idem: Option<Idem>,
}

/// What happens to an answer before it goes out.
#[derive(Default)]
struct After {
    keeper: Option<Arc<dyn Keeper>>,
    reshape: Option<Reshape>,
}

/// Who keeps the answer, unless it is not to be stored.
fn keeper(app: &Arc<App>, caller: &Caller, call: CallId, past: &Past) -> Option<Arc<dyn Keeper>> {
    let keep = || ResponseKeeper {
        desk: app.conversations.clone(),
        account: caller.account.id,
        quota: app.settings.storage.quota(&caller.account),
        call,
        named: past.named.clone(),
        own: past.own.clone(),
        taken: match past.named.conversation {
            Some(_) => past.before.iter().map(|item| item.id.clone()).collect(),
            None => HashSet::new(),
        },
    };
    past.named.store.then(|| Arc::new(keep()) as Arc<dyn Keeper>)
}

/// Runs the call of a request that is whole. What is wrong with it is named by the places in which
/// the client wrote it.
async fn respond(
    app: &Arc<App>,
    caller: Arc<Caller>,
    past: Past,
    after: After,
    headers: &HeaderMap,
    which: Which,
) -> Result<CallAnswer, Refusal> {
    let (refers, place) = (past.refers(), past.place);
    let mut asked = Conversation::new(past.asked, headers);
    (asked.refers, asked.echo, asked.completion) = (refers, past.echo, after.keeper.map(keeping));
    asked.reshape = after.reshape;
    let work = app.conversations.call(asked);
    let Which { id, endpoint, idem } = which;
    let answered = call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await;
    answered.map_err(|refusal| place.as_sent(refusal))
}

/// The body of a call with what it continues in it, by which it is priced.
fn whole_body<'a>(app: &'a App, caller: &'a Caller, body: Bytes) -> BoxFuture<'a, Result<Bytes, Refusal>> {
    async move {
        let asked = CheckedRequest::read(Dialect::Responses, body, None)?;
        let past = stored_responses::find(&app.conversations, caller.account.id, asked, None, false).await?;
        Ok(past.asked.body().clone())
    }
    .boxed()
}

fn schemas() -> Value {
    let model = json!({ "type": "string", "minLength": 1 });
    let input = json!({ "type": ["string", "array"] });
    json!({
        "ResponsesRequest": { "type": "object", "required": ["model", "input"], "additionalProperties": true, "properties": {
            "model": model, "input": input,
            "max_output_tokens": { "type": ["integer", "null"], "minimum": 1 }, "stream": { "type": ["boolean", "null"] },
        } },
        "ResponsesCountRequest": { "type": "object", "required": ["model"], "additionalProperties": true, "properties": {
            "model": model, "input": input,
        } },
    })
}
