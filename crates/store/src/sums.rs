//! The usage log added up by quarter of an hour, for each account, key, model, endpoint, ending and
//! route. A row of the log and its part of a sum are one transaction: on SQLite the writer adds up
//! what a group closed, on PostgreSQL triggers of the table do. All offsets of time zones are whole
//! quarters of an hour, so days of any zone are sums of these (`spans`). The audit compares both
//! (I21).

pub(crate) mod ask;
pub(crate) mod days;
pub(crate) mod folded;
pub(crate) mod packed;
pub(crate) mod pending;
mod report;
pub(crate) mod spans;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use crate::call::counters::Counter;
use crate::call::row_hash::RowFacts;
use crate::ids::{AccountId, CallId, KeyId};
use crate::route_health::QUARTER_MS;

pub use ask::{SumAsk, SumFault, SumQuery, SumViewer, UsageFilter, WrongSum};
pub(crate) use ask::{SumColumn, Wanted};

/// Rows of the log that are added to the sums in one step, where they are older than the sums.
pub const FILL_STEP: u32 = 5_000;
/// More groups than this are not added up: narrower questions are.
pub const MOST_GROUPS: usize = 50_000;

/// What one call may add at most, so that no sum can grow out of its column: a counter or a time,
/// and an amount that no account pays. `migrations/0008-usage-sums.sql` has the same numbers.
const MOST_COUNTED: i64 = 1_000_000_000_000;
const MOST_MONEY: i64 = 1_000_000_000_000_000;

/// What is added up besides the counters, by column.
const FIXED: [&str; 10] = [
    "requests",
    "estimated",
    "charge",
    "refunded",
    "write_off",
    "cost",
    "cost_unknown",
    "duration_ms",
    "first_bytes",
    "first_byte_ms",
];
const REQUESTS: usize = 0;
const ESTIMATED: usize = 1;
const CHARGE: usize = 2;
const REFUNDED: usize = 3;
const WRITE_OFF: usize = 4;
const COST: usize = 5;
const COST_UNKNOWN: usize = 6;
const DURATION: usize = 7;
const FIRST_BYTES: usize = 8;
const FIRST_BYTE: usize = 9;
pub(crate) const SUM_COLUMNS: usize = FIXED.len() + Counter::COUNT;

/// The columns of a sum, in the order of [`UsageSum`].
pub(crate) static SUMS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| FIXED.into_iter().chain(Counter::ALL.map(Counter::name)).collect());

/// The columns that say of what a row is the sum.
pub(crate) const SUM_KEY: [&str; 8] =
    ["account_id", "quarter", "key_id", "model", "endpoint", "ending", "provider", "upstream_model"];

/// What is added up, by the columns [`SUMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageSum(pub(crate) [i64; SUM_COLUMNS]);

impl Default for UsageSum {
    fn default() -> Self {
        Self([0; SUM_COLUMNS])
    }
}

impl UsageSum {
    /// What one row of the usage log adds.
    pub(crate) fn of(facts: &RowFacts<'_>, charge: i64, refunded: i64, write_off: i64) -> Self {
        let mut sum = Self::default();
        sum.add_row(facts, charge, refunded, write_off);
        sum
    }

    /// Adds what one row of the usage log adds.
    pub(crate) fn add_row(&mut self, facts: &RowFacts<'_>, charge: i64, refunded: i64, write_off: i64) {
        let mut plus = |column: usize, value: i64| self.0[column] = self.0[column].saturating_add(value);
        plus(REQUESTS, 1);
        plus(ESTIMATED, facts.estimated.into());
        plus(CHARGE, charge);
        plus(REFUNDED, refunded);
        plus(WRITE_OFF, write_off.clamp(0, MOST_MONEY));
        plus(COST, facts.cost.unwrap_or(0).clamp(0, MOST_MONEY));
        plus(COST_UNKNOWN, (charge > 0 && facts.cost.is_none()).into());
        plus(DURATION, facts.ended_at.saturating_sub(facts.at).clamp(0, MOST_COUNTED));
        plus(FIRST_BYTES, facts.first_byte_ms.is_some().into());
        plus(FIRST_BYTE, facts.first_byte_ms.unwrap_or(0).clamp(0, MOST_COUNTED));
        for (column, counter) in facts.counters.iter().enumerate() {
            // Most counters of a call are zero.
            if *counter > 0 {
                plus(FIXED.len() + column, (*counter).min(MOST_COUNTED));
            }
        }
    }

