//! `price`, `paid` and `tier` tables: every face that can be charged has a price, or the catalog is
//! refused.

use super::conditions::condition;
use crate::form::Form;
use crate::{BillingUnit, Book, Condition, EndpointType, Face, Faces, Fraction, MAX_FACE, Tier};

pub(super) fn read(form: &mut Form<'_>, unit: BillingUnit, needed: &[Face]) -> Book {
    let Some(mut table) = form.opt_table("price") else {
        if !form.has("price") {
            form.mistake("price", "is missing: a model without a price cannot be sold");
        }
        return Book::default();
    };
    let mut standard = faces(&mut table);
    require(&table, &standard, unit, needed);
    table.finish();
    free_by_rule(&mut standard, unit);

    let paid = form.opt_table("paid").map(|mut table| {
        let mut paid = faces(&mut table);
        free_by_rule(&mut paid, unit);
        same_faces(&table, &paid, &standard);
        only_charged(&table, &paid, unit);
        table.finish();
        paid
    });
    let mut tiers: Vec<Tier> = Vec::new();
    for table in form.tables("tier") {
        let tier = tier(table, unit, &standard, paid, &tiers);
        tiers.push(tier);
    }
    Book::written_as(standard, paid, tiers)
}

pub(super) fn faces(table: &mut Form<'_>) -> Faces {
    let mut faces = Faces::NONE;
    for face in Face::ALL {
        faces.set(face, table.opt_int(face.name(), 0..=MAX_FACE));
    }
    faces
}

/// The faces a model cannot be sold without: those of its unit, and what its endpoints and
/// modalities make.
pub(super) fn needed(
    unit: BillingUnit,
    endpoint_types: &[String],
    input_modalities: &[String],
    output_modalities: &[String],
) -> Vec<Face> {
    let mut needed = vec![unit.main_face()];
    if unit == BillingUnit::Tokens {
        needed.push(Face::Output);
        // Sound and pictures cost a multiple of text: without a price of their own they would be
        // sold below cost.
        let has = |list: &[String], name: &str| list.iter().any(|modality| modality == name);
        let extra = [
            (has(input_modalities, "audio"), Face::AudioInput),
            (has(output_modalities, "audio"), Face::AudioOutput),
            (has(output_modalities, "image"), Face::ImageOutput),
        ];
        needed.extend(extra.iter().filter(|(has, _)| *has).map(|(_, face)| *face));
        needed.extend(endpoint_types.iter().filter_map(|name| EndpointType::named(name)?.by_tokens));
    }
    needed.sort_unstable();
    needed.dedup();
    needed
}

fn require(table: &Form<'_>, faces: &Faces, unit: BillingUnit, needed: &[Face]) {
    for face in needed {
        // A face that is written but wrong has been reported already.
        if !faces.has(*face) && !table.has(face.name()) {
            table.mistake(
                face.name(),
                format!(
                    "is missing: a model billed by {} needs a price for {}, in micro-USD",
                    unit.name(),
                    face.name()
                ),
            );
        }
    }
    only_charged(table, faces, unit);
}

/// A price that is never charged, or that the rules make zero, is a misunderstanding.
fn only_charged(table: &Form<'_>, faces: &Faces, unit: BillingUnit) {
    for (face, price) in faces.iter() {
        if !unit.charges(face) {
            table.mistake(face.name(), format!("is never charged by a model billed by {}", unit.name()));
        } else if unit.is_free(face) && price > 0 {
            let what = if unit == BillingUnit::Characters { "generated speech" } else { "the transcript" };
            table.mistake(face.name(), format!("must be 0 or left out: {what} is counted, and free"));
        }
    }
}

/// What the specification makes free: the speech that was generated, the transcript of a recording.
fn free_by_rule(faces: &mut Faces, unit: BillingUnit) {
    if unit.is_free(Face::Output) && !faces.has(Face::Output) {
        faces.set(Face::Output, Some(0));
    }
}

/// Other prices of the same model must price the same faces: a face left out would quietly take
/// another price.
fn same_faces(table: &Form<'_>, faces: &Faces, base: &Faces) {
    for face in Face::ALL {
        if table.has(face.name()) && !faces.has(face) {
            continue;
        }
        match (base.has(face), faces.has(face)) {
            (true, false) => {
                table.mistake(face.name(), "is missing: the base price has it, so it needs a price here too")
            }
            (false, true) => table.mistake(face.name(), "is not in the base price: put a price for it there too"),
            _ => {}
        }
    }
}

fn tier(mut form: Form<'_>, unit: BillingUnit, base: &Faces, base_paid: Option<Faces>, before: &[Tier]) -> Tier {
    let name = form.text("name");
    if before.iter().any(|other| other.name == name) {
        form.mistake("name", format!("another tier of the model is called {name:?} too"));
    }
    let when: Vec<Condition> = form.tables("when").into_iter().filter_map(condition).collect();
    if !form.has("when") {
        form.mistake("when", "is missing: without conditions the tier would always apply");
    }
    let mut tier = Tier { name, standard: *base, paid: base_paid, multiplier: Fraction::ONE, when };
    match (form.has("price"), form.opt_fraction("multiplier")) {
        (false, Some(multiplier)) => tier.multiplier = multiplier,
        (true, None) => {
            let mut read = |key: &str| {
                let mut table = form.opt_table(key)?;
                let mut faces = faces(&mut table);
                free_by_rule(&mut faces, unit);
                same_faces(&table, &faces, base);
                only_charged(&table, &faces, unit);
                table.finish();
                Some(faces)
            };
            tier.standard = read("price").unwrap_or(*base);
            tier.paid = read("paid");
        }
        (true, Some(_)) => {
            form.mistake("multiplier", "a tier has either a price or a multiplier of the base price, not both");
            form.known(&["price", "paid"]);
        }
        (false, None) if form.has("multiplier") => {}
        (false, None) => form.mistake("price", "is missing: a tier needs a price or a multiplier of the base price"),
    }
    if tier.multiplier.numerator() == 0 {
        form.mistake("multiplier", "must be more than zero");
    }
    form.finish();
    tier
}
