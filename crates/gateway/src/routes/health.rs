//! How each cell is doing, from real traffic: the health shown in the catalog, and when a cell is
//! to be paused by itself.

use crate::world::Millis;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate_store::AccountId;

/// How a call that reached the source ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    Data,
    NoResult,
    /// The source or the way there failed.
    Fault,
    /// Our account, key or table is at fault.
    Operator,
}

impl CallResult {
    pub fn works(self) -> bool {
        matches!(self, CallResult::Data | CallResult::NoResult)
    }
}

#[derive(Default)]
pub struct Health {
    cells: Mutex<HashMap<String, Cell>>,
    /// How often in a row each provider refused our key, over all cells.
    refusals: Mutex<HashMap<String, u32>>,
}

#[derive(Default)]
struct Cell {
    /// Calls and how many of them worked, per hour; newest last.
    hours: VecDeque<(Millis, u64, u64)>,
    last_at: Millis,
    operator_in_a_row: u32,
    /// The calls of the last minutes, for the decision to pause.
    recent: VecDeque<(Millis, bool, AccountId)>,
}

const WINDOW_HOURS: Millis = 24;
const HOUR: Millis = 3_600_000;
/// So many of the operator's faults in a row pause a cell.
const IN_A_ROW: u32 = 5;
/// Or nine failures in ten over at least so many calls of the last ten minutes.
const MANY: usize = 20;
/// They must be of several accounts: who asks for things that do not exist sees failures only, and
/// must not close the cell for all.
const ACCOUNTS: usize = 2;
const RECENT: Millis = 600_000;
const MAX_RECENT: usize = 1_000;

