//! A provider tried out: one cheap request for each thing that is sold of it, what it may cost, and
//! in plain words why it failed. Nothing is booked: the operator pays his provider, and nobody pays
//! him.

use crate::call::Terms;
use crate::configuration::Loaded;
use crate::endpoints::quote;
use crate::quotes::{Shop, quote_reply};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_media::embed::EmbedRequest;
use tollgate_media::rerank::RerankRequest;
use tollgate_upstream::{
    Ability, Chat, ChatAsk, Client, ClientSettings, EmbedAsk, Fault, Outgoing, Provider, WholeReply, is_encoded,
    read_whole,
};
use tollgate_wire::Dialect;

/// What is tried, and what came of it.
#[derive(Debug, Serialize)]
pub struct TrialResult {
    /// `models`, `chat`, `embeddings`, …
    pub endpoint: &'static str,
    /// The provider's name for the model.
    pub model: Option<String>,
    /// Method and address, without any key.
    pub request: Option<String>,
    /// At the catalog's prices; `null` where the model is not in the catalog.
    pub most_usd: Option<String>,
    pub outcome: TrialOutcome,
    /// What happened, or why nothing was tried.
    pub said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// Nothing is sent: this is the plan.
    Planned,
    Answered,
    Failed,
    Skipped,
}

/// What to try of one provider.
#[derive(Clone, Debug)]
pub struct TrialOrder<'a> {
    pub provider: &'a str,
    /// Only this.
    pub only: Option<Ability>,
    /// The provider's name for a model, in the place of one from the catalog.
    pub model: Option<&'a str>,
    /// Say what would be sent, and send nothing.
    pub plan: bool,
    /// Milliseconds since 1970, for prices that go by the clock.
    pub now: i64,
}

const CALL_ID: &str = "tollgate-provider-test";
const QUESTION: &str = "Say OK.";
/// Tokens of the answer; enough for one word, and accepted by all.
const MOST_OUTPUT: u64 = 16;
const MOST_REPLY: usize = 1 << 20;
/// Nobody waits longer than this for one word.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tries a provider of a configuration out, one thing after the other.
pub async fn try_provider(loaded: &Loaded, order: &TrialOrder<'_>) -> Result<Vec<TrialResult>, String> {
    let known = || loaded.serving.providers.keys().map(String::as_str);
    let provider = loaded.serving.providers.get(order.provider).ok_or_else(|| {
        let hint = tollgate_catalog::form::did_you_mean(order.provider, known());
        format!("no provider of the configuration is called {:?}{hint}", order.provider)
    })?;
    let now = order.now;
    let client = Client::new(ClientSettings::default()).by_clock(move || now);
    let trier = Trier { loaded, order, provider, client };
    let mut results = Vec::new();
    if order.only.is_none()
        && let Some(request) = provider.list_of_models()
    {
        results.push(trier.list(request).await);
    }
    for ability in Ability::ALL.into_iter().filter(|one| provider.kind.has(*one)) {
        if order.only.is_none_or(|only| only == ability) {
            results.extend(trier.ability(ability).await);
        }
    }
    if let Some(only) = order.only.filter(|only| !provider.kind.has(*only)) {
        return Err(provider.lacks(only).unwrap_or_default());
    }
    Ok(results)
}

struct Trier<'a> {
    loaded: &'a Loaded,
    order: &'a TrialOrder<'a>,
    provider: &'a Arc<Provider>,
    client: Client,
}

/// A request that can be sent, and who judges its answer.
struct Prepared {
    request: Outgoing,
    judge: Box<dyn Fn(&WholeReply) -> Fault + Send + Sync>,
}

