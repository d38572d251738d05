//! What was said before: found by what a request names, and put in front of what it says itself.

use crate::app::App;
use crate::refusal::Refusal;
use tollgate_store::{AccountId, CHAIN_BYTES, Chain, ItemPage, StoredResponse};
use tollgate_wire::error::Code;
use tollgate_wire::responses::{self, Answer, Named};
use tollgate_wire::{Dialect, Echo, Request as Said};

/// More items than any model takes.
const MOST_ITEMS: u32 = 10_000;

/// The last response of one connection, which may be continued there although it was not kept.
#[derive(Clone, Debug)]
pub struct Local {
    pub id: String,
    /// All that was said up to and with it.
    pub items: Vec<String>,
}

/// A request made whole.
pub struct Past {
    pub asked: Said,
    pub named: Named,
    /// What the answer repeats of the request as it was sent, where the request is another one now.
    pub echo: Option<Echo>,
    /// Items from before, oldest first.
    pub before: Vec<String>,
    /// Its own input items; what they named is in their place.
    pub own: Vec<String>,
}

/// The field by which a request names what was said before.
fn reference(named: &Named) -> Option<&'static str> {
    let previous = named.previous.as_ref().map(|_| "previous_response_id");
    previous.or(named.conversation.as_ref().map(|_| "conversation"))
}

/// A model that takes no state says so before anything is looked for.
fn takes_state(app: &App, asked: &Said, named: &Named) -> Result<(), Refusal> {
    let serving = app.serving.load();
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
    app: &App,
    account: AccountId,
    asked: Said,
    local: Option<&Local>,
    counted: bool,
) -> Result<Past, Refusal> {
    let named = Named::read(asked.body())?;
    takes_state(app, &asked, &named)?;
    let before = match (&named.previous, &named.conversation) {
        (Some(_), Some(_)) => {
            let text = "A request continues a response or a conversation, not both.";
            return Err(Refusal::about(Code::InvalidParameter, "conversation", text));
        }
        (Some(id), None) => match local.filter(|local| local.id == *id) {
            Some(local) => local.items.clone(),
            None => chain(app, account, id).await?,
        },
        (None, Some(id)) => conversation(app, account, id).await?,
        (None, None) => Vec::new(),
    };
    let found = referenced(app, account, &named, &before).await?;
    let own = responses::input_items(asked.body(), &found);
    let pressed = own.iter().any(|item| item.contains("\"compaction\""));
    let mut past = Past { asked, named, echo: None, before, own };
    if past.refers().is_some() || !found.is_empty() || pressed {
        past.rebuild(counted)?;
    }
    Ok(past)
}

impl Past {
    fn rebuild(&mut self, counted: bool) -> Result<(), Refusal> {
        let all: Vec<String> = self.before.iter().chain(&self.own).cloned().map(responses::unpressed).collect();
        let body = responses::with_input(self.asked.body(), &all)?;
        let whole = match counted {
            true => Said::read_prompt(Dialect::Responses, body, None)?,
            false => Said::read(Dialect::Responses, body, None)?,
        };
        // The answer repeats the request as it was sent.
        self.echo = Some(self.asked.echo());
        self.asked = whole;
        Ok(())
    }
}

async fn chain(app: &App, account: AccountId, id: &str) -> Result<Vec<String>, Refusal> {
    match app.store.response_chain(account, id).await? {
        Chain::Whole(list) => Ok(list.iter().flat_map(said_in).collect()),
        Chain::Missing(missing) if missing == id => Err(not_found(format!("There is no response `{id}`."))),
        Chain::Missing(missing) => {
            Err(not_found(format!("`{missing}`, which `{id}` continues, was deleted or has expired.")))
        }
        Chain::TooLong => Err(too_long("previous_response_id")),
    }
}

fn said_in(response: &StoredResponse) -> Vec<String> {
    let mut items = responses::list(&response.input);
    let answer = Answer::read(response.object.as_bytes()).unwrap_or_default();
    items.extend(answer.items.into_iter().map(|(_, item)| item));
    items
}

fn not_found(text: String) -> Refusal {
    Refusal::about(Code::PreviousResponseNotFound, "previous_response_id", text)
}

fn too_long(param: &str) -> Refusal {
    let text = format!("What this request continues has more than {} MiB or too many turns.", CHAIN_BYTES >> 20);
    Refusal::about(Code::ContextLengthExceeded, param, text)
}

async fn conversation(app: &App, account: AccountId, id: &str) -> Result<Vec<String>, Refusal> {
    if app.store.conversation(account, id).await?.is_none() {
        let text = format!("There is no conversation `{id}`.");
        return Err(Refusal::about(Code::NotFound, "conversation", text));
    }
    if app.store.conversation_bytes(account, id).await? > CHAIN_BYTES {
        return Err(too_long("conversation"));
    }
    let page = ItemPage { after: None, limit: MOST_ITEMS + 1, newest_first: false };
    let items = app.store.items(account, id, page).await?;
    if items.len() > MOST_ITEMS as usize {
        return Err(too_long("conversation"));
    }
    Ok(items.into_iter().map(|item| item.json).collect())
}

/// The items that the input names: of the conversation it continues, or of any response of the account.
async fn referenced(
    app: &App,
    account: AccountId,
    named: &Named,
    before: &[String],
) -> Result<Vec<(String, String)>, Refusal> {
    if named.references.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = |id: &String| named.references.contains(id);
    let near = before.iter().filter_map(|item| Some((responses::item_id(item)?, item.clone())));
    let mut found: Vec<(String, String)> = near.filter(|(id, _)| wanted(id)).collect();
    for (_, object) in app.store.responses_with_items(account, named.references.clone()).await? {
        let items = Answer::read(object.as_bytes()).unwrap_or_default().items;
        found.extend(items.into_iter().filter(|(id, _)| wanted(id)));
    }
    match named.references.iter().find(|id| !found.iter().any(|(known, _)| known == *id)) {
        Some(id) => Err(Refusal::about(Code::NotFound, "input", format!("There is no item `{id}`."))),
        None => Ok(found),
    }
}
