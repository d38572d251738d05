//! The journal: what a call cost, written before its last byte reaches the client, so that a killed
//! process loses neither the charge nor the customer's money and nobody waits for a sync. On SQLite
//! the hold of each call is written here too, and is durable with the sync that follows it
//! (`sync.rs`): the database comes behind. Holds and ends are written in the order in which the
//! books decided them, so that a replay never finds less money than there was.
//!
//! Two preallocated segments take turns (space taken in advance still takes closes when the disk is
//! full). A record is `length, crc32, packed fields`; the checksum covers the segment's epoch, so
//! what an earlier turn left behind is never read again. A segment is free for reuse once every
//! operation in it is committed. Marks (progress of running calls) have no operation: those still
//! wanted are carried over before their segment is reused.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::call::group::CommitGroup;
use crate::ids::{CallId, IdMap};
use crate::world::Options;

mod pack;
pub(crate) mod record;
mod refused;
mod sync;
mod tape;

pub(crate) use sync::JournalSync;
use sync::Syncing;
use tape::Tape;

const HEADER: u64 = 16;
const MAGIC: &[u8; 4] = b"TGJ1";
const RECORD_HEADER: usize = 8;

pub(crate) struct Journal {
    inner: Mutex<Inner>,
    /// Wakes the syncer.
    bell: Condvar,
    segment_size: u64,
    limit: u64,
}

struct Inner {
    segments: [Segment; 2],
    active: usize,
    epoch: u64,
    /// Operations up to this one could not be journalled; until they are committed the store takes
    /// no holds.
    unwritten_upto: u64,
    marks: IdMap<CallId, LiveMark>,
    /// Calls whose close the database refuses; the record is among the marks.
    refused: IdMap<CallId, ()>,
    syncing: Syncing,
}

struct Segment {
    tape: Arc<Tape>,
    epoch: u64,
    end: u64,
    last_op: u64,
    unsynced: bool,
    /// A sync of it has failed: what is in it may not be on the disk, however later ones end.
    broken: bool,
}

/// What became of a record.
pub(crate) struct Appended {
    /// Whoever needs it to be durable waits for this; without it, for the database.
    pub synced: Option<Arc<CommitGroup>>,
    /// The syncer sleeps: whoever waits wakes it ([`Journal::wake`]).
    pub asleep: bool,
    /// Space is short until more is committed.
    pub crowded: bool,
}

struct LiveMark {
    segment: usize,
    payload: Vec<u8>,
}

/// A buffer for one record, with room for the header in front.
pub(crate) fn buffer() -> Vec<u8> {
    let mut buffer = Vec::with_capacity(768);
    buffer.resize(RECORD_HEADER, 0);
    buffer
}

/// Whether a record with its header is a mark.
#[cfg(feature = "testing")]
pub(crate) fn is_mark(record: &[u8]) -> bool {
    record.get(RECORD_HEADER) == Some(&record::MARK)
}

