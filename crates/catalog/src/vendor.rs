//! The vendor's own list price beside ours: typed in are the list prices and where they were read; what they
//! come to in dollars, the discount and the verdict are computed.

use serde_json::{Value, json};

use crate::record::decimal;
use crate::{BillingUnit, Faces, Fraction, Unit};

/// List prices as a vendor publishes them.
#[derive(Clone, Debug)]
pub struct VendorList {
    pub currency: String,
    /// Dollars for one unit of the currency; 1 for USD.
    pub usd_rate: Fraction,
    /// Millionths of the currency, per the same units as ours.
    pub faces: Faces,
    pub source: String,
    /// The day somebody looked, as written.
    pub verified_at: Option<String>,
}

/// A price in millionths of a dollar as an exact fraction.
#[derive(Clone, Copy)]
struct Exact {
    numerator: u128,
    denominator: u128,
}

impl Exact {
    fn of(micro: u64, rate: Fraction) -> Exact {
        Exact {
            numerator: u128::from(micro) * u128::from(rate.numerator()),
            denominator: u128::from(rate.denominator()),
        }
    }

    fn usd(self) -> Value {
        decimal(self.numerator, self.denominator * 1_000_000)
    }
}

impl VendorList {
    /// The `vendor_list` object for prices sold at a multiplier.
    pub fn record(&self, selling: &Faces, multiplier: Fraction, unit: BillingUnit) -> Value {
        let main = unit.main_face();
        let mut faces = Vec::new();
        let mut unverified = Vec::new();
        for (face, micro) in unit.complete(selling).iter() {
            let sold = Exact::of(micro, multiplier);
            match self.faces.get(face) {
                // What has no price of its own and no list price is nobody's claim.
                None if !selling.has(face) => {}
                None => unverified.push(face.name()),
                Some(list) => {
                    let list = Exact::of(list, self.usd_rate);
                    let (discount, verdict) = compare(list, sold);
                    faces.push(json!({
                        "face": face.name(),
                        "list_usd": list.usd(),
                        "selling_usd": sold.usd(),
                        "discount_pct": discount,
                        "verdict": verdict,
                    }));
                }
            }
        }
        let listed = self.faces.get(main).unwrap_or(0);
        let list = Exact::of(listed, self.usd_rate);
        let sold = Exact::of(selling.get(main).unwrap_or(0), multiplier);
        let (discount, verdict) = compare(list, sold);
        json!({
            "verdict": verdict,
            "discount_pct": discount,
            "list_currency": self.currency,
            "list_input": decimal(u128::from(listed), 1_000_000),
            "list_input_usd": list.usd(),
            "selling_usd": sold.usd(),
            "unit": match main.unit() {
                Unit::MillionTokens => "1M tokens",
                Unit::Call => "call",
                Unit::Second => "second",
            },
            "list_source": self.source,
            "verified_at": self.verified_at,
            "faces": faces,
            "unverified_faces": unverified,
        })
    }
}

/// Discount in percent (two decimals, towards zero; negative when we are dearer) and what to call it.
fn compare(list: Exact, sold: Exact) -> (Value, &'static str) {
    let (l, s) = (list.numerator * sold.denominator, sold.numerator * list.denominator);
    let verdict = match s.cmp(&l) {
        std::cmp::Ordering::Less => "below_list",
        std::cmp::Ordering::Equal => "at_list",
        std::cmp::Ordering::Greater => "above_list",
    };
    if l == 0 {
        return (Value::Null, verdict);
    }
    let hundredths = l.abs_diff(s) * 10_000 / l;
    let sign = if s > l && hundredths > 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    (serde_json::from_str(text).unwrap_or(Value::Null), verdict)
}
