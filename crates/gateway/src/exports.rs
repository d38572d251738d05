//! How many may write out the usage log at once: some in all, and fewer of one account, so that
//! nobody who reads slowly is in the way of the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tollgate_store::AccountId;

const MOST: u32 = 16;
const MOST_OF_ONE: u32 = 2;

#[derive(Default)]
pub struct Exports {
    /// By account; operators count as one.
    running: Mutex<HashMap<Option<AccountId>, u32>>,
}

/// One that runs. It ends when this is dropped.
pub struct Exporting {
    all: Arc<Exports>,
    of: Option<AccountId>,
}

impl Exports {
    /// `None`: too many run.
    pub fn begin(self: &Arc<Self>, of: Option<AccountId>) -> Option<Exporting> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let own = running.get(&of).copied().unwrap_or(0);
        if own >= MOST_OF_ONE || running.values().sum::<u32>() >= MOST {
            return None;
        }
        running.insert(of, own + 1);
        Some(Exporting { all: self.clone(), of })
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        let mut running = self.all.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = running.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                running.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bound_in_all_and_for_each() {
        let exports = Arc::new(Exports::default());
        let account = |n: u8| Some(AccountId([n; 16]));
        let own: Vec<_> = (0..MOST_OF_ONE).filter_map(|_| exports.begin(account(1))).collect();
        assert_eq!(own.len(), 2);
        assert!(exports.begin(account(1)).is_none());
        let others: Vec<_> = (2..16).filter_map(|n| exports.begin(account(n))).collect();
        assert_eq!(others.len(), 14);
        assert!(exports.begin(None).is_none(), "all places are taken");
        drop(own);
        assert!(exports.begin(account(1)).is_some() && exports.begin(None).is_some());
        drop(others);
        assert!(exports.running.lock().expect("a lock").is_empty(), "nothing is left behind");
    }
}
