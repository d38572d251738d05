//! Waits against guessing and flooding: counted by address (a /24 or a /64), by what is guessed
//! at, by both, and in all. The wait grows with each attempt and is forgotten after an hour; nobody
//! is locked out for good, since a lock would be a weapon. An attempt counts when it begins, so
//! that a thousand at once are no different from a thousand in a row, and is taken back when it
//! succeeds.
//!
//! Each replica counts for itself. The counts are bounded; with more, those with the fewest
//! attempts are forgotten first.

use crate::people_meter::PeopleMeter;
use crate::refusal::Refusal;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tollgate_wire::error::Code;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
/// Counts of each kind at most.
const MOST: usize = 20_000;
/// So many are looked at for the one that is forgotten.
const LOOKED_AT: usize = 64;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardedAct {
    /// A password or a code.
    SignIn,
    /// Something that sends mail to an address that somebody typed.
    Mail,
    /// A one-time token.
    Token,
    /// An invite, by its account.
    Invite,
    /// Any change of somebody who is signed in: each leaves a row for good.
    Change,
    /// A passkey that comes or goes: each sends a letter to its person.
    Passkey,
}

/// So many attempts pass; then each waits twice as long as the one before.
#[derive(Clone, Copy)]
struct WaitRule {
    free: u32,
    first: i64,
    most: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Address,
    Subject,
    Both,
    All,
}

