//! `POST /v1/responses`.
//!
//! A request that names an earlier response is made whole before it is admitted ([`whole`]), so that any provider can serve it,
//! also one that keeps nothing. The finished answer goes to a [`Keeper`](crate::call::Keeper) before its last event leaves:
//! set `Conversation::keeper` and it is asked with the response object, streamed or not.

use super::{chat, reading};
use crate::app::App;
use crate::call::{self, Ask, Conversation};
use crate::caller::Caller;
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use std::sync::Arc;
use tollgate_store::CallId;
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Echo, Request as Said};

const ENDPOINT: &str = "/v1/responses";

/// Fields by which a request names what was said before.
const REFERENCES: [&str; 2] = ["previous_response_id", "conversation"];

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let asked = Said::read(Dialect::Responses, body, None)?;
    let refers = REFERENCES.into_iter().find(|field| asked.mentions(field));
    let (asked, echo) = match refers {
        None => (asked, None),
        Some(field) => {
            let whole = whole(app, &caller, &asked, field).await?;
            // The answer repeats the request as it was sent.
            (Said::read(Dialect::Responses, whole, None)?, Some(Echo::of(asked.body())))
        }
    };
    let mut work = Conversation::new(asked, &parts.headers);
    (work.refers, work.echo) = (refers, echo);
    call::run(app, caller, Ask { id, endpoint: ENDPOINT, work, idem }).await
}

/// The request with the conversation that it names in front of its input, and without the reference.
async fn whole(_: &App, _: &Caller, _: &Said, field: &'static str) -> Result<Bytes, Refusal> {
    let text = format!("`{field}` is not offered by this server: send the whole conversation in `input`.");
    Err(Refusal::about(Code::UnsupportedValue, field, text))
}