impl Trier<'_> {
    /// Free of charge at all who have it: it tells a wrong address and a wrong key.
    async fn list(&self, request: Outgoing) -> TrialResult {
        let blank = self.blank("models", None, Some("0".to_owned()));
        let judge = Box::new(|reply: &WholeReply| Fault { upstream_status: Some(reply.status), ..Fault::garbage() });
        let result = self.send(blank, Prepared { request, judge }).await;
        match result.outcome {
            // Not everybody has the list, and nothing else depends on it.
            TrialOutcome::Failed if result.said.starts_with(NO_PATH) => {
                TrialResult { outcome: TrialOutcome::Skipped, said: "has no list of models".to_owned(), ..result }
            }
            _ => result,
        }
    }

    /// `None`: nothing is sold of it, and nothing of it was asked for.
    async fn ability(&self, ability: Ability) -> Option<TrialResult> {
        let endpoint = ability.word();
        let sold = self.sold(ability);
        let model = self.order.model.map(str::to_owned).or_else(|| sold.as_ref().map(|(_, name)| name.clone()));
        let asked = self.order.only == Some(ability) || (self.order.model.is_some() && ability == Ability::Chat);
        let Some(model) = model.filter(|_| asked || sold.is_some()) else {
            let blank = self.blank(endpoint, None, None);
            let said = "no model of the catalog is routed to it: name one with --model".to_owned();
            return asked.then_some(TrialResult { outcome: TrialOutcome::Skipped, said, ..blank });
        };
        let price =
            sold.as_ref().filter(|_| self.order.model.is_none()).and_then(|(sold, _)| self.price(ability, sold));
        let blank = self.blank(endpoint, Some(model.clone()), price);
        Some(match self.prepare(ability, &model) {
            Ok(prepared) => self.send(blank, prepared).await,
            Err(why) => TrialResult { outcome: TrialOutcome::Skipped, said: why.to_owned(), ..blank },
        })
    }

    fn blank(&self, endpoint: &'static str, model: Option<String>, most_usd: Option<String>) -> TrialResult {
        let (outcome, said) = (TrialOutcome::Planned, "would be sent".to_owned());
        TrialResult { endpoint, model, request: None, most_usd, outcome, said }
    }

    /// The model of the catalog that costs least to ask, and what this provider calls it.
    fn sold(&self, ability: Ability) -> Option<(Arc<Model>, String)> {
        let offers = |model: &&Arc<Model>| {
            model.supported_endpoint_types.iter().any(|name| Ability::of_endpoint_type(name) == Some(ability))
        };
        let routed = self.loaded.serving.catalog.models.values().filter(offers).filter_map(|model| {
            let route = model.routes.iter().find(|route| route.provider == self.order.provider)?;
            Some((model.clone(), route.upstream_model.clone()))
        });
        routed.min_by_key(|(model, _)| self.price_nano(ability, model).unwrap_or(i64::MAX))
    }

    fn price(&self, ability: Ability, model: &Arc<Model>) -> Option<String> {
        self.price_nano(ability, model).map(|nano| tollgate_catalog::Money::from_nano(nano).to_string())
    }

    /// By the functions that price real calls.
    fn price_nano(&self, ability: Ability, model: &Arc<Model>) -> Option<i64> {
        let (path, body) = match ability {
            Ability::Chat => ("/v1/chat/completions", chat_body(Dialect::Chat, &model.name)),
            Ability::Embeddings => ("/v1/embeddings", embed_body(&model.name)),
            Ability::Rerank => ("/v1/rerank", rerank_body(&model.name)),
            _ => return None,
        };
        let settings = &self.loaded.settings;
        let serving = &self.loaded.serving;
        let shop = Shop { serving, caller: None, picture_links: false, realtime: &settings.realtime };
        let request = quote::read(&shop, path, Bytes::from(body.to_string())).ok()?;
        let group = model.group_for(serving.catalog.groups.keys().map(String::as_str))?;
        let terms = Terms { at: self.order.now, group, topped_up: false, stream_hold: settings.limits.stream_hold };
        quote_reply(path, terms, model, &*request, None).ok()?.1.most_nano_usd
    }

    fn prepare(&self, ability: Ability, model: &str) -> Result<Prepared, &'static str> {
        const UNFIT: &str = "the model's name does not fit into a request";
        let provider = self.provider.as_ref();
        match ability {
            Ability::Chat => {
                let chat: &'static dyn Chat = provider.kind.chat.ok_or(UNFIT)?;
                let body = Bytes::from(chat_body(chat.dialect(), model).to_string());
                let body = match chat.dialect() {
                    Dialect::Chat => provider.settings.quirks.fit(&body).map_err(|_| UNFIT)?.0.into(),
                    _ => chat.fit(body).map_err(|_| UNFIT)?.0,
                };
                let ask = ChatAsk { body, call_id: CALL_ID, model, stream: false, passed: &[] };
                let request = provider.chat(ask).ok_or(UNFIT)?;
                Ok(Prepared { request, judge: Box::new(|reply| chat.fault(reply)) })
            }
            Ability::Embeddings => {
                let maker = provider.kind.embeddings.ok_or(UNFIT)?;
                let asked = EmbedRequest::openai(Bytes::from(embed_body(model).to_string())).map_err(|_| UNFIT)?;
                let ask = EmbedAsk { request: &asked, model, range: 0..1, floats_only: false };
                let body = maker.body(&ask).map_err(|_| UNFIT)?.body;
                let request = maker.request(provider, model, CALL_ID, body).ok_or(UNFIT)?;
                Ok(Prepared { request, judge: Box::new(|reply| maker.fault(reply)) })
            }
            Ability::Rerank => {
                let maker = provider.kind.rerank.ok_or(UNFIT)?;
                let asked = RerankRequest::read(Bytes::from(rerank_body(model).to_string())).map_err(|_| UNFIT)?;
                let body = maker.body(&asked, model).map_err(|_| UNFIT)?;
                let request = maker.request(provider, CALL_ID, body).ok_or(UNFIT)?;
                Ok(Prepared { request, judge: Box::new(|reply| maker.fault(reply)) })
            }
            Ability::Image | Ability::Video | Ability::Music => Err("not tried: it is charged by the piece"),
            Ability::Speech | Ability::Transcription | Ability::Realtime => {
                Err("not tried: there is no cheap request for it")
            }
            Ability::Social | Ability::Decisions => Err("not tried: make a call of your own"),
        }
    }

    async fn send(&self, blank: TrialResult, prepared: Prepared) -> TrialResult {
        let Prepared { request, judge } = prepared;
        let blank = TrialResult { request: Some(format!("{} {}", request.method(), request.uri())), ..blank };
        if self.order.plan {
            return blank;
        }
        let (outcome, said) = match tokio::time::timeout(PATIENCE, self.exchange(request, &*judge)).await {
            Ok(Ok(said)) => (TrialOutcome::Answered, said),
            Ok(Err(said)) => (TrialOutcome::Failed, said),
            Err(_) => (TrialOutcome::Failed, "no answer within a minute".to_owned()),
        };
        TrialResult { outcome, said, ..blank }
    }

    async fn exchange(
        &self,
        request: Outgoing,
        judge: &(dyn Fn(&WholeReply) -> Fault + Send + Sync),
    ) -> Result<String, String> {
        let reply = self.client.send(self.provider, request).await.map_err(|fault| unsent(&fault))?;
        if !reply.status().is_success() {
            let whole = self.client.refused(self.provider, reply).await;
            return Err(why(&whole, &judge(&whole)));
        }
        if is_encoded(reply.headers()) {
            return Err("answers are compressed although it is asked not to".to_owned());
        }
        let body = read_whole(reply.into_body(), MOST_REPLY, PATIENCE).await.map_err(|fault| unsent(&fault))?;
        let Ok(Value::Object(reply)) = serde_json::from_slice::<Value>(&body) else {
            return Err("wrong address: the answer is not JSON".to_owned());
        };
        if reply.get("error").is_some_and(|error| !error.is_null()) {
            let inside = WholeReply { status: 400, headers: http::HeaderMap::new(), body };
            return Err(why(&inside, &judge(&inside)));
        }
        Ok(used(&Value::Object(reply)))
    }
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