    /// What a refund adds to the sum of its call.
    pub(crate) fn refund(amount: i64) -> Self {
        let mut sum = Self::default();
        sum.0[REFUNDED] = amount;
        sum
    }

    pub(crate) fn add(&mut self, other: &UsageSum) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
    }

    /// Rows of the usage log.
    pub fn requests(&self) -> i64 {
        self.0[REQUESTS]
    }

    /// Nano-USD that customers paid, refunds not taken off.
    pub fn charge(&self) -> i64 {
        self.0[CHARGE]
    }

    pub fn refunded(&self) -> i64 {
        self.0[REFUNDED]
    }

    pub fn write_off(&self) -> i64 {
        self.0[WRITE_OFF]
    }

    /// One of the counters.
    pub fn counter(&self, counter: Counter) -> i64 {
        self.0[FIXED.len() + counter as usize]
    }

    /// A number for each difference between two sums of the same things, drawn by `key`: what it is
    /// for many rows together is the sum of what it is for each.
    pub(crate) fn print(&self, of: u64, key: u64) -> u64 {
        let weighed = (0u64..).zip(self.0).filter(|(_, value)| *value != 0).map(|(column, value)| {
            let mut hasher = DefaultHasher::new();
            (key, of, column).hash(&mut hasher);
            // Odd, so that no difference is lost.
            (hasher.finish() | 1).wrapping_mul(value.cast_unsigned())
        });
        weighed.fold(0, u64::wrapping_add)
    }
}

/// Of what a row is the sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SumKey {
    pub account: AccountId,
    pub quarter: i64,
    pub key: KeyId,
    pub model: String,
    pub endpoint: String,
    pub ending: i64,
    pub provider: String,
    pub upstream_model: String,
}

/// The same, as it stands in a row that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SumKeyRef<'a> {
    pub account: &'a [u8],
    pub quarter: i64,
    pub key: &'a [u8],
    pub model: &'a str,
    pub endpoint: &'a str,
    pub ending: i64,
    pub provider: &'a str,
    pub upstream_model: &'a str,
}

impl<'a> SumKeyRef<'a> {
    /// The sum that a row of the usage log belongs to.
    pub fn of(facts: &'a RowFacts<'a>, key: &'a [u8]) -> Self {
        Self {
            account: facts.account,
            quarter: CallId::from_slice(facts.call).map_or(0, quarter),
            key,
            model: facts.model,
            endpoint: facts.endpoint,
            ending: facts.ending,
            provider: facts.provider.unwrap_or_default(),
            upstream_model: facts.upstream_model.unwrap_or_default(),
        }
    }

    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// The quarter of an hour that a call is counted in: the one its id was made in.
pub(crate) fn quarter(call: CallId) -> i64 {
    call.made_at().div_euclid(QUARTER_MS)
}

/// The last row of the log that is in the sums, in the order of its key. Later ones are added when
/// it is their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SummedUntil {
    pub account: Option<AccountId>,
    pub call: Option<CallId>,
}

impl SummedUntil {
    pub fn read(account: &[u8], call: &[u8]) -> Self {
        Self { account: AccountId::from_slice(account), call: CallId::from_slice(call) }
    }

    /// Whether a row is in the sums.
    pub fn covers(&self, account: AccountId, call: CallId) -> bool {
        matches!((self.account, self.call), (Some(last), Some(last_call)) if (account, call) <= (last, last_call))
    }
}

