//! What clients of model lists look for beside OpenAI's members: name, limits, modalities, prices
//! as decimal texts in USD per token, and which parameters are taken. The names are those that
//! OpenRouter made common.

use serde::Serialize;

use crate::decimal::Decimal;
use crate::{BillingUnit, Face, Faces, Fraction, Model, Snapshot, View};

/// The members of one model.
#[derive(Serialize)]
pub struct OfferRecord<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    architecture: Architecture<'a>,
    pricing: Pricing,
    top_provider: TopProvider,
    supported_parameters: Vec<&'static str>,
}

#[derive(Serialize)]
struct Architecture<'a> {
    input_modalities: &'a [String],
    output_modalities: &'a [String],
}

#[derive(Serialize)]
struct TopProvider {
    context_length: Option<u64>,
    max_completion_tokens: Option<u64>,
}

/// What a model does not charge is left out, but for `prompt` and `completion`, which every reader
/// expects.
#[derive(Serialize)]
struct Pricing {
    prompt: String,
    completion: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_cache_read: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_cache_write: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
}

/// A face is a price of a million tokens in millionths of a dollar.
const PER_TOKEN: u128 = 1_000_000_000_000;
const PER_CALL: u128 = 1_000_000;

impl Model {
    /// The members for one viewer, at the prices he pays; none for whom it is not on sale.
    pub fn offer<'a>(&'a self, catalog: &Snapshot, view: &View<'_>) -> Option<OfferRecord<'a>> {
        let group = self.group_for(view.groups.iter().copied())?;
        let multiplier = catalog.groups.get(group).map_or(Fraction::ONE, |group| group.multiplier);
        Some(OfferRecord {
            name: &self.name,
            description: &self.description,
            context_length: self.context_window,
            architecture: Architecture {
                input_modalities: &self.input_modalities,
                output_modalities: &self.output_modalities,
            },
            pricing: self.pricing(multiplier, self.book_at(view.at_ms).written(view.topped_up)),
            top_provider: TopProvider {
                context_length: self.context_window,
                max_completion_tokens: self.max_output_tokens,
            },
            supported_parameters: self.parameters(),
        })
    }

    fn pricing(&self, multiplier: Fraction, written: &Faces) -> Pricing {
        let price = |face, unit: u128| {
            let micro = u128::from(written.get(face).unwrap_or(0)) * u128::from(multiplier.numerator());
            Decimal::quotient(micro, unit * u128::from(multiplier.denominator())).to_string()
        };
        // By characters or seconds there is no price of a token.
        let by_tokens = self.billing_unit == BillingUnit::Tokens;
        let token = |face| if by_tokens { price(face, PER_TOKEN) } else { "0".to_owned() };
        let some = |face, unit| written.has(face).then(|| price(face, unit));
        Pricing {
            prompt: token(Face::Input),
            completion: token(Face::Output),
            input_cache_read: some(Face::CacheRead, PER_TOKEN),
            input_cache_write: some(Face::CacheWrite, PER_TOKEN),
            image: some(Face::ImageInput, PER_TOKEN),
            request: some(Face::PerCall, PER_CALL),
        }
    }

    /// The parameters of a chat request that make a difference to the model.
    fn parameters(&self) -> Vec<&'static str> {
        let talks = ["openai", "anthropic", "openai-response", "gemini"].iter().any(|kind| self.supports(kind));
        if !talks {
            return Vec::new();
        }
        let has = |task: &str| self.tasks.iter().any(|own| own == task);
        let mut list = vec!["max_tokens", "stop", "tools", "tool_choice", "response_format"];
        if self.chat.sampling {
            list.extend(["temperature", "top_p"]);
        }
        if self.chat.native_schema {
            list.push("structured_outputs");
        }
        if has("reasoning") || !self.reasoning_efforts.is_empty() {
            list.extend(["reasoning", "include_reasoning"]);
        }
        list.sort_unstable();
        list
    }
}
