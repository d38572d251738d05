//! Rows about refused calls, bounded for each key: so many of a minute are written one by one, the
//! others of that minute as one row that says how many they were. Whoever is refused pays nothing,
//! so nobody may fill the usage log that way.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::call::UsageFacts;
use crate::ids::{AccountId, CallId, KeyId};

/// Rows of one key and minute that are written one by one.
pub const REFUSALS_PER_MINUTE: u32 = 60;

const MINUTE: i64 = 60_000;

/// A row to be written.
#[derive(Clone, Debug)]
pub(crate) struct RefusalRow {
    pub call: CallId,
    pub account: AccountId,
    pub reason: String,
    pub row: UsageFacts,
}

/// What keys were refused in the current minute.
#[derive(Default)]
pub(crate) struct Refusals {
    keys: Mutex<HashMap<KeyId, Minute>>,
    summed: AtomicU64,
}

struct Minute {
    number: i64,
    noted: u32,
    rest: Option<Rest>,
}

/// Refusals that share a row: that of the first of them.
struct Rest {
    first: RefusalRow,
    reasons: BTreeMap<String, u64>,
}

impl Refusals {
    fn keys(&self) -> MutexGuard<'_, HashMap<KeyId, Minute>> {
        // A panic while the lock was held leaves a count at worst one short.
        self.keys.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Refusals so far that have no row of their own.
    pub fn summed(&self) -> u64 {
        self.summed.load(Ordering::Relaxed)
    }

    /// What is to be written now that this call was refused.
    pub fn note(&self, refused: RefusalRow) -> Vec<RefusalRow> {
        let number = refused.row.at.div_euclid(MINUTE);
        let mut keys = self.keys();
        let minute = keys.entry(refused.row.key).or_insert(Minute { number, noted: 0, rest: None });
        let mut rows = Vec::new();
        if minute.number != number {
            rows.extend(minute.rest.take().map(Rest::summed));
            (minute.number, minute.noted) = (number, 0);
        }
        if minute.noted < REFUSALS_PER_MINUTE {
            minute.noted += 1;
            rows.push(refused);
            return rows;
        }
        self.summed.fetch_add(1, Ordering::Relaxed);
        match &mut minute.rest {
            Some(rest) => rest.add(&refused),
            None => {
                let reasons = BTreeMap::from([(refused.reason.clone(), 1)]);
                minute.rest = Some(Rest { first: refused, reasons });
            }
        }
        rows
    }

    /// The sums of minutes that are over; of all, where nobody will ask again (`None`).
    pub fn due(&self, now: Option<i64>) -> Vec<RefusalRow> {
        let mut rows = Vec::new();
        self.keys().retain(|_, minute| {
            let over = now.is_none_or(|now| minute.number != now.div_euclid(MINUTE));
            if over {
                rows.extend(minute.rest.take().map(Rest::summed));
            }
            !over
        });
        rows
    }
}

impl Rest {
    fn add(&mut self, refused: &RefusalRow) {
        *self.reasons.entry(refused.reason.clone()).or_default() += 1;
        self.first.row.ended_at = self.first.row.ended_at.max(refused.row.ended_at);
    }

    fn summed(self) -> RefusalRow {
        let calls: u64 = self.reasons.values().sum();
        let mut first = self.first;
        first.row.raw_usage = Some(serde_json::json!({ "refused_calls": calls, "reasons": self.reasons }).to_string());
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(key: u8, at: i64, reason: &str) -> RefusalRow {
        let row = UsageFacts::unanswered(KeyId([key; 16]), at, at + 5, "chat".into(), "m".to_owned());
        RefusalRow { call: CallId([key; 16]), account: AccountId([1; 16]), reason: reason.to_owned(), row }
    }

    #[test]
    fn the_rest_of_a_minute_is_one_row_with_their_number() {
        let refusals = Refusals::default();
        let note = |at, reason| refusals.note(refused(1, at, reason)).len();
        let written: usize = (0..10_000).map(|n| note(n, "no_money")).sum();
        assert_eq!(written, REFUSALS_PER_MINUTE as usize);
        assert_eq!(note(10_000, "no_key"), 0);
        assert_eq!(refusals.note(refused(2, 0, "no_money")).len(), 1, "another key has a minute of its own");
        assert!(refusals.due(Some(MINUTE - 1)).is_empty(), "the minute is not over");
        let sums = refusals.due(Some(MINUTE));
        assert_eq!(sums.len(), 1);
        let line: serde_json::Value =
            serde_json::from_str(sums[0].row.raw_usage.as_deref().expect("a sum")).expect("JSON");
        let rest = 10_000 - u64::from(REFUSALS_PER_MINUTE);
        assert_eq!(
            line,
            serde_json::json!({ "refused_calls": rest + 1, "reasons": { "no_money": rest, "no_key": 1 } })
        );
        assert_eq!((sums[0].row.at, sums[0].row.ended_at), (i64::from(REFUSALS_PER_MINUTE), 10_005));
        assert!(refusals.due(None).is_empty() && refusals.keys().is_empty(), "reported once, and forgotten");
    }

    #[test]
    fn the_next_minute_begins_with_what_the_one_before_left() {
        let refusals = Refusals::default();
        for n in 0..=i64::from(REFUSALS_PER_MINUTE) {
            refusals.note(refused(1, n, "no_money"));
        }
        let rows = refusals.note(refused(1, MINUTE, "no_money"));
        assert_eq!(rows.iter().map(|row| row.row.raw_usage.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(refusals.due(None).len(), 0);
    }
}
