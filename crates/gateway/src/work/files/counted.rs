//! Files with room for so many bytes of each account and of all together. Names say whose a file
//! is, so what is taken is counted again after a start, and what other processes put there counts.

use super::{FileStore, SweptFiles, Uncopied};
use crate::door::spool::has_room;
use crate::work::spooled_answer;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;
use tollgate_upstream::SpooledFile;

/// How many bytes there may be.
#[derive(Clone, Copy, Debug)]
pub struct FileRoom {
    pub account_bytes: u64,
    pub total_bytes: u64,
    /// The disk must have so much left beside it.
    pub disk_reserve: u64,
}

#[derive(Debug)]
pub struct CountedFiles {
    pub files: FileStore,
    room: FileRoom,
    /// Whose a file of this name is.
    owner_of: fn(&str) -> Option<&str>,
    taken: Mutex<Taken>,
    /// What lay there at the start is counted before anything is added.
    counted: OnceCell<()>,
}

/// Bytes that are taken.
#[derive(Debug, Default)]
struct Taken {
    total: u64,
    owners: HashMap<String, u64>,
    /// What was put there since the last count began: whether all of it is there by now.
    recent: HashMap<String, (u64, bool)>,
}

impl Taken {
    fn add(&mut self, owner: &str, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        *self.owners.entry(owner.to_owned()).or_default() += bytes;
    }
}

/// Why a file is not there.
#[derive(Debug)]
pub enum NotStored {
    /// There is no room for it, for this account or for anybody.
    Full,
    Trouble(Uncopied),
}

impl CountedFiles {
    pub fn new(files: FileStore, room: FileRoom, owner_of: fn(&str) -> Option<&str>) -> CountedFiles {
        CountedFiles { files, room, owner_of, taken: Mutex::default(), counted: OnceCell::new() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for anything more of this owner.
    pub async fn has_room(&self, owner: &str, now_ms: i64) -> bool {
        self.counted.get_or_init(async || drop(self.sweep(now_ms).await)).await;
        if self.files.folder().is_some_and(|folder| !has_room(folder, self.room.disk_reserve, 1)) {
            return false;
        }
        let taken = self.taken();
        let own = taken.owners.get(owner).copied().unwrap_or(0);
        own < self.room.account_bytes && taken.total < self.room.total_bytes
    }

    /// Puts a file there under a name that says whose it is.
    pub async fn put(
        &self,
        name: &str,
        file: SpooledFile,
        now_ms: i64,
        cut: impl Future<Output = Uncopied>,
    ) -> Result<(), NotStored> {
        self.counted.get_or_init(async || drop(self.sweep(now_ms).await)).await;
        let (owner, bytes) = ((self.owner_of)(name).unwrap_or_default(), file.length());
        if self.files.folder().is_some_and(|folder| !has_room(folder, self.room.disk_reserve, bytes)) {
            return Err(NotStored::Full);
        }
        self.take(owner, name, bytes)?;
        let pieces = Box::pin(spooled_answer::pieces(file));
        let put = self.files.put(name, pieces, cut).await;
        let mut taken = self.taken();
        match put {
            Ok(()) => {
                if let Some((_, done)) = taken.recent.get_mut(name) {
                    *done = true;
                }
                Ok(())
            }
            Err(why) => {
                taken.recent.remove(name);
                taken.total = taken.total.saturating_sub(bytes);
                if let Some(own) = taken.owners.get_mut(owner) {
                    *own = own.saturating_sub(bytes);
                }
                Err(NotStored::Trouble(why))
            }
        }
    }

    /// Takes room, if there is some.
    fn take(&self, owner: &str, name: &str, bytes: u64) -> Result<(), NotStored> {
        let mut taken = self.taken();
        let own = taken.owners.get(owner).copied().unwrap_or(0);
        let fits = |used: u64, most: u64| used.checked_add(bytes).is_some_and(|all| all <= most);
        if !fits(own, self.room.account_bytes) || !fits(taken.total, self.room.total_bytes) {
            return Err(NotStored::Full);
        }
        taken.add(owner, bytes);
        taken.recent.insert(name.to_owned(), (bytes, false));
        Ok(())
    }

    /// Takes away what is past its time, and counts what is left: other processes put files there
    /// too.
    pub async fn sweep(&self, now_ms: i64) -> SweptFiles {
        self.taken().recent.retain(|_, (_, done)| !*done);
        let mut left: HashMap<String, u64> = HashMap::new();
        let swept = self
            .files
            .sweep(now_ms, &mut |name, bytes| {
                let whole = name.split('#').next().unwrap_or(name);
                // What is being put there counts once, by its name.
                if self.taken().recent.contains_key(whole) {
                    return;
                }
                if let Some(owner) = (self.owner_of)(whole) {
                    *left.entry(owner.to_owned()).or_default() += bytes;
                }
            })
            .await;
        let mut taken = self.taken();
        let mut counted = Taken { recent: std::mem::take(&mut taken.recent), ..Taken::default() };
        left.iter().for_each(|(owner, bytes)| counted.add(owner, *bytes));
        let recent: Vec<(String, u64)> = counted
            .recent
            .iter()
            .filter_map(|(name, (bytes, _))| Some(((self.owner_of)(name)?.to_owned(), *bytes)))
            .collect();
        recent.iter().for_each(|(owner, bytes)| counted.add(owner, *bytes));
        *taken = counted;
        swept
    }
}
