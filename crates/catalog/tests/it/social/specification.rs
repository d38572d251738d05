//! The shipped cells are those of the specification: read from the document's tables, not from
//! ours.

use super::notation::{self, Named, Written};
use super::shipped;
use sha2::{Digest as _, Sha256};
use tollgate_catalog::social::{Capability, Cell, Param, ParamKind, ParamValue};

/// The tables of section 4.2.
const TABLES: &str = include_str!("specification.md");

fn key_of(label: &str) -> &'static str {
    let order: u32 = label[1..].parse().expect("a label");
    let platform = shipped().social.platforms().iter().find(|platform| platform.order == order);
    &platform.unwrap_or_else(|| panic!("no platform {label}")).key
}

fn cell_of(written: &Written) -> &'static Cell {
    let key = key_of(&written.label);
    let cell = shipped().social.cell(key, &written.capability);
    cell.unwrap_or_else(|| panic!("{} {} is not on sale", written.label, written.capability))
}

/// Of the tables as they were when they were last compared with the document.
const COMPARED: &str = "bb001ed5a78075c94021594c960db05908312f0a66b0e4e0af824b6e953863aa";

#[test]
fn the_tables_are_those_of_the_document() {
    let digest: String = Sha256::digest(TABLES).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        digest, COMPARED,
        "specification.md was changed: compare it with the document, then note its digest here"
    );
    // Beside a checkout of the project alone there is no document to compare with; then the digest
    // has to do.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/spec/social.md");
    if let Ok(document) = std::fs::read_to_string(path) {
        assert!(document.contains(TABLES.trim()), "specification.md is not what the document says");
    }
}

#[test]
fn all_101_pairs_exist_with_names_order_types_flags_groups_and_prices() {
    let document = notation::read(TABLES);
    assert_eq!(document.len(), 101);
    assert_eq!(document.iter().map(|cell| cell.params.len()).sum::<usize>(), 286);
    assert_eq!(document.iter().map(|cell| cell.groups.len()).sum::<usize>(), 11);
    assert_eq!(document.iter().filter(|cell| cell.price.is_some()).count(), 75);
    let mut wrong = Vec::new();
    for written in &document {
        let cell = cell_of(written);
        let mut differs = |what: String| wrong.push(format!("{} {}: {what}", written.label, written.capability));
        let names = |params: Vec<&str>| params.join(" ");
        let (theirs, ours) = (
            names(written.params.iter().map(|param| param.name.as_str()).collect()),
            names(cell.params.iter().map(|param| param.name.as_str()).collect()),
        );
        if theirs != ours {
            differs(format!("parameters {theirs:?}, ours {ours:?}"));
            continue;
        }
        if written.groups != cell.groups() {
            differs(format!("groups {:?}, ours {:?}", written.groups, cell.groups()));
        }
        let price = cell.price().expect("a price").to_string();
        if written.price.as_ref().is_some_and(|written| *written != price) {
            differs(format!("price {:?}, ours {price}", written.price));
        }
        for (theirs, ours) in written.params.iter().zip(&cell.params) {
            if let Some(why) = different(theirs, ours) {
                differs(format!("{}: {why}", theirs.name));
            }
        }
        let record = cell.record(false);
        assert_eq!(record["model"], format!("social-{}-{}", cell.platform, written.capability));
        assert_eq!(record["path"], format!("/v1/social/{}/{}", cell.platform, written.capability));
        assert_eq!(
            (&record["method"], &record["unit"], &record["status"]),
            (&"GET".into(), &"call".into(), &"available".into())
        );
        assert_eq!(record["price_usd"].to_string(), price);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn different(theirs: &Named, ours: &Param) -> Option<String> {
    let kind = match ours.kind {
        ParamKind::Text => 's',
        ParamKind::Integer => 'i',
        ParamKind::Boolean => 'b',
    };
    if theirs.kind.is_some_and(|written| written != kind) {
        return Some(format!("type {:?}, ours {kind}", theirs.kind));
    }
    if theirs.required.is_some_and(|required| required != ours.required) {
        return Some(format!("required {:?}, ours {}", theirs.required, ours.required));
    }
    if theirs.default.is_some() && theirs.default != ours.default.as_ref().map(ParamValue::to_string) {
        return Some(format!("default {:?}, ours {:?}", theirs.default, ours.default));
    }
    if theirs.max.is_some() && theirs.max != ours.max.map(|max| max.to_string()) {
        return Some(format!("max {:?}, ours {:?}", theirs.max, ours.max));
    }
    if theirs.characters && (ours.min_length, ours.max_length) != (1, 100) {
        return Some("has 1 to 100 characters".to_owned());
    }
    None
}

#[test]
fn every_other_pair_does_not_exist() {
    let document = notation::read(TABLES);
    let mut absent = 0;
    for order in 1..=20 {
        let key = key_of(&format!("P{order}"));
        for capability in Capability::ALL {
            let written =
                document.iter().any(|one| one.label == format!("P{order}") && one.capability == capability.name());
            assert_eq!(shipped().social.cell(key, capability.name()).is_some(), written, "{key} {}", capability.name());
            absent += usize::from(!written);
        }
    }
    assert_eq!(absent, 19);
    assert!(shipped().social.cell("douyin", "likes").is_none() && shipped().social.cell("myspace", "user").is_none());
}

#[test]
fn the_keys_of_the_universal_search_are_the_documents() {
    let row = TABLES.lines().find(|line| line.starts_with("P9 ")).expect("P9");
    let cell = shipped().social.cell("wechat-search", "search").expect("the cell");
    let kinds = cell.param("business_type").expect("a parameter");
    assert_eq!(kinds.choices().len(), 18, "the document says 18 keys");
    let confirmed = row.split("results confirmed for ").nth(1).and_then(|rest| rest.split(';').next()).expect("a list");
    for key in confirmed.split(['`', ',', ' ']).filter(|word| !word.is_empty()) {
        assert!(kinds.choices().contains(&key.to_owned()), "{key}");
    }
}

/// `all/0, short/1 under 5 min, …`: the words in the order of their numbers.
fn words(notes: &str) -> Vec<String> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for piece in notes.split([' ', ',', ')', '(']) {
        if let Some((word, number)) = piece.split_once('/')
            && let Ok(number) = number.parse()
        {
            words.push((number, word.to_owned()));
        }
    }
    assert!(words.iter().enumerate().all(|(at, (number, _))| at == *number), "{notes}");
    words.into_iter().map(|(_, word)| word).collect()
}

#[test]
fn numbers_stand_for_the_words_that_the_document_pairs_them_with() {
    let row = TABLES.lines().find(|line| line.contains("half_year/3")).expect("the row of P7");
    let notes = |name: &str| {
        let after = row.split_once(&format!("; {name} (")).expect("the parameter").1;
        words(after.split_once(')').expect("an end").0)
    };
    assert_eq!(notes("duration"), ["all", "short", "medium", "long"]);
    let mut compared = 0;
    for key in ["wechat-channels", "wechat-mp", "wechat-search"] {
        let cell = shipped().social.cell(key, "search").expect("a cell");
        for name in ["duration", "sort", "publish_time"] {
            let Some(param) = cell.param(name) else { continue };
            assert_eq!(param.text_keys, notes(name), "{key} {name}");
            for (number, word) in notes(name).iter().enumerate() {
                for given in [word.clone(), number.to_string()] {
                    let checked = cell.check(&[("keyword", "x"), (name, given.as_str())]).expect("a good call");
                    assert_eq!(checked.get(cell, name), Some(&ParamValue::Text(word.clone())), "{key} {name} {given}");
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 7, "the first has all three, the others the last two");
}
