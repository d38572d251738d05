//! How pictures are asked for along one route, until the answer begins.

use super::ImageCall;
use super::answer::{Gathered, PassedFlow};
use super::ask::asked_as_priced;
use super::gather::PicturesPart;
use super::linked::OwnLinks;
use crate::call::{Begun, Call, Meter, Passed, Priced, StoredPieces, Till, Work};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::world::Millis;
use bytes::BytesMut;
use http::HeaderValue;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_catalog::{ImageTable, Model, Route};
use tollgate_media::image::{
    FlowBroke, ImagePlan, PictureFacts, PictureFlow, PictureFormat, PictureTally, ResultStyle, ResultWriter,
};
use tollgate_store::{AccountId, Counters, MAX_STORED_REPLY};
use tollgate_upstream::video::Asking;
use tollgate_upstream::{Blame, Fault, ImageJob, ImageMaker, Outgoing, PictureFile, Provider, ReplyBody, is_encoded};

/// Answers up to this size are held, so that with what stands around their pictures they can be
/// stored; larger ones pass.
pub(super) const HELD: usize = MAX_STORED_REPLY - (16 << 10);
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// One attempt along one route.
pub(super) struct Making<'a> {
    pub plan: &'a ImagePlan,
    pub maker: &'static dyn ImageMaker,
    pub provider: &'a Arc<Provider>,
    pub route: &'a Route,
    pub table: &'a ImageTable,
    pub files: &'a [PictureFile],
    pub desk: &'a super::ImageDesk,
    pub till: Arc<Till>,
    pub call_id: String,
    pub account: AccountId,
    /// Where pictures go that are handed over by links of ours.
    pub links: Option<OwnLinks<'a>>,
    pub created: u64,
    pub deadline: Instant,
    /// When the first byte of an answer came.
    pub heard: OnceLock<Millis>,
}

