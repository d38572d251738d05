//! What publishing needs: somebody who reads a candidate as it would be served, a turn to do so,
//! and a bell for whoever takes over what was published. Beside it there is who tries a provider
//! out for operators: it needs the whole house, so it is put in from above.

use super::{CatalogText, Serving};
use crate::jobs::JobCounter;
use crate::world::Millis;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};
use tollgate_catalog::Mistake;
use tollgate_upstream::Ability;

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

/// What an operator wants tried of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTest {
    pub provider: String,
    /// Only this.
    pub only: Option<Ability>,
    /// The provider's name for a model, in the place of one from the catalog.
    pub model: Option<String>,
    /// What costs more than a word.
    pub media: bool,
    /// Send it; otherwise only what it would be is said.
    pub send: bool,
}

/// Tries a provider out: one cheap call for each thing that is sold of it.
pub trait ProviderTester: Send + Sync {
    /// Rows as `provider test` prints them. Whoever stops waiting stops it.
    fn test(
        &self,
        order: ProviderTest,
        serving: Arc<Serving>,
        progress: Arc<JobCounter>,
    ) -> BoxFuture<'static, Result<Vec<Value>, String>>;
}

pub struct Publishing {
    /// Nobody, where the configuration did not come from files.
    pub reader: OnceLock<Arc<dyn CatalogReader>>,
    /// Nobody, where nobody put one in.
    pub tester: OnceLock<Arc<dyn ProviderTester>>,
    pub turns: Semaphore,
    bell: Notify,
}

impl Default for Publishing {
    fn default() -> Publishing {
        Publishing {
            reader: OnceLock::new(),
            tester: OnceLock::new(),
            turns: Semaphore::new(AT_ONCE),
            bell: Notify::new(),
        }
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