impl GuardedAct {
    pub const fn word(self) -> &'static str {
        match self {
            GuardedAct::SignIn => "sign_in",
            GuardedAct::Mail => "mail",
            GuardedAct::Token => "token",
            GuardedAct::Invite => "invite",
            GuardedAct::Change => "change",
            GuardedAct::Passkey => "passkey",
        }
    }

    fn rule(self, counted: Counted) -> Option<WaitRule> {
        let rule = |free, first, most| Some(WaitRule { free, first, most });
        match (self, counted) {
            (GuardedAct::SignIn, Counted::Both) => rule(5, SECOND, 15 * MINUTE),
            // Others guess at it from elsewhere: its owner waits half a minute, not an hour.
            (GuardedAct::SignIn, Counted::Subject) => rule(50, SECOND, 30 * SECOND),
            (GuardedAct::SignIn, Counted::Address) => rule(100, SECOND, 15 * MINUTE),
            (GuardedAct::Mail, Counted::Subject) => rule(3, MINUTE, HOUR),
            (GuardedAct::Mail, Counted::Address) => rule(10, 10 * SECOND, HOUR),
            (GuardedAct::Token, Counted::Address) => rule(20, SECOND, 15 * MINUTE),
            (GuardedAct::Invite, Counted::Subject) => rule(20, 30 * SECOND, HOUR),
            (GuardedAct::Change, Counted::Subject) => rule(200, SECOND, HOUR),
            (GuardedAct::Passkey, Counted::Subject) => rule(20, MINUTE, HOUR),
            (GuardedAct::SignIn | GuardedAct::Token, Counted::All) => rule(3_000, SECOND, MINUTE),
            (GuardedAct::Mail | GuardedAct::Invite, Counted::All) => rule(1_000, SECOND, MINUTE),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct WaitCount {
    attempts: u32,
    last: i64,
    until: i64,
}

type WaitKey = (GuardedAct, [u8; 16]);

/// All counts, those of each kind by themselves: a flood of addresses forgets no e-mail.
#[derive(Default)]
pub struct GuardedWaits {
    counts: Mutex<HashMap<Counted, HashMap<WaitKey, WaitCount>>>,
    meter: PeopleMeter,
}

/// An attempt that was let pass.
pub struct BegunAct<'a> {
    waits: &'a GuardedWaits,
    attempt: GuardedAct,
    keys: Vec<(Counted, [u8; 16])>,
}

impl GuardedWaits {
    pub fn counting(meter: PeopleMeter) -> GuardedWaits {
        GuardedWaits { meter, ..GuardedWaits::default() }
    }

    /// Lets an attempt pass, and counts it, or says how long to wait. Whether what is guessed at is
    /// there makes no difference.
    pub fn begin(
        &self,
        attempt: GuardedAct,
        subject: &str,
        address: IpAddr,
        now: i64,
    ) -> Result<BegunAct<'_>, Refusal> {
        let block = block_of(address);
        let keys = [
            (Counted::All, name(&[])),
            (Counted::Address, name(&[&block])),
            (Counted::Subject, name(&[subject])),
            (Counted::Both, name(&[subject, &block])),
        ];
        let keys: Vec<_> = keys.into_iter().filter(|(counted, _)| attempt.rule(*counted).is_some()).collect();
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let until = |(counted, key): &(Counted, [u8; 16])| {
            let found = all.get(counted).and_then(|map| map.get(&(attempt, *key)));
            found.filter(|count| now - count.last < HOUR).map_or(0, |count| count.until)
        };
        let until = keys.iter().map(until).max().unwrap_or(0);
        if until > now {
            let seconds = u32::try_from((until - now + SECOND - 1) / SECOND).unwrap_or(u32::MAX);
            self.meter.waits(attempt.word());
            let text = format!("Too many attempts; wait {seconds} s.");
            return Err(Refusal::new(Code::RateLimitExceeded, text).because("attempts").after(seconds));
        }
        for (counted, key) in &keys {
            let Some(rule) = attempt.rule(*counted) else { continue };
            let map = all.entry(*counted).or_default();
            make_room(map, now);
            let count = map.entry((attempt, *key)).or_default();
            // What is counted of all is what comes within a minute.
            let forgotten = if *counted == Counted::All { MINUTE } else { HOUR };
            if now - count.last >= forgotten {
                *count = WaitCount::default();
            }
            if *counted != Counted::All || count.attempts == 0 {
                count.last = now;
            }
            count.attempts = count.attempts.saturating_add(1);
            if let Some(above) = count.attempts.checked_sub(rule.free) {
                count.until = now.saturating_add(rule.first.saturating_mul(1 << above.min(20)).min(rule.most));
            }
        }
        Ok(BegunAct { waits: self, attempt, keys })
    }

    /// Counts there are.
    pub fn len(&self) -> usize {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).values().map(HashMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BegunAct<'_> {
    /// It was no guess: what is known of whoever did it is forgotten, and the others count one
    /// less.
    pub fn succeeded(self) {
        let mut all = self.waits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (counted, key) in &self.keys {
            let Some(map) = all.get_mut(counted) else { continue };
            let key = (self.attempt, *key);
            match counted {
                Counted::Both | Counted::Subject => {
                    map.remove(&key);
                }
                Counted::Address | Counted::All => {
                    if let Some(count) = map.get_mut(&key) {
                        count.attempts = count.attempts.saturating_sub(1);
                    }
                }
            }
        }
    }
}

/// Room for one more.
fn make_room(map: &mut HashMap<WaitKey, WaitCount>, now: i64) {
    if map.len() < MOST {
        return;
    }
    map.retain(|_, count| now - count.last < HOUR);
    if map.len() >= MOST {
        let least = map.iter().take(LOOKED_AT).min_by_key(|(_, count)| count.attempts).map(|(key, _)| *key);
        least.map(|key| map.remove(&key));
    }
}

/// The neighbours of an address, who are taken for one.
fn block_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(four) => {
            let [a, b, c, _] = four.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

fn name(parts: &[&str]) -> [u8; 16] {
    let text: String = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut name = [0; 16];
    name.copy_from_slice(&hash[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn wait(waits: &GuardedWaits, subject: &str, address: &str, now: i64) -> Option<u32> {
        waits.begin(GuardedAct::SignIn, subject, ip(address), now).err().and_then(|refusal| refusal.retry_after)
    }

    #[test]
    fn waits_grow_and_end() {
        let waits = GuardedWaits::default();
        let mut now = 0;
        for _ in 0..5 {
            assert_eq!(wait(&waits, "a", "10.0.0.1", now), None);
        }
        for expected in [1, 2, 4, 8] {
            assert_eq!(wait(&waits, "a", "10.0.0.200", now), Some(expected), "the neighbour waits too");
            now += i64::from(expected) * SECOND;
            assert_eq!(wait(&waits, "a", "10.0.0.1", now), None);
        }
        assert_eq!(wait(&waits, "a", "10.0.1.1", now), None, "its owner comes from elsewhere");
        assert_eq!(wait(&waits, "b", "10.0.0.1", now), None, "somebody else");
        for _ in 0..40 {
            now += i64::from(wait(&waits, "a", "10.0.0.1", now).unwrap_or(0)) * SECOND;
        }
        assert!(wait(&waits, "a", "10.0.0.1", now).is_none_or(|seconds| seconds <= 900), "never above its most");
        assert_eq!(wait(&waits, "a", "10.0.0.1", now + 2 * HOUR), None, "and it is forgotten");
    }

    #[test]
    fn an_e_mail_that_many_guess_at_makes_its_owner_wait_half_a_minute_at_most() {
        let waits = GuardedWaits::default();
        for n in 0..200 {
            let _ = wait(&waits, "a", &format!("10.{}.{}.1", n / 100, n % 100), 0);
        }
        assert!(wait(&waits, "a", "192.0.2.1", 0).is_some_and(|seconds| seconds <= 30));
        assert_eq!(wait(&waits, "a", "192.0.2.1", 30 * SECOND), None);
    }

    #[test]
    fn a_success_is_no_attempt() {
        let waits = GuardedWaits::default();
        for _ in 0..1_000 {
            waits.begin(GuardedAct::SignIn, "a", ip("2001:db8::1"), 0).expect("let pass").succeeded();
        }
    }

    #[test]
    fn the_counts_are_bounded_and_forget_the_smallest_first() {
        let waits = GuardedWaits::default();
        for _ in 0..8 {
            let _ = wait(&waits, "victim", "10.0.0.1", 0);
        }
        for n in 0..50_000u32 {
            let _ = waits.begin(
                GuardedAct::Mail,
                &n.to_string(),
                IpAddr::from(n.to_be_bytes()),
                i64::from(n / 500) * MINUTE,
            );
            let _ = waits.begin(GuardedAct::SignIn, &n.to_string(), IpAddr::from(n.to_be_bytes()), 0);
        }
        assert!(waits.len() <= 4 * MOST, "{}", waits.len());
        assert!(wait(&waits, "victim", "10.0.0.1", 0).is_some(), "still waits");
    }
}
