//! The version of a price set: a hash over what a call can be charged, and nothing else. It is
//! taken from the effective prices (each face times its multipliers, as a reduced fraction), so
//! that it changes exactly when a price does: not with the order of files, tables or conditions,
//! not with names of tiers, descriptions or routes, not with another way to write the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{Book, Faces, Fraction, Group, Model, Tier};

/// What the version is made of: one for each model.
pub(crate) type Fingerprint = [u8; 32];

/// Sixteen hex digits, from the fingerprints of all models by name.
pub(crate) fn pricing_version(models: &BTreeMap<&str, Fingerprint>) -> String {
    let mut hash = Sha256::new();
    for fingerprint in models.values() {
        hash.update(fingerprint);
    }
    let digest = hash.finalize();
    digest[..8].iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The prices of one model in all its groups, before all changes.
pub(crate) fn fingerprint(model: &Model, groups: &BTreeMap<String, Group>) -> Fingerprint {
    book_fingerprint(model, &model.book, groups)
}

/// The same with these prices of it.
pub(crate) fn book_fingerprint(model: &Model, book: &Book, groups: &BTreeMap<String, Group>) -> Fingerprint {
    let mut bytes = Vec::with_capacity(1024);
    write_model(&mut bytes, model, book, groups);
    Sha256::digest(&bytes).into()
}

/// The same whatever its groups are billed at.
pub(crate) fn plain_fingerprint(model: &Model) -> Fingerprint {
    fingerprint(model, &model.enable_groups.iter().map(|name| (name.clone(), Group::plain(name))).collect())
}

fn write_model(bytes: &mut Vec<u8>, model: &Model, book: &Book, groups: &BTreeMap<String, Group>) {
    write_text(bytes, &model.name);
    write_text(bytes, model.billing_unit.name());
    let tiers = effective_tiers(model, book);
    let mut sold: Vec<(&str, Fraction)> =
        model.enable_groups.iter().filter_map(|name| Some((name.as_str(), groups.get(name)?.multiplier))).collect();
    sold.sort_unstable_by_key(|(name, _)| *name);
    for (name, multiplier) in sold {
        write_text(bytes, name);
        write_pair(bytes, model, &book.standard, book.paid.as_ref(), multiplier, Fraction::ONE);
        for (when, tier) in &tiers {
            write_text(bytes, when);
            write_pair(bytes, model, &tier.standard, tier.paid.as_ref(), multiplier, tier.multiplier);
        }
    }
}

/// The tiers that make a difference, each with its conditions as one canonical text.
fn effective_tiers<'b>(model: &Model, book: &'b Book) -> Vec<(String, &'b Tier)> {
    let mut reachable: Vec<(Vec<String>, &Tier)> = Vec::new();
    for tier in &book.tiers {
        let mut when: Vec<String> = tier.when.iter().map(|condition| condition.canonical()).collect();
        when.sort_unstable();
        when.dedup();
        // An earlier tier that asks for no more than this one takes every call of it.
        let shadowed = reachable.iter().any(|(earlier, _)| earlier.iter().all(|condition| when.contains(condition)));
        if !shadowed {
            reachable.push((when, tier));
        }
    }
    // A last tier at the base price is what would apply without it.
    while reachable.last().is_some_and(|(_, tier)| is_base(model, book, tier)) {
        reachable.pop();
    }
    reachable.into_iter().map(|(when, tier)| (when.join("&"), tier)).collect()
}

fn is_base(model: &Model, book: &Book, tier: &Tier) -> bool {
    let effective = |standard, paid, own| {
        let mut bytes = Vec::new();
        write_pair(&mut bytes, model, standard, paid, Fraction::ONE, own);
        bytes
    };
    effective(&tier.standard, tier.paid.as_ref(), tier.multiplier)
        == effective(&book.standard, book.paid.as_ref(), Fraction::ONE)
}

/// The prices of both kinds of account. A price times a group's and a tier's multiplier, in lowest
/// terms.
fn write_pair(
    bytes: &mut Vec<u8>,
    model: &Model,
    standard: &Faces,
    paid: Option<&Faces>,
    group: Fraction,
    tier: Fraction,
) {
    for faces in [standard, paid.unwrap_or(standard)] {
        for (face, micro) in model.billing_unit.complete(faces).iter() {
            let (numerator, denominator) = lowest(micro, group, tier);
            bytes.push(face as u8);
            write_number(bytes, numerator);
            write_number(bytes, denominator);
        }
        bytes.push(u8::MAX);
    }
}

/// Seven bits a byte, the last with its high bit clear: few bytes for the numbers there are.
fn write_number(bytes: &mut Vec<u8>, mut number: u128) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn lowest(micro: u64, group: Fraction, tier: Fraction) -> (u128, u128) {
    // Both multipliers have at most nine digits: below 10^30 in all.
    let numerator = u128::from(micro) * u128::from(group.numerator()) * u128::from(tier.numerator());
    let denominator = group.denominator() * tier.denominator();
    if denominator == 1 {
        return (numerator, 1);
    }
    // Divisions of 128 bits are slow, and hardly ever needed.
    let rest = match u64::try_from(numerator) {
        Ok(small) => small % denominator,
        Err(_) => (numerator % u128::from(denominator)) as u64,
    };
    let (mut divisor, mut rest) = (denominator, rest);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let numerator = if divisor == 1 { numerator } else { numerator / u128::from(divisor) };
    (numerator, u128::from(denominator / divisor))
}

/// Length first, so that no two contents share their bytes.
fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}
