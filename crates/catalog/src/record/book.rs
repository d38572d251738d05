//! `book_faces`: the prices themselves, in whole micro-USD, with their tiers.

use serde::Serialize;
use serde_json::Value;

use crate::{Book, Faces, Fraction, Tier};

#[derive(Serialize)]
pub(super) struct BookRecord<'a> {
    standard: &'a Faces,
    paid: Option<&'a Faces>,
    /// Left out of prices that are not sold at yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) route_count: Option<usize>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    tiers: Option<TiersRecord<'a>>,
}

#[derive(Serialize)]
struct TiersRecord<'a> {
    tier_count: usize,
    has_request_condition: bool,
    has_time_condition: bool,
    tiers: Vec<TierRecord<'a>>,
}

#[derive(Serialize)]
struct TierRecord<'a> {
    tier: &'a str,
    standard: Faces,
    paid: Option<Faces>,
    /// For tiers that are a multiple of the base price: what is charged is that, exactly; the faces
    /// beside it are rounded up to whole micro-USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    multiplier: Option<Fraction>,
    when: Vec<Value>,
}

impl BookRecord<'_> {
    pub(super) fn of(book: &Book, route_count: Option<usize>) -> BookRecord<'_> {
        let mut conditions = book.tiers.iter().flat_map(|tier| &tier.when);
        let tiers = (!book.tiers.is_empty()).then(|| TiersRecord {
            tier_count: book.tiers.len(),
            has_request_condition: conditions.clone().any(|when| when.is_about_request()),
            has_time_condition: conditions.any(|when| when.is_about_time()),
            tiers: book.tiers.iter().map(tier_record).collect(),
        });
        BookRecord { standard: &book.standard, paid: book.paid.as_ref(), route_count, tiers }
    }
}

fn tier_record(tier: &Tier) -> TierRecord<'_> {
    let scaled = |faces: &Faces| {
        faces.iter().fold(Faces::NONE, |sum, (face, price)| sum.with(face, tier.multiplier.of(price).unwrap_or(price)))
    };
    TierRecord {
        tier: &tier.name,
        standard: scaled(&tier.standard),
        paid: tier.paid.as_ref().map(scaled),
        multiplier: (tier.multiplier != Fraction::ONE).then_some(tier.multiplier),
        when: tier.when.iter().map(|when| when.record()).collect(),
    }
}