impl Health {
    fn cells(&self) -> MutexGuard<'_, HashMap<String, Cell>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, model: &str, seen: CallResult, account: AccountId, now: Millis) {
        let mut cells = self.cells();
        let cell = cells.entry(model.to_owned()).or_default();
        let hour = now.div_euclid(HOUR);
        if cell.hours.back().is_none_or(|(at, ..)| *at != hour) {
            cell.hours.push_back((hour, 0, 0));
        }
        if let Some((_, calls, good)) = cell.hours.back_mut() {
            *calls += 1;
            *good += u64::from(seen.works());
        }
        // A clock that jumps makes hours that are out of order; none stays beside more than a day
        // of others.
        while cell.hours.len() > WINDOW_HOURS as usize + 1 {
            cell.hours.pop_front();
        }
        cell.last_at = now;
        cell.operator_in_a_row = if seen == CallResult::Operator { cell.operator_in_a_row + 1 } else { 0 };
        cell.recent.push_back((now, seen.works(), account));
        while cell.recent.len() > MAX_RECENT || cell.recent.front().is_some_and(|(at, ..)| now - at > RECENT) {
            cell.recent.pop_front();
        }
    }

    /// A provider was asked and refused our key, or did not. Is it time to stop asking it?
    pub fn asked(&self, provider: &str, refused: bool) -> bool {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused {
            refusals.remove(provider);
            return false;
        }
        let count = refusals.entry(provider.to_owned()).or_default();
        *count += 1;
        let enough = *count >= IN_A_ROW;
        if enough {
            refusals.remove(provider);
        }
        enough
    }

    /// Why a cell should be paused, if it should.
    pub fn trouble(&self, model: &str, now: Millis) -> Option<String> {
        let cells = self.cells();
        let cell = cells.get(model)?;
        if cell.operator_in_a_row >= IN_A_ROW {
            return Some(format!("{IN_A_ROW} calls in a row were refused by the source for the operator's reasons"));
        }
        let recent = || cell.recent.iter().filter(|(at, ..)| now - at <= RECENT);
        let (calls, bad) = (recent().count(), recent().filter(|(_, good, _)| !good).count());
        if calls < MANY || bad * 10 < calls * 9 {
            return None;
        }
        let accounts: HashSet<AccountId> =
            recent().filter(|(_, good, _)| !good).map(|(.., account)| *account).collect();
        (accounts.len() >= ACCOUNTS).then(|| format!("{bad} of {calls} calls failed within ten minutes"))
    }

    /// After a pause or a resumption old failures count no more.
    pub fn start_over(&self, model: &str) {
        if let Some(cell) = self.cells().get_mut(model) {
            cell.operator_in_a_row = 0;
            cell.recent.clear();
        }
    }

    /// As the public catalog shows it; null without traffic.
    pub fn record(&self, model: &str, now: Millis) -> Value {
        let cells = self.cells();
        let since = now.div_euclid(HOUR) - WINDOW_HOURS;
        let Some(cell) = cells.get(model) else { return Value::Null };
        let hours = cell.hours.iter().filter(|(hour, ..)| *hour > since);
        let (calls, good) = hours.fold((0, 0), |(calls, good), (_, more, fine)| (calls + more, good + fine));
        if calls == 0 {
            return Value::Null;
        }
        // Per mille, so that no long fraction is shown.
        let ratio = good * 1_000 / calls;
        json!({
            "window_hours": WINDOW_HOURS,
            "sample_size": calls,
            "success_ratio": ratio as f64 / 1_000.0,
            "last_checked_at": cell.last_at / 1_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AccountId = AccountId([1; 16]);
    const TWO: AccountId = AccountId([2; 16]);

    #[test]
    fn pauses_are_due_after_five_operator_faults_in_a_row_or_nine_in_ten_failures() {
        let health = Health::default();
        for _ in 0..4 {
            health.add("m", CallResult::Operator, ONE, 0);
        }
        assert!(health.trouble("m", 0).is_none());
        health.add("m", CallResult::Data, ONE, 0);
        health.add("m", CallResult::Operator, ONE, 0);
        assert!(health.trouble("m", 0).is_none(), "the row was broken");
        for _ in 0..4 {
            health.add("m", CallResult::Operator, ONE, 0);
        }
        assert!(health.trouble("m", 0).is_some_and(|why| why.starts_with("5 calls in a row")));
        health.start_over("m");
        assert!(health.trouble("m", 0).is_none());

        for n in 0..20 {
            assert!(health.trouble("n", n).is_none(), "too few to tell");
            health.add(
                "n",
                if n < 2 { CallResult::NoResult } else { CallResult::Fault },
                if n == 7 { TWO } else { ONE },
                n,
            );
        }
        assert_eq!(health.trouble("n", 20).as_deref(), Some("18 of 20 calls failed within ten minutes"));
        assert!(health.trouble("n", RECENT + 30).is_none(), "that was long ago");
    }

    #[test]
    fn the_failures_of_one_account_pause_nothing() {
        let health = Health::default();
        for n in 0..100 {
            health.add("m", CallResult::Fault, ONE, n);
        }
        assert!(health.trouble("m", 100).is_none(), "it may ask for what does not exist");
        health.add("m", CallResult::Data, TWO, 100);
        assert!(health.trouble("m", 100).is_none(), "another one is served");
        health.add("m", CallResult::Fault, TWO, 100);
        assert_eq!(health.trouble("m", 100).as_deref(), Some("101 of 102 calls failed within ten minutes"));
    }

    #[test]
    fn a_key_that_is_refused_five_times_in_a_row_is_wrong() {
        let health = Health::default();
        let refused = [true, true, true, true, false, true, true, true, true, true, true];
        let tries: Vec<usize> = (0..refused.len()).filter(|at| health.asked("p", refused[*at])).collect();
        assert_eq!(tries, [9], "the row began anew after the answer, and after the telling");
    }

    #[test]
    fn health_is_of_the_last_day() {
        let health = Health::default();
        assert!(health.record("m", 0).is_null());
        health.add("m", CallResult::Fault, ONE, 0);
        health.add("m", CallResult::Data, ONE, 5 * HOUR);
        health.add("m", CallResult::NoResult, ONE, 6 * HOUR);
        let record = health.record("m", 7 * HOUR);
        assert_eq!((record["sample_size"].as_u64(), record["success_ratio"].as_f64()), (Some(3), Some(0.666)));
        assert_eq!(
            health.record("m", 25 * HOUR)["success_ratio"].as_f64(),
            Some(1.0),
            "the fault is more than a day old"
        );
        assert!(health.record("m", 60 * HOUR).is_null());
    }
}
