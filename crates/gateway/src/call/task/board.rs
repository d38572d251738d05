//! What this replica knows of all open tasks.

use crate::settings::TaskSettings;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tollgate_store::OpenTasks;

/// Between two log lines about the same trouble of a provider.
const WARN_EVERY: Duration = Duration::from_secs(60);

pub struct Board {
    pub settings: TaskSettings,
    open: Mutex<Vec<OpenTasks>>,
    /// Looks under way, by provider.
    looks: Mutex<HashMap<String, usize>>,
    /// There is a place for another look.
    pub bell: Notify,
    /// When the operator was last warned of tasks that cannot be asked for, by provider.
    warned_at: Mutex<HashMap<String, Instant>>,
}

impl Board {
    pub fn new(settings: TaskSettings) -> Board {
        let (open, looks, warned_at) = (Mutex::default(), Mutex::default(), Mutex::default());
        Board { settings, open, looks, bell: Notify::new(), warned_at }
    }

    /// Whether it is time to tell something about a provider's tasks again: a log line for each of
    /// thousands helps nobody.
    pub fn may_warn(&self, provider: &str) -> bool {
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if warned_at.get(provider).is_some_and(|at| now.duration_since(*at) < WARN_EVERY) {
            return false;
        }
        warned_at.insert(provider.to_owned(), now);
        true
    }

    /// Open tasks at a provider, as of the last count.
    pub fn open_at(&self, provider: &str) -> u64 {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().filter(|one| one.provider.as_deref() == Some(provider)).map(|one| one.count).sum()
    }

    /// Open tasks by state, with the creation of the oldest.
    pub fn by_state(&self) -> HashMap<&'static str, (u64, i64)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = HashMap::new();
        for one in open.iter() {
            let (count, oldest) = states.entry(one.state.name()).or_insert((0, i64::MAX));
            *count += one.count;
            *oldest = one.oldest_at.min(*oldest);
        }
        states
    }

    /// Those at which this many looks are under way.
    pub fn busy(&self, share: usize) -> Vec<String> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.iter().filter(|(_, count)| **count >= share).map(|(name, _)| name.clone()).collect()
    }

    pub fn begin(&self, provider: &str) {
        *self.looks.lock().unwrap_or_else(PoisonError::into_inner).entry(provider.to_owned()).or_default() += 1;
    }

    /// Whether there was no place for more at this provider until now.
    pub fn end(&self, provider: &str, share: usize) -> bool {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = looks.get_mut(provider) else { return false };
        let full = *count >= share;
        *count -= 1;
        if *count == 0 {
            looks.remove(provider);
        }
        full
    }

    pub fn counted(&self, open: Vec<OpenTasks>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }
}
