//! What was received over sockets, for tests: each session with its frames and what it was billed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// Frames that are remembered of one session; the oldest stay.
const FRAMES: usize = 10_000;
/// Longer frames are remembered by their beginning.
const FRAME: usize = 64 << 10;
/// Sessions that are remembered.
const SESSIONS: usize = 20_000;

/// One connection as the provider saw it.
#[derive(Clone, Debug, Default)]
pub struct SeenSession {
    pub id: u64,
    pub path: String,
    pub query: String,
    pub model: String,
    /// What the client sent, text and binary frames alike, each at most 64 KiB of it.
    pub frames: Vec<String>,
    /// Bytes of all its frames.
    pub bytes: u64,
    /// Milliseconds of audio that came.
    pub audio_ms: u64,
    /// The usage of each response in the order of their ends, reported or not.
    pub billed: Vec<Value>,
    /// The usage of each transcription.
    pub transcribed: Vec<Value>,
    pub pongs: u64,
    pub pings: u64,
    /// The code the client closed with; 1006 where it just went.
    pub closed: Option<u16>,
    pub reason: String,
    /// The connection is gone, whoever ended it.
    pub over: bool,
}

impl SeenSession {
    /// The events that came, as JSON; what is no JSON is left out.
    pub fn events(&self) -> Vec<Value> {
        self.frames.iter().filter_map(|frame| serde_json::from_str(frame).ok()).collect()
    }

    /// Those of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    pub(crate) fn show(&self) -> Value {
        json!({
            "id": self.id, "path": self.path, "query": self.query, "model": self.model, "frames": self.events(),
            "bytes": self.bytes, "audio_ms": self.audio_ms, "billed": self.billed, "transcribed": self.transcribed,
            "pongs": self.pongs, "pings": self.pings, "closed": self.closed, "reason": self.reason, "over": self.over,
        })
    }
}

/// All sessions of one simulator.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Arc<Mutex<SeenSession>>>>);

impl Sessions {
    pub(super) fn add(&self, session: SeenSession) -> Note {
        let entry = Arc::new(Mutex::new(session));
        let mut list = lock(&self.0);
        if list.len() < SESSIONS {
            list.push(Arc::clone(&entry));
        }
        Note(entry)
    }

    pub(crate) fn all(&self) -> Vec<SeenSession> {
        lock(&self.0).iter().map(|entry| lock(entry).clone()).collect()
    }

    pub(crate) fn open(&self) -> usize {
        lock(&self.0).iter().filter(|entry| !lock(entry).over).count()
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// Where a session writes what it sees.
pub(super) struct Note(Arc<Mutex<SeenSession>>);

impl Note {
    pub(super) fn write(&self, change: impl FnOnce(&mut SeenSession)) {
        change(&mut lock(&self.0));
    }

    pub(super) fn frame(&self, frame: &[u8]) {
        let mut seen = lock(&self.0);
        seen.bytes += u64::try_from(frame.len()).unwrap_or(0);
        if seen.frames.len() < FRAMES {
            let shown = &frame[..frame.len().min(FRAME)];
            seen.frames.push(String::from_utf8_lossy(shown).into_owned());
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        lock(&self.0).over = true;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
