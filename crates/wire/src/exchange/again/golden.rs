//! The originals of the golden files, and the voice in which they are written again.

use crate::dialect::Dialect;
use crate::hub::Voice;
use std::fs;
use std::path::Path;

pub(super) struct Original {
    pub name: String,
    pub from: Dialect,
    pub text: String,
}

pub(super) fn originals(folder: &str) -> Vec<Original> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let whole = fs::read_to_string(&path).unwrap();
        let (words, rest) = whole.split_once("\n=== original\n").unwrap();
        let text = rest.split_once("=== result\n").map_or(rest, |(text, _)| text).to_owned();
        let word = words.lines().next().unwrap().strip_prefix("from: ").unwrap();
        let from = Dialect::ALL.into_iter().find(|dialect| format!("{dialect:?}").to_lowercase() == word).unwrap();
        Original { name: path.file_stem().unwrap().to_string_lossy().into_owned(), from, text }
    };
    paths.into_iter().map(read).collect()
}

pub(super) fn voice() -> Voice {
    Voice { id: "call_1".into(), model: "up".into(), created: 1, wants_usage: true, ..Voice::default() }
}
