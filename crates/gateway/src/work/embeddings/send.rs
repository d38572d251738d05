//! How texts are sent along one route, until their vectors are there or begin to pass.

use super::pass::VectorRewrite;
use super::{Embedding, EmbeddingCall};
use crate::call::{Begun, Call, HELD, Passed, WholeAnswer};
use crate::door::spool::SpoolDisk;
use crate::work::spooled_answer::SpooledAnswer;
use crate::work::texts;
use bytes::Bytes;
use http::HeaderValue;
use std::ops::Range;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{EmbeddingTable, Model, Route};
use tollgate_media::embed::{EmbedCaller, EmbedReply, VectorFlow, VectorTarget};
use tollgate_upstream::{EmbedAsk, Embeddings, Fault, HeldReply, Provider, ReplyBody};
use tollgate_wire::UpstreamError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One attempt along one route.
#[derive(Clone, Copy)]
struct Way<'a> {
    work: &'a Embedding,
    spool: &'a Arc<SpoolDisk>,
    provider: &'a Provider,
    maker: &'static dyn Embeddings,
    route: &'a Route,
}

impl EmbeddingCall {
    pub(super) async fn send(&self, call: &mut Call, provider: &Provider, route: &Route) -> Result<Begun, Fault> {
        let maker = provider.kind.embeddings.ok_or_else(texts::unable)?;
        let request = &self.asked.0;
        maker.takes(request).map_err(Fault::refusal)?;
        let way = Way { work: &self.asked, spool: &self.spool, provider, maker, route };
        let texts = request.tally.texts;
        let batch = batch(&call.model.embedding, maker);
        if texts <= batch {
            return way.at_once(call, 0..texts).await;
        }
        // Apart: nearly no call needs it.
        Box::pin(way.in_parts(call, batch)).await
    }
}

/// Texts in one request to a provider.
fn batch(table: &EmbeddingTable, maker: &dyn Embeddings) -> usize {
    table.batch.unwrap_or(usize::MAX).min(maker.most_inputs()).max(1)
}

impl Way<'_> {
    /// Asks for the vectors of some texts.
    async fn ask(self, call: &mut Call, range: Range<usize>) -> Result<ReplyBody, Fault> {
        let model = self.route.upstream_model.as_str();
        let floats_only = call.model.embedding.floats_only;
        let ask = EmbedAsk { request: &self.work.0, model, range, floats_only };
        let sent = self.maker.body(&ask).map_err(Fault::refusal)?;
        call.dropped = sent.dropped;
        let id = call.id.to_string();
        let request = self.maker.request(self.provider, model, &id, sent.body).ok_or_else(texts::unable)?;
        texts::ask(call, self.provider, request, |reply| self.maker.fault(reply)).await
    }

    async fn at_once(self, call: &mut Call, range: Range<usize>) -> Result<Begun, Fault> {
        let texts = range.len();
        let body = self.ask(call, range).await?;
        let most = self.provider.settings.max_reply_bytes;
        match body.up_to(HELD, most, call.deadline).await? {
            HeldReply::Whole(bytes) => self.whole(call, bytes, texts),
            HeldReply::Large { start, rest } => self.large(call, &start, rest, most),
        }
    }

    fn whole(self, call: &mut Call, bytes: Bytes, texts: usize) -> Result<Begun, Fault> {
        let caller = self.work.0.caller;
        if let (true, EmbedCaller::OpenAi { base64 }) = (self.maker.speaks(caller), caller) {
            let read = EmbedReply::read(&bytes, base64).map_err(|_| self.no_vectors(&bytes))?;
            if read.fits && read.vectors == texts {
                call.meter = self.meter(read.tokens, read.raw_usage.as_deref());
                let counted = self.work.0.tally.tokens;
                return Ok(answer(read.written(bytes, &call.model.name, counted)));
            }
        }
        let mut flow = self.flow(&call.model);
        let mut out = Vec::with_capacity(bytes.len());
        let mut read = || {
            out.extend_from_slice(&flow.feed(&bytes)?);
            flow.end_reply(texts)?;
            out.extend_from_slice(&flow.end()?);
            Ok(())
        };
        read().map_err(|_: tollgate_media::embed::NotVectors| self.no_vectors(&bytes))?;
        call.meter = self.meter(flow.tokens(), flow.raw_usage());
        Ok(answer(Bytes::from(out)))
    }

    /// Vectors that are too many to be held pass.
    fn large(self, call: &mut Call, start: &Bytes, rest: ReplyBody, most: usize) -> Result<Begun, Fault> {
        // For a client that leaves on the way: they were made.
        call.meter = self.meter(None, None);
        let flow = self.flow(&call.model);
        let work = self.work;
        let mut rewrite =
            VectorRewrite { flow, tally: work.0.tally, counted: work.counted(), reports: self.maker.reports() };
        let first = rewrite.flow.feed(start).map_err(|_| self.no_vectors(start))?;
        Ok(Begun::Passing(Box::new(Passed {
            content_type: JSON,
            first,
            body: rest,
            rewrite: Box::new(rewrite),
            left: most.saturating_sub(start.len()),
        })))
    }

    /// One request after the other. Whichever fails, all have failed: there is nothing to be had of
    /// half a list.
    async fn in_parts(self, call: &mut Call, batch: usize) -> Result<Begun, Fault> {
        let (texts, most) = (self.work.0.tally.texts, self.provider.settings.max_reply_bytes);
        let mut flow = self.flow(&call.model);
        let mut left = most;
        let mut out = SpooledAnswer::begin(self.spool, call, usize::MAX).await?;
        for start in (0..texts).step_by(batch) {
            let range = start..texts.min(start + batch);
            let vectors = range.len();
            if start > 0 {
                call.attempts += 1;
            }
            let mut body = self.ask(call, range).await.map_err(|fault| begun(fault, start > 0))?;
            while let Some(piece) = body.chunk().await? {
                if Instant::now() > call.deadline {
                    return Err(Fault::idle());
                }
                let text = flow.feed(&piece).map_err(|_| Fault::garbage())?;
                left = left.checked_sub(text.len()).ok_or_else(Fault::too_long)?;
                out.push(&text).await?;
            }
            flow.end_reply(vectors).map_err(|_| Fault::garbage())?;
        }
        out.push(&flow.end().map_err(|_| Fault::garbage())?).await?;
        call.meter = self.meter(flow.tokens(), flow.raw_usage());
        out.answer(JSON).await
    }

    fn flow(self, model: &Model) -> VectorFlow {
        let request = &self.work.0;
        let target = VectorTarget {
            caller: request.caller,
            model: model.name.clone(),
            texts: request.tally.texts,
            counted: request.tally.tokens,
        };
        VectorFlow::new(self.maker.shape(), target)
    }

    fn meter(self, reported: Option<u64>, raw: Option<&str>) -> crate::call::Meter {
        texts::meter(&self.work.0.tally, self.work.counted(), reported, raw, self.maker.reports())
    }

    /// A reply that is none may be an error in disguise.
    fn no_vectors(self, bytes: &[u8]) -> Fault {
        match UpstreamError::read(bytes) {
            Some(error) => self.maker.error_inside(&error),
            None => Fault::garbage(),
        }
    }
}

/// Once a part was answered the provider has worked for us, and nobody else is asked.
fn begun(fault: Fault, before: bool) -> Fault {
    Fault { maybe_charged: fault.maybe_charged || before, ..fault }
}

fn answer(body: Bytes) -> Begun {
    Begun::Whole(WholeAnswer { content_type: JSON, body, completion: None })
}