/// One group of an answer: where it is in time, of what it is, and the sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumGroup {
    /// The number of its span of time, from 0; always 0 where time is not asked for.
    pub span: usize,
    /// The values of the columns asked for, as people read them.
    pub of: Vec<String>,
    pub sum: UsageSum,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_one_place() {
        let places = [
            ("requests", REQUESTS),
            ("estimated", ESTIMATED),
            ("charge", CHARGE),
            ("refunded", REFUNDED),
            ("write_off", WRITE_OFF),
            ("cost", COST),
            ("cost_unknown", COST_UNKNOWN),
            ("duration_ms", DURATION),
            ("first_bytes", FIRST_BYTES),
            ("first_byte_ms", FIRST_BYTE),
        ];
        for (name, place) in places {
            assert_eq!(SUMS[place], name);
        }
        assert_eq!(SUMS.len(), SUM_COLUMNS);
        for counter in Counter::ALL {
            assert_eq!(SUMS[FIXED.len() + counter as usize], counter.name());
        }
    }

    /// Both engines have these columns in their migration, and the triggers of PostgreSQL the same
    /// bounds.
    #[test]
    fn the_migrations_have_every_column_and_bound() {
        let files = [
            include_str!("sqlite/migrations/0008-usage-sums.sql"),
            include_str!("postgres/migrations/0008-usage-sums.sql"),
            include_str!("postgres/sums.sql"),
            include_str!("postgres/migrations/0021-usage-apart.sql"),
        ];
        for column in SUM_KEY.iter().chain(SUMS.iter()) {
            for file in &files[..2] {
                assert!(file.contains(&format!("\n  {column} ")), "{column}");
            }
            if SUMS.contains(column) {
                let adds = format!(" {column} = q.{column} + excluded.{column}");
                assert!(files[1..].iter().all(|file| file.contains(&adds)), "{column}");
            }
        }
        let days = [
            include_str!("sqlite/migrations/0017-usage-blocks.sql"),
            include_str!("postgres/migrations/0017-usage-blocks.sql"),
        ];
        for column in SUMS.iter().chain(&folded::HOUSE_KEY) {
            // Of the house, and of accounts.
            let times = |file: &str| file.matches(&format!("\n  {column} ")).count();
            assert_eq!(days.map(times), [2, 2], "{column}");
        }
        let counters = Counter::ALL.iter().map(|counter| (counter.name(), MOST_COUNTED));
        for (column, most) in counters.chain(["write_off", "cost"].map(|column| (column, MOST_MONEY))) {
            let bounds = [format!("usage_quarter_within({column}, {most})"), format!("least({column}, {most})")];
            let bound = |file: &&str| bounds.iter().any(|bound| file.contains(bound));
            assert!(files[1..].iter().all(bound), "{column}");
        }
    }

    #[test]
    fn the_print_of_many_is_the_sum_of_their_prints() {
        let (mut one, mut two) = (UsageSum::default(), UsageSum::default());
        one.0[CHARGE] = 5;
        one.0[REQUESTS] = 1;
        two.0[CHARGE] = -7;
        two.0[FIRST_BYTE] = 12;
        let mut both = one;
        both.add(&two);
        assert_eq!(both.print(3, 9), one.print(3, 9).wrapping_add(two.print(3, 9)));
        // Of another key, or under another number, it is another.
        assert_ne!(one.print(3, 9), one.print(4, 9));
        assert_ne!(one.print(3, 9), one.print(3, 8));
        // An amount in another column does not make up for it.
        let mut moved = UsageSum::default();
        moved.0[REFUNDED] = 5;
        moved.0[REQUESTS] = 1;
        assert_ne!(one.print(3, 9), moved.print(3, 9));
    }

    #[test]
    fn rows_up_to_the_last_one_are_in_the_sums() {
        let (a, b) = (AccountId([1; 16]), AccountId([2; 16]));
        let (early, late) = (CallId([1; 16]), CallId([2; 16]));
        let none = SummedUntil::read(&[], &[]);
        assert!(!none.covers(a, early));
        let until = SummedUntil::read(&a.0, &late.0);
        assert!(until.covers(a, early) && until.covers(a, late) && !until.covers(b, early));
        let until = SummedUntil::read(&b.0, &early.0);
        assert!(until.covers(a, late) && until.covers(b, early) && !until.covers(b, late));
    }
}