impl Journal {
    /// Opens (or makes) the journal and returns the records a crash left behind, oldest first.
    pub fn open(dir: &Path, options: &Options) -> io::Result<(Self, Vec<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut open = |name: &'static str| -> io::Result<Segment> {
            let tape = Arc::new(Tape::open(dir, name, options)?);
            let (epoch, end, records) = read_segment(&tape.read()?);
            found.push((epoch, records));
            Ok(Segment { tape, epoch, end, last_op: 0, unsynced: false, broken: false })
        };
        let segments = [open("journal.0")?, open("journal.1")?];
        // The names of new files survive a power cut too.
        File::open(dir)?.sync_all()?;
        found.sort_by_key(|(epoch, _)| *epoch);
        let records = found.into_iter().flat_map(|(_, records)| records).collect();
        let active = usize::from(segments[1].epoch > segments[0].epoch);
        let epoch = segments[active].epoch;
        let inner = Inner {
            segments,
            active,
            epoch,
            unwritten_upto: 0,
            marks: IdMap::default(),
            refused: IdMap::default(),
            syncing: Syncing {
                #[cfg(feature = "testing")]
                fails: options.journal_sync_fails,
                #[cfg(feature = "testing")]
                dir: dir.to_owned(),
                ..Syncing::default()
            },
        };
        let (segment_size, limit) = (options.journal_segment, options.journal_limit);
        Ok((Self { inner: Mutex::new(inner), bell: Condvar::new(), segment_size, limit }, records))
    }

    /// After recovery: everything in the journal is in the database, but for what it has refused.
    pub fn reset(&self) -> io::Result<()> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        inner.marks.retain(|call, _| inner.refused.contains_key(call));
        inner.empty(self.segment_size)
    }

    /// On the way out, with all of it committed: nothing is left for the next start to read, but
    /// for the marks of calls that are still open.
    pub fn tidy(&self, durable: u64) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.segments.iter().any(|segment| segment.last_op > durable) {
            return Ok(());
        }
        inner.empty(self.segment_size)
    }

    /// Appends the close that is operation `op`. `durable` is the last committed operation.
    /// `true`: space is short.
    pub fn append_close(&self, call: CallId, op: u64, buffer: &mut [u8], durable: u64) -> bool {
        let mut inner = self.lock();
        if inner.refused.contains_key(&call) {
            // The database was quicker to refuse it.
            inner.append(op, buffer, self.segment_size, durable);
            let mark = LiveMark { segment: inner.active, payload: buffer.to_vec() };
            inner.marks.entry(call).or_insert(mark);
        } else {
            inner.marks.remove(&call);
            inner.append(op, buffer, self.segment_size, durable);
        }
        let (wakes, crowded) = (inner.close_wants_sync(), inner.is_crowded(self, durable));
        drop(inner);
        if wakes {
            self.bell.notify_one();
        }
        crowded
    }

    /// Appends the hold that is operation `op`: wanted until that is committed.
    pub fn append_hold(&self, op: u64, buffer: &mut [u8], durable: u64) -> Appended {
        let mut inner = self.lock();
        inner.append(op, buffer, self.segment_size, durable);
        let crowded = inner.is_crowded(self, durable);
        if inner.is_trusted(durable) {
            let asleep = inner.hold_wants_sync();
            return Appended { synced: Some(inner.syncing.group.clone()), asleep, crowded };
        }
        let wakes = inner.close_wants_sync();
        drop(inner);
        if wakes {
            self.bell.notify_one();
        }
        Appended { synced: None, asleep: false, crowded }
    }

    /// Appends (replaces) the mark of a running call.
    pub fn append_mark(&self, call: CallId, mut payload: Vec<u8>, durable: u64) {
        let mut inner = self.lock();
        inner.make_room(payload.len(), self.segment_size, durable);
        let active = inner.active;
        if let Err(error) = inner.segments[active].append(&mut payload) {
            tracing::error!(%error, "cannot write a progress mark");
            return;
        }
        inner.marks.insert(call, LiveMark { segment: active, payload });
    }

    /// The call has ended in another way; its mark is not wanted any more.
    pub fn forget_mark(&self, call: CallId) {
        self.lock().marks.remove(&call);
    }

    /// The last mark of a running call.
    pub fn mark_of(&self, call: CallId) -> Option<Vec<u8>> {
        self.lock().marks.get(&call).map(|m| m.payload[RECORD_HEADER..].to_vec())
    }

    /// Whether new holds may be taken: there is room for their closes, and all earlier closes are
    /// safe.
    pub fn accepts(&self, durable: u64) -> bool {
        let inner = self.lock();
        inner.unwritten_upto <= durable && inner.waiting(durable) < self.limit
    }

    /// Whether new holds may be taken that only the journal makes durable.
    pub fn suffices(&self, durable: u64) -> bool {
        let inner = self.lock();
        inner.is_trusted(durable) && inner.waiting(durable) < self.limit
    }

    /// Bytes whose operations are not committed.
    pub fn waiting_bytes(&self, durable: u64) -> u64 {
        self.lock().waiting(durable)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Inner {
    fn append(&mut self, op: u64, buffer: &mut [u8], segment_size: u64, durable: u64) {
        self.make_room(buffer.len(), segment_size, durable);
        let segment = &mut self.segments[self.active];
        match segment.append(buffer) {
            Ok(()) => segment.last_op = segment.last_op.max(op),
            Err(error) => {
                self.unwritten_upto = self.unwritten_upto.max(op);
                tracing::error!(%error, "cannot write the close journal");
            }
        }
    }

    fn waiting(&self, durable: u64) -> u64 {
        self.segments.iter().filter(|s| s.last_op > durable).map(|s| s.end - HEADER).sum()
    }

    /// Less than half of a segment is left and the other is not free yet, or half of what may wait
    /// does.
    fn is_crowded(&self, journal: &Journal, durable: u64) -> bool {
        let (active, other) = (&self.segments[self.active], &self.segments[1 - self.active]);
        let full = active.end > journal.segment_size / 2 && other.last_op > durable;
        full || self.waiting(durable) > journal.limit / 2
    }

    /// Turns to the other segment when a record of this length does not fit into the space taken in
    /// advance and the other is free; otherwise this one grows, for which the disk must have space.
    fn make_room(&mut self, len: usize, segment_size: u64, durable: u64) {
        let (active, other) = (self.active, 1 - self.active);
        let end = self.segments[active].end;
        // A record larger than a segment finds no more room in the other one.
        let stays = end + len as u64 <= segment_size || end == HEADER;
        // One that cannot be synced is left as soon as the other is free.
        if (stays && !self.segments[active].broken) || self.segments[other].last_op > durable {
            return;
        }
        // Marks of running calls in the segment to be reused are written again first; a full disk
        // may not take them. Nothing is reused in which a close has to be retained.
        if self.carry(other, active).is_err() && !self.refused.is_empty() {
            return;
        }
        if let Err(error) = self.recycle(other, segment_size) {
            tracing::error!(%error, "cannot reuse a journal segment");
            return;
        }
        self.active = other;
        // Those it did not take go where there is space now: a close must not wait for a mark.
        for mark in self.marks.values_mut().filter(|m| m.segment == other) {
            if let Err(error) = self.segments[other].append(&mut mark.payload) {
                tracing::error!(%error, "cannot carry a progress mark over");
            }
        }
    }

    fn recycle(&mut self, i: usize, segment_size: u64) -> io::Result<()> {
        let segment = &mut self.segments[i];
        let epoch = self.epoch + 1;
        let mut header = [0u8; HEADER as usize];
        header[..4].copy_from_slice(MAGIC);
        header[4..12].copy_from_slice(&epoch.to_le_bytes());
        let crc = crc32fast::hash(&header[..12]);
        header[12..].copy_from_slice(&crc.to_le_bytes());
        segment.tape.write(&header, 0)?;
        if segment.end > segment_size {
            segment.tape.cut(segment_size)?;
        }
        self.epoch = epoch;
        (segment.epoch, segment.end, segment.last_op, segment.unsynced) = (epoch, HEADER, 0, true);
        segment.broken = false;
        Ok(())
    }

    /// Both begin anew, with what is still wanted in the second.
    fn empty(&mut self, segment_size: u64) -> io::Result<()> {
        for i in 0..2 {
            self.carry(i, 1 - i)?;
            self.segments[1 - i].tape.sync(None)?;
            self.recycle(i, segment_size)?;
            self.segments[i].tape.sync(None)?;
            self.segments[i].unsynced = false;
        }
        self.active = 1;
        Ok(())
    }
}

impl Segment {
    /// One write call: the record survives the process from here on.
    fn append(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let (header, payload) = buffer.split_at_mut(RECORD_HEADER);
        let len = u32::try_from(payload.len()).map_err(io::Error::other)?;
        header[..4].copy_from_slice(&len.to_le_bytes());
        header[4..].copy_from_slice(&checksum(self.epoch, payload).to_le_bytes());
        self.tape.write(buffer, self.end)?;
        self.end += buffer.len() as u64;
        self.unsynced = true;
        Ok(())
    }
}

fn checksum(epoch: u64, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&epoch.to_le_bytes());
    crc.update(payload);
    crc.finalize()
}

/// Epoch, end of the valid part and the payloads of a segment. Reading stops at the first record
/// that is not whole.
fn read_segment(bytes: &[u8]) -> (u64, u64, Vec<Vec<u8>>) {
    let word =
        |at: usize| -> Option<u32> { bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes) };
    let valid = bytes.get(..4) == Some(MAGIC) && word(12).is_some_and(|crc| crc == crc32fast::hash(&bytes[..12]));
    let Some(epoch) = valid.then(|| bytes[4..12].try_into().ok().map(u64::from_le_bytes)).flatten() else {
        return (0, HEADER, Vec::new());
    };
    let mut records = Vec::new();
    let mut at = HEADER as usize;
    while let (Some(len), Some(crc)) = (word(at), word(at + 4)) {
        let start = at + RECORD_HEADER;
        let Some(payload) = bytes.get(start..start + len as usize) else { break };
        if len == 0 || checksum(epoch, payload) != crc {
            break;
        }
        records.push(payload.to_vec());
        at = start + len as usize;
    }
    (epoch, at as u64, records)
}

#[cfg(test)]
mod tests;
