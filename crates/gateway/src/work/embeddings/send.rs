//! How texts are sent along one route, until their vectors are there or begin to pass.

use super::pass::VectorRewrite;
use super::{Embedding, EmbeddingCall};
use crate::call::{Begun, Call, HELD, Meter, Passed, WholeAnswer, note};
use crate::door::spool::SpoolDisk;
use crate::work::priced_fields::priced_is_sent;
use crate::work::spooled_answer::SpooledAnswer;
use crate::work::texts;
use bytes::Bytes;
use http::HeaderValue;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_catalog::{EmbeddingTable, Model, Route};
use tollgate_media::embed::{EmbedCaller, EmbedReply, VectorFlow, VectorTarget};
use tollgate_store::Counters;
use tollgate_upstream::{Blame, EmbedAsk, Embeddings, Fault, HeldReply, Provider, ReplyBody};
use tollgate_wire::UpstreamError;
use tollgate_wire::error::Code;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How often a part is asked for again that a busy provider did not take, and the longest pause
/// before that in seconds.
const AGAIN: usize = 3;
const PAUSE: u32 = 5;

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
        let first = range.start == 0;
        let ask = EmbedAsk { request: &self.work.0, model, range, floats_only };
        let sent = self.maker.body(&ask).map_err(Fault::refusal)?;
        // The parts of a list add up; along another route it begins anew.
        match first {
            true => call.dropped = sent.dropped,
            false => call.dropped.extend(&sent.dropped),
        }
        priced_is_sent(&call.model, &call.dropped).map_err(Fault::refusal)?;
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
                let written = read.written(bytes, &call.model.name, counted);
                return Ok(answer(match self.provider.settings.quirks.hidden_costs() {
                    None => written,
                    Some(hidden) => hidden.answer(written),
                }));
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
    /// half a list. The parts before it were read all the same, and the provider bills them. Who
    /// has left, or whose later text is refused, pays for those; a fault of the provider is free.
    async fn in_parts(self, call: &mut Call, batch: usize) -> Result<Begun, Fault> {
        let (texts, most) = (self.work.0.tally.texts, self.provider.settings.max_reply_bytes);
        let mut flow = self.flow(&call.model);
        let mut left = most;
        let mut out = SpooledAnswer::begin(self.spool, call, usize::MAX).await?;
        let counts = self.work.0.counts();
        for start in (0..texts).step_by(batch) {
            let range = start..texts.min(start + batch);
            let end = range.end;
            let sent = self.part(call, range, &mut flow, &mut out, &mut left).await;
            sent.map_err(|fault| self.unfinished(call, fault, start))?;
            let read = counts.iter().take(end).fold(0, |all: u64, one| all.saturating_add(*one));
            let counted = Counters { input: read, ..self.work.counted() };
            let (tally, reports) = (&self.work.0.tally, self.maker.reports());
            call.meter = texts::meter(tally, counted, flow.tokens(), None, reports);
        }
        let last = flow.end().map_err(|_| Fault::garbage());
        let whole = async {
            out.push(&last?).await?;
            out.answer(JSON).await
        };
        let answer = whole.await.map_err(|fault| self.unfinished(call, fault, texts))?;
        call.meter = self.meter(flow.tokens(), flow.raw_usage());
        Ok(answer)
    }

    /// One part, whole.
    async fn part(
        self,
        call: &mut Call,
        range: Range<usize>,
        flow: &mut VectorFlow,
        out: &mut SpooledAnswer,
        left: &mut usize,
    ) -> Result<(), Fault> {
        let vectors = range.len();
        let mut body = self.ask_for_part(call, range).await?;
        while let Some(piece) = body.chunk().await? {
            if Instant::now() > call.deadline {
                return Err(Fault::idle());
            }
            let text = flow.feed(&piece).map_err(|_| Fault::garbage())?;
            *left = left.checked_sub(text.len()).ok_or_else(Fault::too_long)?;
            out.push(&text).await?;
        }
        flow.end_reply(vectors).map_err(|_| Fault::garbage())
    }

    /// A later part that was certainly not begun is asked for again: what was read before it would
    /// be lost otherwise.
    async fn ask_for_part(self, call: &mut Call, range: Range<usize>) -> Result<ReplyBody, Fault> {
        let later = range.start > 0;
        call.attempts += u32::from(later);
        for _ in 0..AGAIN {
            let fault = match self.ask(call, range.clone()).await {
                Err(fault) if later && (!fault.sent || fault.code == Code::RateLimitExceeded) => fault,
                asked => return asked,
            };
            if fault.is_refusal() {
                return Err(fault);
            }
            let pause = Duration::from_secs(fault.retry_after.unwrap_or(1).min(PAUSE).into());
            if Instant::now() + pause > call.deadline {
                return Err(fault);
            }
            note(&call.till, call.id, self.provider, &fault);
            tokio::time::sleep(pause).await;
            call.attempts += 1;
        }
        self.ask(call, range).await
    }

    /// What a fault means once so many texts were read: nobody else is asked for them.
    fn unfinished(self, call: &mut Call, fault: Fault, read: usize) -> Fault {
        if read == 0 {
            return fault;
        }
        let mut fault = Fault { sent: true, maybe_charged: true, ..fault };
        if fault.blame == Blame::Caller {
            let charged = format!(" The {read} texts before this part of the list were read and are charged.");
            fault.message.push_str(&charged);
        } else {
            call.meter = Meter::Nothing;
        }
        fault
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

    fn meter(self, reported: Option<u64>, raw: Option<&str>) -> Meter {
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

fn answer(body: Bytes) -> Begun {
    Begun::Whole(WholeAnswer { content_type: JSON, body, completion: None })
}
