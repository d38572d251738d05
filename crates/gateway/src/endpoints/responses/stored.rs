//! What was stored, read and erased: `GET` and `DELETE /v1/responses/{id}`, `…/input_items`,
//! `…/cancel`, and the count of a prompt that continues something,
//! `POST /v1/responses/input_tokens`. Free of charge.

use crate::app::App;
use crate::endpoints::{chat, count, reading};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::stored as stored_responses;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::{HeaderValue, header};
use std::sync::Arc;
use tollgate_dialects::CheckedRequest;
use tollgate_dialects::responses;
use tollgate_store::{Item, StoredResponse};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// Entries of a list, when the caller does not say and at most.
const PAGE: usize = 20;
const LARGEST_PAGE: usize = 100;

pub async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    answer(&app, request, async |caller| {
        if query.as_deref().is_some_and(|query| query.split('&').any(|pair| pair == "stream=true")) {
            let text = "Only a response that runs in the background could be streamed again.";
            return Err(Refusal::about(Code::UnsupportedValue, "stream", text));
        }
        Ok(text(find(&app, caller, &id).await?.object))
    })
    .await
}

pub async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        if !app.store.delete_response(caller.account.id, &id).await? {
            return Err(unknown(&id));
        }
        Ok(reading::json(&serde_json::json!({ "id": id, "object": "response", "deleted": true })))
    })
    .await
}

/// Nothing runs in the background, so there is nothing to cancel.
pub async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        find(&app, caller, &id).await?;
        let text = "Only a response that was created with `background: true` can be cancelled.";
        Err(Refusal::about(Code::InvalidRequest, "response_id", text))
    })
    .await
}

pub async fn input_items(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    answer(&app, request, async |caller| {
        let page = ListPage::read(query.as_deref().unwrap_or_default())?;
        let response = find(&app, caller, &id).await?;
        let own = responses::list(&response.input).len();
        let mut items: Vec<_> =
            stored_responses::said_in(&response).into_iter().take(own).map(|item| (item.id, item.json)).collect();
        if page.newest_first {
            items.reverse();
        }
        let skip = match &page.after {
            None => 0,
            Some(after) => items.iter().position(|(id, _)| id == after).map_or(items.len(), |at| at + 1),
        };
        let items: Vec<_> = items.into_iter().skip(skip).take(page.limit + 1).collect();
        Ok(page.list(items))
    })
    .await
}

pub async fn input_tokens(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, || counted(&app, request)).await
}

async fn counted(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let asked = CheckedRequest::read_prompt(Dialect::Responses, body, None)?;
    let past = stored_responses::find(&app.conversations, caller.account.id, asked, None, true).await?;
    count::counted(app, &caller, past.asked)
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<StoredResponse, Refusal> {
    app.store.response(caller.account.id, id).await?.ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    Refusal::about(Code::NotFound, "response_id", format!("There is no response `{id}`."))
}

/// Finds the caller and answers, or refuses in OpenAI's shape.
pub async fn answer(
    app: &Arc<App>,
    request: Request,
    work: impl AsyncFnOnce(&Caller) -> Result<Response, Refusal>,
) -> Response {
    let id = app.new_call_id();
    let (parts, _) = request.into_parts();
    let work = async {
        let caller = reading::caller(app, &parts).await?;
        work(&caller).await
    };
    chat::answered(app, Dialect::Responses, id, || work).await
}

/// JSON that is there already.
pub fn text(json: impl Into<Body>) -> Response {
    let mut reply = Response::new(json.into());
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Which part of a list.
pub struct ListPage {
    pub after: Option<String>,
    pub limit: usize,
    pub newest_first: bool,
}

impl ListPage {
    pub fn read(query: &str) -> Result<ListPage, Refusal> {
        let mut page = ListPage { after: None, limit: PAGE, newest_first: true };
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("after", id)) if !id.is_empty() => page.after = Some(id.to_owned()),
                Some(("limit", number)) => {
                    let fits = number.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                    let text = format!("`limit` is a number from 1 to {LARGEST_PAGE}.");
                    page.limit = fits.ok_or_else(|| Refusal::about(Code::InvalidParameter, "limit", text))?;
                }
                Some(("order", "asc")) => page.newest_first = false,
                Some(("order", "desc")) => page.newest_first = true,
                Some(("order", _)) => {
                    return Err(Refusal::about(Code::InvalidParameter, "order", "`order` is `asc` or `desc`."));
                }
                _ => {}
            }
        }
        Ok(page)
    }

    /// A page that ends where its items have so many bytes, but not before its first.
    pub fn within(mut self, bytes: u64, items: &[Item]) -> ListPage {
        let mut sum = 0;
        let fits = |item: &&Item| {
            sum += item.json.len() as u64;
            sum <= bytes
        };
        self.limit = self.limit.min(items.iter().take_while(fits).count().max(1));
        self
    }

    /// The list as clients read it; one entry more than the page says that there is more.
    pub fn list(&self, mut items: Vec<(String, String)>) -> Response {
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        let id = |item: Option<&(String, String)>| serde_json::json!(item.map(|(id, _)| id));
        let (first, last) = (id(items.first()), id(items.last()));
        let shown: Vec<String> = items.iter().map(|(id, item)| responses::shown(item, id)).collect();
        let list = shown.join(",");
        text(format!(r#"{{"object":"list","data":[{list}],"first_id":{first},"last_id":{last},"has_more":{more}}}"#))
    }
}
