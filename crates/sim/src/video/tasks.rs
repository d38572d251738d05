//! The tasks the fake providers have taken on, and how each of them goes from poll to poll.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::scenario::Choice;

/// A task at one provider.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub id: String,
    pub vendor: &'static str,
    /// The account whose key made it.
    owner: String,
    /// The operation it was made with.
    pub call: String,
    pub model: String,
    /// The caller's own id, where the provider keeps one.
    pub external: Option<String>,
    /// Unix seconds.
    pub created: i64,
    pub seconds: u32,
    pub body: Value,
    pub choice: Choice,
    /// It will fail with this, whatever the scenario says: found out after submission.
    pub doomed: Option<(String, String)>,
    pub cancelled: bool,
    /// Deleted by its owner.
    gone: bool,
    polls: u32,
    searches: u32,
    files: u32,
    done: u32,
}

/// What a poll finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Running,
    Strange,
    Done {
        url: bool,
    },
    Failed,
    Moderated,
    Cancelled,
    Expired,
    Forgotten,
    /// The poll itself fails.
    Limited,
    Broken,
}

impl Task {
    /// Moves on by one poll.
    fn poll(&mut self) -> Phase {
        self.polls += 1;
        let (queue, run) = (self.choice.number("queue", 1), self.choice.number("run", 1));
        let trouble = self.choice.number("n", 1);
        let mut at = self.polls;
        if self.choice.is("poll_limited") || self.choice.is("poll_broken") {
            if at <= trouble {
                return if self.choice.is("poll_limited") { Phase::Limited } else { Phase::Broken };
            }
            at -= trouble;
        }
        if self.cancelled {
            return Phase::Cancelled;
        }
        if at <= queue {
            return Phase::Queued;
        }
        if at <= queue + run {
            return Phase::Running;
        }
        self.end(at - queue - run)
    }

    /// Moves on by one search for the caller's own id.
    fn search(&mut self) -> Phase {
        self.searches += 1;
        let (away, blind) = (self.choice.number("away", 0), self.choice.number("blind", 0));
        match self.searches {
            at if at <= away => Phase::Broken,
            at if at <= away + blind => Phase::Forgotten,
            _ => Phase::Queued,
        }
    }

    /// `at` counts the polls after the running ones, from 1.
    fn end(&mut self, at: u32) -> Phase {
        if self.doomed.is_some() {
            return Phase::Failed;
        }
        let trouble = self.choice.number("n", 1);
        match self.choice.name {
            "fail" => Phase::Failed,
            "moderation" => Phase::Moderated,
            "cancelled" => Phase::Cancelled,
            "expired" => Phase::Expired,
            "unknown" => Phase::Forgotten,
            "word" if at <= trouble => Phase::Strange,
            "flap" if at > 1 => Phase::Running,
            "never_url" => Phase::Done { url: false },
            "no_url" => {
                self.done += 1;
                Phase::Done { url: self.done > trouble }
            }
            _ => Phase::Done { url: true },
        }
    }

    /// The reason of a failure: what submission already knew, the scenario's, or the provider's
    /// usual one.
    pub fn reason(&self, code: &str, text: &str) -> (String, String) {
        self.doomed.clone().unwrap_or_else(|| {
            let code = self.choice.raw("code").unwrap_or(code).to_string();
            (code, self.choice.text("text").unwrap_or_else(|| text.to_string()))
        })
    }

    /// A number of the usage, in the spelling the scenario asks for.
    pub fn spelt(&self, value: f64) -> Value {
        match self.choice.raw("kind").filter(|_| self.choice.is("usage")) {
            Some("string") => Value::from(value.to_string()),
            Some("float") => Value::from(value),
            #[expect(clippy::cast_possible_truncation, reason = "whole numbers of seconds and tokens are small")]
            _ if value.fract() == 0.0 => Value::from(value as i64),
            _ => Value::from(value),
        }
    }

