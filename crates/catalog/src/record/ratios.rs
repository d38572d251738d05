//! Prices as ratios to each other, as clients of the new-api family read them.

use serde::Serialize;

use crate::decimal::Decimal;
use crate::{Face, Faces, Model, Unit};

/// `quota_type`, `model_ratio` (1 = 2 USD per million input tokens) and its relatives, or
/// `model_price` (USD).
#[derive(Serialize)]
pub(super) struct Ratios {
    quota_type: u8,
    model_ratio: Decimal,
    model_price: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_cache_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_completion_ratio: Option<Decimal>,
}

impl Model {
    pub(super) fn ratios(&self, written: &Faces) -> Ratios {
        let main = self.billing_unit.main_face();
        let faces = self.billing_unit.complete(written);
        let price = |face| u128::from(faces.get(face).unwrap_or(0));
        let by_tokens = main.unit() == Unit::MillionTokens;
        // Each ratio is relative to another face; without one there is nothing to be relative to.
        let relative = |face, base| {
            let shown = by_tokens && (written.has(face) || face == Face::Output) && price(base) > 0;
            shown.then(|| Decimal::quotient(price(face), price(base)))
        };
        let zero = Decimal::zero;
        Ratios {
            quota_type: u8::from(!by_tokens),
            model_ratio: if by_tokens { Decimal::quotient(price(main), 2_000_000) } else { zero() },
            model_price: if by_tokens { zero() } else { Decimal::quotient(price(main), 1_000_000) },
            completion_ratio: relative(Face::Output, Face::Input),
            cache_ratio: relative(Face::CacheRead, Face::Input),
            create_cache_ratio: relative(Face::CacheWrite, Face::Input),
            image_ratio: relative(Face::ImageInput, Face::Input),
            audio_ratio: relative(Face::AudioInput, Face::Input),
            audio_completion_ratio: relative(Face::AudioOutput, Face::AudioInput),
        }
    }
}
