//! `[model."NAME".list]`: what the vendor itself asks, for comparison; never charged.

use super::prices::faces;
use crate::form::Form;
use crate::{BillingUnit, Face, Faces, Fraction, VendorList};

/// `sold` is what the model sells: a list price of anything else compares with nothing.
pub(super) fn read(form: &mut Form<'_>, unit: BillingUnit, sold: &Faces) -> Option<VendorList> {
    let mut table = form.opt_table("list")?;
    let mut price = table.table("price");
    let faces = faces(&mut price);
    let main = unit.main_face().name();
    if !price.has(main) {
        price.mistake(main, "is missing: the list price of this face, in millionths of the currency");
    }
    for (face, _) in faces.iter().filter(|(face, _)| !sold.is_empty() && !sold.has(*face)) {
        price.mistake(face.name(), "is not sold by this model: there is nothing to compare it with");
    }
    price.finish();
    let list = VendorList {
        currency: table.text_or("currency", "USD"),
        usd_rate: table.fraction_or("usd_rate", Fraction::ONE),
        source: table.text("source"),
        verified_at: table.has("verified_at").then(|| table.plain("verified_at")),
        unverified: unverified(&mut table, &faces),
        faces,
    };
    check(&table, &list);
    table.finish();
    Some(list)
}

/// Faces whose list price nobody has compared with a second source.
fn unverified(table: &mut Form<'_>, listed: &Faces) -> Vec<Face> {
    let known: Vec<&str> = Face::ALL.iter().map(|face| face.name()).collect();
    let named = table.words("unverified", &known);
    let faces: Vec<Face> = named.iter().filter_map(|name| Face::named(name)).collect();
    for face in faces.iter().filter(|face| !listed.has(**face)) {
        table.mistake("unverified", format!("there is no list price of {}", face.name()));
    }
    faces
}

fn check(table: &Form<'_>, list: &VendorList) {
    let three_letters = list.currency.len() == 3 && list.currency.bytes().all(|b| b.is_ascii_uppercase());
    if !three_letters {
        table.mistake("currency", "is not a currency such as \"USD\" or \"CNY\"");
    } else if list.currency != "USD" && !table.has("usd_rate") {
        table.mistake("usd_rate", "is missing: how many dollars is one unit of the currency?");
    } else if list.currency == "USD" && list.usd_rate != Fraction::ONE {
        table.mistake("usd_rate", "a dollar is a dollar: leave it out");
    }
    if list.usd_rate.numerator() == 0 {
        table.mistake("usd_rate", "must be more than zero");
    }
    let is_date = |text: &String| text.parse::<jiff::civil::Date>().is_ok();
    if list.verified_at.as_ref().is_some_and(|day| !is_date(day)) {
        table.mistake("verified_at", "is not a day such as 2026-01-15");
    }
}
