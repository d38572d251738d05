//! The folder of a catalog: its files, the lock beside them, and changes that are whole or not at
//! all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tollgate_catalog::import::{ImportLock, LOCK_FILE};
use tollgate_catalog::{Snapshot, load};
use tollgate_gateway::settings::catalog_files;

use crate::serve::listed;

pub struct Folder {
    dir: PathBuf,
    files: Vec<(String, String)>,
    pub lock: ImportLock,
}

/// Files of the folder with their new text; `None`: the file goes.
pub type Edits = Vec<(String, Option<String>)>;

impl Folder {
    pub fn open(dir: &Path) -> Result<Folder, String> {
        let trouble = |error: std::io::Error| format!("{}: {error}", dir.display());
        let files = if dir.exists() { catalog_files(dir).map_err(trouble)? } else { Vec::new() };
        let lock = match std::fs::read_to_string(dir.join(LOCK_FILE)) {
            Ok(text) => ImportLock::read(&text).map_err(|bad| bad.to_string())?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => ImportLock::default(),
            Err(error) => return Err(format!("{}: {error}", dir.join(LOCK_FILE).display())),
        };
        Ok(Folder { dir: dir.to_owned(), files, lock })
    }

    fn key(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// All files: where they are, and their text.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    /// What the folder calls the file at this place.
    pub fn name_of(&self, path: &str) -> String {
        Path::new(path).strip_prefix(&self.dir).unwrap_or(Path::new(path)).display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The text of a file; empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        let key = self.key(name);
        self.files.iter().find(|(file, _)| *file == key).map_or("", |(_, text)| text)
    }

    pub fn has(&self, name: &str) -> bool {
        let key = self.key(name);
        self.files.iter().any(|(file, _)| *file == key)
    }

    /// The models that all files but this one sell.
    pub fn taken(&self, name: &str) -> Result<BTreeSet<String>, String> {
        let others = self.after(&vec![(name.to_owned(), None)]);
        Ok(load(&others).map_err(|mistakes| listed(&mistakes))?.models.into_keys().collect())
    }

    /// The files as they would be.
    pub fn after(&self, edits: &Edits) -> Vec<(String, String)> {
        let edited: BTreeSet<String> = edits.iter().map(|(name, _)| self.key(name)).collect();
        let stay = self.files.iter().filter(|(name, _)| !edited.contains(name)).cloned();
        let come = edits.iter().filter_map(|(name, text)| Some((self.key(name), text.clone()?)));
        let mut files: Vec<(String, String)> = stay.chain(come).collect();
        files.sort();
        files
    }

    /// The catalog as it is and as it would be; the second must be right.
    pub fn both(&self, edits: &Edits) -> Result<(Option<Snapshot>, Snapshot), String> {
        let after = load(&self.after(edits)).map_err(|mistakes| listed(&mistakes))?;
        Ok((load(&self.files).ok(), after))
    }

    /// Writes the edits and the lock, each file by renaming.
    pub fn write(&self, edits: &Edits, lock: &ImportLock) -> Result<(), String> {
        let trouble = |error: std::io::Error| format!("{}: {error}", self.dir.display());
        std::fs::create_dir_all(&self.dir).map_err(trouble)?;
        for (name, text) in edits {
            put(&self.dir.join(name), text.as_deref())?;
        }
        put(&self.dir.join(LOCK_FILE), (!lock.files.is_empty()).then(|| lock.write()).as_deref())
    }

    /// Puts things back as they were when the folder was opened.
    pub fn restore(&self, edits: &Edits) -> Result<(), String> {
        let before: Edits =
            edits.iter().map(|(name, _)| (name.clone(), self.has(name).then(|| self.text(name).to_owned()))).collect();
        self.write(&before, &self.lock)
    }
}

fn put(path: &Path, text: Option<&str>) -> Result<(), String> {
    let trouble = |error: std::io::Error| format!("{}: {error}", path.display());
    match text {
        Some(text) => {
            let beside = path.with_extension("toml.new");
            std::fs::write(&beside, text).map_err(trouble)?;
            std::fs::rename(&beside, path).map_err(trouble)
        }
        None => match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(trouble(error)),
            _ => Ok(()),
        },
    }
}
