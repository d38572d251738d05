//! A store for a simulation: no thread of its own, and a disk that knows what a crash leaves. A
//! killed process loses nothing that was written; a power cut leaves of what was not synced any
//! sectors, in any order.

use std::collections::HashMap;
use std::fmt;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::sqlite::writer::stepping::{StepDone, Stepping};

const DATABASE: &str = "tollgate.db";
const WAL: &str = "tollgate.db-wal";
const FILES: [&str; 4] = [DATABASE, WAL, "journal.0", "journal.1"];
/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    Killed,
    PowerCut,
}

/// A file as it was when a sync of it began.
pub struct SeenFile {
    name: &'static str,
    bytes: Vec<u8>,
    /// So many syncs of it had ended by then.
    syncs: u64,
}

/// A sync of the journal that has begun.
pub struct BegunSync(crate::journal::JournalSync);

/// Given as an option, it takes the writer of the store that is opened with it. One for each life
/// of a store.
#[derive(Clone)]
pub struct Simulated {
    pub disk: Disk,
    writer: Arc<Mutex<Option<Stepping>>>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulated")
    }
}

impl Simulated {
    pub fn new(data_dir: &Path) -> Self {
        Self { disk: Disk::new(data_dir), writer: Arc::default() }
    }

    pub(crate) fn take(&self, stepping: Stepping) {
        // What was made on the way here was committed.
        self.disk.synced(DATABASE);
        self.disk.synced(WAL);
        *lock(&self.writer) = Some(stepping);
    }

    /// Whether a store has been opened with it.
    pub fn is_open(&self) -> bool {
        lock(&self.writer).is_some()
    }

    /// Commits until it is done.
    pub async fn stepped<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::task::yield_now() => drop(self.commit()),
            }
        }
    }

    /// One try to commit what has queued.
    pub fn commit(&self) -> StepDone {
        let mut writer = lock(&self.writer);
        let Some(writer) = writer.as_mut() else { return StepDone::Idle };
        let step = writer.step();
        if step == StepDone::Committed && writer.syncs() {
            self.disk.synced(WAL);
        }
        step
    }

    /// A sync of the journal begins: it is about what was written by now.
    pub fn begin_sync(&self) -> Option<BegunSync> {
        lock(&self.writer).as_ref().and_then(Stepping::begin_sync).map(BegunSync)
    }

    /// It ends, and those who wait for it go on. `false`: they do not.
    pub fn end_sync(&self, sync: BegunSync) -> bool {
        lock(&self.writer).as_ref().is_some_and(|writer| writer.end_sync(sync.0))
    }

    /// The same, but the machine dies before the sync has returned: a crash must follow.
    pub fn torn_commit(&self) {
        if let Some(writer) = lock(&self.writer).as_mut() {
            writer.step();
            lock(&self.disk.0).torn = Some(Torn::Commit);
        }
    }

    /// Brings what is in the log of the database into its file.
    pub fn checkpoint(&self) {
        if let Some(writer) = lock(&self.writer).as_ref() {
            writer.checkpoint();
            self.disk.synced(DATABASE);
            self.disk.synced(WAL);
        }
    }

    /// The same, but the machine dies on the way: a crash must follow.
    pub fn torn_checkpoint(&self) {
        if let Some(writer) = lock(&self.writer).as_ref() {
            writer.checkpoint();
            lock(&self.disk.0).torn = Some(Torn::Checkpoint);
        }
    }
}

/// The files of one data directory.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<Files>>);

struct Files {
    dir: PathBuf,
    /// What a power cut cannot take away any more.
    synced: HashMap<&'static str, Vec<u8>>,
    syncs: HashMap<&'static str, u64>,
    /// So long was the database's log when this life began. A crash may have left frames at its end
    /// that do not count; they are written over, and up to there the log does not only grow.
    found: usize,
    torn: Option<Torn>,
    /// Files whose syncs do nothing: a disk that lies, or a program that does not ask.
    deaf: Vec<&'static str>,
    loses_marks: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Torn {
    Commit,
    Checkpoint,
}

impl Disk {
    fn new(dir: &Path) -> Self {
        let synced: HashMap<_, _> = FILES.into_iter().map(|name| (name, read(dir, name))).collect();
        Self(Arc::new(Mutex::new(Files {
            dir: dir.to_owned(),
            found: synced[WAL].len(),
            synced,
            syncs: HashMap::new(),
            torn: None,
            deaf: Vec::new(),
            loses_marks: false,
        })))
    }

