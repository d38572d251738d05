//! All that a call needs, as values: settings, clock, store, key book, client, metrics, and the one snapshot
//! of catalog and providers that is being served.

use crate::keys::KeyBook;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::world::World;
use crate::workers::settler::Abandoned;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_catalog::Snapshot;
use tollgate_store::{CallId, Store, ids};
use tollgate_upstream::{Client, Provider};

/// What is on sale and where it comes from. One value, exchanged as a whole: a call keeps the one it began with.
pub struct Serving {
    pub catalog: Snapshot,
    pub providers: HashMap<String, Arc<Provider>>,
}

pub struct App {
    pub settings: Settings,
    pub world: World,
    pub store: Store,
    pub keys: KeyBook,
    pub client: Client,
    pub serving: ArcSwap<Serving>,
    pub metrics: Metrics,
    pub ids: ids::Maker,
    /// Work that outlives a request (reading a left stream to its end) is tracked here and awaited at the stop.
    pub tracker: TaskTracker,
    /// Cancelled when the time for open streams is over: each ends with a proper error event.
    pub cut: CancellationToken,
    /// Cancelled at the beginning of a stop: new calls are refused.
    pub stopping: CancellationToken,
    pub running: AtomicUsize,
    /// Where a call that was dropped in the middle reports: see `workers::settler`.
    pub abandoned: mpsc::UnboundedSender<Abandoned>,
}

impl App {
    pub fn new_call_id(&self) -> CallId {
        self.ids.call()
    }
}
