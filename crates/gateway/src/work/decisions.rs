//! Decisions as work: a model reads something once and answers questions about it with
//! probabilities. Client and provider may each speak either of two formats.

use super::priced_fields::priced_is_sent;
use super::texts;
use crate::call::{Begun, Call, HELD, Meter, Need, Priced, WholeAnswer, Work};
use crate::door::bodies::BodyShare;
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use http::HeaderValue;
use std::borrow::Cow;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_media::decide::{DecisionForm, DecisionReply, DecisionRequest};
use tollgate_store::Counters;
use tollgate_upstream::{Fault, Provider, SpooledFile};
use tollgate_wire::{Dropped, UpstreamError};

/// What a model that decides must offer, in either format.
pub const ENDPOINT_TYPE: &str = "system-one";
/// Tokens of an answer to one question, at most.
const ANSWER: u64 = 1_024;

/// Questions that are to be answered.
pub struct DecisionCall {
    asked: DecisionRequest,
    /// Pictures that came as parts of a form.
    files: Vec<SpooledFile>,
    /// What the other fields of the form take of the memory for bodies.
    _room: Option<BodyShare>,
}

impl DecisionCall {
    pub fn new(asked: DecisionRequest) -> DecisionCall {
        DecisionCall { asked, files: Vec::new(), _room: None }
    }

    /// A request with pictures beside it.
    pub fn with_files(asked: DecisionRequest, files: Vec<SpooledFile>, room: BodyShare) -> DecisionCall {
        DecisionCall { asked, files, _room: Some(room) }
    }

    /// Can some route of the model take this request?
    fn check_routes(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let mut first = None;
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(decides) = &provider.kind.decides else { continue };
            let unsaid = || priced_is_sent(model, &self.asked.unsaid(decides.form)?);
            match self.asked.fits(decides.form).and_then(|()| unsaid()) {
                Ok(()) => return Ok(()),
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        first.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// What was used: as reported, if that can be true. Cached tokens have no price of their own
    /// here, so all that was read is input.
    fn metered_by(&self, model: &Model, reply: &DecisionReply) -> Meter {
        let request = &self.asked;
        let picture = model.chat.image_tokens;
        let reported = reply.input.filter(|input| *input <= request.believable(picture));
        let most = (request.questions as u64).saturating_mul(ANSWER);
        let used = Counters {
            input: reported.unwrap_or_else(|| request.counted(picture)),
            output: reply.output.min(most),
            calls: 1,
            ..Counters::default()
        };
        Meter::Known { used, estimated: reported.is_none(), raw_usage: reply.raw_usage.clone() }
    }
}

impl Priced for DecisionCall {
    fn model(&self) -> &str {
        &self.asked.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn fits(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.check_routes(serving, model)
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let request = &self.asked;
        let picture = model.chat.image_tokens;
        let counted = request.counted(picture);
        let limit = model.max_input_tokens.or(model.context_window);
        texts::check_length(model, counted, limit, request.form.read_in())?;
        let mut need = texts::need(counted, request.most(picture), request.form.read_in());
        need.most.output = (request.questions as u64).saturating_mul(ANSWER);
        need.output_ceiling = need.most.output;
        Ok(need)
    }

    fn drops(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        for route in &model.routes {
            let decides = serving.providers.get(&route.provider).and_then(|provider| provider.kind.decides.as_ref());
            let taken = decides.filter(|decides| self.asked.fits(decides.form).is_ok());
            let unsaid = taken.map(|decides| self.asked.unsaid(decides.form));
            unsaid.iter().flatten().for_each(|more| dropped.extend(more));
        }
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        self.asked.attr(path)
    }

    /// One model may have a price for each of the two formats.
    fn endpoint(&self) -> &'static str {
        match self.asked.form {
            DecisionForm::SystemOne => "systemone",
            DecisionForm::Decisions => "decisions",
        }
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated == Counters::default() { stated } else { Counters { calls: 1, ..stated } }
    }
}

impl Work for DecisionCall {
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
        let decides = provider.kind.decides.as_ref().ok_or_else(texts::unable)?;
        self.asked.fits(decides.form).map_err(Fault::refusal)?;
        let body = self.asked.body(decides.form, &route.upstream_model).map_err(Fault::refusal)?;
        call.dropped = self.asked.unsaid(decides.form).map_err(Fault::refusal)?;
        priced_is_sent(&call.model, &call.dropped).map_err(Fault::refusal)?;
        let request = decides.request(provider, &call.id.to_string(), body, &self.files);
        let request = request.ok_or_else(texts::unable)?;
        let reply = texts::ask(call, provider, request, |reply| decides.fault(reply)).await;
        let reply = reply.map_err(|fault| decides.after(fault))?;
        // The words of the questions and numbers: however many there are, they fit into this.
        let bytes = reply.whole(HELD.min(provider.settings.max_reply_bytes), call.deadline).await?;
        let counted = self.asked.counted(call.model.chat.image_tokens);
        let read = DecisionReply::read(decides.form, bytes.clone(), &self.asked, &call.model.name, counted);
        let read = read.map_err(|_| match UpstreamError::read(&bytes) {
            Some(error) => decides.error_inside(&error),
            None => Fault::garbage(),
        })?;
        call.meter = self.metered_by(&call.model, &read);
        let content_type = HeaderValue::from_static("application/json");
        Ok(Begun::Whole(WholeAnswer { content_type, body: read.body, completion: None }))
    }
}
