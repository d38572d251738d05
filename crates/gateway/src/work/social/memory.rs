//! What was asked in vain. An empty answer costs the operator and is not charged, so the same
//! question is not sent again for a while, and an account has only so many of them an hour. The
//! store has the rows; this is what a call looks at, at most a second behind what other replicas
//! found.

use crate::world::Millis;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate_store::{AccountId, CallId, SocialVain};

#[derive(Default)]
pub struct Memory(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    /// Until when a question is known to have no answer.
    vain: HashMap<[u8; 32], Millis>,
    /// Vain calls of an account in one hour.
    accounts: HashMap<AccountId, (Millis, u32)>,
    /// Calls that were counted, with their hour: a row may be read more than once.
    counted: HashMap<CallId, Millis>,
    /// When the store was last read; never: everything that may matter is read.
    read_at: Option<Millis>,
}

pub const HOUR: Millis = 3_600_000;
/// Each reading looks back further than the last one reached: clocks of replicas differ, and
/// commits take their time.
const OVERLAP: Millis = 15_000;
/// Questions, accounts and calls remembered; beyond, those past their time go, then all.
const MOST: usize = 100_000;

impl Memory {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this question had no answer a short while ago.
    pub fn is_vain(&self, question: &[u8; 32], now: Millis) -> bool {
        self.inside().vain.get(question).is_some_and(|until| *until > now)
    }

    /// A call found nothing, here or on another replica. Saying it twice changes nothing.
    pub fn note(&self, vain: &SocialVain, now: Millis) {
        let mut inside = self.inside();
        let hour = vain.at.div_euclid(HOUR);
        let this = now.div_euclid(HOUR);
        make_room(&mut inside.counted, |hour| *hour == this);
        make_room(&mut inside.vain, |until| *until > now);
        make_room(&mut inside.accounts, |(hour, _)| *hour == this);
        if inside.counted.insert(vain.call, hour).is_some() {
            return;
        }
        let until = inside.vain.entry(vain.question).or_insert(vain.until);
        *until = vain.until.max(*until);
        let (own, count) = inside.accounts.entry(vain.account).or_insert((hour, 0));
        match hour.cmp(own) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => *count += 1,
            std::cmp::Ordering::Greater => (*own, *count) = (hour, 1),
        }
    }

    /// Seconds until the account may ask again; `None` when it may now.
    pub fn wait(&self, account: AccountId, most: u32, now: Millis) -> Option<u32> {
        let inside = self.inside();
        let (hour, count) = inside.accounts.get(&account)?;
        let over = *hour == now.div_euclid(HOUR) && *count >= most;
        over.then(|| u32::try_from((HOUR - now.rem_euclid(HOUR) + 999) / 1_000).unwrap_or(1))
    }

    /// From when on the store is to be read, given how long a row can matter.
    pub fn since(&self, now: Millis, matters: Millis) -> Millis {
        self.inside().read_at.map_or(now.saturating_sub(matters), |at| at.min(now) - OVERLAP)
    }

    /// Takes over what was read.
    pub fn read(&self, rows: &[SocialVain], now: Millis) {
        for row in rows {
            self.note(row, now);
        }
        self.inside().read_at = Some(now);
    }
}

fn make_room<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, current: impl Fn(&V) -> bool) {
    if map.len() >= MOST {
        map.retain(|_, value| current(value));
        if map.len() >= MOST {
            map.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vain(n: u8, account: u8, at: Millis, until: Millis) -> SocialVain {
        SocialVain { call: CallId([n; 16]), question: [n; 32], account: AccountId([account; 16]), at, until }
    }

    #[test]
    fn a_question_is_vain_for_a_while_and_an_account_has_its_share() {
        let memory = Memory::default();
        memory.note(&vain(1, 9, 0, 1_000), 0);
        assert!(memory.is_vain(&[1; 32], 999) && !memory.is_vain(&[1; 32], 1_000) && !memory.is_vain(&[2; 32], 0));
        let (account, now) = (AccountId([7; 16]), HOUR + 1_000);
        for n in 10..13 {
            assert_eq!(memory.wait(account, 3, now), None);
            memory.note(&vain(n, 7, now, now), now);
            memory.note(&vain(n, 7, now, now), now);
        }
        assert_eq!(memory.wait(account, 3, now), Some(3_599), "three, each counted once");
        assert_eq!(memory.wait(account, 3, 2 * HOUR), None, "the next hour");
    }

    #[test]
    fn rows_of_others_count_whenever_they_are_read() {
        let memory = Memory::default();
        assert_eq!(memory.since(5 * HOUR, 2 * HOUR), 3 * HOUR, "everything that may matter");
        let now = 5 * HOUR + 60_000;
        let rows = [vain(1, 7, now - 50, now + 5_000), vain(2, 7, now - 2 * HOUR, now + 9_000)];
        memory.read(&rows, now);
        memory.read(&rows, now);
        assert!(memory.is_vain(&[1; 32], now) && memory.is_vain(&[2; 32], now));
        assert_eq!(memory.wait(AccountId([7; 16]), 1, now), Some(3_540));
        assert_eq!(memory.wait(AccountId([7; 16]), 2, now), None, "the other was two hours ago");
        assert_eq!(memory.since(now + 1_000, 2 * HOUR), now - OVERLAP);
    }
}
