//! What was said before: found by what a request names, and put in front of what it says itself.

use super::{ItemPlace, made_id};
use crate::refusal::Refusal;
use crate::work::conversation::ConversationDesk;
use bytes::Bytes;
use std::collections::HashSet;
use tollgate_dialects::responses::{self, NamedItems, ResponseOutline};
use tollgate_dialects::{CheckedRequest, Echo};
use tollgate_store::{AccountId, CHAIN_BYTES, Chain, Item, ItemPage, StoredResponse};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// More items than any model takes.
const MOST_ITEMS: u32 = 10_000;
/// Responses that are looked at for items that a request names by ids of our making.
const MOST_MAKERS: usize = 16;

/// The last response of one connection, which may be continued there although it was not stored.
#[derive(Clone, Debug)]
pub struct LastResponse {
    pub id: String,
    /// All that was said up to and with it.
    pub items: Vec<Item>,
}

/// A request made whole.
pub struct Past {
    pub asked: CheckedRequest,
    pub named: NamedItems,
    /// What the answer repeats of the request as it was sent, where the request is another one now.
    pub echo: Option<Echo>,
    /// Items from before, oldest first.
    pub before: Vec<Item>,
    /// Its own input items; what they named is in their place.
    pub own: Vec<String>,
    /// Where these stand in `asked`.
    pub place: ItemPlace,
}

/// The field by which a request names what was said before.
fn reference(named: &NamedItems) -> Option<&'static str> {
    let previous = named.previous.as_ref().map(|_| "previous_response_id");
    previous.or(named.conversation.as_ref().map(|_| "conversation"))
}

/// A model that takes no state says so before anything is looked for.
fn takes_state(desk: &ConversationDesk, asked: &CheckedRequest, named: &NamedItems) -> Result<(), Refusal> {
    let serving = desk.till.serving.load();
    let stateless = serving.catalog.model(&asked.model).filter(|model| !model.chat.state);
    match (stateless, reference(named)) {
        (Some(model), Some(field)) => {
            let text = format!("`{}` does not take `{field}`: send the whole conversation in `input`.", model.name);
            Err(Refusal::about(Code::UnsupportedValue, field, text))
        }
        _ => Ok(()),
    }
}

impl Past {
    /// The field by which the request names what was said before.
    pub fn refers(&self) -> Option<&'static str> {
        reference(&self.named)
    }
}

/// Makes a request whole. `counted` reads it as one that is only counted.
pub async fn find(
    desk: &ConversationDesk,
    account: AccountId,
    asked: CheckedRequest,
    local: Option<&LastResponse>,
    counted: bool,
) -> Result<Past, Refusal> {
    let named = NamedItems::read(asked.body())?;
    takes_state(desk, &asked, &named)?;
    let before = match (&named.previous, &named.conversation) {
        (Some(_), Some(_)) => {
            let text = "A request continues a response or a conversation, not both.";
            return Err(Refusal::about(Code::InvalidParameter, "conversation", text));
        }
        (Some(id), None) => match local.filter(|local| local.id == *id) {
            Some(local) => local.items.clone(),
            None => chain(desk, account, id).await?,
        },
        (None, Some(id)) => conversation(desk, account, id).await?,
        (None, None) => Vec::new(),
    };
    let found = referenced(desk, account, &named, &before).await?;
    let own = responses::input_items(asked.body(), &found);
    let pressed = own.iter().any(|item| item.contains("\"compaction\""));
    let text = asked.attr("input").is_some();
    let place = ItemPlace { before: before.len(), own: own.len(), text, refers: reference(&named) };
    let mut past = Past { asked, named, echo: None, before, own, place };
    if past.refers().is_some() || !found.is_empty() || pressed {
        past.rebuild(counted)?;
    }
    Ok(past)
}

impl Past {
    /// All items, with the ids by which they can be named.
    pub fn all(&self) -> Vec<Item> {
        let own =
            self.own.iter().map(|json| Item { id: responses::item_id(json).unwrap_or_default(), json: json.clone() });
        self.before.iter().cloned().chain(own).collect()
    }

    /// The items as a provider gets them.
    pub fn said(&self) -> Vec<String> {
        // The provider that made a thought did not store it.
        let all = self.before.iter().map(|item| &item.json).chain(&self.own).cloned();
        let mut seen = HashSet::new();
        // Providers refuse an id that stands there twice, as that of an item which is named again.
        let once = |item: String| {
            let again = responses::item_id(&item).is_some_and(|id| !seen.insert(id));
            if again { responses::without_id(item) } else { item }
        };
        all.map(responses::without_thought_id).map(responses::expanded).map(once).collect()
    }

