//! `price`, `paid` and `tier` tables: every face that can be charged has a price, or the catalog is refused.

use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;

use crate::condition::{Hours, Weekdays};
use crate::form::{Form, did_you_mean};
use crate::{BillingUnit, Book, Condition, Face, Faces, Fraction, MAX_FACE, Tier, VendorList};

/// Compiled in, and read once: a large catalog names the same few zones again and again.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

pub(super) fn read(
    form: &mut Form<'_>,
    unit: BillingUnit,
    input_modalities: &[String],
    output_modalities: &[String],
) -> Book {
    let Some(mut table) = form.opt_table("price") else {
        if !form.has("price") {
            form.mistake("price", "is missing: a model without a price cannot be sold");
        }
        return Book::default();
    };
    let mut standard = faces(&mut table);
    require(&table, &standard, unit, input_modalities, output_modalities);
    table.finish();
    free_by_rule(&mut standard, unit);

    let paid = form.opt_table("paid").map(|mut table| {
        let mut paid = faces(&mut table);
        free_by_rule(&mut paid, unit);
        same_faces(&table, &paid, &standard);
        table.finish();
        paid
    });
    let mut tiers: Vec<Tier> = Vec::new();
    for table in form.tables("tier") {
        let tier = tier(table, unit, &standard, paid, &tiers);
        tiers.push(tier);
    }
    Book { standard, paid, tiers, built: Vec::new() }
}

fn faces(table: &mut Form<'_>) -> Faces {
    let mut faces = Faces::NONE;
    for face in Face::ALL {
        faces.set(face, table.opt_int(face.name(), 0..=MAX_FACE));
    }
    faces
}

/// `[model."NAME".list]`: what the vendor itself asks, for comparison; never charged.
pub(super) fn vendor_list(form: &mut Form<'_>, unit: BillingUnit) -> Option<VendorList> {
    let mut table = form.opt_table("list")?;
    let mut price = table.table("price");
    let faces = faces(&mut price);
    let main = unit.main_face().name();
    if !price.has(main) {
        price.mistake(main, "is missing: the list price of this face, in millionths of the currency");
    }
    price.finish();
    let list = VendorList {
        currency: table.text_or("currency", "USD"),
        usd_rate: table.fraction_or("usd_rate", Fraction::ONE),
        source: table.text("source"),
        verified_at: table.has("verified_at").then(|| table.plain("verified_at")),
        faces,
    };
    if list.currency != "USD" && !table.has("usd_rate") {
        table.mistake("usd_rate", "is missing: how many dollars is one unit of the currency?");
    }
    table.finish();
    Some(list)
}

/// The faces a model of this unit cannot be sold without.
fn require(
    table: &Form<'_>,
    faces: &Faces,
    unit: BillingUnit,
    input_modalities: &[String],
    output_modalities: &[String],
) {
    let mut needed = match unit {
        BillingUnit::Tokens => vec![Face::Input, Face::Output],
        BillingUnit::Characters | BillingUnit::AudioDuration => vec![Face::Input],
        BillingUnit::PerCall => vec![Face::PerCall],
        BillingUnit::PerSecond => vec![Face::VideoSecond],
    };
    if unit == BillingUnit::Tokens {
        // Sound and pictures cost a multiple of text: without a price of their own they would be sold below cost.
        let has = |list: &[String], name: &str| list.iter().any(|modality| modality == name);
        let extra = [
            (has(input_modalities, "audio"), Face::AudioInput),
            (has(output_modalities, "audio"), Face::AudioOutput),
            (has(output_modalities, "image"), Face::ImageOutput),
        ];
        needed.extend(extra.iter().filter(|(has, _)| *has).map(|(_, face)| *face));
    }
    for face in needed {
        // A face that is written but wrong has been reported already.
        if !faces.has(face) && !table.has(face.name()) {
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
    let sells_tokens = matches!(unit, BillingUnit::Tokens | BillingUnit::Characters | BillingUnit::AudioDuration);
    for (face, _) in faces.iter() {
        let is_token = face.unit() == crate::Unit::MillionTokens;
        if is_token != sells_tokens && !(sells_tokens && face == Face::PerCall) {
            table.mistake(face.name(), format!("is never charged by a model billed by {}", unit.name()));
        }
    }
}

/// What the specification makes free: the speech that was generated, the transcript of a recording.
fn free_by_rule(faces: &mut Faces, unit: BillingUnit) {
    let free = matches!(unit, BillingUnit::Characters | BillingUnit::AudioDuration);
    if free && !faces.has(Face::Output) {
        faces.set(Face::Output, Some(0));
    }
}

/// Other prices of the same model must price the same faces: a face left out would quietly take another price.
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

fn condition(mut form: Form<'_>) -> Option<Condition> {
    let kinds = [("context_len", 0), ("request_attr", 1), ("wall_clock", 2)];
    let condition = match form.choice("dim", &kinds) {
        Some(0) => Some(Condition::ContextOver(form.int("context_len_gt", 0..=1_000_000_000))),
        Some(1) => Some(Condition::Attribute { path: form.text("path"), equals: form.plain("equals") }),
        Some(_) => wall_clock(&mut form),
        None => {
            // Which keys belong here is anybody's guess.
            form.ignore_rest();
            return None;
        }
    };
    form.finish();
    condition
}

fn wall_clock(form: &mut Form<'_>) -> Option<Condition> {
    let days: Option<Vec<u8>> = form.opt_ints("weekdays", 1..=7);
    let hours: Option<Vec<u8>> = form.opt_ints("hours", 0..=23);
    if !form.has("weekdays") && !form.has("hours") {
        form.mistake_here("a wall_clock condition needs weekdays, hours or both");
    }
    for (key, list) in [("weekdays", &days), ("hours", &hours)] {
        if list.as_ref().is_some_and(Vec::is_empty) {
            form.mistake(key, "must not be empty: leave it out to mean any");
        }
    }
    let name = form.text("timezone");
    if name.is_empty() {
        return None;
    }
    let Ok(zone) = ZONES.get(&name) else {
        let known: Vec<String> = ZONES.available().map(|zone| zone.to_string()).collect();
        let hint = did_you_mean(&name, known.iter().map(String::as_str));
        form.mistake("timezone", format!("{name:?} is not a time zone such as \"Europe/Berlin\"{hint}"));
        return None;
    };
    Some(Condition::WallClock {
        zone,
        weekdays: Weekdays(days.iter().flatten().fold(0, |bits, day| bits | 1 << day)),
        hours: Hours(hours.iter().flatten().fold(0, |bits, hour| bits | 1 << hour)),
    })
}
