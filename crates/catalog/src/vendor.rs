//! The vendor's own list price beside ours: typed in are the list prices and where they were read;
//! what they come to in dollars, the discount and the verdict are computed.

use std::cmp::Ordering;

use serde::Serialize;

use crate::decimal::Decimal;
use crate::{BillingUnit, Face, Faces, Fraction, Unit};

/// List prices as a vendor publishes them.
#[derive(Clone, Debug)]
pub struct VendorList {
    pub currency: String,
    /// Dollars for one unit of the currency; 1 for USD.
    pub usd_rate: Fraction,
    /// Millionths of the currency, per the same units as ours.
    pub faces: Faces,
    pub source: String,
    /// Faces that only one source knows: shown apart, and compared with nothing.
    pub unverified: Vec<Face>,
    /// The day somebody looked, as written.
    pub verified_at: Option<String>,
}

/// The `vendor_list` object of the public record.
#[derive(Serialize)]
pub(crate) struct ListRecord<'a> {
    verdict: &'static str,
    discount_pct: Option<Decimal>,
    list_currency: &'a str,
    list_input: Decimal,
    list_input_usd: Decimal,
    selling_usd: Decimal,
    unit: &'static str,
    list_source: &'a str,
    verified_at: Option<&'a str>,
    faces: Vec<FaceRecord>,
    unverified_faces: Vec<&'static str>,
}

#[derive(Serialize)]
struct FaceRecord {
    face: &'static str,
    list_usd: Decimal,
    selling_usd: Decimal,
    discount_pct: Option<Decimal>,
    verdict: &'static str,
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

    fn usd(self) -> Decimal {
        Decimal::quotient(self.numerator, self.denominator * 1_000_000)
    }
}

impl VendorList {
    /// Days since somebody looked; `None` where nobody says when.
    pub fn age_days(&self, now_ms: i64) -> Option<i64> {
        let day: jiff::civil::Date = self.verified_at.as_ref()?.parse().ok()?;
        let at = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond();
        Some((now_ms - at).div_euclid(86_400_000))
    }

    /// The comparison with prices sold at a multiplier.
    pub(crate) fn record(&self, selling: &Faces, multiplier: Fraction, unit: BillingUnit) -> ListRecord<'_> {
        let mut faces = Vec::new();
        let mut unverified = Vec::new();
        for (face, micro) in unit.complete(selling).iter() {
            let sold = Exact::of(micro, multiplier);
            match self.faces.get(face) {
                // What has no price of its own and no list price is nobody's claim.
                None if !selling.has(face) => {}
                None => unverified.push(face.name()),
                Some(_) if self.unverified.contains(&face) => unverified.push(face.name()),
                Some(list) => {
                    let list = Exact::of(list, self.usd_rate);
                    let (discount_pct, verdict) = compare(list, sold);
                    let (list_usd, selling_usd) = (list.usd(), sold.usd());
                    faces.push(FaceRecord { face: face.name(), list_usd, selling_usd, discount_pct, verdict });
                }
            }
        }
        let main = unit.main_face();
        let listed = self.faces.get(main).unwrap_or(0);
        let list = Exact::of(listed, self.usd_rate);
        let sold = Exact::of(selling.get(main).unwrap_or(0), multiplier);
        let (discount_pct, verdict) = compare(list, sold);
        ListRecord {
            verdict,
            discount_pct,
            list_currency: &self.currency,
            list_input: Decimal::quotient(u128::from(listed), 1_000_000),
            list_input_usd: list.usd(),
            selling_usd: sold.usd(),
            unit: match main.unit() {
                Unit::MillionTokens => "1M tokens",
                Unit::Call => "call",
                Unit::Second => "second",
                Unit::Use => "use",
            },
            list_source: &self.source,
            verified_at: self.verified_at.as_deref(),
            faces,
            unverified_faces: unverified,
        }
    }
}

/// Discount in percent (two decimals, towards zero; negative when we are dearer; none on what the
/// vendor gives away) and what to call it.
fn compare(list: Exact, sold: Exact) -> (Option<Decimal>, &'static str) {
    let (l, s) = (list.numerator * sold.denominator, sold.numerator * list.denominator);
    let verdict = match s.cmp(&l) {
        Ordering::Less => "below_list",
        Ordering::Equal => "at_list",
        Ordering::Greater => "above_list",
    };
    let discount = (l > 0).then(|| Decimal::hundredths(s > l, l.abs_diff(s) * 10_000 / l));
    (discount, verdict)
}
