//! How often each maker was asked: all questions that make nothing, and the most of them within any
//! second. What a caller's manners are is seen here, where the limits are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The questions to one maker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub all: u64,
    /// The most that arrived within any second.
    pub most: usize,
    /// Arrivals of the last second, in milliseconds.
    last: VecDeque<i64>,
}

impl Asked {
    fn arrived(&mut self, at_ms: i64) {
        self.all += 1;
        self.last.push_back(at_ms);
        while self.last.front().is_some_and(|first| *first <= at_ms - 1_000) {
            self.last.pop_front();
        }
        self.most = self.most.max(self.last.len());
    }
}

/// By the maker's name.
#[derive(Default)]
pub(crate) struct Rates(Mutex<BTreeMap<&'static str, Asked>>);

impl Rates {
    pub(super) fn arrived(&self, maker: &'static str, at_ms: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(maker).or_default().arrived(at_ms);
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets what was; counting begins anew.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_within_any_second() {
        let mut asked = Asked::default();
        for at in [0, 600, 900, 1_000, 1_100, 1_599, 5_000] {
            asked.arrived(at);
        }
        assert_eq!((asked.all, asked.most), (7, 5), "600 to 1599");
    }
}
