//! Places for sessions: so many of one key and of one account at once.

use crate::refusal::Refusal;
use crate::settings::RealtimeSettings;
use crate::who::caller::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate_store::{AccountId, KeyId};
use tollgate_wire::error::Code;

#[derive(Default)]
struct Taken {
    keys: HashMap<KeyId, usize>,
    accounts: HashMap<AccountId, usize>,
}

/// All of them.
#[derive(Clone, Default)]
pub struct SessionPlaces(Arc<Mutex<Taken>>);

/// One session's place, until it is dropped.
pub struct SessionPlace {
    places: SessionPlaces,
    key: KeyId,
    account: AccountId,
}

impl SessionPlaces {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions that are open now.
    pub fn open(&self) -> usize {
        self.lock().accounts.values().sum()
    }

    pub fn take(&self, caller: &Caller, settings: &RealtimeSettings) -> Result<SessionPlace, Refusal> {
        let (key, account) = (caller.key.id, caller.account.id);
        let mut taken = self.lock();
        let of = |count: Option<&usize>| count.copied().unwrap_or(0);
        let full = |whose: &str, most: usize| {
            let text = format!("This {whose} has {most} realtime sessions open, which is all that it may have.");
            Refusal::new(Code::RateLimitExceeded, text).because("sessions").after(5)
        };
        if of(taken.keys.get(&key)) >= settings.sessions_per_key {
            return Err(full("key", settings.sessions_per_key));
        }
        if of(taken.accounts.get(&account)) >= settings.sessions_per_account {
            return Err(full("account", settings.sessions_per_account));
        }
        *taken.keys.entry(key).or_default() += 1;
        *taken.accounts.entry(account).or_default() += 1;
        Ok(SessionPlace { places: self.clone(), key, account })
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        leave(&mut taken.keys, &self.key);
        leave(&mut taken.accounts, &self.account);
    }
}

fn leave<K: std::hash::Hash + Eq>(taken: &mut HashMap<K, usize>, whose: &K) {
    if let Some(count) = taken.get_mut(whose) {
        *count -= 1;
        if *count == 0 {
            taken.remove(whose);
        }
    }
}
