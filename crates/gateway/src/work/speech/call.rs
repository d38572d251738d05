//! Speech as work: how a route is asked for it, and when its answer has begun.

use super::asked::{AskedSpeech, RouteSpeech};
use super::flow::SpeechFlow;
use crate::call::{Begun, Call, Meter, Passed, Priced, Work};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::work::audio::{AudioAnswer, sent};
use http::HeaderValue;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_upstream::{Fault, Provider};
use tollgate_wire::Problem;

/// The call.
pub struct SpeechCall(pub AskedSpeech);

impl Work for SpeechCall {
    fn priced(&self) -> &dyn Priced {
        &self.0
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.0.fits_routes(serving, model)
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let model = call.model.clone();
        let Ok(speech) = self.0.settle(&model) else {
            return Err(Fault::refusal(Problem::unsupported("model", "The model makes no speech.")));
        };
        let id = call.id.to_string();
        let asked = RouteSpeech::of(&speech, &model, provider, route, &id).map_err(Fault::refusal)?;
        let request = asked.request().map_err(Fault::refusal)?;
        let RouteSpeech { maker, ask, .. } = asked;
        speech.dropped.iter().for_each(|field| call.dropped.add(field));
        let (headers, body) = sent(call, provider, request, |reply| maker.fault(reply)).await?;
        let mut answer = AudioAnswer::new(call, provider, body, maker.reader(&ask, &headers));
        let audio = answer.first(ask.made).await?;
        call.first_byte_at = Some(call.till.world.now_ms());
        call.meter = SpeechFlow::begun(&speech);
        let AudioAnswer { body, reader, left, .. } = answer;
        let mut flow = SpeechFlow::new(reader, &ask);
        let first = flow.write(audio)?;
        let content_type = match speech.events {
            true => "text/event-stream".to_owned(),
            false => speech.format.content_type(ask.rate),
        };
        let content_type = HeaderValue::try_from(content_type).map_err(|_| Fault::garbage())?;
        Ok(Begun::Passing(Box::new(Passed { content_type, first, body, rewrite: Box::new(flow), left })))
    }
}
