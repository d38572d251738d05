//! `[vendor."NAME"]` tables.

use std::collections::BTreeMap;

use super::labels;
use crate::form::Form;
use crate::{LineInFile, Vendor};

/// Enough for every vendor there is, and a number that every client reads.
const MOST_ID: i64 = i32::MAX as i64;

pub(super) fn read(forms: &mut [Form<'_>]) -> BTreeMap<String, Vendor> {
    let mut vendors: BTreeMap<String, (Vendor, LineInFile)> = BTreeMap::new();
    for form in forms {
        for (name, mut table) in form.named("vendor") {
            if let Some((_, first)) = vendors.get(&name) {
                table.mistake_here(format!("is already defined in {first}"));
                table.ignore_rest();
                continue;
            }
            let vendor = Vendor {
                id: table.int("id", 1..=MOST_ID),
                name: table.text_or("name", &name),
                description: table.text_or("description", ""),
                icon: labels::icon(&mut table),
            };
            let same = vendors.iter().find(|(_, (other, _))| table.has("id") && other.id == vendor.id);
            if let Some((other, (_, first))) = same {
                let reason = format!("{} is the id of {other:?} in {first}: an id is never used twice", vendor.id);
                table.mistake("id", reason);
            }
            vendors.insert(name, (vendor, table.place()));
            table.finish();
        }
    }
    vendors.into_iter().map(|(name, (vendor, _))| (name, vendor)).collect()
}
