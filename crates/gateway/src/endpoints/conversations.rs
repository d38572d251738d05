//! Conversations: `/v1/conversations` and their items. Free of charge; a Responses request that
//! names one is given its items, and adds its own and the answer's.

use super::openapi::shapes::{anything, item_page};
use super::responses::stored::{ListPage, answer, text};
use super::row::{Access, Family, Row, no_schemas};
use super::{chat, reading};
use crate::app::App;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::stored::{LIFE, fits, made_id, may_store, no_room};
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_dialects::responses;
use tollgate_store::{Item, ItemPage, StoredConversation};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// Items in one request, and pairs of metadata.
const MOST_ITEMS: usize = 20;
const MOST_PAIRS: usize = 16;
/// Characters of a name and of a value in metadata.
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 512;
/// Bytes of items in one page of a list; one item is listed whatever its length.
const PAGE_BYTES: u64 = 8 << 20;

pub const FAMILY: Family = Family { tag: "conversations", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    let (all, one) = ("/v1/conversations", "/v1/conversations/{id}");
    let (items, item) = ("/v1/conversations/{id}/items", "/v1/conversations/{id}/items/{item}");
    let metadata =
        json!({ "type": ["object", "null"], "maxProperties": 16, "additionalProperties": { "type": "string" } });
    let list = json!({ "type": ["array", "null"], "maxItems": 20, "items": { "type": "object" } });
    vec![
        Row::post(all, Access::Key, create, "A new conversation, with up to 20 items")
            .takes(json!({ "type": "object", "properties": { "items": list, "metadata": metadata } }))
            .gives(anything()),
        Row::get(one, Access::Key, get, "A conversation").gives(anything()),
        Row::post(one, Access::Key, update, "Changes the metadata of a conversation")
            .takes(json!({ "type": "object", "properties": { "metadata": metadata } }))
            .gives(anything()),
        Row::delete(one, Access::Key, delete, "Erases a conversation").gives(anything()),
        Row::get(items, Access::Key, list_items, "The items of a conversation").with(item_page).gives(anything()),
        Row::post(items, Access::Key, add_items, "Adds up to 20 items to a conversation")
            .takes(json!({ "type": "object", "required": ["items"], "properties": { "items": list } }))
            .gives(anything())
            .refused_with(&[409]),
        Row::get(item, Access::Key, get_item, "One item").gives(anything()),
        Row::delete(item, Access::Key, delete_item, "Erases one item").gives(anything()),
    ]
}

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    with_body(&app, request, async |caller, body| {
        let made = app.new_call_id().to_string();
        let id = made.rsplit_once('_').map_or_else(|| made.clone(), |(_, own)| format!("conv_{own}"));
        let now = app.world.now_ms();
        let items = items(body, &made)?;
        let new = StoredConversation { id, created_at: now, expires_at: until(&app), metadata: metadata(body)? };
        let quota = may_store(&app.conversations, caller).await?;
        let made = app.store.create_conversation(caller.account.id, new.clone(), items, quota).await?;
        made.map_err(|why| no_room(why, quota))?;
        Ok(shown(&new))
    })
    .await
}

pub async fn get(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| Ok(shown(&find(&app, caller, &id).await?))).await
}

pub async fn update(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    with_body(&app, request, async |caller, body| {
        let mut conversation = find(&app, caller, &id).await?;
        (conversation.metadata, conversation.expires_at) = (metadata(body)?, until(&app));
        let quota = may_store(&app.conversations, caller).await?;
        let changed = app.store.change_conversation(caller.account.id, conversation.clone(), quota).await?;
        changed.map_err(|why| no_room(why, quota))?;
        Ok(shown(&conversation))
    })
    .await
}

pub async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        if !app.store.delete_conversation(caller.account.id, &id).await? {
            return Err(unknown(&id));
        }
        Ok(reading::json(&json!({ "id": id, "object": "conversation.deleted", "deleted": true })))
    })
    .await
}

pub async fn list_items(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    answer(&app, request, async |caller| {
        find(&app, caller, &id).await?;
        let page = ListPage::read(query.as_deref().unwrap_or_default())?;
        let limit = u32::try_from(page.limit + 1).unwrap_or(u32::MAX);
        let wanted =
            ItemPage { after: page.after.clone(), limit, most_bytes: PAGE_BYTES, newest_first: page.newest_first };
        let items = app.store.items(caller.account.id, &id, wanted).await?;
        let page = page.within(PAGE_BYTES, &items);
        Ok(page.list(items.into_iter().map(|item| (item.id, item.json)).collect()))
    })
    .await
}

pub async fn add_items(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    with_body(&app, request, async |caller, body| {
        let added = items(body, &app.new_call_id().to_string())?;
        if added.is_empty() {
            return Err(Refusal::about(Code::MissingParameter, "items", "`items` is missing."));
        }
        for (at, _) in
            body["items"].as_array().into_iter().flatten().enumerate().filter(|(_, item)| item["id"].is_string())
        {
            if app.store.item(caller.account.id, &id, &added[at].id).await?.is_some() {
                return Err(there_already(at));
            }
        }
        let quota = may_store(&app.conversations, caller).await?;
        let done = app.store.add_items(caller.account.id, &id, added.clone(), until(&app), quota).await?;
        if !done.map_err(|why| no_room(why, quota))? {
            return Err(unknown(&id));
        }
        let page = ListPage { after: None, limit: added.len(), newest_first: false };
        Ok(page.list(added.into_iter().map(|item| (item.id, item.json)).collect()))
    })
    .await
}

