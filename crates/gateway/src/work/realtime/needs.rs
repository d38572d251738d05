//! What is held for: the next response of a session, and the next piece of audio that is written
//! down.

use super::ENDPOINT_TYPE;
use super::listening::FIRST_SECONDS;
use crate::call::{Need, Priced};
use crate::refusal::Refusal;
use crate::sale::{Serving, recordings};
use std::borrow::Cow;
use std::time::Duration;
use tollgate_catalog::{BillingUnit, Face, Model};
use tollgate_media::realtime::LiveHearing;
use tollgate_store::Counters;
use tollgate_wire::error::Code;

const DEPENDS_ON: &[(Face, &str)] = &[
    (Face::AudioInput, "the conversation so far, which every response reads again"),
    (Face::AudioOutput, "how long the response becomes"),
];

/// The next response of a session.
#[derive(Clone, Debug)]
pub struct NextResponse {
    pub model: String,
    /// Tokens that it reads.
    pub input: u64,
    /// Tokens that it is held for at first, and may produce at most.
    pub output: u64,
    pub ceiling: u64,
}

impl Priced for NextResponse {
    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let input = self.input.min(model.context_window.unwrap_or(u64::MAX));
        Ok(Need {
            context_len: input,
            context_max: input,
            most: Counters { input, output: self.output.min(self.ceiling), calls: 1, ..Counters::default() },
            exact: false,
            output_ceiling: self.ceiling,
            open_end: None,
            sized_by: "max_output_tokens",
            depends_on: DEPENDS_ON,
        })
    }

    fn attribute(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn metered(&self, stated: Counters) -> Counters {
        if stated == Counters::default() { stated } else { Counters { calls: 1, ..stated } }
    }
}

/// Audio that a model writes down.
#[derive(Clone, Debug)]
pub struct NextTranscript {
    pub model: String,
    pub seconds: u64,
    /// Tokens of a second of sound. Its words are no more than that.
    pub heard: u64,
    /// Tokens that the model is told beside the audio.
    pub prompt: u64,
}

impl NextTranscript {
    /// The first audio of a session that only listens: its model has to be one that can.
    pub fn first(serving: &Serving, model: &str) -> Result<NextTranscript, Refusal> {
        let able = |provider: &str| serving.providers.get(provider).is_some_and(|one| one.kind.realtime.is_some());
        let known = serving.catalog.model(model);
        if known.is_some_and(|model| !model.routes.iter().any(|route| able(&route.provider))) {
            let text = format!("The model `{model}` does not listen in sessions; send it whole recordings.");
            return Err(Refusal::about(Code::UnsupportedValue, "model", text));
        }
        let rates = known.iter().flat_map(|model| &model.routes).filter_map(|route| {
            let provider = serving.providers.get(&route.provider)?;
            Some(LiveHearing::default().at(provider.settings.live_heard, None).per_second)
        });
        let heard = rates.max().unwrap_or(LiveHearing::default().per_second);
        Ok(NextTranscript { model: model.to_owned(), seconds: FIRST_SECONDS, heard, prompt: 0 })
    }

    /// What so many seconds are charged for at so many tokens each, where nobody reports tokens.
    pub fn counted(model: &Model, seconds: u64, heard: u64) -> Option<Counters> {
        if model.billing_unit == BillingUnit::Tokens {
            let audio_input = seconds.checked_mul(heard)?;
            return Some(Counters { audio_input, calls: 1, ..Counters::default() });
        }
        Counters::recording(Duration::from_secs(seconds))
    }
}

impl Priced for NextTranscript {
    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint_type(&self) -> &'static str {
        recordings::ENDPOINT_TYPE
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        let too_long = || Refusal::about(Code::InvalidParameter, "audio", "The audio is too long to be priced.");
        if model.billing_unit == BillingUnit::Tokens {
            let tokens = self.seconds.checked_mul(self.heard.saturating_mul(2)).ok_or_else(too_long)?;
            let input = tokens.checked_add(self.prompt).ok_or_else(too_long)?;
            let most = Counters { input, output: tokens, calls: 1, ..Counters::default() };
            return Ok(Need {
                context_len: input,
                context_max: input,
                most,
                output_ceiling: tokens,
                ..Need::default()
            });
        }
        let most = Counters::recording(Duration::from_secs(self.seconds)).ok_or_else(too_long)?;
        Ok(Need { most, exact: true, sized_by: "audio", ..Need::default() })
    }

    fn attribute(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }
}
