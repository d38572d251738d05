//! A provider tried out: one cheap request for each thing that is sold of it, what it may cost, and
//! in plain words why it failed. Nothing is booked: the operator pays his provider, and nobody pays
//! him.

mod ask;
mod reason;

pub(crate) use ask::quoted;
pub use ask::{CheapCall, NoAnswer, answer, cheap_call, is_cheap, most_cost_nano, most_nano};

use crate::configuration::Loaded;
use crate::jobs::JobCounter;
use reason::NO_PATH;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_upstream::{Ability, Client, ClientSettings, Fault, Outgoing, Provider, WholeReply};

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
    /// Hears how many things were tried.
    pub progress: Option<&'a JobCounter>,
}

const CALL_ID: &str = "tollgate-provider-test";
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
    let wanted = Ability::ALL.into_iter().filter(|one| provider.kind.has(*one));
    for (at, ability) in wanted.filter(|one| order.only.is_none_or(|only| only == *one)).enumerate() {
        order.progress.inspect(|counter| counter.at(i64::try_from(at).unwrap_or(0)));
        results.extend(trier.ability(ability).await);
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

impl Trier<'_> {
    /// Free of charge at all who have it: it tells a wrong address and a wrong key.
    async fn list(&self, request: Outgoing) -> TrialResult {
        let blank = self.blank("models", None, Some("0".to_owned()));
        let judge = Box::new(|reply: &WholeReply| Fault { upstream_status: Some(reply.status), ..Fault::garbage() });
        let result = self.send(blank, CheapCall { request, judge }).await;
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
            let said = "no model of the catalog is routed to it: name a model".to_owned();
            return asked.then_some(TrialResult { outcome: TrialOutcome::Skipped, said, ..blank });
        };
        let price =
            sold.as_ref().filter(|_| self.order.model.is_none()).and_then(|(sold, _)| self.price(ability, sold));
        let blank = self.blank(endpoint, Some(model.clone()), price);
        Some(match cheap_call(self.provider, ability, &model, CALL_ID) {
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

    fn price_nano(&self, ability: Ability, model: &Arc<Model>) -> Option<i64> {
        most_nano(&self.loaded.settings, &self.loaded.serving, ability, model, self.order.now)
    }

    async fn send(&self, blank: TrialResult, prepared: CheapCall) -> TrialResult {
        let address = format!("{} {}", prepared.request.method(), prepared.request.uri());
        let blank = TrialResult { request: Some(address), ..blank };
        if self.order.plan {
            return blank;
        }
        let (outcome, said) = match answer(&self.client, self.provider, prepared, PATIENCE).await {
            Ok(reply) => (TrialOutcome::Answered, used(&reply)),
            Err(none) => (TrialOutcome::Failed, none.said),
        };
        TrialResult { outcome, said, ..blank }
    }
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
