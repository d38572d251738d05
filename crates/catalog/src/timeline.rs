//! Prices with a date. A model's prices change at the instants its table names; which are in force
//! is decided by the time of the call. All replicas that read the same catalog change at the same
//! instant, without reading it again.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{Book, Face, Model, Snapshot, VendorList};

/// Other prices from an instant on. They replace the prices before as a whole.
#[derive(Clone, Debug)]
pub struct DatedPrices {
    /// Milliseconds since 1970.
    pub from_ms: i64,
    pub book: Book,
    pub list: Option<VendorList>,
}

/// The stretches of time between two changes of any model, each with the version of all prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Periods {
    pub(crate) first: Arc<str>,
    /// By time, each instant once.
    pub(crate) later: Vec<(i64, Arc<str>)>,
}

impl Periods {
    /// Which one an instant is in; 0 is the one before all changes.
    pub(crate) fn at(&self, at_ms: i64) -> usize {
        self.later.partition_point(|(from, _)| *from <= at_ms)
    }

    pub(crate) fn version(&self, period: usize) -> &Arc<str> {
        match period.checked_sub(1).and_then(|at| self.later.get(at)) {
            Some((_, version)) => version,
            None => &self.first,
        }
    }

    /// The versions one after the other, without instants that change no price.
    pub(crate) fn versions(&self) -> Vec<(i64, &str)> {
        let mut all = vec![(i64::MIN, &*self.first)];
        for (from, version) in &self.later {
            if all.last().is_some_and(|(_, last)| *last != &**version) {
                all.push((*from, version));
            }
        }
        all
    }
}

impl Model {
    /// The prices in force at an instant.
    pub fn book_at(&self, at_ms: i64) -> &Book {
        self.dated(at_ms).map_or(&self.book, |change| &change.book)
    }

    /// The vendor's prices at that instant.
    pub fn list_at(&self, at_ms: i64) -> Option<&VendorList> {
        match self.dated(at_ms) {
            Some(change) => change.list.as_ref(),
            None => self.list.as_ref(),
        }
    }

    fn dated(&self, at_ms: i64) -> Option<&DatedPrices> {
        let passed = self.changes.partition_point(|change| change.from_ms <= at_ms);
        passed.checked_sub(1).and_then(|at| self.changes.get(at))
    }

    /// The changes that are still to come.
    pub fn coming(&self, at_ms: i64) -> &[DatedPrices] {
        &self.changes[self.changes.partition_point(|change| change.from_ms <= at_ms)..]
    }

    /// The prices of all times.
    pub fn books(&self) -> impl Iterator<Item = &Book> {
        std::iter::once(&self.book).chain(self.changes.iter().map(|change| &change.book))
    }

    /// Whether it has a price for a face at any time.
    pub fn ever_sells(&self, face: Face) -> bool {
        self.books().any(|book| book.standard.has(face))
    }
}

impl Snapshot {
    /// Hash of the prices in force at an instant: the same for the same prices however the files
    /// are arranged.
    pub fn pricing_version(&self, at_ms: i64) -> &str {
        self.periods.version(self.periods.at(at_ms))
    }

    /// The stretch of time an instant is in. Within it nothing that is shown of prices changes.
    pub fn period(&self, at_ms: i64) -> usize {
        self.periods.at(at_ms)
    }

    /// When prices change next.
    pub fn next_change(&self, at_ms: i64) -> Option<i64> {
        self.periods.later.get(self.periods.at(at_ms)).map(|(from, _)| *from)
    }
}

/// An instant as records write it: RFC 3339, UTC.
pub fn instant(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| at_ms.to_string(), |at| at.to_string())
}
