//! The cheapest request of each sort, what it may cost, and what came of it: what `provider test`
//! and probes of routes send.

use super::reason::{unsent, why};
use crate::call::Terms;
use crate::endpoints::quote;
use crate::quotes::{Shop, quote_reply};
use crate::sale::Serving;
use crate::settings::Settings;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::{Model, Route};
use tollgate_media::embed::EmbedRequest;
use tollgate_media::rerank::RerankRequest;
use tollgate_upstream::{
    Ability, Blame, Chat, ChatAsk, Client, EmbedAsk, Fault, Outgoing, Provider, WholeReply, is_encoded, read_whole,
};
use tollgate_wire::Dialect;

const QUESTION: &str = "Say OK.";
/// Tokens of the answer; enough for one word, and accepted by all.
const MOST_OUTPUT: u64 = 16;
const MOST_REPLY: usize = 1 << 20;

/// A request that can be sent, and who judges its answer.
pub struct CheapCall {
    pub request: Outgoing,
    pub judge: Box<dyn Fn(&WholeReply) -> Fault + Send + Sync>,
}

/// Why there was no answer.
#[derive(Debug)]
pub struct NoAnswer {
    /// In plain words, without what the provider says itself: some repeat the key.
    pub said: String,
    pub blame: Blame,
}

impl NoAnswer {
    fn of_provider(said: &str) -> NoAnswer {
        NoAnswer { said: said.to_owned(), blame: Blame::Provider }
    }
}

/// Whether one request of this sort costs next to nothing everywhere.
pub fn is_cheap(ability: Ability) -> bool {
    matches!(ability, Ability::Chat | Ability::Embeddings | Ability::Rerank)
}

/// The request; or why there is none.
pub fn cheap_call(
    provider: &Provider,
    ability: Ability,
    model: &str,
    call_id: &'static str,
) -> Result<CheapCall, &'static str> {
    const UNFIT: &str = "the model's name does not fit into a request";
    match ability {
        Ability::Chat => {
            let chat: &'static dyn Chat = provider.kind.chat.ok_or(UNFIT)?;
            let body = Bytes::from(chat_body(chat.dialect(), model).to_string());
            let body = match chat.dialect() {
                Dialect::Chat => provider.settings.quirks.fit(&body).map_err(|_| UNFIT)?.0.into(),
                _ => chat.fit(body).map_err(|_| UNFIT)?.0,
            };
            let ask = ChatAsk { body, call_id, model, stream: false, passed: &[] };
            let request = provider.chat(ask).ok_or(UNFIT)?;
            Ok(CheapCall { request, judge: Box::new(|reply| chat.fault(reply)) })
        }
        Ability::Embeddings => {
            let maker = provider.kind.embeddings.ok_or(UNFIT)?;
            let asked = EmbedRequest::openai(Bytes::from(embed_body(model).to_string())).map_err(|_| UNFIT)?;
            let ask = EmbedAsk { request: &asked, model, range: 0..1, floats_only: false };
            let body = maker.body(&ask).map_err(|_| UNFIT)?.body;
            let request = maker.request(provider, model, call_id, body).ok_or(UNFIT)?;
            Ok(CheapCall { request, judge: Box::new(|reply| maker.fault(reply)) })
        }
        Ability::Rerank => {
            let maker = provider.kind.rerank.ok_or(UNFIT)?;
            let asked = RerankRequest::read(Bytes::from(rerank_body(model).to_string())).map_err(|_| UNFIT)?;
            let body = maker.body(&asked, model).map_err(|_| UNFIT)?.body;
            let request = maker.request(provider, call_id, body).ok_or(UNFIT)?;
            Ok(CheapCall { request, judge: Box::new(|reply| maker.fault(reply)) })
        }
        Ability::Image | Ability::Video | Ability::Music | Ability::Speech | Ability::Transcription => {
            Err("not tried: it costs more than a word; a test of media tries it")
        }
        Ability::Realtime => Err("not tried: there is no cheap request for it"),
        Ability::Social | Ability::Decisions => Err("not tried: make a call of your own"),
    }
}

/// What the request may cost at most in nano-USD, at the price it is sold for, by the functions
/// that price real calls.
pub fn most_nano(settings: &Settings, serving: &Serving, ability: Ability, model: &Arc<Model>, at: i64) -> Option<i64> {
    let (path, body) = priced_body(ability, &model.name)?;
    quoted(settings, serving, model, (path, body), at)
}

