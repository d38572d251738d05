//! A request for a transcript as far as its price and its model's rules go.

use crate::call::{Need, Priced};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::recordings::ENDPOINT_TYPE;
use std::borrow::Cow;
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_media::transcription::{FileRules, Recording, TranscriptFormat, TranscriptionRequest};
use tollgate_store::Counters;
use tollgate_wire::error::Code;
use tollgate_wire::{Dropped, Problem};

pub struct AskedTranscription {
    pub request: TranscriptionRequest,
    pub recording: Recording,
}

impl AskedTranscription {
    /// What is charged for, whatever the format of the transcript.
    pub fn used(&self) -> Option<Counters> {
        Counters::recording(Duration::from_secs(self.recording.billed_seconds()))
    }

    /// Whether the model takes it.
    fn check(&self, model: &Model) -> Result<(), Problem> {
        let table = model.transcription.as_ref();
        if self.request.translate && !table.is_some_and(|table| table.translations) {
            let text = format!("The model `{}` does not translate; ask for a transcription.", model.name);
            return Err(Problem::unsupported("model", text));
        }
        let formats = formats(model);
        if !formats.contains(&self.request.format) {
            let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
            let text = format!("`response_format` of this model is one of {}.", names.join(", "));
            return Err(Problem::unsupported("response_format", text));
        }
        let rules = FileRules {
            formats: &model.accepted_upload_formats,
            max_seconds: model.max_duration_seconds,
            max_bytes: table.and_then(|table| table.max_bytes),
            wav_16_bit: table.is_some_and(|table| table.wav_16_bit),
        };
        rules.check(&self.recording)
    }
}

/// The formats that a model gives.
fn formats(model: &Model) -> Vec<TranscriptFormat> {
    let named = model.transcription.as_ref().map(|table| table.response_formats.as_slice()).unwrap_or_default();
    let known: Vec<TranscriptFormat> = named.iter().filter_map(|name| TranscriptFormat::named(name)).collect();
    if known.is_empty() { TranscriptFormat::PLAIN.to_vec() } else { known }
}

impl Priced for AskedTranscription {
    fn model(&self) -> &str {
        &self.request.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        self.check(model)?;
        let too_long = || Refusal::about(Code::InvalidParameter, "file", "`file` is too long to be priced.");
        let most = self.used().ok_or_else(too_long)?;
        Ok(Need { most, exact: true, sized_by: "file", ..Need::default() })
    }

    fn drops(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        let offered = model.transcription.as_ref().is_some_and(|table| table.stream);
        for route in &model.routes {
            let kind = serving.providers.get(&route.provider).map(|provider| provider.kind);
            let Some(maker) = kind.and_then(|kind| kind.transcriber(&route.upstream_model)) else { continue };
            if self.request.stream && !(offered && maker.streams()) {
                dropped.add("stream");
            }
            let unread = self.request.others.iter().filter(|(field, _)| maker.drops(field));
            unread.for_each(|(field, _)| dropped.add(field));
        }
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        match path {
            "response_format" => Some(self.request.format.name().into()),
            "stream" => Some(if self.request.stream { "true" } else { "false" }.into()),
            "translate" => Some(if self.request.translate { "true" } else { "false" }.into()),
            other => self.request.get(other).map(Cow::Borrowed),
        }
    }
}
