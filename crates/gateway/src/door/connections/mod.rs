//! Who is connected. A connection has a place from the moment it is accepted until its socket is
//! closed, and a place is worth what its owner has shown: one that has sent no request yet is given
//! up first, one on which a valid key was seen last.
//!
//! - A connection that waits longer than it may is closed: `header_time` up to the end of a
//!   request's head, from the first moment on, and `idle_time` between the requests of a connection
//!   with a valid key.
//! - When all places are taken, the newcomer gets the place of a connection that has nothing under
//!   way; where all have, it is refused. Strangers never have all places: some are reserved for
//!   addresses that have shown a valid key lately.
//! - TLS handshakes under way have a number of their own: when it is reached, a newcomer gets the
//!   place of one of them.
//! - One address has a part of the places, unless it is this machine or a trusted proxy.
//!
//! Time is counted in ticks of one worker, so a connection carries no timer and a request reads no
//! clock.

mod choice;
mod seat;

pub use seat::{RequestUnderWay, Seat, SocketPlace};

use crate::metrics::ConnectionMeter;
use choice::Candidate;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Ticks within the shorter of the two times.
const TICKS: u32 = 4;
/// Addresses with a valid key that are remembered, and for how many ticks.
const KNOWN: usize = 4_096;
const REMEMBERED: u64 = 1_440;
/// So many connections may be on their way out, with their descriptors, before the next one is
/// accepted.
const MOST_LEAVING: usize = 64;

/// What a server allows.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    pub most: usize,
    /// Places of one address.
    pub per_peer: usize,
    /// Up to the end of a request's head, and between requests where no valid key was seen.
    pub header_time: Duration,
    /// Between the requests of a connection with a valid key.
    pub idle_time: Duration,
    /// TLS handshakes under way at once; `None` where connections begin without one.
    pub handshakes: Option<usize>,
    /// Proxies in front of us: they speak for many.
    pub trusted: Vec<IpNet>,
}

impl ConnectionLimits {
    /// Of all places, those that strangers cannot have.
    fn reserved_for_known(&self) -> usize {
        self.most / 8
    }

    fn tick(&self) -> Duration {
        (self.header_time.min(self.idle_time) / TICKS).max(Duration::from_millis(1))
    }

    /// A time in ticks. One that began within a tick is over when so many more have passed.
    fn ticks(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos().div_ceil(self.tick().as_nanos())).unwrap_or(u64::MAX)
    }
}

/// The connections of one server. Cheap to clone.
#[derive(Clone)]
pub struct Connections(Arc<Shared>);

struct Shared {
    rules: ConnectionLimits,
    tick: AtomicU64,
    book: Mutex<Book>,
    /// Asked to go, and not gone yet.
    leaving: AtomicUsize,
    left: Notify,
    meter: ConnectionMeter,
}

#[derive(Default)]
struct Book {
    next: u64,
    seats: HashMap<u64, Arc<Seat>>,
    by_peer: HashMap<IpAddr, usize>,
    strangers: usize,
    /// Connections whose TLS handshake is under way.
    handshakes: usize,
    /// Addresses that have shown a valid key, and when.
    known: HashMap<IpAddr, u64>,
}

/// Whom a newcomer may send away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Of(IpAddr),
    Strangers,
    /// Those whose TLS handshake is under way.
    Handshakes,
    /// For a stranger: whoever has shown no key. For others: whoever has nothing under way.
    Anybody {
        stranger: bool,
    },
}

impl Connections {
    pub fn new(rules: ConnectionLimits, meter: ConnectionMeter) -> Connections {
        Connections(Arc::new(Shared {
            rules,
            tick: AtomicU64::new(0),
            book: Mutex::default(),
            leaving: AtomicUsize::new(0),
            left: Notify::new(),
            meter,
        }))
    }

