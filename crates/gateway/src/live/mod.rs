//! Live events: what customers and operators see happen while they watch (decision 37).
//!
//! Nothing is written down for it, and no call knows of it. A worker reads on from where it was,
//! once a second and once for all who watch the same account, and only while somebody does. So what
//! another replica did is seen like our own, and a reader who comes back goes on where it was.
//!
//! What a feed has not delivered is a ring of fixed length that all its readers share: whoever is
//! too slow loses its place in it and is told to read again.

mod account;
mod event;
mod house;
mod places;

pub use account::WatchedAccount;
pub use event::{LiveEvent, LiveMark, ended, opened, reset};
pub use house::{HouseNow, HouseWatched, PausedPair};
pub use places::{LiveAddress, LiveSlot, Watcher};

use crate::live_meter::LiveMeter;
use crate::settings::LiveSettings;
use places::LivePlaces;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, broadcast};
use tollgate_store::AccountId;

/// Events that a feed holds for readers who have not taken them yet.
const RING: usize = 512;

/// What is going on in one account, or in the house, for all who watch it.
pub struct LiveFeed<T> {
    sender: broadcast::Sender<Arc<LiveEvent>>,
    /// How it was when it was last looked at; nothing before the first look.
    pub seen: tokio::sync::Mutex<Option<T>>,
}

impl<T> LiveFeed<T> {
    fn new() -> LiveFeed<T> {
        LiveFeed { sender: broadcast::Sender::new(RING), seen: tokio::sync::Mutex::default() }
    }

    pub fn listen(&self) -> broadcast::Receiver<Arc<LiveEvent>> {
        self.sender.subscribe()
    }

    /// Nobody may be there to hear it.
    pub fn publish(&self, event: LiveEvent) {
        let _ = self.sender.send(Arc::new(event));
    }
}

pub type AccountFeed = LiveFeed<WatchedAccount>;
pub type HouseFeed = LiveFeed<HouseWatched>;

pub struct LiveDesk {
    pub settings: LiveSettings,
    pub meter: LiveMeter,
    pub places: Arc<LivePlaces>,
    /// Each lives as long as somebody watches it.
    accounts: Mutex<HashMap<AccountId, Weak<AccountFeed>>>,
    house: Mutex<Weak<HouseFeed>>,
    bell: Notify,
}

impl LiveDesk {
    pub fn new(settings: LiveSettings, meter: LiveMeter) -> LiveDesk {
        let places = Arc::new(LivePlaces::new(&settings, &meter));
        let (accounts, house) = (Mutex::default(), Mutex::default());
        LiveDesk { settings, meter, places, accounts, house, bell: Notify::new() }
    }

    /// The feed of an account, which the first who asks for it makes.
    pub fn account(&self, account: AccountId) -> Arc<AccountFeed> {
        let mut feeds = lock(&self.accounts);
        if let Some(feed) = feeds.get(&account).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(LiveFeed::new());
        feeds.insert(account, Arc::downgrade(&feed));
        self.bell.notify_one();
        feed
    }

    pub fn house(&self) -> Arc<HouseFeed> {
        let mut slot = lock(&self.house);
        if let Some(feed) = slot.upgrade() {
            return feed;
        }
        let feed = Arc::new(LiveFeed::new());
        *slot = Arc::downgrade(&feed);
        self.bell.notify_one();
        feed
    }

    /// All accounts that somebody watches.
    pub fn watched(&self) -> Vec<(AccountId, Arc<AccountFeed>)> {
        let mut feeds = lock(&self.accounts);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        feeds.iter().filter_map(|(account, feed)| Some((*account, feed.upgrade()?))).collect()
    }

    pub fn watched_house(&self) -> Option<Arc<HouseFeed>> {
        lock(&self.house).upgrade()
    }

    /// Waits until somebody watches.
    pub async fn somebody(&self) {
        while self.watched_house().is_none() && self.watched().is_empty() {
            self.bell.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
