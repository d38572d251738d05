//! A disk that is full, for places where a small one cannot be mounted: commits into the named data
//! directory fail as they would. And one whose journal cannot be synced.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

static FULL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static UNSYNCED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From now on no sync of the journal in this data directory comes to its end.
pub fn break_syncs(data_dir: &Path) {
    UNSYNCED.lock().unwrap_or_else(|e| e.into_inner()).push(data_dir.to_owned());
}

/// It can be synced again.
pub fn mend_syncs(data_dir: &Path) {
    UNSYNCED.lock().unwrap_or_else(|e| e.into_inner()).retain(|dir| dir != data_dir);
}

pub fn syncs_are_broken(data_dir: &Path) -> bool {
    UNSYNCED.lock().unwrap_or_else(|e| e.into_inner()).iter().any(|dir| dir == data_dir)
}

/// From now on the disk of this data directory is full.
pub fn fill_disk(data_dir: &Path) {
    FULL.lock().unwrap_or_else(|e| e.into_inner()).push(data_dir.to_owned());
}

/// The disk of this data directory has space again.
pub fn free_disk(data_dir: &Path) {
    FULL.lock().unwrap_or_else(|e| e.into_inner()).retain(|dir| dir != data_dir);
}

/// What SQLite says to a commit that finds no space. `file` lies in the data directory.
pub fn disk_is_full(file: &Path) -> Result<(), rusqlite::Error> {
    let full = FULL.lock().unwrap_or_else(|e| e.into_inner());
    if full.iter().any(|dir| file.parent() == Some(dir)) {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        return Err(rusqlite::Error::SqliteFailure(code, Some("database or disk is full (on purpose)".into())));
    }
    Ok(())
}
