//! Rerank as work: documents are put into order by how well they answer a question. Sold by tokens,
//! or by the call, where each hundred documents are one.

use super::priced_fields::priced_is_sent;
use super::texts;
use crate::call::{Begun, Call, HELD, Meter, Need, Priced, WholeAnswer, Work};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use http::HeaderValue;
use std::borrow::Cow;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_media::rerank::{Ranking, RerankAnswer, RerankRequest};
use tollgate_store::Counters;
use tollgate_upstream::{Fault, Provider};
use tollgate_wire::{Dropped, UpstreamError};

/// What a model that puts documents into order must offer.
pub const ENDPOINT_TYPE: &str = "jina-rerank";

/// A request that is to be answered with an order.
pub struct RerankCall(pub RerankRequest);

impl RerankCall {
    /// Can some route of the model take this request?
    fn check_routes(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let mut first = None;
        for route in &model.routes {
            let maker = serving.providers.get(&route.provider).and_then(|provider| provider.kind.rerank);
            let Some(maker) = maker.filter(|_| model.tier_parameters().next().is_some()) else { return Ok(()) };
            let sent = maker.body(&self.0, &route.upstream_model);
            match sent.and_then(|sent| priced_is_sent(model, &sent.dropped)) {
                Ok(()) => return Ok(()),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        first.map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn counted(&self) -> Counters {
        Counters { input: self.0.tally.tokens, calls: self.0.search_units(), ..Counters::default() }
    }
}

impl Priced for RerankCall {
    fn model(&self) -> &str {
        &self.0.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn fits(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.check_routes(serving, model)
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let tally = &self.0.tally;
        let longest = format!("documents[{}]", tally.longest_at);
        texts::check_length(model, tally.longest, model.context_window, &longest)?;
        texts::check_length(model, tally.tokens, model.max_input_tokens, "documents")?;
        let mut need = texts::need(tally.tokens, tally.most(), "documents");
        need.most.calls = self.0.most_search_units();
        Ok(need)
    }

    fn drops(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        for route in &model.routes {
            let maker = serving.providers.get(&route.provider).and_then(|provider| provider.kind.rerank);
            let sent = maker.map(|maker| maker.body(&self.0, &route.upstream_model));
            sent.iter().flatten().for_each(|sent| dropped.extend(&sent.dropped));
        }
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        match path {
            "top_n" => Some(Cow::Owned(self.0.wanted().to_string())),
            _ => self.0.attr(path),
        }
    }

    fn endpoint(&self) -> &'static str {
        "rerank"
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated == Counters::default() { stated } else { Counters { calls: self.0.search_units(), ..stated } }
    }
}

impl Work for RerankCall {
    fn priced(&self) -> &dyn Priced {
        self
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.check_routes(serving, model)
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let maker = provider.kind.rerank.ok_or_else(texts::unable)?;
        let sent = maker.body(&self.0, &route.upstream_model).map_err(Fault::refusal)?;
        call.dropped = sent.dropped;
        priced_is_sent(&call.model, &call.dropped).map_err(Fault::refusal)?;
        let id = call.id.to_string();
        let request = maker.request(provider, &id, sent.body).ok_or_else(texts::unable)?;
        let reply = texts::ask(call, provider, request, |reply| maker.fault(reply)).await?;
        // Places and scores alone: however many documents there are, they fit into this.
        let bytes = reply.whole(HELD.min(provider.settings.max_reply_bytes), call.deadline).await?;
        let ranking = Ranking::read(maker.shape(), &bytes, &self.0).map_err(|_| match UpstreamError::read(&bytes) {
            Some(error) => maker.error_inside(&error),
            None => Fault::garbage(),
        })?;
        // One that is paid by the search has no reason to tell tokens.
        let reports = ranking.tokens.is_some() || ranking.raw_usage.is_none();
        let mut counted = self.counted();
        counted.calls = ranking.units.unwrap_or(counted.calls);
        call.meter = texts::meter(&self.0.tally, counted, ranking.tokens, ranking.raw_usage.as_deref(), reports);
        let (used, _) = call.meter.measured();
        let answer = RerankAnswer { id: &id, model: &call.model.name, tokens: used.input };
        let body = answer.written(&self.0, &ranking);
        let content_type = HeaderValue::from_static("application/json");
        Ok(Begun::Whole(WholeAnswer { content_type, body, completion: None }))
    }
}
