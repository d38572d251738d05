//! The folder of a catalog: its files, the lock beside them, and changes that are whole or not at
//! all.

use crate::real;
use crate::serve::listed;
use std::path::{Path, PathBuf};
use tollgate_catalog::import::{CatalogDraft, CatalogEdits, CatalogFiles, ImportLock, LOCK_FILE};
use tollgate_gateway::settings::catalog_files;

pub struct Folder {
    dir: PathBuf,
    pub files: CatalogFiles,
}

impl Folder {
    pub fn open(dir: &Path) -> Result<Folder, String> {
        let trouble = |error: std::io::Error| format!("{}: {error}", dir.display());
        let files = if dir.exists() { catalog_files(dir).map_err(trouble)? } else { Vec::new() };
        let lock = match std::fs::read_to_string(dir.join(LOCK_FILE)) {
            Ok(text) => ImportLock::read(&text).map_err(|bad| bad.to_string())?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => ImportLock::default(),
            Err(error) => return Err(format!("{}: {error}", dir.join(LOCK_FILE).display())),
        };
        let name = |path: &str| Path::new(path).strip_prefix(dir).unwrap_or(Path::new(path)).display().to_string();
        let files = files.into_iter().map(|(path, text)| (name(&path), text));
        Ok(Folder { dir: dir.to_owned(), files: CatalogFiles::new(dir.join("").display().to_string(), files, lock) })
    }

    /// Writes a draft, if there is something to write. With a configuration: what it could not load
    /// afterwards is undone.
    pub fn carry_out(&self, draft: &CatalogDraft, config: Option<&Path>) -> Result<(), String> {
        if draft.edits.is_empty() && draft.lock == self.files.lock {
            return Ok(());
        }
        self.write(&draft.edits, &draft.lock)?;
        config.map_or(Ok(()), |config| self.still_loads(config, &draft.edits))
    }

    /// A mistake in what was written undoes it; any other is somebody else's.
    fn still_loads(&self, config: &Path, edits: &CatalogEdits) -> Result<(), String> {
        let Err(mistakes) = real::source(config).load() else { return Ok(()) };
        let names: Vec<String> = edits.iter().map(|(name, _)| self.files.place(name)).collect();
        let ours: Vec<_> = mistakes
            .into_iter()
            .filter(|mistake| names.iter().any(|name| mistake.to_string().starts_with(name)))
            .collect();
        if ours.is_empty() {
            return Ok(());
        }
        let before = |name: &String| self.files.has(name).then(|| self.files.text(name).to_owned());
        let before: CatalogEdits = edits.iter().map(|(name, _)| (name.clone(), before(name))).collect();
        self.write(&before, &self.files.lock)?;
        Err(format!("nothing was changed, because the configuration would not load:\n{}", listed(&ours)))
    }

    /// Writes the edits and the lock, each file by renaming.
    fn write(&self, edits: &CatalogEdits, lock: &ImportLock) -> Result<(), String> {
        let trouble = |error: std::io::Error| format!("{}: {error}", self.dir.display());
        std::fs::create_dir_all(&self.dir).map_err(trouble)?;
        for (name, text) in edits {
            put(&self.dir.join(name), text.as_deref())?;
        }
        put(&self.dir.join(LOCK_FILE), lock.text().as_deref())
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
