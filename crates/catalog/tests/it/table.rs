//! Reads the tables of `tests/tables` and checks every row:
//! `model | facts of the call | what it used | tier | lines | total`.
//!
//! Facts: `ctx=N`, `at=TIME`, `topped-up`, `group=NAME`; anything else `name=value` is a parameter
//! of the call. Used: `face=N`, or `text="…"` and `recording=1.5s`, which are counted as a modality
//! would. Lines are written `quantity face@USD`, with `c` for characters, `s` for seconds and
//! `s*50/3` for seconds of audio as tokens.
//!
//! The expectations come from `sums.py` beside the tables, which shares nothing with this crate.

use std::time::Duration;

use tollgate_catalog::{Face, Fraction, Line, Measure, Money, Price, PriceFacts, Quantities, Snapshot, measure, total};

/// Checks every row and reports all that differ. Returns how many there were.
pub fn check(catalog: &Snapshot, table: &str) -> usize {
    let mut wrong = String::new();
    let mut rows = 0;
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [model, facts, used, tier, lines, total] = cells[..] else {
            panic!("a row has six cells: {row}");
        };
        rows += 1;
        let got = run(catalog, model, facts, used);
        let want = format!("{tier} | {lines} | {total}");
        if got != want {
            wrong.push_str(&format!("\n{row}\n   got {got}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(rows > 0, "an empty table proves nothing");
    rows
}

fn run(catalog: &Snapshot, model: &str, facts: &str, used: &str) -> String {
    let Some(model) = catalog.model(model) else {
        return "no such model".to_owned();
    };
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut group = "default";
    let mut plain = PriceFacts::at(0);
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
    let facts = PriceFacts { attr: &attr, group, ..plain };
    match model.price(&facts) {
        Ok(price) => format!("{} | {}", price.tier.as_deref().unwrap_or("-"), calculation(&price, &quantities(used))),
        Err(why) => format!("- | - | {why}"),
    }
}

fn calculation(price: &Price, used: &Quantities) -> String {
    let charge = match price.charge(used) {
        Ok(charge) => charge,
        Err(why) => return format!("- | {why}"),
    };
    let lines = price.lines(used).expect("what can be charged has lines");
    assert_eq!(total(&lines, price.multiplier), Ok(charge), "the lines alone come to the charge");
    let mut text = lines.iter().map(written).collect::<Vec<_>>().join(" + ");
    if text.is_empty() {
        text.push('-');
    }
    if price.multiplier != Fraction::ONE {
        text.push_str(&format!("; x {}", price.multiplier));
    }
    format!("{text} | {charge}")
}

fn written(line: &Line) -> String {
    let mut mark = match line.unit {
        Measure::Token | Measure::Call | Measure::Use => String::new(),
        Measure::Character => "c".to_owned(),
        Measure::AudioSecond | Measure::VideoSecond => "s".to_owned(),
    };
    if line.conversion != Fraction::ONE {
        mark.push_str(&format!("*{}", line.conversion));
    }
    let usd = Money::from_nano(i64::try_from(line.micro_usd * 1_000).expect("a price"));
    format!("{}{mark} {}@{usd}", line.quantity, line.face.name())
}

fn quantities(text: &str) -> Quantities {
    let mut used = Quantities::NONE;
    let mut rest = text;
    while let Some((name, after)) = rest.trim_start().split_once('=') {
        let end = match after.strip_prefix('"') {
            Some(quoted) => quoted.find('"').expect("a closing quote") + 2,
            None => after.find(' ').unwrap_or(after.len()),
        };
        let (value, after) = after.split_at(end);
        rest = after;
        let (face, quantity) = match name {
            "text" => (Face::Input, measure::characters(value.trim_matches('"'))),
            "recording" => (Face::Input, measure::billed_seconds(seconds(value)).expect("a length")),
            face => (Face::named(face).expect("a face"), number(value)),
        };
        used[face] = quantity;
    }
    used
}

/// `1.5s`, to the nanosecond.
fn seconds(text: &str) -> Duration {
    let (whole, decimals) = text.trim_end_matches('s').split_once('.').unwrap_or((text.trim_end_matches('s'), "0"));
    Duration::new(number(whole), format!("{decimals:0<9}").parse().expect("decimals"))
}

fn number(text: &str) -> u64 {
    text.replace('_', "").parse().expect("a number")
}
