//! The key book: who is behind a key, without a database round trip for a key that was seen before.
//!
//! A key is looked up by the SHA-256 of its whole text. A worker re-reads what changed every second
//! (`refresh`), so a revoked key stops working within seconds on every replica. While the store
//! cannot be read, a known key goes on working for a minute; an unknown one gets 503.

use crate::who::caller::Caller;
use crate::world::{Millis, World};
use foldhash::HashMap;
use ring::digest::{SHA256, digest};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};
use tollgate_store::{Store, StoreError};

/// How long known keys are trusted while the store cannot be read.
const TRUSTED_WITHOUT_STORE: Millis = 60_000;
/// Each refresh looks back further than the last one reached: a change is written down a little
/// before it can be seen.
const OVERLAP: Millis = 15_000;
/// Unknown keys are remembered too, so that guessing does not become database load.
const MISS_CACHED: Millis = 5_000;
const MAX_MISSES: usize = 10_000;

pub type KeyHash = [u8; 32];

pub fn hash(key: &str) -> KeyHash {
    let mut hash = KeyHash::default();
    hash.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
    hash
}

#[derive(Default)]
pub struct KeyCache {
    known: RwLock<HashMap<KeyHash, Arc<Caller>>>,
    missing: RwLock<HashMap<KeyHash, Millis>>,
    /// When the store was last read in full up to date: by the store's clock, as it writes changes
    /// down, and by the clock that does not jump, for a wall clock that was set makes no key older.
    fresh_at: AtomicI64,
    read_at: AtomicI64,
}

/// What the book says about a key.
pub enum KeyLookup {
    Known(Arc<Caller>),
    Unknown,
    /// The store cannot be asked at the moment.
    CannotTell,
}

impl KeyCache {
    pub fn new(world: &World) -> KeyCache {
        let (fresh_at, read_at) = (AtomicI64::new(i64::MAX), AtomicI64::new(world.steady_ms()));
        KeyCache { fresh_at, read_at, ..KeyCache::default() }
    }

    pub async fn find(&self, store: &Store, key: &str, world: &World) -> KeyLookup {
        self.find_hash(store, hash(key), world).await
    }

    /// The same for a key whose text nobody has at hand.
    pub async fn find_hash(&self, store: &Store, hash: KeyHash, world: &World) -> KeyLookup {
        let now = world.steady_ms();
        let known = read(&self.known).get(&hash).cloned();
        match known {
            Some(_) if now - self.read_at.load(Ordering::Relaxed) > TRUSTED_WITHOUT_STORE => KeyLookup::CannotTell,
            Some(known) => KeyLookup::Known(known),
            None => self.ask_store(store, hash, now).await,
        }
    }

    async fn ask_store(&self, store: &Store, hash: KeyHash, now: Millis) -> KeyLookup {
        if read(&self.missing).get(&hash).is_some_and(|until| *until > now) {
            return KeyLookup::Unknown;
        }
        match store.key_by_hash(hash).await {
            Ok(Some(known)) => {
                let known = Arc::new(Caller::new(known));
                write(&self.known).insert(hash, known.clone());
                KeyLookup::Known(known)
            }
            Ok(None) => {
                let mut missing = write(&self.missing);
                if missing.len() >= MAX_MISSES {
                    missing.clear();
                }
                missing.insert(hash, now + MISS_CACHED);
                KeyLookup::Unknown
            }
            Err(_) => KeyLookup::CannotTell,
        }
    }

    /// What is known of a key by its hash; nothing for one that nobody has shown lately.
    pub fn known(&self, hash: &KeyHash) -> Option<Arc<Caller>> {
        read(&self.known).get(hash).cloned()
    }

    /// Reads a known key anew, for a decision that cannot wait for the next refresh.
    pub async fn read_again(&self, store: &Store, caller: &Caller) -> Result<Arc<Caller>, StoreError> {
        let hash = caller.key.hash;
        let found = store.key_by_hash(hash).await?.ok_or_else(|| StoreError::NotFound(caller.key.id.to_string()))?;
        if let Some(cap) = caller.cap() {
            return Ok(Arc::new(Caller::capped(found, Some(cap))));
        }
        let known = Arc::new(Caller::new(found));
        write(&self.known).insert(hash, known.clone());
        Ok(known)
    }

    /// Takes over what changed in the store since the last time: revocations, new limits, top-ups.
    pub async fn refresh(&self, store: &Store, world: &World) -> Result<(), StoreError> {
        let read_at = world.steady_ms();
        let changed = store.keys_changed_since(self.fresh_at.load(Ordering::Relaxed), OVERLAP).await?;
        if !changed.keys.is_empty() {
            let mut known = write(&self.known);
            let mut missing = write(&self.missing);
            for one in changed.keys {
                missing.remove(&one.key.hash);
                // Only keys in use are cached; the others are read when they are first seen.
                if let Some(slot) = known.get_mut(&one.key.hash) {
                    *slot = Arc::new(Caller::new(one));
                }
            }
        }
        self.fresh_at.store(changed.read_at, Ordering::Relaxed);
        self.read_at.store(read_at, Ordering::Relaxed);
        Ok(())
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
