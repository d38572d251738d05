//! A video request with the rules of its family applied: the exact body a provider gets, and what
//! that costs at most. The price is read off the final body, so nothing can be asked for that was
//! not priced.

use super::maker::maker;
use crate::call::task::TaskHome;
use crate::call::{Need, Priced};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::offers::ENDPOINT_TYPE;
use crate::work::video::StoredPlan;
use serde_json::{Map, Value};
use std::borrow::Cow;
use tollgate_catalog::{BillingUnit, Face, Model};
use tollgate_media::video::{self, Api, FACTS, Plan, PlanBound, REMIX, Variant, VideoRequest, Warning};
use tollgate_store::{Counters, Task};
use tollgate_upstream::Provider;
use tollgate_wire::Dropped;
use tollgate_wire::error::Code;

/// What a caller asks for, with the rules of the model's family applied.
#[derive(Clone, Debug)]
pub struct VideoAsk {
    pub model: String,
    /// What the family makes of it, a refusal included: it is shown only to those who may have the
    /// model. `None`: there is no such model, or it makes no videos.
    plan: Option<Result<Plan, Refusal>>,
    /// The video it is made from, which nobody has but the account that made it.
    source: Option<Box<Task>>,
}

impl VideoAsk {
    pub fn of(serving: &Serving, request: &VideoRequest) -> VideoAsk {
        let offer = serving.offers.get(&request.model);
        let plan = offer.map(|offer| video::plan(request, offer).map_err(Refusal::from));
        VideoAsk { model: request.model.clone(), plan, source: None }
    }

    /// Another video like a finished one, of the same length and size and so at the same price,
    /// from a new prompt.
    pub fn remix(
        serving: &Serving,
        task: &Task,
        stored: &StoredPlan,
        prompt: &str,
        warnings: Vec<Warning>,
    ) -> Result<VideoAsk, Refusal> {
        let variant = Variant::named(&stored.variant).filter(|variant| variant.api() == Api::Sora);
        let (Some(variant), Some(upstream_id)) = (variant, &task.upstream_id) else {
            let text = format!("The provider of `{}` makes no remixes.", task.model);
            return Err(Refusal::about(Code::UnsupportedValue, "id", text));
        };
        let fact = |(name, value): &(String, String)| {
            FACTS.iter().find(|known| *known == name).map(|known| (*known, value.clone()))
        };
        let mut body = Map::new();
        for (name, value) in [("prompt", prompt), ("remix_of", upstream_id), ("remixed_from", &task.id.to_string())] {
            body.insert(name.to_owned(), Value::from(value));
        }
        let effective: Vec<_> = stored.effective.iter().filter_map(fact).collect();
        let offer = serving.offers.get(&task.model);
        let unsold = offer.and_then(|offer| offer.sells_again(&effective, stored.seconds, "id").err());
        let plan = Plan {
            variant,
            call: REMIX,
            body,
            upload: None,
            effective,
            seconds: stored.seconds,
            bound: stored.bound(),
            least: stored.least(),
            warnings,
        };
        let source = Some(Box::new(task.clone()));
        let plan = unsold.map_or(Ok(plan), |refusal| Err(Refusal::from(refusal)));
        let mut ask = VideoAsk { model: task.model.clone(), plan: Some(plan), source };
        let routes = serving.catalog.model(&task.model).map(|model| &model.routes[..]).unwrap_or_default();
        let mut providers = routes.iter().filter_map(|route| serving.providers.get(&route.provider));
        if !providers.any(|provider| ask.goes_to(serving, provider)) {
            let text =
                "The account this video was made with is not among the model's routes any more, and no other has it.";
            ask.plan = Some(Err(Refusal::about(Code::UnsupportedValue, "id", text)));
        }
        Ok(ask)
    }

    /// Whether a provider can make it: a remix is made where its source is.
    pub fn goes_to(&self, serving: &Serving, provider: &Provider) -> bool {
        let Some(source) = &self.source else { return true };
        match maker(serving, source, Api::Sora) {
            TaskHome::Same(one) | TaskHome::Stranger(one) => one.is_same_account(provider),
            TaskHome::Away => false,
        }
    }

    /// Whether the account that has its source is surely the one that is asked; another's "no such
    /// video" is no news of it.
    pub fn is_sure(&self, serving: &Serving) -> bool {
        self.source.as_deref().is_none_or(|source| matches!(maker(serving, source, Api::Sora), TaskHome::Same(_)))
    }

    /// What goes to the provider, or why nothing does.
    pub fn plan(&self) -> Result<&Plan, Refusal> {
        match &self.plan {
            Some(Ok(plan)) => Ok(plan),
            Some(Err(refusal)) => Err(refusal.clone()),
            None => {
                let text = format!("The model `{}` makes no videos.", self.model);
                Err(Refusal::about(Code::UnsupportedValue, "model", text))
            }
        }
    }
}

/// What a video of this bound may use at most.
pub fn most(bound: &PlanBound) -> Counters {
    Counters { output: bound.tokens.unwrap_or(0), ..Counters::video(u64::from(bound.seconds)) }
}

impl Priced for VideoAsk {
    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let plan = self.plan()?;
        Ok(Need {
            most: most(&plan.bound),
            exact: model.billing_unit == BillingUnit::PerCall,
            sized_by: "duration",
            depends_on: &[
                (Face::VideoSecond, "the seconds the provider reports"),
                (Face::Output, "the tokens the provider counts"),
            ],
            ..Need::default()
        })
    }

    fn drops(&self, _: &Fetcher, _: &Serving, _: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        self.plan.iter().flatten().flat_map(Plan::unread).for_each(|field| dropped.add(field));
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        self.plan().ok()?.attribute(path).map(Cow::Borrowed)
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated == Counters::default() { stated } else { Counters { calls: 1, ..stated } }
    }
}

impl From<video::VideoRefusal> for Refusal {
    fn from(refusal: video::VideoRefusal) -> Refusal {
        Refusal { param: refusal.param, ..Refusal::new(refusal.code, refusal.message) }
    }
}
