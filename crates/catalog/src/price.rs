//! A frozen price: everything needed to compute, and later to prove, a charge. It names its model,
//! tier, group and price version, so that a catalog change in mid-call changes nothing for that
//! call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::video::plain;
use crate::{BillingUnit, Face, Faces, Fraction, Line, Money, Quantities};

/// The price of one call. Built once per catalog snapshot and shared; the ledger keeps it by its
/// [`Price::id`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Price {
    pub model: String,
    /// The `pricing_version` of the snapshot it was taken from.
    pub version: String,
    /// `None`: the base prices.
    pub tier: Option<String>,
    /// The conditions of the tier as the public record writes them: why it applied can be explained
    /// for ever ([`Price::why`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Value>,
    pub group: String,
    /// Whether these are the prices of accounts that have topped up.
    pub paid: bool,
    /// What the model is billed by: what the quantity of a face counts depends on it.
    pub unit: BillingUnit,
    /// Micro-USD per million tokens, per call, per second; complete (see
    /// [`BillingUnit::complete`]).
    pub faces: Faces,
    /// The group's multiplier times the tier's.
    pub multiplier: Fraction,
    #[serde(skip)]
    id: [u8; 16],
}

/// A price as it is written down: the id is computed, never trusted.
#[derive(Deserialize)]
struct Written {
    model: String,
    version: String,
    tier: Option<String>,
    #[serde(default)]
    when: Vec<Value>,
    group: String,
    paid: bool,
    /// Not in prices of before units were written down.
    unit: Option<BillingUnit>,
    faces: Faces,
    multiplier: Fraction,
}

impl From<Written> for Price {
    fn from(w: Written) -> Price {
        Price {
            model: w.model,
            version: w.version,
            tier: w.tier,
            when: w.when,
            group: w.group,
            paid: w.paid,
            unit: w.unit.unwrap_or_else(|| BillingUnit::of_faces(&w.faces)),
            faces: w.faces,
            multiplier: w.multiplier,
            id: [0; 16],
        }
        .identified()
    }
}

/// Why a charge cannot be computed. Both are refusals; neither is ever zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncharged {
    /// The amount does not fit into 64 bits of nano-USD.
    Overflow,
    /// Something was used that this price does not price.
    Unpriced(Face),
}

impl fmt::Display for Uncharged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncharged::Overflow => f.write_str("the charge is too large to be an amount of money"),
            Uncharged::Unpriced(face) => write!(f, "the model has no price for {}", face.name()),
        }
    }
}

impl std::error::Error for Uncharged {}

const TOKENS: u128 = 1_000_000;
pub(crate) const NANO_PER_MICRO: u128 = 1_000;

impl Price {
    pub(crate) fn of_model(model: &str, unit: BillingUnit, version: &str, group: &str) -> Price {
        Price {
            model: model.to_owned(),
            version: version.to_owned(),
            tier: None,
            when: Vec::new(),
            group: group.to_owned(),
            paid: false,
            unit,
            faces: Faces::NONE,
            multiplier: Fraction::ONE,
            id: [0; 16],
        }
    }

    pub(crate) fn identified(mut self) -> Price {
        let mut hash = Sha256::new();
        // Length first, so that no two prices share a text.
        for part in [&self.model, &self.version, self.tier.as_deref().unwrap_or(""), &self.group] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update([u8::from(self.paid), u8::from(self.tier.is_some())]);
        hash.update(self.multiplier.numerator().to_le_bytes());
        hash.update(self.multiplier.denominator().to_le_bytes());
        for face in Face::ALL {
            match self.faces.get(face) {
                // Tools were not always sold: prices without them keep their id.
                None if face.is_tool() => continue,
                Some(_) if face.is_tool() => hash.update(face.name()),
                _ => {}
            }
            // Prices stay far below the all-ones word that stands for "none".
            hash.update(self.faces.get(face).unwrap_or(u64::MAX).to_le_bytes());
        }
        // Where the faces tell the unit it adds nothing, and prices of before it was written keep
        // their id.
        if self.unit != BillingUnit::of_faces(&self.faces) {
            hash.update(self.unit.name());
        }
        for condition in &self.when {
            hash.update(condition.to_string());
        }
        self.id.copy_from_slice(&hash.finalize()[..16]);
        self
    }

