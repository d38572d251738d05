//! `POST /v1/responses`, and beneath it what was kept (`stored.rs`), compaction (`compact.rs`) and the WebSocket (`socket.rs`).
//!
//! A request that names an earlier response is made whole before it is admitted ([`kept`]), so that any provider can serve it,
//! also one that keeps nothing. The finished answer is kept before its last event leaves, unless `store` is false.

pub mod compact;
mod counted;
pub mod socket;
pub mod stored;

use super::{chat, reading};
use crate::app::App;
use crate::call::{self, Ask, Conversation, Keeper, Reshape};
use crate::caller::Caller;
use crate::kept::{self, Keep, Past};
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use std::collections::HashSet;
use std::sync::Arc;
use tollgate_dialects::Request as Said;
use tollgate_store::{CallId, Idem};
use tollgate_wire::Dialect;

const ENDPOINT: &str = "/v1/responses";

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let asked = Said::read(Dialect::Responses, body, None)?;
    let past = kept::find(app, caller.account.id, asked, None, false).await?;
    kept::has_room(app, &caller, &past).await?;
    let after = After { keeper: keeper(app, &caller, id, &past), ..After::default() };
    respond(app, caller, past, after, &parts.headers, Which { id, endpoint: ENDPOINT, idem }).await
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

/// Who keeps the answer, unless it is not to be kept.
fn keeper(app: &Arc<App>, caller: &Caller, call: CallId, past: &Past) -> Option<Arc<dyn Keeper>> {
    let keep = || Keep {
        app: app.clone(),
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

/// Runs the call of a request that is whole. What is wrong with it is told by the places in which the client wrote it.
async fn respond(
    app: &Arc<App>,
    caller: Arc<Caller>,
    past: Past,
    after: After,
    headers: &HeaderMap,
    which: Which,
) -> Result<Response, Refusal> {
    let (refers, place) = (past.refers(), past.place);
    let mut work = Conversation::new(past.asked, headers);
    (work.refers, work.echo, work.keeper, work.reshape) = (refers, past.echo, after.keeper, after.reshape);
    let Which { id, endpoint, idem } = which;
    let answered = call::run(app, caller, Ask { id, endpoint, work, idem }).await;
    answered.map_err(|refusal| place.as_sent(refusal))
}

/// The body of a call with what it continues in it, by which it is priced; of another endpoint, as it is.
pub async fn whole_body(app: &App, caller: &Caller, endpoint: &str, body: Bytes) -> Result<Bytes, Refusal> {
    let past = match endpoint {
        ENDPOINT => {
            let asked = Said::read(Dialect::Responses, body, None)?;
            kept::find(app, caller.account.id, asked, None, false).await?
        }
        compact::ENDPOINT => compact::asked(app, caller, body).await?,
        _ => return Ok(body),
    };
    Ok(past.asked.body().clone())
}