pub async fn get_item(
    State(app): State<Arc<App>>,
    Path((id, item)): Path<(String, String)>,
    request: Request,
) -> Response {
    answer(&app, request, async |caller| {
        find(&app, caller, &id).await?;
        let found = app.store.item(caller.account.id, &id, &item).await?.ok_or_else(|| no_item(&item))?;
        Ok(text(responses::shown(&found.json, &found.id)))
    })
    .await
}

pub async fn delete_item(
    State(app): State<Arc<App>>,
    Path((id, item)): Path<(String, String)>,
    request: Request,
) -> Response {
    answer(&app, request, async |caller| {
        let conversation = find(&app, caller, &id).await?;
        if !app.store.delete_item(caller.account.id, &id, &item).await? {
            return Err(no_item(&item));
        }
        Ok(shown(&conversation))
    })
    .await
}

fn until(app: &App) -> i64 {
    app.world.now_ms() + LIFE.as_millis() as i64
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<StoredConversation, Refusal> {
    app.store.conversation(caller.account.id, id).await?.ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    Refusal::about(Code::NotFound, "conversation_id", format!("There is no conversation `{id}`."))
}

fn no_item(id: &str) -> Refusal {
    Refusal::about(Code::NotFound, "item_id", format!("There is no item `{id}` in this conversation."))
}

fn shown(conversation: &StoredConversation) -> Response {
    let metadata: Value = serde_json::from_str(&conversation.metadata).unwrap_or_else(|_| json!({}));
    let created = conversation.created_at / 1_000;
    reading::json(&json!({
        "id": conversation.id, "object": "conversation", "created_at": created, "metadata": metadata,
    }))
}

async fn with_body(
    app: &Arc<App>,
    request: Request,
    work: impl AsyncFnOnce(&Caller, &Value) -> Result<Response, Refusal>,
) -> Response {
    let id = app.new_call_id();
    let work = async {
        let (parts, body) = request.into_parts();
        let caller = reading::caller(app, &parts).await?;
        let body = reading::json_body(app, &caller, &parts, body).await?;
        let body: Value = match body.is_empty() {
            true => json!({}),
            false => serde_json::from_slice(&body)
                .map_err(|_| Refusal::new(Code::InvalidJson, "The body is not valid JSON."))?,
        };
        if !body.is_object() {
            return Err(Refusal::new(Code::InvalidJson, "The body must be a JSON object."));
        }
        work(&caller, &body).await
    };
    chat::answered(app, Dialect::Responses, id, || work).await
}

fn items(body: &Value, made: &str) -> Result<Vec<Item>, Refusal> {
    let wrong = || {
        let text = format!("`items` is a list of at most {MOST_ITEMS} items.");
        Refusal::about(Code::InvalidParameter, "items", text)
    };
    let list = match &body["items"] {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= MOST_ITEMS && list.iter().all(Value::is_object) => list,
        _ => return Err(wrong()),
    };
    let item = |(at, item): (usize, &Value)| {
        let own = item["id"].as_str().filter(|id| fits(id));
        let id = own.map_or_else(|| made_id(made, at), str::to_owned);
        Item { id, json: item.to_string() }
    };
    let items: Vec<Item> = list.iter().enumerate().map(item).collect();
    let repeated = (1..items.len()).find(|at| items[..*at].iter().any(|before| before.id == items[*at].id));
    repeated.map_or(Ok(items), |at| Err(there_already(at)))
}

/// An item that would take the place of another one is not taken in silence for it.
fn there_already(at: usize) -> Refusal {
    let place = format!("items[{at}].id");
    let text = format!("`{place}`: the conversation has an item with this id already.");
    Refusal::about(Code::InvalidParameter, &place, text)
}

fn short((name, value): (&String, &Value)) -> bool {
    let fits = |text: &str, most: usize| text.len() <= most || text.chars().count() <= most;
    fits(name, LONGEST_NAME) && value.as_str().is_some_and(|value| fits(value, LONGEST_VALUE))
}

fn metadata(body: &Value) -> Result<String, Refusal> {
    match &body["metadata"] {
        Value::Null => Ok("{}".to_owned()),
        Value::Object(pairs) if pairs.len() <= MOST_PAIRS && pairs.iter().all(short) => {
            Ok(body["metadata"].to_string())
        }
        _ => {
            let text = format!(
                "`metadata` has at most {MOST_PAIRS} pairs of strings, names of up to {LONGEST_NAME} characters and values of up to {LONGEST_VALUE}."
            );
            Err(Refusal::about(Code::InvalidParameter, "metadata", text))
        }
    }
}
