//! What the simulator received, recorded so that tests can assert what was sent and when the caller
//! left. The list is bounded; the oldest records go first.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

/// One call as it arrived, and what became of it so far.
#[derive(Clone, Default)]
pub struct Received {
    /// Counts up from 1 in the order of arrival.
    pub id: u64,
    pub at_ms: i64,
    pub method: String,
    pub path: String,
    /// The query string as it came.
    pub query: String,
    /// All headers but those that carry a secret.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub model: String,
    pub scenario: String,
    pub stream: bool,
    /// The simulator took the call on and would bill it. False for every refusal.
    pub accepted: bool,
    /// Status sent, 0 while there is none (`hang`).
    pub status: u16,
    /// The reply went out to its proper end. False for cuts, hangs and errors in mid-stream.
    pub finished: bool,
    /// Body pieces handed to the connection so far; an event is one piece.
    pub sent: u64,
    /// What a whole reply reports, whether or not it got that far.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// When the caller was seen to leave before the simulator was through.
    pub client_closed_at_ms: Option<i64>,
    authorization: Option<String>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn has_authorization(&self) -> bool {
        self.authorization.is_some()
    }

    /// Whether it is a bearer that somebody signed.
    pub fn authorization_is_token(&self) -> bool {
        self.authorization.as_deref().is_some_and(|value| value.starts_with("Bearer eyJ"))
    }

    /// Compares the whole value, as in `"Bearer sk-…"`; the value itself is never shown.
    pub fn authorization_is(&self, value: &str) -> bool {
        self.authorization.as_deref() == Some(value)
    }

    /// The body as JSON, null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn new(request: &http::request::Parts, body: Bytes) -> Self {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let secret =
            ["authorization", "x-api-key", "api-key", "x-goog-api-key", "xi-api-key", "cookie", "proxy-authorization"];
        let shown = request.headers.iter().filter(|(name, _)| !secret.contains(&name.as_str()));
        Self {
            at_ms: now_ms(),
            method: request.method.to_string(),
            path: request.uri.path().to_string(),
            query: request.uri.query().unwrap_or_default().to_string(),
            headers: shown.map(|(name, value)| (name.to_string(), text(value))).collect(),
            authorization: request.headers.get("authorization").map(text),
            body,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("id", &self.id)
            .field("model", &self.model)
            .field("scenario", &self.scenario)
            .field("accepted", &self.accepted)
            .field("status", &self.status)
            .field("finished", &self.finished)
            .field("sent", &self.sent)
            .field("client_closed_at_ms", &self.client_closed_at_ms)
            .finish_non_exhaustive()
    }
}

/// How many calls there were since the start or the last clearing. Fast scenarios are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub received: u64,
    pub accepted: u64,
    pub finished: u64,
    pub client_closed: u64,
    /// Records lost to the bound of the list.
    pub dropped: u64,
}

/// All records of one simulator.
pub(crate) struct Records {
    list: Mutex<VecDeque<Entry>>,
    keep: usize,
    next_id: AtomicU64,
    received: AtomicU64,
    accepted: AtomicU64,
    finished: AtomicU64,
    closed: AtomicU64,
    dropped: AtomicU64,
    stopping: AtomicBool,
}

type Entry = Arc<Mutex<Received>>;

impl Records {
    /// `keep` = 0 counts calls but remembers none.
    pub fn new(keep: usize) -> Self {
        Self {
            list: Mutex::default(),
            keep,
            next_id: AtomicU64::new(1),
            received: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    pub fn add(self: &Arc<Self>, mut received: Received) -> Watch {
        let id = self.next_id.fetch_add(1, Relaxed);
        received.id = id;
        self.received.fetch_add(1, Relaxed);
        self.accepted.fetch_add(u64::from(received.accepted), Relaxed);
        let entry = Arc::new(Mutex::new(received));
        if self.keep > 0 {
            let mut list = lock(&self.list);
            list.push_back(Arc::clone(&entry));
            if list.len() > self.keep {
                list.pop_front();
                self.dropped.fetch_add(1, Relaxed);
            }
        }
        Watch { records: Arc::clone(self), entry, id, over: false }
    }

    pub fn after(&self, id: u64) -> Vec<Received> {
        let list = lock(&self.list);
        let all = list.iter().map(|entry| lock(entry).clone());
        all.filter(|received| received.id > id).collect()
    }

    pub fn clear(&self) {
        lock(&self.list).clear();
        for counter in [&self.received, &self.accepted, &self.finished, &self.closed, &self.dropped] {
            counter.store(0, Relaxed);
        }
    }

    pub fn counts(&self) -> Counts {
        Counts {
            received: self.received.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            finished: self.finished.load(Relaxed),
            client_closed: self.closed.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
        }
    }

    /// From now on a dropped connection is our doing, not the caller's.
    pub fn stopping(&self) {
        self.stopping.store(true, Relaxed);
    }
}

/// Follows one call to its end. Dropped early, it notes that the caller has left.
pub(crate) struct Watch {
    records: Arc<Records>,
    entry: Entry,
    pub id: u64,
    over: bool,
}

impl Watch {
    pub fn status(&self, status: u16) {
        lock(&self.entry).status = status;
    }

    pub fn sent_one(&self) {
        lock(&self.entry).sent += 1;
    }

    /// The simulator is through with the call; `finished` says whether in the proper way.
    pub fn over(&mut self, finished: bool) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        lock(&self.entry).finished = finished;
        self.records.finished.fetch_add(u64::from(finished), Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.over && !self.records.stopping.load(Relaxed) {
            lock(&self.entry).client_closed_at_ms = Some(now_ms());
            self.records.closed.fetch_add(1, Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the outside world has its own clock, as a real provider has")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
