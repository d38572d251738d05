//! All that a call needs, as values: settings, clock, store, key book, client, metrics, and the one snapshot
//! of catalog and providers that is being served.

use crate::bodies::Bodies;
use crate::caller::Caller;
use crate::keys::KeyBook;
use crate::metrics::Metrics;
use crate::pauses::Pauses;
use crate::price_list::PriceList;
use crate::published::Published;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::social::Desk;
use crate::video::{Offers, Shelf};
use crate::workers::poller::Board;
use crate::workers::settler::Abandoned;
use crate::world::World;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_catalog::{Group, Model, Snapshot};
use tollgate_store::{CallId, Store, ids};
use tollgate_upstream::{Client, Provider};

/// What is on sale and where it comes from. One value, exchanged as a whole: a call keeps the one it began with.
pub struct Serving {
    pub catalog: Snapshot,
    pub providers: HashMap<String, Arc<Provider>>,
    /// By which rules the models that make videos go.
    pub offers: Offers,
}

impl Serving {
    /// The group a model is sold to this caller in: the first of `auto_groups` that the account is in and the model is
    /// offered to. Every account is in the default group.
    pub fn group_of<'a>(&'a self, caller: &'a Caller, model: &Model) -> Option<&'a str> {
        model.group_for(self.tried(caller))
    }

    /// The groups of this caller in the order they are tried, each once.
    pub fn groups_of<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a str> {
        let mut seen = Vec::new();
        self.tried(caller).filter(move |group| {
            let first = !seen.contains(group);
            seen.push(*group);
            first
        })
    }

    fn tried<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a str> {
        let own = || caller.account.groups.iter().map(String::as_str).chain([Group::DEFAULT]);
        let ordered =
            self.catalog.auto_groups.iter().map(String::as_str).filter(move |group| own().any(|one| one == *group));
        ordered.chain(own())
    }
}

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
    pub social: Desk,
    /// Open video tasks.
    pub tasks: Board,
    pub price_list: PriceList,
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
