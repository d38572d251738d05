//! `[[model."NAME".change]]`: prices that begin at an instant.

use jiff::Timestamp;

use super::{list, prices};
use crate::form::Form;
use crate::{BillingUnit, DatedPrices, Face};

/// Changes of one model; those of the past are folded into its prices by `tollgate catalog tidy`.
const MOST: usize = 50;
/// What lies outside is a typing mistake.
const YEARS: std::ops::RangeInclusive<i16> = 2020..=2099;

pub(super) fn read(form: &mut Form<'_>, unit: BillingUnit, needed: &[Face]) -> Vec<DatedPrices> {
    let mut changes: Vec<DatedPrices> = Vec::new();
    for mut table in form.tables("change") {
        let from_ms = from(&mut table);
        let book = prices::read(&mut table, unit, needed);
        let list = list::read(&mut table, unit, &unit.complete(&book.standard));
        if let (Some(from_ms), Some(last)) = (from_ms, changes.last())
            && from_ms <= last.from_ms
        {
            table.mistake("from", "is not after the change before it: changes are written in their order");
        }
        if let Some(from_ms) = from_ms {
            changes.push(DatedPrices { from_ms, book, list });
        }
        table.finish();
    }
    if changes.len() > MOST {
        form.mistake(
            "change",
            format!("has more than {MOST} entries: `tollgate catalog tidy` folds those of the past"),
        );
    }
    changes
}

fn from(table: &mut Form<'_>) -> Option<i64> {
    let written = table.plain("from");
    if written.is_empty() {
        return None;
    }
    let at = written.parse::<Timestamp>().ok();
    let in_time = |at: &Timestamp| YEARS.contains(&at.to_zoned(jiff::tz::TimeZone::UTC).year());
    let at = at.filter(in_time);
    if at.is_none() {
        table.mistake("from", format!("{written:?} is not an instant with its offset, such as 2027-01-01T00:00:00Z"));
    }
    at.map(|at| at.as_millisecond())
}