    /// Whether its tier goes by this parameter of a request.
    pub fn goes_by(&self, parameter: &str) -> bool {
        let paths = self.when.iter().filter_map(|condition| condition["path"].as_str());
        paths.into_iter().any(|path| plain(path) == parameter)
    }

    /// A hash of the whole content: two prices with one id charge the same and say the same.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The charge for these quantities: exact in 128 bits, rounded up once to the next nano-USD.
    pub fn charge(&self, used: &Quantities) -> Result<Money, Uncharged> {
        // Only the main face of a unit can be converted; its denominator is taken out of the sum.
        let parts = self.unit.measure(self.unit.main_face()).conversion().denominator();
        // In nano-USD per million, so that token prices need no division before the last step.
        let mut sum: u128 = 0;
        for face in Face::ALL {
            let quantity = used[face];
            if quantity == 0 {
                continue;
            }
            let price = self.faces.get(face).ok_or(Uncharged::Unpriced(face))?;
            let conversion = self.unit.measure(face).conversion();
            let each = conversion.numerator() * (parts / conversion.denominator());
            let scale = NANO_PER_MICRO * (TOKENS / face.unit().size()) * u128::from(each);
            sum = (u128::from(quantity) * u128::from(price))
                .checked_mul(scale)
                .and_then(|line| sum.checked_add(line))
                .ok_or(Uncharged::Overflow)?;
        }
        let sum = sum.checked_mul(u128::from(self.multiplier.numerator())).ok_or(Uncharged::Overflow)?;
        round_up(sum, TOKENS * u128::from(self.multiplier.denominator()) * u128::from(parts))
    }

    /// The face under which an input token costs most: whatever kind an input turns out to be, it
    /// costs no more.
    pub fn dearest_input(&self) -> Face {
        self.dearest_of(
            Face::Input,
            &[Face::CacheRead, Face::CacheWrite, Face::CacheWrite1h, Face::ImageInput, Face::AudioInput],
        )
    }

    /// The face under which an output token costs most.
    pub fn dearest_output(&self) -> Face {
        self.dearest_of(Face::Output, &[Face::ImageOutput, Face::AudioOutput])
    }

    pub(crate) fn dearest_of(&self, plain: Face, others: &[Face]) -> Face {
        let dearer = |best: Face, face: &Face| if self.faces.get(*face) > self.faces.get(best) { *face } else { best };
        others.iter().fold(plain, dearer)
    }

    /// The lines of the calculation behind [`Price::charge`]: [`crate::total`] of them is the
    /// charge.
    pub fn lines(&self, used: &Quantities) -> Result<Vec<Line>, Uncharged> {
        used.iter()
            .map(|(face, quantity)| {
                let micro_usd = self.faces.get(face).ok_or(Uncharged::Unpriced(face))?;
                let unit = self.unit.measure(face);
                Ok(Line { face, quantity, unit, conversion: unit.conversion(), micro_usd, per: face.unit() })
            })
            .collect()
    }
}

/// The one rounding of a charge: up to the next nano-USD.
pub(crate) fn round_up(sum: u128, divisor: u128) -> Result<Money, Uncharged> {
    // Nearly every call fits into 64 bits, where a division costs a fraction.
    let nano = match (u64::try_from(sum), u64::try_from(divisor)) {
        (Ok(sum), Ok(divisor)) => u128::from(sum.div_ceil(divisor)),
        _ => sum.div_ceil(divisor),
    };
    i64::try_from(nano).map(Money::from_nano).map_err(|_| Uncharged::Overflow)
}
