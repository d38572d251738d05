//! The 133 hard cases of the reference: each is named by a test, by the comment of one, or by a
//! golden file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const CASES: u32 = 133;
/// Folders with tests, from the root of the project.
const FOLDERS: [&str; 7] = [
    "crates/wire",
    "crates/dialects",
    "crates/media",
    "crates/upstream",
    "crates/gateway/tests",
    "crates/gateway/src",
    "tests/sdk",
];
const ENDS: [&str; 4] = ["rs", "txt", "py", "js"];

/// The numbers after `case_`, `Case ` or `Cases `: a list with `and`, commas and ranges with `to`.
fn named(text: &str, found: &mut BTreeSet<u32>) {
    for start in ["case_", "Case ", "Cases ", "cases: "] {
        for (at, _) in text.match_indices(start) {
            numbers(&text[at + start.len()..], found);
        }
    }
}

fn numbers(mut rest: &str, found: &mut BTreeSet<u32>) {
    let mut from: Option<u32> = None;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<u32>() else { return };
        found.extend(from.unwrap_or(number)..=number);
        rest = &rest[digits..];
        let between = [("_to_", true), (" to ", true), ("_and_", false), (" and ", false), (", ", false)];
        let Some((word, range)) = between.into_iter().find(|(word, _)| rest.starts_with(word)) else { return };
        from = range.then_some(number);
        rest = &rest[word.len()..];
    }
}

fn walk(folder: &Path, found: &mut BTreeSet<u32>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() && !["target", "node_modules"].iter().any(|skip| path.ends_with(skip)) {
            walk(&path, found);
        } else if path.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known))
            && let Ok(text) = fs::read_to_string(&path)
        {
            named(&text, found);
        }
    }
}

#[test]
fn every_hard_case_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    FOLDERS.iter().for_each(|folder| walk(&root.join(folder), &mut found));
    let missing: Vec<u32> = (1..=CASES).filter(|case| !found.contains(case)).collect();
    assert!(missing.is_empty(), "cases without a test: {missing:?}");
}

#[test]
fn names_are_read() {
    let mut found = BTreeSet::new();
    // Written apart, so that this file names no case itself.
    let text = ["fn ca", "se_7_and_9_to_11_x() // Ca", "ses 20, 22 and 24 to 25: 30"].concat();
    named(&text, &mut found);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [7, 9, 10, 11, 20, 22, 24, 25]);
}
