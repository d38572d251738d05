//! What was asked in vain. An empty answer costs the operator and is not charged, so the same question is not sent
//! again for a while, and an account has only so many of them an hour. Kept by each replica for itself.

use crate::world::Millis;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tollgate_store::AccountId;

#[derive(Default)]
pub struct Memory {
    /// Until when a question is known to have no answer.
    vain: Mutex<HashMap<[u8; 32], Millis>>,
    accounts: Mutex<HashMap<AccountId, (Millis, u32)>>,
}

const HOUR: Millis = 3_600_000;
/// Questions and accounts remembered; beyond, those past their time go, then all.
const MOST: usize = 100_000;

impl Memory {
    /// Whether this question had no answer a short while ago.
    pub fn is_vain(&self, question: &[u8; 32], now: Millis) -> bool {
        let vain = self.vain.lock().unwrap_or_else(PoisonError::into_inner);
        vain.get(question).is_some_and(|until| *until > now)
    }

    pub fn note_vain(&self, question: [u8; 32], until: Millis, now: Millis) {
        let mut vain = self.vain.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut vain, |until| *until > now);
        vain.insert(question, until);
    }

    /// Seconds until the account may ask again; `None` when it may now.
    pub fn wait(&self, account: AccountId, most: u32, now: Millis) -> Option<u32> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (hour, count) = accounts.get(&account)?;
        let over = *hour == now.div_euclid(HOUR) && *count >= most;
        over.then(|| u32::try_from((HOUR - now.rem_euclid(HOUR) + 999) / 1_000).unwrap_or(1))
    }

    pub fn count(&self, account: AccountId, now: Millis) {
        let this = now.div_euclid(HOUR);
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut accounts, |(hour, _)| *hour == this);
        let entry = accounts.entry(account).or_insert((this, 0));
        *entry = if entry.0 == this { (this, entry.1 + 1) } else { (this, 1) };
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

    #[test]
    fn a_question_is_vain_for_a_while_and_an_account_has_its_share() {
        let memory = Memory::default();
        memory.note_vain([1; 32], 1_000, 0);
        assert!(memory.is_vain(&[1; 32], 999) && !memory.is_vain(&[1; 32], 1_000) && !memory.is_vain(&[2; 32], 0));
        let account = AccountId([7; 16]);
        for _ in 0..3 {
            assert_eq!(memory.wait(account, 3, HOUR + 1_000), None);
            memory.count(account, HOUR + 1_000);
        }
        assert_eq!(memory.wait(account, 3, HOUR + 1_000), Some(3_599));
        assert_eq!(memory.wait(account, 3, 2 * HOUR), None, "the next hour");
    }
}
