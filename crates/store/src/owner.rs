//! Whose data directory it is: one process at a time, one replica identity for as long as the
//! directory lives, and no other user of the machine. Usage rows, hashes of keys and the secrets
//! that sign receipts, links and webhooks lie in it, so every file is made for its owner alone, and
//! what an earlier version or a copy left open to others is closed at the start.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::StoreError;
use crate::world::Clocks;

/// How the files of a data directory begin.
const OURS: [&str; 11] = [
    "tollgate.db",
    "kept.",
    "journal.",
    "lock",
    "admin.sock",
    "secrets.key",
    "replica.id",
    "refused.jsonl",
    "pictures",
    "runs",
    "exports",
];
/// What group and others may do with a file.
const OTHERS: u32 = 0o077;
const STICKY: u32 = 0o1000;

/// A new data directory is for its owner's eyes only; one that exists becomes so, where nothing
/// else lies in it.
pub(crate) fn make_folder(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut alone = true;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(|name| OURS.iter().any(|start| name.starts_with(start)));
        if ours {
            close_to_others(&entry.path(), &entry.metadata()?);
        }
        alone &= ours;
    }
    let folder = std::fs::metadata(dir)?;
    if alone && folder.mode() & STICKY == 0 {
        close_to_others(dir, &folder);
    } else if folder.mode() & OTHERS != 0 {
        tracing::warn!(
            path = %dir.display(), mode = mode(&folder),
            "other users can look into the data folder; it holds other files too, so it is left as it is: chmod 700, or use a folder of its own"
        );
    }
    Ok(())
}

/// Takes from a file or folder what group and others may do with it, and says so.
fn close_to_others(path: &Path, found: &Metadata) {
    if found.mode() & OTHERS == 0 || found.is_symlink() {
        return;
    }
    let closed = Permissions::from_mode(found.mode() & 0o7700);
    let path_shown = path.display();
    match std::fs::set_permissions(path, closed) {
        Ok(()) => {
            tracing::warn!(path = %path_shown, mode = mode(found), "was open to other users of this machine and is not any more")
        }
        Err(error) => {
            tracing::error!(path = %path_shown, mode = mode(found), %error, "is open to other users of this machine: it holds secrets");
        }
    }
}

fn mode(found: &Metadata) -> String {
    format!("{:04o}", found.mode() & 0o7777)
}

/// Opens, or makes, a file that is for its owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a file that others will open, if it is not there: its companions get the same permissions.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    private().append(true).create(true).open(path).map(drop)
}

/// The lock goes with the process, however it ends.
pub(crate) fn own(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let file = private().write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Random, made once. A copy of the directory must not run beside the original.
pub(crate) fn replica_id(dir: &Path, world: &Clocks) -> Result<[u8; 16], StoreError> {
    let path = dir.join("replica.id");
    if let Ok(text) = std::fs::read_to_string(&path)
        && let Ok(id) = u128::from_str_radix(text.trim(), 16)
    {
        return Ok(id.to_be_bytes());
    }
    let mut id = [0u8; 16];
    (world.random)(&mut id);
    let fresh = dir.join("replica.id.new");
    let mut file = private().write(true).create(true).truncate(true).open(&fresh)?;
    writeln!(file, "{:032x}", u128::from_be_bytes(id))?;
    file.sync_all()?;
    std::fs::rename(&fresh, &path)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").mode() & 0o777
    }

    fn open(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    fn what_was_open_to_others_is_closed() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().join("data");
        make_folder(&dir).expect("made");
        assert_eq!(mode_of(&dir), 0o700);
        for name in ["tollgate.db", "tollgate.db-wal", "journal.0", "lock", "secrets.key"] {
            std::fs::write(dir.join(name), "x").expect("written");
            open(&dir.join(name), 0o644);
        }
        open(&dir, 0o755);
        make_folder(&dir).expect("there");
        for entry in std::fs::read_dir(&dir).expect("a folder") {
            assert_eq!(mode_of(&entry.expect("an entry").path()), 0o600);
        }
        assert_eq!(mode_of(&dir), 0o700);
    }

    /// Somebody may have put it into a folder of other things: those are none of our business.
    #[test]
    fn a_folder_with_other_things_in_it_is_left_as_it_is() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["notes.txt", "tollgate.db"] {
            std::fs::write(dir.path().join(name), "x").expect("written");
            open(&dir.path().join(name), 0o644);
        }
        open(dir.path(), 0o755);
        make_folder(dir.path()).expect("there");
        let modes = ["", "notes.txt", "tollgate.db"].map(|name| mode_of(&dir.path().join(name)));
        assert_eq!(modes, [0o755, 0o644, 0o600]);
    }
}