/// What the provider says that it used.
fn used(reply: &Value) -> String {
    let usage = ["usage", "usageMetadata", "meta"].into_iter().find_map(|name| reply.get(name));
    match usage.filter(|usage| usage.is_object()) {
        Some(usage) => {
            let text: String = usage.to_string().chars().take(200).collect();
            format!("answered, reports {text}")
        }
        None => "answered".to_owned(),
    }
}

const NO_PATH: &str = "wrong address:";

/// Why no answer came.
fn unsent(fault: &Fault) -> String {
    match fault.sent {
        false => format!("{NO_PATH} nobody answers there, or the network is down"),
        true => fault.message.clone(),
    }
}

const NO_CREDIT: &[&str] =
    &["insufficient_quota", "insufficient balance", "insufficient_balance", "arrearage", "credit balance", "no credit"];
const NO_MODEL: &[&str] =
    &["model_not_found", "not found", "does not exist", "not exist", "unknown model", "not supported", "invalid model"];

/// In plain words, by status and by what the provider says; its words are not repeated, since some
/// repeat the key.
fn why(reply: &WholeReply, fault: &Fault) -> String {
    let text = String::from_utf8_lossy(&reply.body).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let status = reply.status;
    let reason = match status {
        402 => "no credit: the account at the provider has no money",
        400 | 403 | 429 if says(NO_CREDIT) => "no credit: the account at the provider has no money",
        401 => "wrong key: the provider does not know it",
        403 => "wrong key: it may not do this",
        400 if text.contains("api key") || text.contains("api_key") => "wrong key: the provider does not know it",
        400 | 404 | 422 if text.contains("model") && says(NO_MODEL) => {
            "unknown model: the provider has none of this name"
        }
        404 | 405 | 300..=399 => "wrong address: there is nothing at this path",
        429 => "asked too often: the key works, try again later",
        500..=599 => "the provider failed",
        _ => return format!("HTTP {status}: {}", fault.message),
    };
    format!("{reason} (HTTP {status})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_plain_words_and_repeat_no_key() {
        let fault = Fault::garbage();
        let rows = [
            (401, r#"{"error":{"message":"Incorrect API key provided: sk-12345"}}"#, "wrong key"),
            (402, "{}", "no credit"),
            (429, r#"{"error":{"code":"insufficient_quota","message":"You exceeded"}}"#, "no credit"),
            (429, r#"{"error":{"message":"slow down"}}"#, "asked too often"),
            (404, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, "unknown model"),
            (404, "<html>404 page</html>", "wrong address"),
            (400, r#"{"error":{"message":"API key not valid. sk-12345"}}"#, "wrong key"),
            (400, r#"{"code":"Arrearage","message":"overdue"}"#, "no credit"),
            (503, "", "the provider failed"),
        ];
        for (status, body, begins) in rows {
            let reply = WholeReply { status, headers: http::HeaderMap::new(), body: Bytes::from(body) };
            let said = why(&reply, &fault);
            assert!(said.starts_with(begins), "{status} {body}: {said}");
            assert!(!said.contains("12345"), "{said}");
        }
    }
}