    /// Puts another body in the place of the request's.
    pub fn replace(&mut self, body: Bytes, counted: bool) -> Result<(), Refusal> {
        let whole = match counted {
            true => CheckedRequest::read_prompt(Dialect::Responses, body, None),
            false => CheckedRequest::read(Dialect::Responses, body, None),
        };
        self.asked = whole.map_err(|problem| self.place.as_sent(problem.into()))?;
        Ok(())
    }

    fn rebuild(&mut self, counted: bool) -> Result<(), Refusal> {
        // The answer repeats the request as it was sent.
        self.echo = Some(self.asked.echo());
        self.replace(responses::with_input(self.asked.body(), &self.said())?, counted)
    }
}

async fn chain(desk: &ConversationDesk, account: AccountId, id: &str) -> Result<Vec<Item>, Refusal> {
    match desk.till.store.response_chain(account, id).await? {
        Chain::Whole(list) => Ok(list.iter().flat_map(said_in).collect()),
        Chain::Missing(missing) if missing == id => Err(not_found(format!("There is no response `{id}`."))),
        Chain::Missing(missing) => {
            Err(not_found(format!("`{missing}`, which `{id}` continues, was deleted or has expired.")))
        }
        Chain::TooLong => Err(too_long("previous_response_id")),
    }
}

/// What was said in a response: the input of its own, then the output. An item without an id has
/// the one under which it is listed.
pub fn said_in(response: &StoredResponse) -> Vec<Item> {
    let own = responses::list(&response.input).into_iter();
    let own = own.map(|json| (responses::item_id(&json).unwrap_or_default(), json));
    let answer = ResponseOutline::read(response.object.as_bytes()).unwrap_or_default();
    let named = |(at, (id, json)): (usize, (String, String))| Item {
        id: if id.is_empty() { made_id(&response.id, at) } else { id },
        json,
    };
    own.chain(answer.items).enumerate().map(named).collect()
}

fn not_found(text: String) -> Refusal {
    Refusal::about(Code::PreviousResponseNotFound, "previous_response_id", text)
}

fn too_long(param: &str) -> Refusal {
    let text = format!("What this request continues has more than {} MiB or too many turns.", CHAIN_BYTES >> 20);
    Refusal::about(Code::ContextLengthExceeded, param, text)
}

async fn conversation(desk: &ConversationDesk, account: AccountId, id: &str) -> Result<Vec<Item>, Refusal> {
    if desk.till.store.conversation(account, id).await?.is_none() {
        let text = format!("There is no conversation `{id}`.");
        return Err(Refusal::about(Code::NotFound, "conversation", text));
    }
    if desk.till.store.conversation_bytes(account, id).await? > CHAIN_BYTES {
        return Err(too_long("conversation"));
    }
    let page = ItemPage { after: None, limit: MOST_ITEMS + 1, most_bytes: u64::MAX, newest_first: false };
    let items = desk.till.store.items(account, id, page).await?;
    if items.len() > MOST_ITEMS as usize {
        return Err(too_long("conversation"));
    }
    Ok(items)
}

/// The items that the input names: of the conversation it continues, or of any response or
/// conversation of the account.
async fn referenced(
    desk: &ConversationDesk,
    account: AccountId,
    named: &NamedItems,
    before: &[Item],
) -> Result<Vec<(String, String)>, Refusal> {
    if named.references.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Vec<Item> = before.iter().filter(|item| !item.id.is_empty()).cloned().collect();
    let missing = |found: &[Item]| -> Vec<String> {
        let known = |id: &&String| !found.iter().any(|item| item.id == **id);
        named.references.iter().filter(known).cloned().collect()
    };
    let far = missing(&found);
    if !far.is_empty() {
        found.extend(desk.till.store.responses_with_items(account, far).await?.iter().flat_map(said_in));
    }
    // What was put into a conversation was said in no response.
    let put = missing(&found);
    if !put.is_empty() {
        found.extend(desk.till.store.items_named(account, put).await?);
    }
    // An id that was made for an item says which response it is of.
    let mut makers: Vec<String> = missing(&found).iter().filter_map(|id| maker(id)).collect();
    makers.dedup();
    for id in makers.iter().take(MOST_MAKERS) {
        found.extend(desk.till.store.response(account, id).await?.iter().flat_map(said_in));
    }
    match missing(&found).first() {
        Some(id) => Err(Refusal::about(Code::NotFound, "input", format!("There is no item `{id}`."))),
        None => Ok(found.into_iter().map(|item| (item.id, item.json)).collect()),
    }
}

/// The response for whose item an id was made ([`made_id`]).
fn maker(id: &str) -> Option<String> {
    let (own, at) = id.strip_prefix("msg_")?.rsplit_once("_in")?;
    (!own.is_empty() && at.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("resp_{own}"))
}
