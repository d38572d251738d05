//! A request for speech, settled by the rules of its model, and what it costs.

use crate::call::{Need, Priced};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::speech::{ENDPOINT_TYPE, made};
use std::borrow::Cow;
use tollgate_catalog::{Model, Route};
use tollgate_media::speech::{SettledSpeech, SpeechFormat, SpeechRequest, SpeechRules};
use tollgate_store::{Counters, Side};
use tollgate_upstream::{Outgoing, Provider, SpeechAsk, SpeechMaker};
use tollgate_wire::error::Code;
use tollgate_wire::{Dropped, Problem};

pub struct AskedSpeech {
    request: SpeechRequest,
    /// As the model in the catalog has it, for prices that go by what is asked.
    settled: Option<SettledSpeech>,
}

impl AskedSpeech {
    pub fn of(serving: &Serving, request: SpeechRequest) -> AskedSpeech {
        let model = serving.catalog.model(&request.model);
        let settled = model.and_then(|model| settle(model, &request).ok());
        AskedSpeech { request, settled }
    }

    /// The request with everything decided that this model decides.
    pub fn settle(&self, model: &Model) -> Result<SettledSpeech, Refusal> {
        settle(model, &self.request)
    }

    /// Whether any provider of the model could take it.
    pub(super) fn fits_routes(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let speech = self.settle(model)?;
        let mut refused: Option<Problem> = None;
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            match RouteSpeech::of(&speech, model, provider, route, "").and_then(|asked| asked.request()) {
                Ok(_) => return Ok(()),
                Err(problem) => refused = refused.or(Some(problem)),
            }
        }
        refused.map_or(Ok(()), |problem| Err(problem.into()))
    }
}

/// What a route is asked.
pub(super) struct RouteSpeech<'a> {
    pub maker: &'static dyn SpeechMaker,
    pub ask: SpeechAsk<'a>,
    provider: &'a Provider,
}

impl<'a> RouteSpeech<'a> {
    pub fn of(
        speech: &'a SettledSpeech,
        model: &'a Model,
        provider: &'a Provider,
        route: &'a Route,
        call_id: &'a str,
    ) -> Result<RouteSpeech<'a>, Problem> {
        let maker = provider.kind.speaker(&route.upstream_model);
        let (Some(table), Some(maker)) = (&model.speech, maker) else {
            return Err(Problem::unsupported("model", "This route makes no speech."));
        };
        let made = made(maker, table, speech.format).ok_or_else(|| unmade(speech.format))?;
        let ask = SpeechAsk { speech, made, rate: table.sample_rate, model: &route.upstream_model, call_id };
        Ok(RouteSpeech { maker, ask, provider })
    }

    pub fn request(&self) -> Result<Outgoing, Problem> {
        let request = self.maker.request(self.provider, &self.ask);
        request.ok_or_else(|| Problem::wrong("voice", "a name that fits into an address"))
    }
}

/// Never another format under the same name.
fn unmade(format: SpeechFormat) -> Problem {
    let text = format!("This route does not make {}.", format.name());
    Problem::new(Code::UnsupportedValue, "response_format", text)
}

fn settle(model: &Model, request: &SpeechRequest) -> Result<SettledSpeech, Refusal> {
    let Some(table) = &model.speech else {
        let text = format!("The model `{}` makes no speech.", model.name);
        return Err(Refusal::about(Code::UnsupportedValue, "model", text));
    };
    let rules = SpeechRules {
        voices: &table.voices,
        default_voice: model.default_voice.as_deref(),
        formats: &table.formats,
        default_format: model.default_response_format.as_deref(),
        most_characters: table.max_characters,
        speed: table.speed,
        instructions: table.instructions,
        extra: &table.extra,
    };
    Ok(rules.settle(request)?)
}

impl Priced for AskedSpeech {
    fn model(&self) -> &str {
        &self.request.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn fits(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.fits_routes(serving, model)
    }

    /// All that it can cost is known: its characters.
    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let speech = self.settle(model)?;
        let most = Counters::speech(&speech.text, std::time::Duration::ZERO).unwrap_or_default();
        let characters = most.total(Side::Input);
        Ok(Need {
            context_len: characters,
            context_max: characters,
            most,
            exact: true,
            sized_by: "input",
            ..Need::default()
        })
    }

    fn drops(&self, _: &Fetcher, _: &Serving, _: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        self.settled.iter().flat_map(|speech| &speech.dropped).for_each(|field| dropped.add(field));
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let speech = self.settled.as_ref()?;
        match path {
            "voice" => Some(Cow::Borrowed(speech.voice.id())),
            "response_format" => Some(Cow::Borrowed(speech.format.name())),
            "stream_format" => Some(Cow::Borrowed(if speech.events { "sse" } else { "audio" })),
            _ => None,
        }
    }
}
