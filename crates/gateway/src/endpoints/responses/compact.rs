//! `POST /v1/responses/compact`: a conversation pressed into one item, by asking its model for a
//! summary. An ordinary paid call; the item can be sent to any model afterwards, because what it
//! stands for is put in its place.

use super::{After, Which, respond};
use crate::app::App;
use crate::endpoints::{chat, reading};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::stored::{self as stored_responses, Past};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tollgate_dialects::CheckedRequest;
use tollgate_dialects::responses::{self, to_compact};
use tollgate_store::CallId;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

const WISH: &str = r#"{"type":"message","role":"user","content":"Write a summary of this conversation so far, for yourself to continue from: every fact, decision, name, number and open task in it, and nothing else. Answer with the summary alone."}"#;

pub const ENDPOINT: &str = "/v1/responses/compact";

pub async fn compact(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, || handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let past = asked(app, &caller, body).await?;
    let after = After { reshape: Some(compacted), ..After::default() };
    let which = Which { id, endpoint: ENDPOINT, idem };
    Ok(respond(app, caller, past, after, &parts.headers, which).await?.into_reply())
}

/// The body of the call that asks for the summary, by which it is priced.
pub fn whole_body<'a>(app: &'a App, caller: &'a Caller, body: Bytes) -> BoxFuture<'a, Result<Bytes, Refusal>> {
    async move { Ok(asked(app, caller, body).await?.asked.body().clone()) }.boxed()
}

/// The call that asks for the summary.
async fn asked(app: &App, caller: &Caller, body: Bytes) -> Result<Past, Refusal> {
    let asked = CheckedRequest::read_prompt(Dialect::Responses, body, None)?;
    if asked.stream {
        return Err(Refusal::about(Code::UnsupportedValue, "stream", "A compaction is not streamed."));
    }
    let mut past = stored_responses::find(&app.conversations, caller.account.id, asked, None, true).await?;
    let serving = app.serving.load();
    let rules = serving.catalog.model(&past.asked.model).map(|model| &model.chat);
    let takes_none = rules.is_none_or(|rules| !rules.refused_tool_choice.iter().any(|word| word == "none"));
    let mut all = past.said();
    all.push(WISH.to_owned());
    past.replace(to_compact(past.asked.body(), &all, takes_none)?, false)?;
    Ok(past)
}

/// The answer with the summary in one item. An answer without one, or with one that was cut off, is
/// none: nothing is charged for it, and nothing that was said is given up for it.
fn compacted(id: CallId, answer: &[u8]) -> Option<Bytes> {
    let summary = responses::output_text(answer);
    if summary.trim().is_empty() || !responses::is_completed(answer) {
        return None;
    }
    let own = id.to_string();
    let own = own.rsplit_once('_').map_or(own.as_str(), |(_, own)| own);
    let item = responses::compaction(&format!("cmp_{own}"), &summary);
    let created = u64::try_from(id.made_at() / 1_000).unwrap_or(0);
    Some(responses::compacted(&format!("resp_{own}"), created, &[item], answer))
}
