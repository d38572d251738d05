//! A transcript as work: how a recording is sent along one route, and what comes back.

use super::asked::AskedTranscription;
use super::passing::{LargeTranscript, Streaming};
use crate::call::{Begun, Call, Meter, Passed, Priced, Till, WholeAnswer, Work};
use crate::door::bodies::BodyShare;
use crate::door::passing::{PassedFile, UploadedFile};
use crate::door::spool::SpoolDisk;
use crate::sale::Serving;
use bytes::BytesMut;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{Model, Route};
use tollgate_media::audio::Measured;
use tollgate_store::Counters;
use tollgate_upstream::transcription::{Transcriber, TranscriptEvents, TranscriptionAsk, TranscriptionUsage};
use tollgate_upstream::{Blame, Client, Fault, HeldReply, Provider, ReplyBody, WholeReply, is_encoded};
use tollgate_wire::Dropped;

/// Replies up to this size are held and read as a whole.
const HELD: usize = 1 << 20;
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Two lengths that differ by more than this, or by a twentieth, are not the same.
const DIFFERS_MS: u64 = 2_000;

/// The call.
pub struct TranscriptionCall {
    pub asked: AskedTranscription,
    pub file: UploadedFile,
    pub measured: Measured,
    /// Where replies lie while they are rewritten.
    pub spool: Arc<SpoolDisk>,
    /// What the fields of the form take.
    pub room: BodyShare,
    /// For addresses that only providers have written: it reaches public addresses only.
    pub outside: Client,
}

/// What is known of an answer's way: for the meter, and for a word to the operator.
#[derive(Clone)]
pub struct Measuring {
    pub used: Counters,
    pub millis: u64,
    pub till: Arc<Till>,
    pub provider: String,
    pub upstream_model: String,
}

impl Measuring {
    /// The meter of an answer. Where the provider has another length than we, the operator is
    /// warned; the charge goes by ours.
    pub fn meter(&self, usage: TranscriptionUsage) -> Meter {
        if usage.millis.is_some_and(|theirs| differs(self.millis, theirs)) {
            self.till.metrics.other_length(&self.provider, &self.upstream_model);
            let (ours, theirs) = (self.millis, usage.millis.unwrap_or_default());
            tracing::warn!(
                provider = self.provider,
                model = self.upstream_model,
                ours,
                theirs,
                "a provider has another length of a recording"
            );
        }
        Meter::Known { used: self.used, estimated: false, raw_usage: usage.raw_usage }
    }
}

/// Whether a provider's length is not ours. It may have rounded up to whole seconds.
fn differs(ours: u64, theirs: u64) -> bool {
    let rounded = ours.div_ceil(1_000) * 1_000;
    let off = ours.saturating_sub(theirs).max(theirs.saturating_sub(rounded));
    off > DIFFERS_MS || off.saturating_mul(20) > ours
}

impl TranscriptionCall {
    pub(super) fn measuring(&self, call: &Call, provider: &Provider) -> Measuring {
        Measuring {
            used: self.asked.used().unwrap_or_default(),
            millis: self.measured.length.millis(),
            till: call.till.clone(),
            provider: provider.name.clone(),
            upstream_model: call.upstream_model.clone(),
        }
    }

    /// The file, where it has passed along this route; an error, where it has passed along another.
    fn passed(&self, provider: &Provider, route: &Route) -> Result<Option<&PassedFile>, Fault> {
        let UploadedFile::Passed(passed) = &self.file else { return Ok(None) };
        let way = (&passed.way.provider, &passed.way.upstream_model);
        if way == (&provider.name, &route.upstream_model) { Ok(Some(passed)) } else { Err(Fault::way_gone()) }
    }

    /// Reads a reply that is not streamed.
    async fn whole(&self, call: &mut Call, way: &Way<'_>, head: HeaderMap, body: ReplyBody) -> Result<Begun, Fault> {
        let most = way.provider.settings.max_reply_bytes;
        let format = self.asked.request.format;
        let content_type = HeaderValue::from_static(format.content_type());
        if let Some(shape) = way.maker.shape(format) {
            let reply = self.spooled(call, body, most).await?;
            call.first_byte_at = Some(call.till.world.now_ms());
            return self.rewritten(call, way, shape, &reply, None).await;
        }
        let held = body.up_to(HELD, most, call.deadline).await?;
        call.first_byte_at = Some(call.till.world.now_ms());
        match held {
            HeldReply::Whole(body) => {
                let heard = way.maker.heard(&way.ask, &WholeReply { status: 200, headers: head, body })?;
                call.meter = self.measuring(call, way.provider).meter(heard.usage);
                Ok(Begun::Whole(WholeAnswer { content_type, body: heard.body, completion: None }))
            }
            HeldReply::Large { start, rest } => {
                call.meter = self.measuring(call, way.provider).meter(TranscriptionUsage::default());
                let mut rewrite = LargeTranscript::new(format);
                rewrite.see(&start);
                let left = most.saturating_sub(start.len());
                let rewrite = Box::new(rewrite);
                Ok(Begun::Passing(Box::new(Passed { content_type, first: start, body: rest, rewrite, left })))
            }
        }
    }

