//! Speech as work: how a route is asked for it, and when its answer has begun.

use super::asked::AskedSpeech;
use super::flow::SpeechFlow;
use crate::call::{Begun, Call, Meter, Passed, Priced, Work};
use crate::sale::speech::made;
use crate::work::audio::{AudioAnswer, sent};
use http::HeaderValue;
use std::sync::Arc;
use tollgate_catalog::{Model, Route};
use tollgate_media::speech::SpeechFormat;
use tollgate_upstream::{Fault, Provider, SpeechAsk};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// The call.
pub struct SpeechCall(pub AskedSpeech);

impl Work for SpeechCall {
    fn priced(&self) -> &dyn Priced {
        &self.0
    }

    fn meter(&self, _: &Model) -> Meter {
        Meter::Nothing
    }

    fn once(&self) -> bool {
        true
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let model = call.model.clone();
        let settled = self.0.settle(&model);
        let maker = provider.kind.speaker(&route.upstream_model);
        let (Some(table), Ok(speech), Some(maker)) = (&model.speech, settled, maker) else {
            return Err(Fault::refusal(Problem::unsupported("model", "This route makes no speech.")));
        };
        let id = call.id.to_string();
        let ask = SpeechAsk {
            speech: &speech,
            made: made(maker, table, speech.format).ok_or_else(|| unmade(speech.format))?,
            rate: table.sample_rate,
            model: &route.upstream_model,
            call_id: &id,
        };
        let unfit = || Fault::refusal(Problem::wrong("voice", "a name that fits into an address"));
        let request = maker.request(provider, &ask).ok_or_else(unfit)?;
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

/// Never another format under the same name.
fn unmade(format: SpeechFormat) -> Fault {
    let text = format!("This route does not make {}.", format.name());
    Fault::refusal(Problem::new(Code::UnsupportedValue, "response_format", text))
}
