//! Prices that calls were held at, by their hash, for whoever has a receipt. Anybody may ask, so a
//! price that was read is remembered (it never changes), and few questions reach the database at a
//! time.

use crate::refusal::Refusal;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;
use tollgate_store::Store;
use tollgate_wire::error::Code;

/// Prices that are remembered; beyond, all are forgotten and read again.
const MAX_CACHED: usize = 256;
/// Questions to the database at a time.
const AT_ONCE: usize = 4;

pub struct PriceVersions {
    known: Mutex<HashMap<[u8; 16], Bytes>>,
    asking: Semaphore,
}

impl Default for PriceVersions {
    fn default() -> Self {
        Self { known: Mutex::default(), asking: Semaphore::new(AT_ONCE) }
    }
}

impl PriceVersions {
    /// `None`: no call was ever held at it.
    pub async fn find(&self, store: &Store, id: [u8; 16]) -> Result<Option<Bytes>, Refusal> {
        if let Some(price) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Some(price.clone()));
        }
        let Ok(_turn) = self.asking.try_acquire() else {
            return Err(Refusal::new(Code::Overloaded, "Too many prices are being looked up at the moment.").after(1));
        };
        let Some(price) = store.price_version(id).await?.map(Bytes::from) else { return Ok(None) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert(id, price.clone());
        Ok(Some(price))
    }
}
