//! Speech as work: how a route is asked for it, and when its answer has begun.

use super::asked::AskedSpeech;
use super::flow::SpeechFlow;
use crate::call::{Begun, Call, Meter, Passed, Priced, Work};
use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{Model, Route, SpeechTable};
use tollgate_media::speech::{SettledSpeech, SpeechFormat};
use tollgate_upstream::{Fault, Provider, ReplyBody, SpeechAsk, SpeechMaker, SpeechReader, is_encoded};
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
        let (Some(table), Ok(speech), Some(maker)) = (&model.speech, settled, provider.kind.speech) else {
            return Err(Fault::refusal(Problem::unsupported("model", "This route makes no speech.")));
        };
        let id = call.id.to_string();
        let ask = SpeechAsk {
            speech: &speech,
            made: made(maker, table, &speech)?,
            rate: table.sample_rate,
            model: &route.upstream_model,
            call_id: &id,
        };
        speech.dropped.iter().for_each(|field| call.dropped.add(field));
        let mut answer = open(call, provider, maker, &ask).await?;
        let audio = answer.first().await?;
        if !ask.made.begins(&audio) {
            let message = format!("The provider's answer is not {}.", ask.made.name());
            return Err(Fault { message, ..Fault::garbage() });
        }
        call.first_byte_at = Some(call.till.world.now_ms());
        call.meter = SpeechFlow::begun(&speech);
        let Answer { body, reader, left, .. } = answer;
        let mut flow = SpeechFlow::new(reader, &ask);
        let first = flow.write(audio)?;
        let content_type = match speech.events {
            true => "text/event-stream".to_owned(),
            false => speech.format.content_type(ask.rate),
        };
        let content_type = HeaderValue::try_from(content_type).map_err(|_| Fault::garbage())?;
        Ok(Begun::Passing(Box::new(Passed { known: true, content_type, first, body, rewrite: Box::new(flow), left })))
    }
}

/// What the provider is asked for: never another format under the same name.
fn made(maker: &dyn SpeechMaker, table: &SpeechTable, speech: &SettledSpeech) -> Result<SpeechFormat, Fault> {
    let makes = |one: SpeechFormat| maker.makes(one) && table.made.iter().any(|name| name == one.name());
    speech.format.made_from(makes).ok_or_else(|| {
        let text = format!("This route does not make {}.", speech.format.name());
        Fault::refusal(Problem::new(Code::UnsupportedValue, "response_format", text))
    })
}

/// An answer of status 200 that has not shown any audio.
struct Answer {
    body: ReplyBody,
    reader: Box<dyn SpeechReader>,
    /// The most bytes that may still come.
    left: usize,
    until: Instant,
}

async fn open(
    call: &Call,
    provider: &Provider,
    maker: &dyn SpeechMaker,
    ask: &SpeechAsk<'_>,
) -> Result<Answer, Fault> {
    let request = maker.request(provider, ask).ok_or_else(Fault::unreachable)?;
    let client = &call.till.client;
    let reply = client.send(provider, request).await?;
    if !reply.status().is_success() {
        return Err(maker.fault(&client.refused(provider, reply).await));
    }
    if is_encoded(reply.headers()) {
        // It is made by now: nobody makes it once more.
        return Err(Fault { maybe_charged: true, ..Fault::encoded() });
    }
    let reader = maker.reader(ask, reply.headers());
    let body = ReplyBody::new(reply.into_body(), provider.settings.idle);
    Ok(Answer { body, reader, left: provider.settings.max_reply_bytes, until: call.deadline })
}

impl Answer {
    /// The beginning of the audio: enough to tell its format, or all that there is.
    async fn first(&mut self) -> Result<Bytes, Fault> {
        let mut audio = BytesMut::new();
        while let Some(piece) = self.body.chunk().await? {
            self.left = self.left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.until {
                return Err(Fault::idle());
            }
            let out = self.reader.feed(piece)?;
            if audio.is_empty() && out.len() >= SpeechFormat::TELLING {
                return Ok(out);
            }
            audio.extend_from_slice(&out);
            if audio.len() >= SpeechFormat::TELLING {
                return Ok(audio.freeze());
            }
        }
        if audio.is_empty() {
            // Says why there is none.
            let (rest, _) = self.reader.end()?;
            return Ok(rest);
        }
        Ok(audio.freeze())
    }
}
