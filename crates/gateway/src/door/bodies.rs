//! One budget for the bodies of all requests in flight. A body counts from the moment it begins to
//! be read until the last of its bytes is let go: its room is part of the bytes themselves, so it
//! cannot be given back earlier or forgotten.
//!
//! A small body costs one atomic addition. A large one is also counted for its account, which has a
//! part of the budget and never all of it; accounts that cannot pay share one part. Some of the
//! budget is for small bodies only. Whoever finds no room waits a while and is then asked to come
//! back. The files of uploads, which lie on disk (`spool.rs`), have a second budget of the same
//! kind.

use crate::refusal::Refusal;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tollgate_store::AccountId;
use tollgate_wire::error::Code;

/// Bodies up to this size are small.
pub const SMALL: usize = 64 << 10;
/// How long one waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// For whom a large body is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    Account(AccountId),
    /// All accounts that cannot pay, together.
    Penniless,
}

pub struct Bodies {
    most: usize,
    /// What one account may have of it.
    part: usize,
    used: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
    large: Mutex<HashMap<Whose, usize>>,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Budget,
    Part,
}

impl Bodies {
    /// A part of the budget holds the largest body at least.
    pub fn new(most: usize, largest: usize) -> Arc<Bodies> {
        Arc::new(Bodies {
            most,
            part: (most / 4).max(largest),
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            large: Mutex::default(),
        })
    }

    /// Bytes that are counted now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Room for a body whose size is said to be this.
    pub async fn room(self: &Arc<Self>, whose: Whose, bytes: usize) -> Result<BodyShare, Refusal> {
        let mut room = BodyShare { bodies: self.clone(), whose, bytes: 0 };
        room.grow(bytes).await?;
        Ok(room)
    }

    /// The same without waiting.
    pub fn room_now(self: &Arc<Self>, whose: Whose, bytes: usize) -> Result<BodyShare, Refusal> {
        let mut room = BodyShare { bodies: self.clone(), whose, bytes: 0 };
        room.grow_now(bytes)?;
        Ok(room)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: usize, most: usize) -> Result<(), Full> {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        self.used.try_update(Ordering::SeqCst, Ordering::SeqCst, fits).map(drop).map_err(|_| Full::Budget)
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }
}

/// What a body takes of the budget, until it is dropped.
pub struct BodyShare {
    bodies: Arc<Bodies>,
    whose: Whose,
    bytes: usize,
}

impl BodyShare {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// For another account from now on; nothing large is in it yet.
    pub fn belongs_to(&mut self, whose: Whose) {
        debug_assert!(self.bytes <= SMALL);
        self.whose = whose;
    }

    /// Room for so many bytes in all, now or when others have let go of theirs.
    pub async fn grow(&mut self, to: usize) -> Result<(), Refusal> {
        if self.take(to).is_ok() {
            return Ok(());
        }
        let bodies = self.bodies.clone();
        let _waiting = Waiting::new(&bodies.waiting);
        let until = Instant::now() + PATIENCE;
        loop {
            // Listened for before it is looked at, so that nothing is missed between the two.
            let freed = bodies.freed.notified();
            let full = match self.take(to) {
                Ok(()) => return Ok(()),
                Err(full) => full,
            };
            if tokio::time::timeout_at(until, freed).await.is_err() {
                return Err(refusal_of(full));
            }
        }
    }

    pub fn grow_now(&mut self, to: usize) -> Result<(), Refusal> {
        self.take(to).map_err(refusal_of)
    }

    fn take(&mut self, to: usize) -> Result<(), Full> {
        let Some(more) = to.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        if to <= SMALL {
            self.bodies.take(more, self.bodies.most)?;
        } else {
            self.take_large(to, more)?;
        }
        self.bytes = to;
        Ok(())
    }

    /// All or nothing: what was taken and given back again would wake those who wait, and this one
    /// too.
    fn take_large(&self, to: usize, more: usize) -> Result<(), Full> {
        let counted = if self.bytes > SMALL { self.bytes } else { 0 };
        let mut large = self.bodies.lock();
        let of_account = large.get(&self.whose).copied().unwrap_or(0) - counted + to;
        if of_account > self.bodies.part {
            return Err(Full::Part);
        }
        self.bodies.take(more, self.bodies.most - self.bodies.most / 8)?;
        large.insert(self.whose, of_account);
        Ok(())
    }

    /// Gives back what is more than this.
    pub fn shrink(&mut self, to: usize) {
        let Some(less) = self.bytes.checked_sub(to).filter(|less| *less > 0) else { return };
        if self.bytes > SMALL {
            let stays = if to > SMALL { to } else { 0 };
            let mut large = self.bodies.lock();
            if let Some(of_account) = large.get_mut(&self.whose) {
                *of_account -= self.bytes - stays;
                if *of_account == 0 {
                    large.remove(&self.whose);
                }
            }
        }
        self.bytes = to;
        self.bodies.give_back(less);
    }

