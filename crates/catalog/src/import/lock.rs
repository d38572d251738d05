//! `import.lock.toml`: what was taken over from where and when, so that a later look can tell what
//! the vendor changed from what the operator changed.

use super::shipped::listed_faces;
use super::{Margin, inline};
use crate::Faces;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::{Table, Value};

/// Lies in the folder of the catalog, and is no part of it.
pub const LOCK_FILE: &str = "import.lock.toml";

/// What is known about every file that a command wrote, by the name of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportLock {
    pub files: BTreeMap<String, LockedFile>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockedFile {
    /// `shipped`, or the names of the sources in the order they were given.
    pub from: Vec<String>,
    /// SHA-256 of what was read.
    pub digest: String,
    pub day: String,
    /// Whose models they are.
    pub provider: String,
    /// The provider of the configuration that serves them.
    pub route: String,
    pub margin: Margin,
    pub models: BTreeMap<String, LockedModel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedModel {
    /// Digest of the page that was written: a page with another one was changed by hand.
    pub page: String,
    /// The list prices that were taken.
    pub list: Faces,
}

impl LockedModel {
    pub fn of(page: &str, list: Faces) -> LockedModel {
        LockedModel { page: digest_of(page.trim_end()), list }
    }

    pub fn wrote(&self, page: &str) -> bool {
        self.page == digest_of(page.trim_end())
    }
}

/// The digest as the lock writes it.
pub fn digest_of(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Why a lock cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLock(String);

impl std::fmt::Display for BadLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{LOCK_FILE}: {}", self.0)
    }
}

impl std::error::Error for BadLock {}

impl ImportLock {
    pub fn read(text: &str) -> Result<ImportLock, BadLock> {
        let whole: Table = text.parse().map_err(|error: toml::de::Error| BadLock(error.to_string()))?;
        let mut files = BTreeMap::new();
        for (name, value) in whole.get("file").and_then(Value::as_table).into_iter().flatten() {
            let read = locked_file(value).ok_or_else(|| BadLock(format!("the entry of {name} is not complete")))?;
            files.insert(name.clone(), read);
        }
        Ok(ImportLock { files })
    }

    /// As a file; `None` where there is nothing to remember.
    pub fn text(&self) -> Option<String> {
        (!self.files.is_empty()).then(|| self.write())
    }

    pub fn write(&self) -> String {
        let mut text = String::from(
            "# What `tollgate catalog` wrote, from where and when. It compares with this: do not edit it.\n",
        );
        for (name, file) in &self.files {
            let from: Vec<String> = file.from.iter().map(|one| inline::text(one)).collect();
            let _ = write!(
                text,
                "\n[file.{}]\nfrom = [{}]\ndigest = {}\nday = {}\nprovider = {}\nroute = {}\nmargin = {}\n",
                inline::text(name),
                from.join(", "),
                inline::text(&file.digest),
                file.day,
                inline::text(&file.provider),
                inline::text(&file.route),
                inline::text(&file.margin.factor().to_string()),
            );
            let _ = writeln!(text, "[file.{}.model]", inline::text(name));
            for (model, locked) in &file.models {
                let entries = [("page", inline::text(&locked.page)), ("list", inline::faces(&locked.list))];
                let _ = writeln!(text, "{} = {}", inline::text(model), inline::table(entries.into_iter()));
            }
        }
        text
    }
}

fn locked_file(value: &Value) -> Option<LockedFile> {
    let table = value.as_table()?;
    let text = |key: &str| table.get(key)?.as_str().map(str::to_owned);
    let mut models = BTreeMap::new();
    for (name, model) in table.get("model").and_then(Value::as_table).into_iter().flatten() {
        let page = model.get("page")?.as_str()?.to_owned();
        models.insert(name.clone(), LockedModel { page, list: listed_faces(model.get("list")).ok()? });
    }
    Some(LockedFile {
        from: table.get("from")?.as_array()?.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        digest: text("digest")?,
        day: table.get("day")?.to_string(),
        provider: text("provider")?,
        route: text("route")?,
        margin: Margin::of_factor(text("margin")?.parse().ok()?),
        models,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Face;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let list = Faces::NONE.with(Face::Input, 2_000_000).with(Face::WebSearch, 10_000);
        let file = LockedFile {
            from: vec!["litellm".to_owned(), "genai-prices".to_owned()],
            digest: digest_of("a source"),
            day: "2026-11-16".to_owned(),
            provider: "openai".to_owned(),
            route: "mine".to_owned(),
            margin: "12.5%".parse().expect("a margin"),
            models: BTreeMap::from([("a/b.c".to_owned(), LockedModel::of("[model.\"a/b.c\"]\n\n", list))]),
        };
        let lock = ImportLock { files: BTreeMap::from([("openai.toml".to_owned(), file)]) };
        assert_eq!(ImportLock::read(&lock.write()), Ok(lock.clone()), "{}", lock.write());
        let locked = &lock.files["openai.toml"].models["a/b.c"];
        assert!(locked.wrote("[model.\"a/b.c\"]") && !locked.wrote("[model.\"a/b.c\"]\nx = 1"));
    }

    #[test]
    fn a_lock_that_is_not_whole_is_refused() {
        for text in ["file = ", "[file.\"a.toml\"]\nfrom = [\"shipped\"]\n", "[file.\"a.toml\"]\nday = 1\n"] {
            assert!(ImportLock::read(text).is_err(), "{text}");
        }
        assert_eq!(ImportLock::read(""), Ok(ImportLock::default()));
    }
}