    /// The length its maker tells when it is made: what was asked for, unless the scenario says
    /// otherwise.
    pub fn reported_seconds(&self) -> u32 {
        self.choice.number("reported", self.seconds)
    }

    /// How much longer its file is than it must be.
    pub fn kilobytes(&self) -> u32 {
        self.choice.number("kb", 0)
    }

    pub fn tells_usage(&self) -> bool {
        !(self.choice.is("usage") && self.choice.raw("kind") == Some("none"))
    }
}

/// What is needed to take a task on.
pub(super) struct New {
    pub vendor: &'static str,
    pub call: String,
    pub model: String,
    pub external: Option<String>,
    pub seconds: u32,
    pub body: Value,
    pub choice: Choice,
    pub doomed: Option<(String, String)>,
}

#[derive(Default)]
struct Inner {
    tasks: Vec<Task>,
    places: HashMap<String, usize>,
    /// By maker, account and the caller's own id.
    externals: HashMap<(&'static str, String, String), usize>,
    tries: HashMap<String, u32>,
}

/// All tasks.
#[derive(Default)]
pub(crate) struct Book {
    inner: Mutex<Inner>,
    held: AtomicBool,
    /// Ids count on from here.
    first: u64,
}

/// What is to become of an answer, found out while it is made.
#[derive(Default)]
pub(super) struct Signs {
    /// It is said to be compressed.
    pub packed: AtomicBool,
    /// The connection is reset instead.
    pub vanished: AtomicBool,
}

/// A maker that is started again gives no id a second time, and neither do real ones: so many are
/// made in no millisecond.
const IDS_PER_MS: u64 = 10;
/// Of the year 2023, so that the numbers have the length of real ones.
const EPOCH_MS: i64 = 1_700_000_000_000;

impl Book {
    /// Begun at this time.
    pub(crate) fn since(now_ms: i64) -> Book {
        Book { first: u64::try_from(now_ms - EPOCH_MS).unwrap_or(0) * IDS_PER_MS, ..Book::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.inner().tasks.len()
    }

    /// While they are held, all tasks run and none goes on: the polls of that time do not count.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }

    /// How long a question about the task that this path names is left without an answer.
    pub(super) fn slowness(&self, path: &str) -> Option<Duration> {
        let inner = self.inner();
        let task = path.rsplit('/').find_map(|part| inner.tasks.get(*inner.places.get(part)?))?;
        let slow = task.choice.is("poll_slow");
        slow.then(|| Duration::from_millis(u64::from(task.choice.number("ms", 2000))))
    }

    /// What one account sees.
    pub(super) fn of<'a>(&'a self, owner: &'a str, signs: &'a Signs) -> Drawer<'a> {
        Drawer { book: self, owner, signs }
    }
}

/// The tasks of one account: another's are as if they were not there.
#[derive(Clone, Copy)]
pub(super) struct Drawer<'a> {
    book: &'a Book,
    owner: &'a str,
    pub signs: &'a Signs,
}

