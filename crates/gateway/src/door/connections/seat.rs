//! One connection: what it waits for, and what it has shown.

use super::Shared;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::task::AbortHandle;

/// Added to what is under way when a connection is asked to go: from then on it begins nothing.
const ENDED: usize = 1 << (usize::BITS - 1);

pub struct Seat {
    pub(super) id: u64,
    pub(super) peer: IpAddr,
    /// Requests between their head and the end of their reply.
    busy: AtomicUsize,
    /// The tick at which the present wait began.
    since: AtomicU64,
    /// Part of a head is there. Means nothing on HTTP/2, where pings come between requests.
    hears: AtomicBool,
    http2: AtomicBool,
    asked: AtomicBool,
    proven: AtomicBool,
    stranger: AtomicBool,
    /// Its TLS handshake is under way.
    shaking: AtomicBool,
    task: OnceLock<AbortHandle>,
    lingers: AtomicBool,
    shared: Arc<Shared>,
}

impl Seat {
    pub(super) fn new(id: u64, peer: IpAddr, stranger: bool, shared: Arc<Shared>) -> Seat {
        Seat {
            id,
            peer,
            busy: AtomicUsize::new(0),
            since: AtomicU64::new(shared.now()),
            hears: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            stranger: AtomicBool::new(stranger),
            shaking: AtomicBool::new(shared.rules.handshakes.is_some()),
            task: OnceLock::new(),
            lingers: AtomicBool::new(false),
            shared,
        }
    }

    /// Bytes have come.
    pub fn heard(&self) {
        let waits = self.busy.load(Ordering::Relaxed) == 0 && !self.http2.load(Ordering::Relaxed);
        if waits && !self.hears.swap(true, Ordering::Relaxed) && self.has_asked() {
            self.since.store(self.shared.now(), Ordering::Relaxed);
        }
    }

    /// The head of a request is whole. `None`: the connection was asked to go in this moment.
    pub fn begin(self: &Arc<Self>, http2: bool) -> Option<RequestUnderWay> {
        if self.busy.fetch_add(1, Ordering::AcqRel) >= ENDED {
            return None;
        }
        self.hears.store(false, Ordering::Relaxed);
        if !self.asked.load(Ordering::Relaxed) {
            self.http2.store(http2, Ordering::Relaxed);
            self.asked.store(true, Ordering::Relaxed);
        }
        Some(RequestUnderWay(self.clone()))
    }

    /// The connection has become another one, which is watched by whoever uses it: it is never
    /// asked to go.
    pub fn hand_over(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    /// A valid key was seen: its address is known from now on.
    pub fn prove(&self) {
        if self.proven.load(Ordering::Relaxed) {
            return;
        }
        let mut book = self.shared.lock();
        if self.proven.swap(true, Ordering::Relaxed) || !book.seats.contains_key(&self.id) {
            return;
        }
        if self.stranger.swap(false, Ordering::Relaxed) {
            book.strangers -= 1;
        }
        self.shared.remember(&mut book, self.peer);
    }

    /// The TLS handshake is done. What it waits for next is the head of its first request, within
    /// the time that began with the connection.
    pub fn shaken(&self) {
        let mut book = self.shared.lock();
        if self.shaking.swap(false, Ordering::Relaxed) && book.seats.contains_key(&self.id) {
            book.handshakes -= 1;
        }
    }

    /// Who ends the connection.
    pub fn belongs_to(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    /// Ends the connection, unless something is under way or nobody knows it yet.
    pub(super) fn end(&self) -> bool {
        let Some(task) = self.task.get() else { return false };
        let free = self.busy.compare_exchange(0, ENDED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if free {
            task.abort();
        }
        free
    }

    /// Since when it has nothing under way, if that is so.
    pub(super) fn waits_since(&self) -> Option<u64> {
        (self.busy.load(Ordering::Acquire) == 0).then(|| self.since.load(Ordering::Relaxed))
    }

    pub(super) fn is_late(&self, now: u64, head: u64, idle: u64) -> bool {
        let patient = self.is_proven() && (self.http2.load(Ordering::Relaxed) || !self.hears.load(Ordering::Relaxed));
        let limit = if patient { idle } else { head };
        self.waits_since().is_some_and(|since| now.saturating_sub(since) > limit)
    }

    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    pub(super) fn is_shaking(&self) -> bool {
        self.shaking.load(Ordering::Relaxed)
    }

    pub(super) fn is_stranger(&self) -> bool {
        self.stranger.load(Ordering::Relaxed)
    }

    /// After the last reply what is still coming is read and thrown away for a while: closing
    /// before that would reset the connection, and the client might never read the reply.
    pub fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    pub fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }
}

/// A request that is under way.
pub struct RequestUnderWay(Arc<Seat>);

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.0.since.store(self.0.shared.now(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The place of an open socket; free again when the socket is closed.
pub struct SocketPlace(Arc<Seat>);

impl SocketPlace {
    pub(super) fn new(seat: Arc<Seat>) -> SocketPlace {
        SocketPlace(seat)
    }

    pub fn seat(&self) -> &Arc<Seat> {
        &self.0
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        let (seat, shared) = (&self.0, &self.0.shared);
        shared.meter.open.dec();
        // Whoever tells it to go has the book too.
        let mut book = shared.lock();
        if seat.busy.load(Ordering::Acquire) >= ENDED {
            drop(book);
            shared.leaving.fetch_sub(1, Ordering::SeqCst);
            shared.left.notify_waiters();
        } else {
            shared.strike_out(&mut book, seat);
        }
    }
}