    /// Closes what has waited too long. Runs until it is dropped.
    pub async fn watch(self) {
        let mut tick = tokio::time::interval(self.0.rules.tick());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.0.close_the_late();
        }
    }

    /// A place for a connection of this address, if need be another's. `None`: it is refused.
    pub fn place(&self, address: IpAddr) -> Option<SocketPlace> {
        let place = self.0.place(address);
        if place.is_none() {
            self.0.meter.closed("full");
        }
        place
    }

    /// Waits until those that were sent away are gone, as far as their descriptors are needed.
    pub async fn settled(&self) {
        loop {
            let left = self.0.left.notified();
            if self.0.leaving.load(Ordering::SeqCst) < MOST_LEAVING {
                return;
            }
            left.await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.tick.load(Ordering::Relaxed)
    }

    fn place(self: &Arc<Self>, address: IpAddr) -> Option<SocketPlace> {
        let peer = peer_of(address);
        let trusted = self.is_trusted(address);
        let mut book = self.lock();
        let stranger = !trusted && book.known.get(&peer).is_none_or(|at| self.now() - at >= REMEMBERED);
        let of_peer = book.by_peer.get(&peer).copied().unwrap_or(0);
        if !trusted && of_peer >= self.rules.per_peer && !self.make_room(&mut book, Whom::Of(peer)) {
            return None;
        }
        let for_strangers = self.rules.most - self.rules.reserved_for_known();
        if stranger && book.strangers >= for_strangers && !self.make_room(&mut book, Whom::Strangers) {
            return None;
        }
        let shaking = self.rules.handshakes;
        if shaking.is_some_and(|most| book.handshakes >= most) && !self.make_room(&mut book, Whom::Handshakes) {
            return None;
        }
        if book.seats.len() >= self.rules.most && !self.make_room(&mut book, Whom::Anybody { stranger }) {
            return None;
        }
        let id = book.next;
        book.next += 1;
        let seat = Arc::new(Seat::new(id, peer, stranger, self.clone()));
        book.seats.insert(id, seat.clone());
        *book.by_peer.entry(peer).or_default() += 1;
        book.strangers += usize::from(stranger);
        book.handshakes += usize::from(shaking.is_some());
        self.meter.open.inc();
        Some(SocketPlace::new(seat))
    }

    /// This machine, and proxies that speak for many.
    fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.rules.trusted.iter().any(|net| net.contains(&address))
    }

    /// Sends away those that are worth least. Several at once where there are many places, so that
    /// a crowd that comes again and again does not have all of them looked at for each of its
    /// sockets.
    fn make_room(&self, book: &mut Book, whom: Whom) -> bool {
        let most = match whom {
            Whom::Of(_) => 1,
            Whom::Strangers | Whom::Handshakes | Whom::Anybody { .. } => 1 + self.rules.most / 256,
        };
        let candidates = book.seats.values().filter_map(|seat| {
            let load = book.by_peer.get(&seat.peer).copied().unwrap_or(0);
            Candidate::of(seat, load).filter(|candidate| candidate.fits(seat, whom))
        });
        let mut made = false;
        for chosen in choice::least(candidates.collect(), most) {
            let Some(seat) = book.seats.get(&chosen.id()).cloned() else { continue };
            if self.send_away(book, &seat, "evicted") {
                made = true;
            }
        }
        made
    }

    /// Ends a connection that has nothing under way. False: it has begun something in this moment.
    fn send_away(&self, book: &mut Book, seat: &Arc<Seat>, why: &'static str) -> bool {
        if !seat.end() {
            return false;
        }
        self.leaving.fetch_add(1, Ordering::SeqCst);
        self.meter.closed(why);
        self.strike_out(book, seat);
        true
    }

    fn strike_out(&self, book: &mut Book, seat: &Seat) {
        if book.seats.remove(&seat.id).is_none() {
            return;
        }
        if let Some(count) = book.by_peer.get_mut(&seat.peer) {
            *count -= 1;
            if *count == 0 {
                book.by_peer.remove(&seat.peer);
            }
        }
        if seat.is_stranger() {
            book.strangers -= 1;
        }
        if seat.is_shaking() {
            book.handshakes -= 1;
        }
        if seat.is_proven() {
            self.remember(book, seat.peer);
        }
    }

    fn remember(&self, book: &mut Book, peer: IpAddr) {
        let now = self.now();
        if book.known.len() >= KNOWN && !book.known.contains_key(&peer) {
            book.known.retain(|_, at| now - *at < REMEMBERED);
            let oldest = book.known.iter().min_by_key(|(_, at)| **at).map(|(peer, _)| *peer);
            if let Some(oldest) = oldest.filter(|_| book.known.len() >= KNOWN) {
                book.known.remove(&oldest);
            }
        }
        book.known.insert(peer, now);
    }

    fn close_the_late(&self) {
        let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        let (head, idle) = (self.rules.ticks(self.rules.header_time), self.rules.ticks(self.rules.idle_time));
        let mut book = self.lock();
        let late: Vec<Arc<Seat>> = book.seats.values().filter(|seat| seat.is_late(now, head, idle)).cloned().collect();
        for seat in late {
            let why = if seat.has_asked() { "idle" } else { "silent" };
            self.send_away(&mut book, &seat, why);
        }
    }
}

/// Whoever has one address of an IPv6 network usually has all of it.
fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)).into(),
        four => four,
    }
}

/// A place for a test of something else.
#[cfg(test)]
pub fn test_place() -> SocketPlace {
    let minute = Duration::from_secs(60);
    let rules = ConnectionLimits {
        most: 8,
        per_peer: 8,
        header_time: minute,
        idle_time: minute,
        handshakes: None,
        trusted: Vec::new(),
    };
    Connections::new(rules, Default::default()).place([127, 0, 0, 1].into()).expect("a place")
}

#[cfg(test)]
mod tests;
