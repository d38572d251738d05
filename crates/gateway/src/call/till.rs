//! The till: all that the life of a call needs, whatever is sold. What only one kind of work needs
//! is with that kind's desk.

use super::abandoned::Abandoned;
use super::task::Board;
use crate::metrics::Metrics;
use crate::routes::Routes;
use crate::sale::Serving;
use crate::settings::ServerLimits;
use crate::shutdown::Shutdown;
use crate::who::key_cache::KeyCache;
use crate::world::World;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tollgate_store::Store;
use tollgate_upstream::Client;

pub struct Till {
    pub(crate) limits: ServerLimits,
    pub world: World,
    pub store: Store,
    pub keys: KeyCache,
    /// For configured providers.
    pub(crate) client: Client,
    pub serving: ArcSwap<Serving>,
    pub metrics: Metrics,
    pub routes: Routes,
    /// Open tasks.
    pub(crate) tasks: Board,
    /// Work that outlives a request (reading a left stream to its end) is tracked here and awaited
    /// at the stop.
    pub(crate) tracker: TaskTracker,
    pub shutdown: Arc<Shutdown>,
    /// Calls between hold and close.
    pub running: AtomicUsize,
    /// Where a call that was dropped in the middle reports: see `workers::settler`.
    pub(crate) abandoned: mpsc::UnboundedSender<Abandoned>,
}