impl Drawer<'_> {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.book.inner()
    }

    /// Takes a task on; `id` makes its id from a number that counts up.
    pub(super) fn add(&self, new: New, created: i64, id: impl FnOnce(u64) -> String) -> Task {
        let mut inner = self.inner();
        let place = inner.tasks.len();
        let task = Task {
            id: id(self.book.first + place as u64 + 1),
            vendor: new.vendor,
            owner: self.owner.to_string(),
            call: new.call,
            model: new.model,
            external: new.external,
            created,
            seconds: new.seconds,
            body: new.body,
            choice: new.choice,
            doomed: new.doomed,
            cancelled: false,
            gone: false,
            polls: 0,
            searches: 0,
            files: 0,
            done: 0,
        };
        inner.places.insert(task.id.clone(), place);
        if let Some(external) = &task.external {
            inner.externals.entry((task.vendor, self.owner.to_string(), external.clone())).or_insert(place);
        }
        inner.tasks.push(task.clone());
        task
    }

    fn with<T>(&self, vendor: &str, id: &str, act: impl FnOnce(&mut Task) -> T) -> Option<T> {
        let mut inner = self.inner();
        let place = *inner.places.get(id)?;
        inner
            .tasks
            .get_mut(place)
            .filter(|task| task.vendor == vendor && task.owner == self.owner && !task.gone)
            .map(act)
    }

    pub(super) fn get(&self, vendor: &str, id: &str) -> Option<Task> {
        self.with(vendor, id, |task| task.clone())
    }

    /// One poll of a task.
    pub(super) fn poll(&self, vendor: &str, id: &str) -> Option<(Task, Phase)> {
        let held = self.book.held.load(Ordering::SeqCst);
        self.with(vendor, id, |task| {
            let phase = if held { Phase::Running } else { task.poll() };
            let packed = task.choice.is("poll_packed") && task.polls <= task.choice.number("n", 1);
            self.signs.packed.fetch_or(packed, Ordering::SeqCst);
            (task.clone(), phase)
        })
    }

    /// One search for a task by the caller's own id.
    pub(super) fn search(&self, vendor: &str, id: &str) -> Option<Phase> {
        self.with(vendor, id, Task::search)
    }

    /// The task with the caller's own id.
    pub(super) fn by_external(&self, vendor: &'static str, external: &str) -> Option<Task> {
        let inner = self.inner();
        let place = *inner.externals.get(&(vendor, self.owner.to_string(), external.to_string()))?;
        inner.tasks.get(place).cloned()
    }

    /// One page, newest first, and how many there are in all.
    pub(super) fn list(
        &self,
        vendor: &str,
        keep: impl Fn(&Task) -> bool,
        skip: usize,
        take: usize,
    ) -> (Vec<Task>, usize) {
        let inner = self.inner();
        let all =
            || inner.tasks.iter().rev().filter(|task| task.vendor == vendor && task.owner == self.owner && keep(task));
        (all().skip(skip).take(take).cloned().collect(), all().count())
    }

    /// Cancels a task that still waits.
    pub(super) fn cancel(&self, vendor: &str, id: &str) -> Option<bool> {
        self.with(vendor, id, |task| {
            let waits = task.polls <= task.choice.number("queue", 1);
            task.cancelled |= waits;
            waits
        })
    }

    /// Deletes a task that has ended; `false` while it has not.
    pub(super) fn remove(&self, vendor: &str, id: &str) -> Option<bool> {
        self.with(vendor, id, |task| {
            task.gone = task.polls > task.choice.number("queue", 1) + task.choice.number("run", 1);
            task.gone
        })
    }

    /// How often a file was asked for, this time included.
    pub(super) fn file_try(&self, vendor: &str, id: &str) -> Option<u32> {
        self.with(vendor, id, |task| {
            task.files += 1;
            task.files
        })
    }

    /// Whether the file that this path names is not there yet; asking counts.
    pub(super) fn is_early(&self, path: &str) -> bool {
        let mut inner = self.inner();
        let place = path.split('/').find_map(|part| inner.places.get(part).copied());
        let Some(task) = place.and_then(|place| inner.tasks.get_mut(place)) else { return false };
        task.files += u32::from(task.choice.is("early_link"));
        task.choice.is("early_link") && task.files <= task.choice.number("n", 1)
    }

    /// What the server of the file that this path names answers instead of it.
    pub(super) fn file_status(&self, path: &str) -> Option<u16> {
        let inner = self.inner();
        let place = path.split('/').find_map(|part| inner.places.get(part).copied());
        let task = place.and_then(|place| inner.tasks.get(place)).filter(|task| task.choice.is("file_status"))?;
        u16::try_from(task.choice.number("code", 500)).ok()
    }

    /// How often this was tried, this time included.
    pub(super) fn tried(&self, what: &str) -> u32 {
        let mut inner = self.inner();
        let tries = inner.tries.entry(what.to_string()).or_default();
        *tries += 1;
        *tries
    }
}
