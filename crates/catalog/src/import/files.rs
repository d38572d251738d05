//! The files of a catalog as text by their names, and the lock beside them, wherever they lie: in a
//! folder or in a database. What a command would do to them is worked out on this (`draft.rs`).

use super::{BadLock, ImportLock, LOCK_FILE};
use crate::{Mistake, Snapshot, load};
use std::collections::{BTreeMap, BTreeSet};

/// Files by name with their new text; `None`: the file goes.
pub type CatalogEdits = Vec<(String, Option<String>)>;

#[derive(Clone, Debug, Default)]
pub struct CatalogFiles {
    /// Stands in front of names wherever a person reads them: the folder, or nothing.
    place: String,
    files: BTreeMap<String, String>,
    pub lock: ImportLock,
}

impl CatalogFiles {
    pub fn new(place: String, files: impl IntoIterator<Item = (String, String)>, lock: ImportLock) -> CatalogFiles {
        CatalogFiles { place, files: files.into_iter().collect(), lock }
    }

    /// Files of which one may be the lock.
    pub fn with_lock(files: impl IntoIterator<Item = (String, String)>) -> Result<CatalogFiles, BadLock> {
        let mut files: BTreeMap<String, String> = files.into_iter().collect();
        let lock = files.remove(LOCK_FILE).map(|text| ImportLock::read(&text)).transpose()?.unwrap_or_default();
        files.retain(|name, _| !is_lock(name));
        Ok(CatalogFiles::new(String::new(), files, lock))
    }

    /// Where a file lies, in words.
    pub fn place(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }

    /// Names and texts.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The text of a file; empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The models that all files but this one sell.
    pub(super) fn taken(&self, name: &str) -> Result<BTreeSet<String>, Vec<Mistake>> {
        let others = self.after(&vec![(name.to_owned(), None)]);
        Ok(load(&others)?.models.into_keys().collect())
    }

    /// The files as they would be, by where they lie.
    pub fn after(&self, edits: &CatalogEdits) -> Vec<(String, String)> {
        let edited: BTreeSet<&str> = edits.iter().map(|(name, _)| name.as_str()).collect();
        let stay = self.files().filter(|(name, _)| !edited.contains(name));
        let stay = stay.map(|(name, text)| (self.place(name), text.to_owned()));
        let come = edits.iter().filter_map(|(name, text)| Some((self.place(name), text.clone()?)));
        let mut files: Vec<(String, String)> = stay.chain(come).collect();
        files.sort();
        files
    }

    /// The catalog as it is.
    pub fn loaded(&self) -> Result<Snapshot, Vec<Mistake>> {
        load(&self.after(&Vec::new()))
    }
}

/// Whether a name is that of a lock: no part of what is sold.
pub fn is_lock(name: &str) -> bool {
    name.rsplit('/').next() == Some(LOCK_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_among_the_files_is_none_of_them() {
        let files = |lock: &str| {
            [("a.toml", ""), (LOCK_FILE, lock), ("b/import.lock.toml", "x")]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
        };
        let read = CatalogFiles::with_lock(files("")).expect("files");
        assert_eq!(read.files().map(|(name, _)| name).collect::<Vec<_>>(), ["a.toml"]);
        assert_eq!(read.lock, ImportLock::default());
        assert!(CatalogFiles::with_lock(files("file = ")).is_err());
        assert!(is_lock(LOCK_FILE) && is_lock("b/import.lock.toml") && !is_lock("my.import.lock.toml"));
    }
}