impl Work for ImageCall {
    fn priced(&self) -> &dyn Priced {
        &self.ask
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.ask.fits_routes(&self.files, serving, model)
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    /// A picture that was begun is made, and billed, for whoever left.
    fn goes_on(&self, _: &Serving, _: &Model) -> bool {
        true
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let maker = provider.kind.image.ok_or_else(no_pictures)?;
        let asked = self.ask.plan().map_err(|_| no_pictures())?;
        let model = call.model.clone();
        let patient = model.image.time.map(|time| patient(provider, time));
        let provider = patient.as_ref().unwrap_or(provider);
        let keeps = asked.format == PictureFormat::Url && model.image.base64_only;
        // What its maker is asked for is what it has.
        let as_made = keeps.then(|| ImagePlan { format: PictureFormat::Base64, ..asked.clone() });
        let plan = as_made.as_ref().unwrap_or(asked);
        let store = self.desk.store.as_deref().filter(|_| keeps);
        let making = Making {
            plan,
            maker,
            provider,
            route,
            table: &model.image,
            files: &self.files,
            desk: &self.desk,
            till: call.till.clone(),
            call_id: call.id.to_string(),
            account: call.caller.account.id,
            links: store.map(|store| OwnLinks { store, base: &self.base, made: AtomicU64::new(0) }),
            created: u64::try_from(call.began / 1_000).unwrap_or(0),
            deadline: call.deadline,
            heard: OnceLock::new(),
        };
        let job = making.job(plan.n, false);
        asked_as_priced(maker, provider, &job, &model).map_err(Fault::refusal)?;
        maker.drops(provider, &job).iter().for_each(|field| call.dropped.add(field));
        // Events pass as they come, so a report that is not for clients would pass with them.
        let shows_all = provider.settings.quirks.hidden_costs().is_none();
        if plan.asked.stream && model.image.streams && maker.streams(provider) && shows_all {
            return making.stream(call).await;
        }
        let begun = making.begun(call).await;
        call.first_byte_at = call.first_byte_at.or(making.heard.get().copied());
        // Events are not waited for, also where a key may ask for them again.
        match begun? {
            begun if plan.asked.stream => Ok(begun),
            begun => self.desk.replies.kept(call, begun).await,
        }
    }

    async fn stored(&self, name: &str) -> Option<StoredPieces> {
        self.desk.replies.stored(name).await
    }
}

impl Making<'_> {
    pub fn job(&self, n: u64, streams: bool) -> ImageJob<'_> {
        let mut drawn = [0; 16];
        self.till.world.fill(&mut drawn);
        ImageJob {
            plan: self.plan,
            model: &self.route.upstream_model,
            api: &self.table.api,
            files: self.files,
            sends_format: self.table.sends_format && !self.table.base64_only,
            streams,
            n,
            external_id: &self.call_id,
            drawn,
        }
    }

    pub fn asking(&self) -> Asking<'_> {
        Asking { provider: self.provider, now: self.till.world.now_ms() / 1_000 }
    }

    /// Sends what makes something: over a new or just used connection, and once.
    pub async fn send(&self, n: u64, streams: bool) -> Result<(ReplyBody, bool), Fault> {
        let request = self.maker.create(&self.asking(), &self.job(n, streams)).map_err(Fault::refusal)?;
        self.exchange(request, true).await
    }

    /// The body of a good answer, and whether it is a stream of events.
    pub async fn exchange(&self, request: Outgoing, fresh: bool) -> Result<(ReplyBody, bool), Fault> {
        let client = &self.till.client;
        let reply = match fresh {
            true => client.send_recent(self.provider, request).await?,
            false => client.send(self.provider, request).await?,
        };
        if !reply.status().is_success() {
            return Err(self.maker.refused(&client.refused(self.provider, reply).await));
        }
        if is_encoded(reply.headers()) {
            // What was made cannot be read.
            return Err(Fault { maybe_charged: fresh, ..Fault::encoded() });
        }
        let kind = reply.headers().get(http::header::CONTENT_TYPE);
        let events = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        Ok((ReplyBody::new(reply.into_body(), self.provider.settings.idle), events))
    }

    /// The most bytes of an answer with so many pictures.
    pub fn most_bytes(&self, n: u64) -> usize {
        let pictures = usize::try_from(n).unwrap_or(usize::MAX);
        self.provider.settings.max_reply_bytes.saturating_mul(pictures)
    }

    pub fn style(&self) -> ResultStyle {
        match &self.plan.asked {
            asked if asked.predicts => ResultStyle::Predictions,
            asked if asked.stream => ResultStyle::Events { edit: asked.edit },
            _ => ResultStyle::Object,
        }
    }

    pub fn content_type(&self) -> HeaderValue {
        if self.plan.asked.stream { EVENTS } else { JSON }
    }

    pub fn flow(&self, n: u64) -> PictureFlow {
        self.flow_as(self.style(), n)
    }

    pub fn flow_as(&self, style: ResultStyle, n: u64) -> PictureFlow {
        let shape = self.plan.shape.as_ref().filter(|shape| shape.pixels.is_some());
        let text = |name: &str| self.plan.asked.others.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let facts = PictureFacts {
            size: shape.map(|shape| shape.text.clone()),
            quality: self.plan.quality.clone().filter(|_| self.maker.takes_quality(self.provider)),
            output_format: text("output_format"),
            background: text("background"),
        };
        let writer = ResultWriter::new(style, self.created, facts);
        PictureFlow::new(
            self.maker.layout(&self.table.api),
            writer,
            PictureTally { asked: n, ..PictureTally::default() },
        )
    }

    /// What the pictures come to, by as many requests as they take.
    async fn begun(&self, call: &mut Call) -> Result<Begun, Fault> {
        if self.maker.repeats(&self.table.api) && self.plan.n > 1 {
            let gathered = self.several().await?;
            return self.answer(call, gathered);
        }
        self.one(call).await
    }

    /// Something of an answer is there.
    pub fn hears(&self) {
        self.heard.get_or_init(|| self.till.world.now_ms());
    }

    /// One request for all pictures: held while it is small, then it passes. What may turn out to
    /// be a draft behind its last letter cannot leave before that is known.
    pub async fn one(&self, call: &mut Call) -> Result<Begun, Fault> {
        if self.plan.n == 1 && self.maker.layout(&self.table.api).draft.is_some() {
            return self.answered(call, self.single().await?);
        }
        let (body, _) = self.send(self.plan.n, false).await?;
        if let Some(links) = &self.links {
            let part = self.linked(links, body, self.plan.n).await?;
            return self.answered(call, part);
        }
        self.read(call, body).await
    }

    /// The answer of one request, if there is a picture in it.
    fn answered(&self, call: &mut Call, part: PicturesPart) -> Result<Begun, Fault> {
        match part.gathered.tally.delivered {
            0 => Err(part.failure.unwrap_or_else(no_picture)),
            _ => self.answer(call, part.gathered),
        }
    }

    pub async fn read(&self, call: &mut Call, mut body: ReplyBody) -> Result<Begun, Fault> {
        let mut flow = self.flow(self.plan.n);
        let mut left = self.most_bytes(self.plan.n);
        // What is announced as too large to be held need not be held until it is.
        let large = body.expected() > HELD as u64;
        while let Some(piece) = body.chunk().await? {
            self.hears();
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.deadline {
                return Err(Fault::idle());
            }
            flow.feed(&piece).map_err(broke)?;
            if flow.out_len() > HELD || (large && flow.has_picture()) {
                return Ok(self.pass(call, flow, body, left));
            }
        }
        let (rest, writer, tally, out) = flow.finish().map_err(broke)?;
        let gathered = Gathered::new(writer, tally, out.into());
        let found = self.found(&rest).await;
        let gathered = self.gather(gathered, found).await?;
        self.answer(call, gathered)
    }

    /// An answer that is too large to be held.
    fn pass(&self, call: &mut Call, mut flow: PictureFlow, body: ReplyBody, left: usize) -> Begun {
        let mut first = BytesMut::new();
        let mut begin = Vec::new();
        flow.writer().begin(&mut begin);
        first.extend_from_slice(&begin);
        first.extend_from_slice(&flow.take());
        // What a process that dies owes is not known; what was asked for is the most.
        call.meter = metered(&PictureTally { delivered: self.plan.n, ..PictureTally::default() });
        let rewrite = PassedFlow::new(flow, self.maker, self.table.api.clone(), self.hidden());
        Begun::Passing(Box::new(Passed {
            content_type: self.content_type(),
            first: first.freeze(),
            body,
            rewrite: Box::new(rewrite),
            left,
        }))
    }
}

/// What the pictures that were handed over come to.
pub(super) fn metered(tally: &PictureTally) -> Meter {
    if tally.delivered == 0 {
        return Meter::Nothing;
    }
    Meter::Known { used: Counters::images(tally.delivered), estimated: false, raw_usage: tally.usage.clone() }
}

pub(super) fn broke(why: FlowBroke) -> Fault {
    match why {
        FlowBroke::NotJson => Fault::garbage(),
        FlowBroke::TooLong => Fault::too_long(),
    }
}

/// It was billed, most likely, so nobody else is asked.
pub(super) fn no_picture() -> Fault {
    Fault { message: "The provider answered without a picture that can be decoded.".to_owned(), ..Fault::garbage() }
}

/// The provider as it is waited for where this model is asked.
fn patient(provider: &Provider, time: Duration) -> Arc<Provider> {
    let mut own = provider.clone();
    own.settings.first_byte = time;
    Arc::new(own)
}

fn no_pictures() -> Fault {
    Fault { blame: Blame::Operator, ..Fault::unreachable() }
}