    /// The bytes with their room: it is given back when the last of them is let go.
    pub fn keep(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _room: self })
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

struct CountedBytes {
    bytes: Bytes,
    _room: BodyShare,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts one who waits, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refusal_of(full: Full) -> Refusal {
    match full {
        Full::Budget => Refusal::new(Code::Overloaded, "Too many large requests are being served; send it again soon."),
        Full::Part => Refusal::new(
            Code::RateLimitExceeded,
            "The large requests of this account that are under way take all the room it may have; wait until some of them have ended.",
        ),
    }
    .after(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Whose = Whose::Account(AccountId([1; 16]));
    const TWO: Whose = Whose::Account(AccountId([2; 16]));
    const MIB: usize = 1 << 20;

    fn code(refused: Result<BodyShare, Refusal>) -> Option<Code> {
        refused.err().map(|refusal| refusal.code)
    }

    #[tokio::test]
    async fn one_account_never_has_all_of_it_and_small_bodies_find_room() {
        let bodies = Bodies::new(64 * MIB, 8 * MIB);
        let one: Vec<BodyShare> = (0..2).map(|_| bodies.room_now(ONE, 8 * MIB).expect("room")).collect();
        assert_eq!(code(bodies.room_now(ONE, 8 * MIB)), Some(Code::RateLimitExceeded));
        let others: Vec<BodyShare> = (3..8)
            .map(|n| bodies.room_now(Whose::Account(AccountId([n; 16])), 8 * MIB))
            .collect::<Result<_, _>>()
            .expect("room");
        assert_eq!(code(bodies.room_now(TWO, 8 * MIB)), Some(Code::Overloaded), "the rest is for small ones");
        let small: Vec<BodyShare> =
            (0..128).map(|_| bodies.room_now(ONE, SMALL)).collect::<Result<_, _>>().expect("room");
        assert_eq!(code(bodies.room_now(ONE, 1)), Some(Code::Overloaded), "all of it is taken");
        assert_eq!(bodies.used(), 64 * MIB);
        drop((one, others, small));
        assert_eq!((bodies.used(), bodies.lock().len()), (0, 0));
    }

    #[tokio::test]
    async fn those_who_cannot_pay_share_one_part() {
        let bodies = Bodies::new(64 * MIB, 8 * MIB);
        let _all: Vec<BodyShare> = (0..2).map(|_| bodies.room_now(Whose::Penniless, 8 * MIB).expect("room")).collect();
        assert_eq!(code(bodies.room_now(Whose::Penniless, SMALL + 1)), Some(Code::RateLimitExceeded));
        assert!(bodies.room_now(ONE, 8 * MIB).is_ok());
    }

    #[tokio::test]
    async fn the_bytes_have_their_room_until_the_last_of_them_is_gone() {
        let bodies = Bodies::new(64 * MIB, 8 * MIB);
        let room = bodies.room(ONE, 3 * MIB).await.expect("room");
        let whole = room.keep(Bytes::from(vec![7; 3 * MIB]));
        let end = whole.slice(MIB..);
        drop(whole);
        assert_eq!((end.len(), bodies.used()), (2 * MIB, 3 * MIB));
        drop(end);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test]
    async fn a_body_that_grows_is_counted_once() {
        let bodies = Bodies::new(64 * MIB, 8 * MIB);
        let mut room = bodies.room(ONE, SMALL).await.expect("room");
        for to in [SMALL + 1, MIB, MIB, 8 * MIB] {
            room.grow(to).await.expect("room");
            assert_eq!((bodies.used(), bodies.lock()[&ONE]), (to, to));
        }
        assert!(room.grow_now(17 * MIB).is_err(), "more than a part");
        assert_eq!((bodies.used(), bodies.lock()[&ONE]), (8 * MIB, 8 * MIB), "as before");
        room.shrink(MIB);
        assert_eq!((bodies.used(), bodies.lock()[&ONE]), (MIB, MIB), "and shrinks");
        room.shrink(2 * MIB);
        room.shrink(SMALL);
        assert_eq!((bodies.used(), bodies.lock().len()), (SMALL, 0), "a small one counts for no account");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_served_when_another_lets_go_and_not_for_ever() {
        let bodies = Bodies::new(64 * MIB, 16 * MIB);
        let first = bodies.room(ONE, 16 * MIB).await.expect("room");
        let second = bodies.room(ONE, MIB);
        let (second, ()) = tokio::join!(second, async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(first);
        });
        assert_eq!(second.expect("room").bytes(), MIB);
        let _first = bodies.room(ONE, 16 * MIB).await.expect("room");
        let began = Instant::now();
        assert_eq!(code(bodies.room(ONE, MIB).await), Some(Code::RateLimitExceeded));
        assert_eq!(began.elapsed(), PATIENCE);
        assert_eq!((bodies.waiting.load(Ordering::SeqCst), bodies.used()), (0, 16 * MIB));
    }
}
