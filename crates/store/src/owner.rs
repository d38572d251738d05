//! Whose data directory it is: one process at a time, and one replica identity for as long as the directory lives.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::error::StoreError;
use crate::world::World;

/// A new data directory is for its owner's eyes only: usage rows and hashes of keys lie in it.
pub(crate) fn make_folder(dir: &Path) -> Result<(), StoreError> {
    Ok(DirBuilder::new().recursive(true).mode(0o700).create(dir)?)
}

/// The lock goes with the process, however it ends.
pub(crate) fn own(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Random, made once. A copy of the directory must not run beside the original.
pub(crate) fn replica_id(dir: &Path, world: &World) -> Result<[u8; 16], StoreError> {
    let path = dir.join("replica.id");
    if let Ok(text) = std::fs::read_to_string(&path)
        && let Ok(id) = u128::from_str_radix(text.trim(), 16)
    {
        return Ok(id.to_be_bytes());
    }
    let mut id = [0u8; 16];
    (world.random)(&mut id);
    let fresh = dir.join("replica.id.new");
    std::fs::write(&fresh, format!("{:032x}\n", u128::from_be_bytes(id)))?;
    File::open(&fresh)?.sync_all()?;
    std::fs::rename(&fresh, &path)?;
    Ok(id)
}
