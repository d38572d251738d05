//! The vendors of models that are switched on: their tables are written once, beside the models of
//! all providers that serve them.

use super::{ListedModel, inline};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use toml::{Table, Value};

/// Where they are written in the folder of a catalog.
pub const VENDORS_FILE: &str = "vendors.toml";

/// Numbers are never used twice, nor changed: clients store them.
const VENDORS: &str = include_str!("../../../../catalog/models/vendors.toml");
const HEAD: &str = "# Written by `tollgate catalog enable`: who makes the models. A number stays what it is.\n";

/// The text of the vendors' file with every vendor that these models name and no file has yet;
/// `None` when nothing is missing.
pub fn vendors_for(files: &[(String, String)], before: &str, models: &[&ListedModel]) -> Option<String> {
    let shipped: Table = VENDORS.parse().ok()?;
    let shipped = shipped.get("vendor")?.as_table()?;
    let has = |text: &str| -> BTreeSet<String> {
        let whole: Table = text.parse().unwrap_or_default();
        whole.get("vendor").and_then(Value::as_table).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let known: BTreeSet<String> = files.iter().flat_map(|(_, text)| has(text)).collect();
    let named: BTreeSet<&str> = models.iter().filter_map(|model| model.facts.get("vendor")?.as_str()).collect();
    let mut text = if before.is_empty() { HEAD.to_owned() } else { before.to_owned() };
    let mut more = false;
    for name in named.into_iter().filter(|name| !known.contains(*name)) {
        let Some(vendor) = shipped.get(name).and_then(Value::as_table) else { continue };
        let _ = write!(text, "\n[vendor.{}]\n", inline::text(name));
        for (key, value) in inline::ordered(vendor) {
            let _ = writeln!(text, "{} = {}", inline::key(key), inline::value(value));
        }
        more = true;
    }
    more.then_some(text)
}