/// The same for a request to any path.
pub(crate) fn quoted(
    settings: &Settings,
    serving: &Serving,
    model: &Arc<Model>,
    (path, body): (&str, Value),
    at: i64,
) -> Option<i64> {
    let shop = Shop { serving, caller: None, picture_links: false, realtime: &settings.realtime };
    let request = quote::read(&shop, path, Bytes::from(body.to_string())).ok()?;
    let group = model.group_for(serving.catalog.groups.keys().map(String::as_str))?;
    let terms = Terms { at, group, topped_up: false, stream_hold: settings.limits.stream_hold };
    quote_reply(path, terms, model, &*request, None).ok()?.1.most_nano_usd
}

/// What it may cost the operator along a route: the dearer of what it is sold for and what the
/// route costs.
pub fn most_cost_nano(
    settings: &Settings,
    serving: &Serving,
    (ability, model, route): (Ability, &Arc<Model>, &Route),
    at: i64,
) -> Option<i64> {
    let sold = most_nano(settings, serving, ability, model, at)?;
    let bought = || {
        let (path, body) = priced_body(ability, &model.name)?;
        let shop = Shop { serving, caller: None, picture_links: false, realtime: &settings.realtime };
        let need = quote::read(&shop, path, Bytes::from(body.to_string())).ok()?.need(model).ok()?;
        let price = model.cost_price(&route.provider, &route.upstream_model, None, at)?;
        Some(need.most.charge(&price).ok()?.nano())
    };
    Some(bought().map_or(sold, |bought| bought.max(sold)))
}

/// Sends it and waits for the whole answer, which is a JSON object.
pub async fn answer(
    client: &Client,
    provider: &Arc<Provider>,
    call: CheapCall,
    patience: Duration,
) -> Result<Value, NoAnswer> {
    let late = || NoAnswer { said: "no answer in time".to_owned(), blame: Blame::Provider };
    tokio::time::timeout(patience, exchange(client, provider, call, patience)).await.unwrap_or_else(|_| Err(late()))
}

async fn exchange(
    client: &Client,
    provider: &Arc<Provider>,
    CheapCall { request, judge }: CheapCall,
    patience: Duration,
) -> Result<Value, NoAnswer> {
    let lost = |fault: Fault| NoAnswer { said: unsent(&fault), blame: fault.blame };
    let reply = client.send(provider, request).await.map_err(lost)?;
    if !reply.status().is_success() {
        let whole = client.refused(provider, reply).await;
        let fault = judge(&whole);
        return Err(NoAnswer { said: why(&whole, &fault), blame: fault.blame });
    }
    if is_encoded(reply.headers()) {
        return Err(NoAnswer::of_provider("answers are compressed although it is asked not to"));
    }
    let body = read_whole(reply.into_body(), MOST_REPLY, patience).await.map_err(lost)?;
    let Ok(Value::Object(reply)) = serde_json::from_slice::<Value>(&body) else {
        return Err(NoAnswer::of_provider("wrong address: the answer is not JSON"));
    };
    if reply.get("error").is_some_and(|error| !error.is_null()) {
        let inside = WholeReply { status: 400, headers: http::HeaderMap::new(), body };
        return Err(NoAnswer { said: why(&inside, &judge(&inside)), blame: Blame::Provider });
    }
    Ok(Value::Object(reply))
}

fn priced_body(ability: Ability, model: &str) -> Option<(&'static str, Value)> {
    Some(match ability {
        Ability::Chat => ("/v1/chat/completions", chat_body(Dialect::Chat, model)),
        Ability::Embeddings => ("/v1/embeddings", embed_body(model)),
        Ability::Rerank => ("/v1/rerank", rerank_body(model)),
        _ => return None,
    })
}

/// One question with a short answer, in the dialect of the provider.
fn chat_body(dialect: Dialect, model: &str) -> Value {
    let said = json!([{"role": "user", "content": QUESTION}]);
    match dialect {
        Dialect::Chat => json!({"model": model, "messages": said, "max_completion_tokens": MOST_OUTPUT}),
        Dialect::Anthropic => json!({"model": model, "max_tokens": MOST_OUTPUT, "messages": said}),
        Dialect::Responses => {
            json!({"model": model, "input": QUESTION, "max_output_tokens": MOST_OUTPUT, "store": false})
        }
        Dialect::Gemini => json!({
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
            "generationConfig": {"maxOutputTokens": MOST_OUTPUT},
        }),
    }
}

fn embed_body(model: &str) -> Value {
    json!({"model": model, "input": [QUESTION]})
}

fn rerank_body(model: &str) -> Value {
    json!({"model": model, "query": QUESTION, "documents": ["OK", "No"]})
}
