//! Embeddings as work: texts in, vectors out, in whichever of two formats the client asks. Where
//! client and provider speak the same, the bytes pass; elsewhere vectors are rewritten one by one.
//! A list that is longer than a provider takes is sent in parts under one hold. What comes of them
//! is one answer or none, so it is spooled until the last part is there.

mod pass;
mod send;

use super::long_replies::LongReplies;
use super::priced_fields::priced_is_sent;
use super::texts;
use crate::call::{Call, Meter, Need, Priced, StoredPieces, Work};
use crate::door::spool::SpoolDisk;
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use std::borrow::Cow;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_media::embed::{EmbedRequest, MOST_INPUTS};
use tollgate_store::Counters;
use tollgate_upstream::{EmbedAsk, EmbedSent, Embeddings, Fault, Provider};
use tollgate_wire::error::Code;
use tollgate_wire::{Dropped, Problem};

/// What a model that makes embeddings must offer, in either format.
pub const ENDPOINT_TYPE: &str = "embeddings";

/// A request for vectors, as far as its price depends on it.
pub struct Embedding(pub EmbedRequest);

/// The same, to be answered.
pub struct EmbeddingCall {
    pub asked: Embedding,
    /// Where vectors lie until the last part of a list is there.
    pub spool: Arc<SpoolDisk>,
    pub replies: Arc<LongReplies>,
}

impl Embedding {
    /// Can some route of the model take this request?
    fn check_routes(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let mut first = None;
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(maker) = provider.kind.embeddings else { continue };
            match maker.takes(&self.0).and_then(|()| self.sends_priced(maker, model, route)) {
                Ok(()) => return Ok(()),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        first.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Nothing is read for a model whose price goes by nothing of the request.
    fn sends_priced(&self, maker: &dyn Embeddings, model: &Model, route: &Route) -> Result<(), Problem> {
        if model.tier_parameters().next().is_none() {
            return Ok(());
        }
        priced_is_sent(model, &self.sent(maker, model, route)?.dropped)
    }

    /// What a provider would be sent, were it all at once.
    fn sent(&self, maker: &dyn Embeddings, model: &Model, route: &Route) -> Result<EmbedSent, Problem> {
        let (range, floats_only) = (0..self.0.tally.texts, model.embedding.floats_only);
        maker.body(&EmbedAsk { request: &self.0, model: &route.upstream_model, range, floats_only })
    }

    /// Each text fits into the model, and all of them into what it takes at once.
    fn check_limits(&self, model: &Model) -> Result<(), Refusal> {
        let (request, tally) = (&self.0, &self.0.tally);
        let most = model.embedding.most_inputs.unwrap_or(MOST_INPUTS);
        if tally.texts > most {
            let field = request.said_in();
            let text = format!("`{field}` has {} texts; `{}` takes at most {most} at once.", tally.texts, model.name);
            return Err(Refusal::about(Code::InvalidParameter, field, text));
        }
        texts::check_length(model, tally.longest, model.context_window, &request.place(tally.longest_at))?;
        texts::check_length(model, tally.tokens, model.max_input_tokens, request.said_in())
    }

    /// Our own count, for a call whose provider reports nothing.
    fn counted(&self) -> Counters {
        Counters { input: self.0.tally.tokens, calls: 1, ..Counters::default() }
    }
}

impl Priced for Embedding {
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
        self.check_limits(model)?;
        let tally = &self.0.tally;
        Ok(texts::need(tally.tokens, tally.most(), self.0.said_in()))
    }

    fn drops(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        for route in &model.routes {
            let maker = serving.providers.get(&route.provider).and_then(|provider| provider.kind.embeddings);
            let Some(maker) = maker.filter(|maker| maker.takes(&self.0).is_ok()) else { continue };
            self.sent(maker, model, route).iter().for_each(|sent| dropped.extend(&sent.dropped));
        }
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        match path {
            "dimensions" => self.0.dimensions.map(|number| Cow::Owned(number.to_string())),
            _ => self.0.attr(path),
        }
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated == Counters::default() { stated } else { Counters { calls: 1, ..stated } }
    }
}

impl Work for EmbeddingCall {
    fn priced(&self) -> &dyn Priced {
        &self.asked
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.asked.check_routes(serving, model)
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    async fn attempt(
        &self,
        call: &mut Call,
        provider: &Arc<Provider>,
        route: &Route,
    ) -> Result<crate::call::Begun, Fault> {
        let begun = self.send(call, provider, route).await?;
        match call.idempotent {
            // Apart: nearly no call needs it.
            true => Box::pin(self.replies.kept(call, begun)).await,
            false => Ok(begun),
        }
    }

    async fn stored(&self, name: &str) -> Option<StoredPieces> {
        self.replies.stored(name).await
    }
}
