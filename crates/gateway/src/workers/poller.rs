//! Looks after open video tasks. Whatever is due is taken from the store, a lease each, and looked at side by side; a provider that
//! answers slowly holds up nobody else's tasks. Any number of replicas do this at once, and what one of them had in its hands when it
//! died is due again when its lease ends.

use crate::app::App;
use crate::call;
use crate::routes::turns::TurnBook;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tollgate_store::{OpenTasks, StoreError};

/// No more are begun at a provider when it has this part of all places; a round takes half as many.
const SHARE: usize = 4;
/// How often open tasks are counted, over all replicas.
const COUNTED: Duration = Duration::from_secs(5);
/// Between two log lines about the same trouble of a provider.
const TOLD: Duration = Duration::from_secs(60);
/// After a round that failed.
const TROUBLE: Duration = Duration::from_secs(2);

/// What this replica knows of all open tasks, and its turns at the providers.
#[derive(Default)]
pub struct Board {
    pub turns: TurnBook,
    open: Mutex<Vec<OpenTasks>>,
    /// Looks under way, by provider.
    looks: Mutex<HashMap<String, usize>>,
    bell: Notify,
    /// When the operator was last told of tasks that cannot be asked for, by provider.
    told: Mutex<HashMap<String, Instant>>,
}

impl Board {
    /// Whether it is time to tell something about a provider's tasks again: a log line for each of thousands helps nobody.
    pub fn may_tell(&self, provider: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if told.get(provider).is_some_and(|at| now.duration_since(*at) < TOLD) {
            return false;
        }
        told.insert(provider.to_owned(), now);
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
    fn busy(&self, share: usize) -> Vec<String> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.iter().filter(|(_, count)| **count >= share).map(|(name, _)| name.clone()).collect()
    }

    fn begin(&self, provider: &str) {
        *self.looks.lock().unwrap_or_else(PoisonError::into_inner).entry(provider.to_owned()).or_default() += 1;
    }

    /// Whether there was no place for more at this provider until now.
    fn end(&self, provider: &str, share: usize) -> bool {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = looks.get_mut(provider) else { return false };
        let full = *count >= share;
        *count -= 1;
        if *count == 0 {
            looks.remove(provider);
        }
        full
    }

    fn counted(&self, open: Vec<OpenTasks>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }
}

/// Runs until the stop: what is being looked at then is put back or ended, and nothing new is taken.
pub async fn run(app: Arc<App>) {
    let settings = &app.settings.tasks;
    let places = Arc::new(Semaphore::new(settings.parallel));
    let mut count_at = Instant::now();
    loop {
        if Instant::now() >= count_at {
            count_at = Instant::now() + COUNTED;
            match app.store.open_tasks().await {
                Ok(open) => app.tasks.counted(open),
                Err(error) => tracing::warn!(%error, "open tasks could not be counted"),
            }
        }
        let pause = match round(&app, &places).await {
            Ok(true) => continue,
            Ok(false) => settings.look_every,
            Err(error) => {
                tracing::warn!(%error, "due tasks could not be taken");
                TROUBLE
            }
        };
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = app.tasks.bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Takes as many tasks as there are places for. `true`: there may be more.
async fn round(app: &Arc<App>, places: &Arc<Semaphore>) -> Result<bool, StoreError> {
    let free = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
    if app.stopping.is_cancelled() || free == 0 {
        return Ok(false);
    }
    let share = (app.settings.tasks.parallel / SHARE).max(1);
    let wanted = free.min(u32::try_from(share.div_ceil(2)).unwrap_or(u32::MAX));
    let lease = i64::try_from(app.settings.tasks.lease().as_millis()).unwrap_or(i64::MAX);
    let taken = app.store.take_tasks(wanted, lease, &app.tasks.busy(share)).await?;
    let more = taken.len() >= wanted as usize;
    for leased in taken {
        let Ok(place) = places.clone().try_acquire_owned() else { break };
        let (worker, places) = (app.clone(), places.clone());
        let provider = leased.task.provider.clone().unwrap_or_default();
        app.tasks.begin(&provider);
        app.tracker.spawn(async move {
            if let Err(error) = call::look(&worker, &leased).await {
                // Its lease ends by itself.
                tracing::warn!(task = %leased.task.id, %error, "a look at a task came to nothing");
            }
            let full = worker.tasks.end(&provider, share) || places.available_permits() == 0;
            drop(place);
            if full {
                worker.tasks.bell.notify_one();
            }
        });
    }
    Ok(more)
}
