//! The JSON text in `specs`: what a model is and takes, keys without a value left out and always in
//! the same order.

use serde::Serialize;

use super::is_empty;
use crate::Model;

impl Model {
    /// The JSON text in `specs`.
    pub(super) fn specs(&self) -> String {
        #[derive(Serialize)]
        struct Specs<'a> {
            r#type: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            context_window: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_input_tokens: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_output_tokens: Option<u64>,
            #[serde(skip_serializing_if = "is_empty")]
            input_modalities: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            output_modalities: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            reasoning_efforts: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            resolutions: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            max_duration_seconds: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pricing_notes: Option<&'a str>,
            #[serde(skip_serializing_if = "is_empty")]
            voices: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            response_formats: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            max_characters: Option<u64>,
        }
        let speech = self.speech.as_ref();
        let specs = Specs {
            r#type: &self.kind,
            context_window: self.context_window,
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            input_modalities: &self.input_modalities,
            output_modalities: &self.output_modalities,
            reasoning_efforts: &self.reasoning_efforts,
            resolutions: &self.resolutions,
            max_duration_seconds: self.max_duration_seconds,
            pricing_notes: self.pricing_notes.as_deref(),
            voices: speech.map_or(&[][..], |speech| &speech.voices),
            response_formats: speech.map_or(&[][..], |speech| &speech.formats),
            max_characters: speech.map(|speech| speech.max_characters),
        };
        serde_json::to_string(&specs).unwrap_or_default()
    }
}
