//! The files of a catalog as they were written, and the hash that they are known by: what operators
//! look at, compare and publish. Names are relative to the folder of the catalog, so that the same
//! files have the same hash wherever they lie.
//!
//! The lock of the commands that write catalogs is one of the files, and in the hash: it travels
//! with what it is about. It is never read as a part of the catalog.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use tollgate_catalog::import::{BadLock, CatalogFiles, LOCK_FILE, is_lock};

/// All files together, and how many there may be.
pub const MOST_BYTES: usize = 4 << 20;
pub const MOST_FILES: usize = 500;
const LONGEST_NAME: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogText {
    /// Name and text of each, by name.
    pub files: Vec<(String, String)>,
    /// SHA-256, in hexadecimal.
    pub hash: String,
    /// The version that was published with it; nothing of a folder.
    pub version: Option<i64>,
}

impl CatalogText {
    pub fn new(mut files: Vec<(String, String)>) -> CatalogText {
        files.sort();
        let mut hash = Sha256::new();
        for part in files.iter().flat_map(|(name, text)| [name, text]) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        CatalogText { files, hash, version: None }
    }

    /// Files that were read from a folder, and the lock beside them.
    pub fn of_folder(dir: &Path, files: &[(String, String)], lock: Option<String>) -> CatalogText {
        let relative = |name: &String| {
            let path = Path::new(name);
            path.strip_prefix(dir).unwrap_or(path).display().to_string()
        };
        let files = files.iter().map(|(name, text)| (relative(name), text.clone()));
        CatalogText::new(files.chain(lock.map(|lock| (LOCK_FILE.to_owned(), lock))).collect())
    }

    /// What is read as the catalog: all files but the lock.
    pub fn catalog(&self) -> Cow<'_, [(String, String)]> {
        match self.files.iter().any(|(name, _)| is_lock(name)) {
            false => Cow::Borrowed(&self.files),
            true => Cow::Owned(self.files.iter().filter(|(name, _)| !is_lock(name)).cloned().collect()),
        }
    }

    /// For drafts of what commands would change.
    pub fn to_draft(&self) -> Result<CatalogFiles, BadLock> {
        CatalogFiles::with_lock(self.files.iter().cloned())
    }

    /// As it is stored and shown: an object with the text of each file.
    pub fn to_json(&self) -> Value {
        Value::Object(self.files.iter().map(|(name, text)| (name.clone(), json!(text))).collect())
    }

    /// What was stored.
    pub fn stored(text: &str, version: i64) -> Option<CatalogText> {
        let files: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
        Some(CatalogText { version: Some(version), ..CatalogText::new(files.into_iter().collect()) })
    }

    /// Files that somebody sent, laid over others: `null` takes one away. An error is what is wrong
    /// with them.
    pub fn sent(over: Option<&CatalogText>, given: &Map<String, Value>) -> Result<CatalogText, String> {
        let mut files: BTreeMap<String, String> =
            over.map(|over| over.files.iter().cloned().collect()).unwrap_or_default();
        for (name, text) in given {
            if !CatalogText::is_name(name) {
                let shown: String = name.chars().take(64).collect();
                return Err(format!("`{shown}` is no name of a file: such as models.toml or social/weibo.toml"));
            }
            match text {
                Value::String(text) => files.insert(name.clone(), text.clone()),
                Value::Null if over.is_some() => files.remove(name),
                _ => return Err(format!("`{name}` is not a text")),
            };
        }
        let bytes: usize = files.iter().map(|(name, text)| name.len() + text.len()).sum();
        if files.len() > MOST_FILES || bytes > MOST_BYTES {
            return Err(format!("there are more than {MOST_FILES} files or {MOST_BYTES} bytes"));
        }
        Ok(CatalogText::new(files.into_iter().collect()))
    }

    /// A file in the folder, or in a folder in it, as the catalog is read.
    pub fn is_name(name: &str) -> bool {
        let part = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        let parts = || name.split('/');
        name.len() <= LONGEST_NAME && name.ends_with(".toml") && parts().count() <= 2 && parts().all(part)
    }

    /// How files differ from those of another one: each name, and what happened to it.
    pub fn files_against<'a>(&'a self, old: &'a CatalogText) -> Vec<(&'a str, &'static str)> {
        let of = |text: &'a CatalogText| -> BTreeMap<&'a str, &'a str> {
            text.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
        };
        let (olds, news) = (of(old), of(self));
        let mut all: Vec<(&str, &'static str)> = Vec::new();
        all.extend(olds.keys().filter(|name| !news.contains_key(*name)).map(|name| (*name, "removed")));
        for (name, text) in &news {
            match olds.get(name) {
                None => all.push((name, "added")),
                Some(before) if before != text => all.push((name, "changed")),
                Some(_) => {}
            }
        }
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(over: Option<&CatalogText>, files: Value) -> Result<CatalogText, String> {
        CatalogText::sent(over, files.as_object().expect("an object"))
    }

    #[test]
    fn the_hash_is_of_names_and_texts_and_of_nothing_else() {
        let one = sent(None, json!({ "b.toml": "2", "a.toml": "1" })).expect("files");
        let here = CatalogText::of_folder(
            Path::new("/x"),
            &[("/x/a.toml".to_owned(), "1".to_owned()), ("/x/b.toml".to_owned(), "2".to_owned())],
            None,
        );
        assert_eq!((one.hash.len(), &one.hash), (64, &here.hash));
        assert_eq!(CatalogText::stored(&one.to_json().to_string(), 7).map(|text| text.hash), Some(one.hash.clone()));
        // What stands in one file does not run over into the next.
        let other = sent(None, json!({ "b.toml": "", "a.toml": "12" })).expect("files");
        assert_ne!(one.hash, other.hash);
    }

    #[test]
    fn the_lock_is_one_of_the_files_and_no_part_of_the_catalog() {
        let files = [("/x/a.toml".to_owned(), "1".to_owned())];
        let bare = CatalogText::of_folder(Path::new("/x"), &files, None);
        let locked = CatalogText::of_folder(Path::new("/x"), &files, Some("# nothing yet".to_owned()));
        assert_ne!(bare.hash, locked.hash, "it is published with the rest");
        assert_eq!(locked.catalog(), bare.catalog());
        assert_eq!(locked.files_against(&bare), [(LOCK_FILE, "added")]);
        let sent = sent(Some(&bare), json!({ LOCK_FILE: "# nothing yet" })).expect("files");
        assert_eq!(sent.hash, locked.hash);
    }

    #[test]
    fn files_are_laid_over_others_and_names_stay_inside() {
        let one = sent(None, json!({ "a.toml": "1", "b/c.toml": "2" })).expect("files");
        let two = sent(Some(&one), json!({ "a.toml": null, "d.toml": "3" })).expect("files");
        assert_eq!(two.files_against(&one), [("a.toml", "removed"), ("d.toml", "added")]);
        for bad in ["../a.toml", "/a.toml", "a.txt", ".a.toml", "a/b/c.toml", "a\\b.toml", "", "a//b.toml", "é.toml"] {
            assert!(sent(None, json!({ bad: "" })).is_err(), "{bad}");
        }
        assert!(sent(None, json!({ "a.toml": null })).is_err(), "there is nothing to take away");
        assert!(sent(None, json!({ "a.toml": "x".repeat(MOST_BYTES) })).is_err());
    }
}