    /// From now on syncs of the journal, or of the database's log, are not done.
    pub fn ignore_syncs(&self, of_journal: bool, of_database: bool) {
        let mut files = lock(&self.0);
        files.deaf =
            FILES.into_iter().filter(|name| if name.starts_with('j') { of_journal } else { of_database }).collect();
    }

    /// From now on marks are not written to the journal.
    pub fn lose_marks(&self, lose: bool) {
        lock(&self.0).loses_marks = lose;
    }

    /// Whether what goes to the journal is lost on the way.
    pub(crate) fn loses(&self, record: &[u8]) -> bool {
        lock(&self.0).loses_marks && crate::journal::is_mark(record)
    }

    pub(crate) fn synced(&self, name: &'static str) {
        let mut files = lock(&self.0);
        if files.deaf.contains(&name) {
            return;
        }
        *files.syncs.entry(name).or_default() += 1;
        let (path, found) = (files.dir.join(name), files.found);
        let known = files.synced.entry(name).or_default();
        // The log of the database only grows between two checkpoints, and is read often.
        if name != WAL || known.len() <= found || !grown(&path, known) {
            *known = std::fs::read(path).unwrap_or_default();
        }
    }

    pub(crate) fn see(&self, name: &'static str) -> SeenFile {
        let files = lock(&self.0);
        SeenFile { name, bytes: read(&files.dir, name), syncs: files.syncs.get(name).copied().unwrap_or_default() }
    }

    /// A sync has ended that was about so much, unless one that began later was quicker.
    pub(crate) fn synced_as(&self, seen: &SeenFile) {
        let mut files = lock(&self.0);
        if files.deaf.contains(&seen.name) || files.syncs.get(seen.name).copied().unwrap_or_default() != seen.syncs {
            return;
        }
        *files.syncs.entry(seen.name).or_default() += 1;
        files.synced.insert(seen.name, seen.bytes.clone());
    }

    /// Writes what a crash at this moment leaves to another directory. `draw` gives numbers below
    /// its argument.
    pub fn crash(&self, how: Crash, to: &Path, draw: &mut dyn FnMut(usize) -> usize) {
        let files = lock(&self.0);
        for name in FILES {
            let (now, synced) = (read(&files.dir, name), files.synced.get(name).cloned().unwrap_or_default());
            let left = match (how, files.torn) {
                // The log is cut only when the file is synced.
                (_, Some(Torn::Checkpoint)) if name == WAL => synced,
                (Crash::Killed, Some(Torn::Commit)) if name == WAL => begun(&now, &synced, draw),
                (Crash::Killed, Some(Torn::Checkpoint)) if name == DATABASE => begun(&now, &synced, draw),
                (Crash::Killed, _) => now,
                (Crash::PowerCut, _) => mixed(&now, &synced, draw),
            };
            std::fs::write(to.join(name), left).unwrap_or_else(|e| panic!("{name} cannot be written: {e}"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Adds what has come to the end of a file; `false`: it is not the same file any more.
fn grown(path: &Path, known: &mut Vec<u8>) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    let len = file.metadata().map_or(0, |meta| meta.len());
    let mut head = [0; 32];
    let same = known.len() >= head.len() && len >= known.len() as u64;
    if !same || file.read_exact_at(&mut head, 0).is_err() || head != known[..32] {
        return false;
    }
    let at = known.len();
    known.resize(usize::try_from(len).unwrap_or(at), 0);
    file.read_exact_at(&mut known[at..], at as u64).is_ok()
}

fn read(dir: &Path, name: &str) -> Vec<u8> {
    std::fs::read(dir.join(name)).unwrap_or_default()
}

/// Written up to some byte: what one process wrote is there in its order.
fn begun(now: &[u8], before: &[u8], draw: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
    let cut = draw(now.len() + 1);
    let rest = before.get(cut..).unwrap_or_default();
    [&now[..cut], rest].concat()
}

/// Any of the sectors that differ, and either length.
fn mixed(now: &[u8], synced: &[u8], draw: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
    if now == synced {
        return synced.to_vec();
    }
    let of_four = draw(5);
    let mut left = synced.to_vec();
    left.resize(if draw(2) == 0 { now.len() } else { synced.len() }, 0);
    for (at, sector) in left.chunks_mut(SECTOR).enumerate() {
        let new = now.get(at * SECTOR..).unwrap_or_default();
        let new = &new[..new.len().min(sector.len())];
        if sector[..new.len()] != *new && draw(4) < of_four {
            sector[..new.len()].copy_from_slice(new);
        }
    }
    left
}
