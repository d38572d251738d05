//! What publishing needs: somebody who reads a candidate as it would be served, a turn to do so,
//! and a bell for whoever takes over what was published.

use super::{CatalogText, Serving};
use crate::world::Millis;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};
use tollgate_catalog::Mistake;

/// Candidates that are read at a time: each takes as much memory as what is served.
const AT_ONCE: usize = 2;

/// A candidate that could be served.
pub struct CheckedCatalog {
    pub serving: Serving,
    /// What is no mistake, but hardly meant.
    pub warnings: Vec<String>,
}

/// Reads a catalog with the providers and settings that are there.
pub trait CatalogReader: Send + Sync {
    /// Takes as long as reading the configuration does: not on a thread that serves calls.
    fn read_candidate(&self, text: &CatalogText, before: &Serving, now: Millis)
    -> Result<CheckedCatalog, Vec<Mistake>>;
}

pub struct Publishing {
    /// Nobody, where the configuration did not come from files.
    pub reader: OnceLock<Arc<dyn CatalogReader>>,
    pub turns: Semaphore,
    bell: Notify,
}

impl Default for Publishing {
    fn default() -> Publishing {
        Publishing { reader: OnceLock::new(), turns: Semaphore::new(AT_ONCE), bell: Notify::new() }
    }
}

impl Publishing {
    /// Something was published.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}