    /// Waits for the first event, so that an early failure keeps its status.
    async fn stream(&self, call: &mut Call, provider: &Provider, mut body: ReplyBody) -> Result<Begun, Fault> {
        let mut events = TranscriptEvents::new(provider.settings.max_event_bytes);
        let mut first = BytesMut::new();
        while events.count() == 0 {
            let Some(chunk) = body.chunk().await? else { return Err(Fault::garbage()) };
            if call.first_byte_at.is_none() {
                call.first_byte_at = Some(call.till.world.now_ms());
            }
            // Comments alone can keep a reply alive for ever.
            if Instant::now() >= call.deadline {
                return Err(Fault::late());
            }
            if first.len() + chunk.len() > HELD {
                return Err(Fault::too_long());
            }
            first.extend_from_slice(&chunk);
            events.feed(chunk)?;
        }
        let measuring = self.measuring(call, provider);
        // A client that leaves on the way has been listened to.
        call.meter = measuring.meter(TranscriptionUsage::default());
        let left = provider.settings.max_reply_bytes.saturating_sub(first.len());
        let rewrite = Box::new(Streaming::new(events, measuring));
        let first = first.freeze();
        Ok(Begun::Passing(Box::new(Passed { content_type: EVENTS, first, body, rewrite, left })))
    }
}

/// One attempt along one route.
pub(super) struct Way<'a> {
    pub maker: &'static dyn Transcriber,
    pub provider: &'a Provider,
    pub ask: TranscriptionAsk<'a>,
}

impl Work for TranscriptionCall {
    fn priced(&self) -> &dyn Priced {
        &self.asked
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    fn is_under_way(&self) -> bool {
        matches!(self.file, UploadedFile::Passed(_))
    }

    /// A task goes on, and is billed, for whoever left.
    fn goes_on(&self, serving: &Serving, model: &Model) -> bool {
        let tasks = |route: &Route| {
            let kind = serving.providers.get(&route.provider)?.kind;
            kind.transcriber(&route.upstream_model)?.tasks()
        };
        model.routes.iter().any(|route| tasks(route).is_some())
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let unable = || Fault { blame: Blame::Operator, ..Fault::unreachable() };
        let maker = provider.kind.transcriber(&route.upstream_model).ok_or_else(unable)?;
        let request = &self.asked.request;
        let offered = call.model.transcription.as_ref().is_some_and(|table| table.stream);
        let stream = request.stream && offered && maker.streams();
        call.dropped = Dropped::default();
        if request.stream && !stream {
            call.dropped.add("stream");
        }
        for (field, _) in request.others.iter().filter(|(field, _)| maker.drops(field)) {
            call.dropped.add(field);
        }
        let mut drawn = [0; 16];
        call.till.world.fill(&mut drawn);
        let call_id = call.id.to_string();
        let passed = self.passed(provider, route)?;
        if let Some(passed) = passed {
            drawn = passed.way.drawn;
        }
        let (model, file, measured) = (route.upstream_model.as_str(), self.file.spooled(), &self.measured);
        let ask = TranscriptionAsk { call_id: &call_id, model, request, file, measured, stream, drawn };
        maker.takes(&ask).map_err(Fault::refusal)?;
        if let Some(tasks) = maker.tasks() {
            return self.by_task(call, &Way { maker, provider, ask }, tasks).await;
        }
        let reply = match passed {
            Some(passed) => passed.release(maker.pass_end(&ask).ok_or_else(unable)?).await?,
            None => {
                let outgoing = maker.request(provider, &ask).ok_or_else(unable)?;
                call.till.client.send(provider, outgoing).await?
            }
        };
        if !reply.status().is_success() {
            return Err(maker.fault(&call.till.client.refused(provider, reply).await));
        }
        if is_encoded(reply.headers()) {
            // It has listened, and what it heard cannot be read.
            return Err(Fault { maybe_charged: true, ..Fault::encoded() });
        }
        let (head, body) = reply.into_parts();
        let body = ReplyBody::new(body, provider.settings.idle);
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if stream && kind.starts_with("text/event-stream") {
            return self.stream(call, provider, body).await;
        }
        if stream {
            // A model that does not stream ignores the wish.
            call.dropped.add("stream");
        }
        self.whole(call, &Way { maker, provider, ask }, head.headers, body).await
    }
}

#[cfg(test)]
mod tests {
    use super::differs;

    #[test]
    fn lengths_differ_by_two_seconds_or_a_twentieth() {
        for (ours, theirs, reported) in [
            (12_345, 12_345, false),
            (12_345, 13_000, false),
            (12_345, 12_962, false),
            (12_345, 13_700, true),
            (12_345, 11_800, false),
            (12_345, 11_700, true),
            (200, 1_000, false),
            (200, 1_011, true),
            (100_000, 102_000, false),
            (100_000, 102_001, true),
            (10_800_000, 10_797_000, true),
        ] {
            assert_eq!(differs(ours, theirs), reported, "{ours} {theirs}");
        }
    }
}
