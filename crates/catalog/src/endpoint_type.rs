//! The endpoint types of the specification, and by what a model that offers one can be billed: a
//! model whose endpoint reports nothing its unit charges for would be free by accident.

use crate::{BillingUnit, Face};

/// One value of `supported_endpoint_types`.
#[derive(Clone, Copy, Debug)]
pub struct EndpointType {
    pub name: &'static str,
    /// The units whose quantities a call of this endpoint reports.
    pub units: &'static [BillingUnit],
    /// The face without which a model billed by tokens would sell the endpoint's product at the
    /// price of text.
    pub by_tokens: Option<Face>,
}

const TEXT: &[BillingUnit] = &[BillingUnit::Tokens, BillingUnit::PerCall];

const fn text(name: &'static str) -> EndpointType {
    EndpointType { name, units: TEXT, by_tokens: None }
}

/// Every endpoint type there is.
pub const ENDPOINT_TYPES: &[EndpointType] = &[
    text("openai"),
    text("anthropic"),
    text("openai-response"),
    EndpointType {
        name: "openai-video",
        units: &[BillingUnit::PerSecond, BillingUnit::PerCall, BillingUnit::Tokens],
        by_tokens: None,
    },
    EndpointType { name: "image-generation", units: &[BillingUnit::PerCall], by_tokens: None },
    EndpointType {
        name: "audio-speech",
        units: &[BillingUnit::Characters, BillingUnit::PerCall, BillingUnit::Tokens],
        by_tokens: Some(Face::AudioOutput),
    },
    EndpointType {
        name: "audio-transcription",
        units: &[BillingUnit::AudioDuration, BillingUnit::PerCall, BillingUnit::Tokens],
        by_tokens: Some(Face::AudioInput),
    },
    EndpointType { name: "realtime", units: &[BillingUnit::Tokens], by_tokens: Some(Face::AudioOutput) },
    text("gemini"),
    EndpointType {
        name: "music-generation",
        units: &[BillingUnit::PerCall, BillingUnit::PerSecond, BillingUnit::Tokens],
        by_tokens: None,
    },
    text("system-one"),
    text("embeddings"),
    text("jina-rerank"),
];

impl EndpointType {
    pub fn named(name: &str) -> Option<&'static EndpointType> {
        ENDPOINT_TYPES.iter().find(|kind| kind.name == name)
    }

    pub fn names() -> Vec<&'static str> {
        ENDPOINT_TYPES.iter().map(|kind| kind.name).collect()
    }
}
