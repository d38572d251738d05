//! A disk that is full, for places where a small one cannot be mounted: commits into the named data directory fail as they would.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

static FULL: Mutex<Option<PathBuf>> = Mutex::new(None);

/// From now on the disk of this data directory is full; `None`: it has space again.
pub fn fill_disk(data_dir: Option<&Path>) {
    *FULL.lock().unwrap_or_else(|e| e.into_inner()) = data_dir.map(Path::to_owned);
}

/// What SQLite says to a commit that finds no space. `file` lies in the data directory.
pub fn disk_is_full(file: &Path) -> Result<(), rusqlite::Error> {
    let full = FULL.lock().unwrap_or_else(|e| e.into_inner());
    match full.as_deref() {
        Some(dir) if file.parent() == Some(dir) => {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
            Err(rusqlite::Error::SqliteFailure(code, Some("database or disk is full (on purpose)".into())))
        }
        _ => Ok(()),
    }
}
