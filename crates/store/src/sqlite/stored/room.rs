//! Room on the disk: how much may be stored in all, what the disk must have left for the ledger
//! beside it, and a reserve that makes erasing possible when the disk is full. What was erased is
//! given back to the disk, not only to the file.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

#[cfg(feature = "testing")]
use super::open::FILE;
use crate::world::Options;

/// Enough for the log of erasing the largest object, and of giving its pages back.
const RESERVE: usize = 4 << 20;
/// Free pages of 4 KiB that the file keeps for what comes next.
const SPARE_PAGES: i64 = 1_024;
/// Pages given back at once; each may be moved, and written to the log for it.
const AT_ONCE: i64 = 512;
/// Rounds of that, so that nobody waits long: 64 MiB.
const ROUNDS: usize = 32;

/// What the disk has left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Free {
    Enough,
    Little,
}

pub(super) struct DiskRoom {
    dir: PathBuf,
    most: u64,
    /// Bytes of the disk that nothing is stored in.
    left_alone: u64,
    /// Something was erased since the file was last tidied.
    erased: AtomicBool,
    /// The disk was full, and may be still.
    tight: AtomicBool,
}

impl DiskRoom {
    pub fn new(dir: &Path, options: &Options) -> DiskRoom {
        DiskRoom {
            dir: dir.to_owned(),
            most: options.stored_bytes,
            left_alone: options.disk_reserve,
            erased: AtomicBool::new(false),
            tight: AtomicBool::new(false),
        }
    }

    #[cfg(feature = "testing")]
    pub fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// All that may be stored.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// What the disk has left beside so many bytes that are to be stored: they are written to the
    /// log, and then to the file. Makes the reserve, where there is none.
    pub fn look(&self, bytes: u64) -> Free {
        if let Err(error) = self.set_aside() {
            tracing::warn!(%error, "no reserve for erasing on a full disk");
            return Free::Little;
        }
        match rustix::fs::statvfs(&self.dir) {
            Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < self.left_alone.saturating_add(2 * bytes) => {
                tracing::warn!("the disk is nearly full: nothing more is stored for customers");
                Free::Little
            }
            Ok(_) => Free::Enough,
            Err(error) => {
                tracing::warn!(%error, "the disk does not say how much is free");
                Free::Enough
            }
        }
    }

    fn reserve(&self) -> PathBuf {
        self.dir.join("kept.reserve")
    }

    fn set_aside(&self) -> std::io::Result<()> {
        let path = self.reserve();
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == RESERVE as u64) {
            return Ok(());
        }
        let mut file = File::create(&path)?;
        // Written out: a file with holes would reserve nothing.
        let block = vec![0u8; 64 << 10];
        let filled = (0..RESERVE / block.len()).try_for_each(|_| file.write_all(&block)).and_then(|()| file.sync_all());
        if filled.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        filled
    }

    /// The disk is full: the reserve makes place for what the log still has for the file, and then
    /// for the log of an erasure.
    pub fn give_way(&self, conn: &Connection) {
        self.tight.store(true, Ordering::Relaxed);
        if let Err(error) = std::fs::remove_file(self.reserve()) {
            tracing::warn!(%error, "there was no reserve to erase with");
        }
        if let Err(error) = conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "cannot empty the log of what customers store");
        }
    }

    pub fn erased(&self, any: bool) {
        if any {
            self.erased.store(true, Ordering::Relaxed);
        }
    }

    /// Gives the pages of what was erased back to the disk, where they are many or the disk is
    /// full.
    pub fn tidy(&self, conn: &Connection) {
        if !self.erased.swap(false, Ordering::Relaxed) {
            return;
        }
        let tight = self.tight.swap(false, Ordering::Relaxed);
        let spare = if tight { 0 } else { SPARE_PAGES };
        if let Err(error) = give_back(conn, spare) {
            tracing::warn!(%error, "cannot give erased pages back to the disk");
            self.erased.store(true, Ordering::Relaxed);
        }
        if tight && self.set_aside().is_err() {
            self.tight.store(true, Ordering::Relaxed);
        }
    }
}

fn give_back(conn: &Connection, spare: i64) -> rusqlite::Result<()> {
    for _ in 0..ROUNDS {
        let free: i64 = conn.query_row("PRAGMA freelist_count", [], |r| r.get(0))?;
        if free <= spare {
            break;
        }
        // Each page is a step of the statement.
        let mut pages = conn.prepare(&format!("PRAGMA incremental_vacuum({})", (free - spare).min(AT_ONCE)))?;
        let mut rows = pages.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        drop(pages);
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(())
}
