//! All that a call needs, as values: settings, clock, store, key book, client, metrics, and the one snapshot
//! of catalog and providers that is being served.

use crate::door::bodies::Bodies;
use crate::metrics::Metrics;
use crate::published::Published;
use crate::routes::pauses::Pauses;
use crate::routes::switches::Switches;
use crate::sale::Serving;
use crate::sale::price_list::PriceList;
use crate::sale::price_versions::PriceVersions;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::who::keys::KeyBook;
use crate::work::social::Desk;
use crate::work::video::Shelf;
use crate::workers::poller::Board;
use crate::workers::settler::Abandoned;
use crate::world::World;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_store::{CallId, Store, ids};
use tollgate_upstream::Client;

pub struct App {
    pub settings: Settings,
    pub world: World,
    pub store: Store,
    pub keys: KeyBook,
    pub published: Published,
    pub client: Client,
    /// For addresses that providers and customers wrote down: public ones only.
    pub outside: Client,
    /// For pictures and documents that requests give by their address, and how many may be fetched at once.
    pub links: Client,
    pub fetches: Arc<Semaphore>,
    pub secrets: Secrets,
    /// Our own copies of finished videos, where the operator wants them.
    pub shelf: Option<Shelf>,
    pub serving: ArcSwap<Serving>,
    pub metrics: Metrics,
    /// Pairs of provider and model that do not report usage.
    pub pauses: Pauses,
    /// Models, cells and providers that are paused.
    pub switches: Switches,
    pub social: Desk,
    /// Open video tasks.
    pub tasks: Board,
    pub price_list: PriceList,
    pub price_versions: PriceVersions,
    pub ids: ids::Maker,
    /// Work that outlives a request (reading a left stream to its end) is tracked here and awaited at the stop.
    pub tracker: TaskTracker,
    /// Cancelled when the time for open streams is over: each ends with a proper error event.
    pub cut: CancellationToken,
    /// The same as a flag, for streams that look at it with every piece.
    pub cutting: AtomicBool,
    /// Cancelled at the beginning of a stop: new calls are refused.
    pub stopping: CancellationToken,
    /// Cancelled when the last call is closed: the regular rounds may end.
    pub ended: CancellationToken,
    pub running: AtomicUsize,
    /// Memory for the bodies of all requests in flight.
    pub bodies: Arc<Bodies>,
    /// Places for connections that have become WebSockets.
    pub sockets: Arc<Semaphore>,
    /// Where a call that was dropped in the middle reports: see `workers::settler`.
    pub abandoned: mpsc::UnboundedSender<Abandoned>,
}

impl App {
    /// The time for open calls is over.
    pub fn cut_calls(&self) {
        self.cutting.store(true, Ordering::Relaxed);
        self.cut.cancel();
    }

    pub fn new_call_id(&self) -> CallId {
        self.ids.call()
    }
}
