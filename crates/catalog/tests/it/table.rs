//! Runs a table written as text: `model | facts of the call | what it used | tier | total in USD`.
//!
//! Facts: `ctx=N`, `at=TIME`, `topped-up`, `group=NAME`, and anything else `name=value` is a parameter of the call.

use tollgate_catalog::{Face, Facts, Quantities, Snapshot};

/// Checks every row and reports all that differ.
pub fn check(catalog: &Snapshot, table: &str) {
    let mut wrong = String::new();
    let mut rows = 0;
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [model, facts, used, tier, total] = cells[..] else {
            panic!("a row has five cells: {row}");
        };
        rows += 1;
        let got = run(catalog, model, facts, used);
        let want = format!("{tier} | {total}");
        if got != want {
            wrong.push_str(&format!("\n{row}\n   got {got}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(rows > 0, "an empty table proves nothing");
}

fn run(catalog: &Snapshot, model: &str, facts: &str, used: &str) -> String {
    let Some(model) = catalog.model(model) else {
        return "no such model".to_owned();
    };
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut group = "default";
    let mut plain = Facts::at(0);
    for fact in facts.split_whitespace() {
        match fact.split_once('=') {
            None if fact == "topped-up" => plain.topped_up = true,
            Some(("ctx", n)) => plain.context_len = number(n),
            Some(("at", time)) => {
                plain.at_ms = time.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
            }
            Some(("group", name)) => group = name,
            Some((name, value)) => attributes.push((name.to_owned(), value.to_owned())),
            None => panic!("no fact is called {fact}"),
        }
    }
    let attr = |path: &str| attributes.iter().find(|(name, _)| name == path).map(|(_, value)| value.clone());
    let facts = Facts { attr: &attr, group, ..plain };
    let price = match model.price(&facts) {
        Ok(price) => price,
        Err(why) => return format!("- | {why}"),
    };
    let mut quantities = Quantities::NONE;
    for part in used.split_whitespace() {
        let (name, n) = part.split_once('=').expect("face=quantity");
        quantities[Face::named(name).expect("a face")] = number(n);
    }
    let tier = price.tier.as_deref().unwrap_or("-");
    match price.charge(&quantities) {
        Ok(charge) => format!("{tier} | {charge}"),
        Err(why) => format!("{tier} | {why}"),
    }
}

fn number(text: &str) -> u64 {
    text.replace('_', "").parse().expect("a number")
}
