//! The tests of the catalog, one binary: charges a person can read, tiers over the calendar,
//! mistakes word by word.

mod again;
mod bad_catalogs;
mod bounds;
mod cost;
mod dated;
mod demo;
mod difference;
mod form;
mod groups;
mod hot_path;
mod import;
mod mistakes;
mod money;
mod properties;
mod random;
mod recomputed;
mod record;
mod social;
mod table;
mod tables;
mod tiers;
mod version;

use tollgate_catalog::{Snapshot, load};

/// Loads one file called `test.toml`, or fails with its mistakes.
fn catalog(text: &str) -> Snapshot {
    match load(&[("test.toml".to_owned(), text.to_owned())]) {
        Ok(snapshot) => snapshot,
        Err(mistakes) => panic!("{}", lines(&mistakes)),
    }
}

/// The mistakes of one file called `test.toml`, one per line.
fn mistakes_of(text: &str) -> String {
    match load(&[("test.toml".to_owned(), text.to_owned())]) {
        Ok(_) => String::from("no mistake"),
        Err(mistakes) => lines(&mistakes),
    }
}

fn lines(mistakes: &[tollgate_catalog::Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
