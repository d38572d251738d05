//! Limits on spending by UTC day and month. A hold or an extension counts on the day and in the
//! month it is made; what a call gives back when it ends is taken off again as long as that day or
//! month lasts. Ledger time goes back only when a clock that was far ahead is put right; then what
//! counted in a day that has not come counts today. PostgreSQL does the same sums in
//! `functions.sql`.

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

use crate::clock::BOUND_MS;

const DAY_MS: i64 = 86_400_000;

/// The most that may be spent: ever, per UTC day, per UTC month. `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Ever. Of a key only.
    #[serde(rename = "total_nano_usd")]
    pub total: Option<Money>,
    #[serde(rename = "day_nano_usd")]
    pub day: Option<Money>,
    #[serde(rename = "month_nano_usd")]
    pub month: Option<Money>,
}

/// A change of limits; what is not named stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewLimits {
    pub total: Change,
    pub day: Change,
    pub month: Change,
}

/// A change of something that there may be none of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change<T = Money> {
    #[default]
    Keep,
    /// No limit any more.
    Lift,
    Set(T),
}

impl<T> Change<T> {
    /// What it is set to.
    pub(crate) fn set(&self) -> Option<&T> {
        if let Self::Set(new) = self { Some(new) } else { None }
    }

    /// What there is afterwards, if anything changes.
    pub(crate) fn after(&self) -> Option<Option<&T>> {
        (!matches!(self, Self::Keep)).then(|| self.set())
    }
}

impl Change {
    /// Whether anything changes, and to what.
    pub(crate) fn parts(self) -> (bool, Option<i64>) {
        match self {
            Self::Keep => (false, None),
            Self::Lift => (true, None),
            Self::Set(limit) => (true, Some(limit.nano())),
        }
    }

    fn apply(self, limit: &mut Option<Money>) {
        match self {
            Self::Keep => {}
            Self::Lift => *limit = None,
            Self::Set(new) => *limit = Some(new),
        }
    }
}

impl NewLimits {
    pub(crate) fn apply(self, limits: &mut Limits) {
        self.total.apply(&mut limits.total);
        self.day.apply(&mut limits.day);
        self.month.apply(&mut limits.month);
    }
}

/// What counts in one day and one month: what was spent, and what running calls hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    #[serde(skip)]
    pub(crate) day_number: i64,
    #[serde(rename = "day_nano_usd")]
    pub day: Money,
    #[serde(skip)]
    pub(crate) month_number: i64,
    #[serde(rename = "month_nano_usd")]
    pub month: Money,
}

impl Used {
    /// As it stands at `at`: a new day or month begins with nothing, an old one never comes back.
    /// One that lies ahead by more than clocks may differ was counted by a clock that was wrong: it
    /// is this one.
    pub fn at(self, at: i64) -> Self {
        // Nearly always: what was counted up to this day is in this day's month, too.
        if self.day_number == day_of(at) && self.month_number != 0 {
            return self;
        }
        self.turned(at)
    }

    /// The same for any day.
    fn turned(self, at: i64) -> Self {
        let (day, month) = (day_of(at), month_of(at));
        let latest = at.saturating_add(BOUND_MS);
        let mut used = self;
        if day > used.day_number {
            (used.day_number, used.day) = (day, Money::ZERO);
        } else if used.day_number > day_of(latest) {
            used.day_number = day;
        }
        if month > used.month_number {
            (used.month_number, used.month) = (month, Money::ZERO);
        } else if used.month_number > month_of(latest) {
            used.month_number = month;
        }
        used
    }

    /// Counts `amount` at `at`.
    pub(crate) fn add(&mut self, at: i64, amount: i64) {
        *self = self.at(at);
        self.day = plus(self.day, amount);
        self.month = plus(self.month, amount);
    }

    /// A call ended that had counted as `call` and held `held`, and cost `captured`.
    pub(crate) fn close(&mut self, call: &Self, held: i64, captured: i64) {
        let change = captured - held;
        // A call from before there were limits counts nowhere; one of a day to come counts today,
        // for the clock was put right since.
        if call.day_number >= self.day_number && call.day_number > 0 {
            self.day = plus(self.day, change.max(-call.day.nano()));
        }
        if call.month_number >= self.month_number && call.month_number > 0 {
            self.month = plus(self.month, change.max(-call.month.nano()));
        }
    }

    /// It did not end after all: the same backwards.
    pub(crate) fn reopen(&mut self, call: &Self, held: i64, captured: i64) {
        let change = held - captured;
        if call.day_number >= self.day_number && call.day_number > 0 {
            self.day = plus(self.day, change.min(call.day.nano()));
        }
        if call.month_number >= self.month_number && call.month_number > 0 {
            self.month = plus(self.month, change.min(call.month.nano()));
        }
    }
}

fn plus(money: Money, amount: i64) -> Money {
    Money::from_nano(money.nano().saturating_add(amount).max(0))
}

/// Which limit stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    KeyTotal,
    KeyDay,
    KeyMonth,
    AccountDay,
    AccountMonth,
}

impl LimitKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::KeyTotal, Self::KeyDay, Self::KeyMonth, Self::AccountDay, Self::AccountMonth];

    /// As the functions of PostgreSQL call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KeyTotal => "key_total",
            Self::KeyDay => "key_day",
            Self::KeyMonth => "key_month",
            Self::AccountDay => "account_day",
            Self::AccountMonth => "account_month",
        }
    }
}

/// A limit does not leave enough for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached {
    pub kind: LimitKind,
    pub limit: Money,
    /// When the limit starts anew; `None` when waiting cannot help.
    pub frees_at: Option<i64>,
}

/// Whether `amount` more at `at` keeps the limits. `spent` is what counts against the total.
pub(crate) fn check(
    limits: &Limits,
    (day, month): (LimitKind, LimitKind),
    spent: i64,
    used: &Used,
    at: i64,
    amount: i64,
) -> Result<(), LimitReached> {
    let used = used.at(at);
    let over = |limit: Option<Money>, used: i64| limit.filter(|limit| used.saturating_add(amount) > limit.nano());
    // A key without a limit has that of its column.
    if let Some(limit) = over(Some(limits.total.unwrap_or(crate::ledger::bounds::MOST_OF_KEY)), spent) {
        return Err(LimitReached { kind: LimitKind::KeyTotal, limit, frees_at: None });
    }
    let ends = |limit: Money, at: i64| (amount <= limit.nano()).then_some(at);
    if let Some(limit) = over(limits.day, used.day.nano()) {
        return Err(LimitReached { kind: day, limit, frees_at: ends(limit, day_ends(used.day_number)) });
    }
    if let Some(limit) = over(limits.month, used.month.nano()) {
        return Err(LimitReached { kind: month, limit, frees_at: ends(limit, month_ends(used.month_number)) });
    }
    Ok(())
}

/// The most that keeps the limits at `at`.
pub(crate) fn room(limits: &Limits, spent: i64, used: &Used, at: i64) -> i64 {
    let used = used.at(at);
    let left = |limit: Option<Money>, used: i64| limit.map_or(i64::MAX, |limit| limit.nano().saturating_sub(used));
    let days = left(limits.day, used.day.nano()).min(left(limits.month, used.month.nano()));
    left(limits.total, spent).min(days)
}

/// Days since 1970, in UTC.
pub(crate) fn day_of(at: i64) -> i64 {
    at.div_euclid(DAY_MS)
}

/// Months since the year 0, in UTC.
pub(crate) fn month_of(at: i64) -> i64 {
    civil(at).0
}

/// A UTC day as people write it: 2026-02-28.
pub fn date(at: i64) -> String {
    let (month, day) = civil(at);
    format!("{:04}-{:02}-{day:02}", month.div_euclid(12), month.rem_euclid(12) + 1)
}

/// Month since the year 0 and day of that month.
fn civil(at: i64) -> (i64, i64) {
    // The calendar in eras of 400 years whose years begin in March, so that the leap day is the
    // last of a year.
    let day = day_of(at) + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    ((era * 400 + year) * 12 + march_month + 2, day - (153 * march_month + 2) / 5 + 1)
}

/// When the UTC day after this moment begins.
pub fn next_day(at: i64) -> i64 {
    day_ends(day_of(at))
}

/// When the UTC month after this moment begins.
pub fn next_month(at: i64) -> i64 {
    month_ends(month_of(at))
}

/// The first moment after a day.
fn day_ends(day: i64) -> i64 {
    (day + 1) * DAY_MS
}

/// The first moment after a month.
fn month_ends(month: i64) -> i64 {
    let (year, march_month) = ((month + 1 - 2).div_euclid(12), (month + 1 - 2).rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = 365 * year + year / 4 - year / 100 + (153 * march_month + 2) / 5;
    (era * 146_097 + day - 719_468) * DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(seconds: i64) -> i64 {
        seconds * 1_000
    }

    #[test]
    fn days_and_months_in_utc() {
        // Seconds since 1970, year and month (January = 0) they lie in, first second of the next
        // month.
        let table = [
            (0, 1970, 0, 2_678_400),
            (951_782_400, 2000, 1, 951_868_800),      // 29 February 2000, 00:00
            (951_868_799, 2000, 1, 951_868_800),      // its last second
            (951_868_800, 2000, 2, 954_547_200),      // 1 March
            (1_709_164_800, 2024, 1, 1_709_251_200),  // 29 February 2024
            (1_709_251_200, 2024, 2, 1_711_929_600),  // through a change to summer time elsewhere
            (1_735_689_599, 2024, 11, 1_735_689_600), // the last second of a year
            (1_735_689_600, 2025, 0, 1_738_368_000),
            (4_107_542_399, 2100, 1, 4_107_542_400), // 2100 is no leap year
        ];
        for (at, year, month, ends) in table {
            let number = month_of(ms(at));
            assert_eq!((number / 12, number % 12), (year, month), "{at}");
            assert_eq!(month_ends(number), ms(ends), "{at}");
            assert_eq!(month_of(ms(ends) - 1), number, "{at}");
            assert_eq!(month_of(ms(ends)), number + 1, "{at}");
            assert_eq!(day_ends(day_of(ms(at))) % DAY_MS, 0);
        }
        for (at, shown) in [(0, "1970-01-01"), (951_868_799, "2000-02-29"), (1_735_689_599, "2024-12-31")] {
            assert_eq!(date(ms(at)), shown);
        }
    }

    #[test]
    fn a_day_counts_what_was_held_and_keeps_what_was_spent() {
        let midnight = DAY_MS * 100;
        let mut key = Used::default();
        let mut call = Used::default();
        for used in [&mut key, &mut call] {
            used.add(midnight - 5, 80);
        }
        key.close(&call, 80, 30);
        assert_eq!((key.day.nano(), key.month.nano()), (30, 30));
        // Another is held before midnight, extended and closed after it: its first part is
        // yesterday's affair.
        let mut call = Used::default();
        for used in [&mut key, &mut call] {
            used.add(midnight - 1, 50);
            used.add(midnight + 1, 20);
        }
        assert_eq!((key.day.nano(), key.month.nano()), (20, 100));
        key.close(&call, 70, 10);
        assert_eq!((key.day.nano(), key.month.nano()), (0, 40));
    }

    #[test]
    fn a_call_of_another_day_or_of_before_there_were_limits_counts_nowhere() {
        let mut none = Used::default();
        none.close(&Used::default(), 10, 30);
        assert_eq!(none, Used::default());
        let at = |day: i64| {
            let mut used = Used::default();
            used.add(DAY_MS * day, 50);
            used
        };
        // Days 100 and 101 are in April 1970, day 150 in May.
        let (april, next, may) = (at(100), at(101), at(150));
        let closed = |mut used: Used, call: &Used| {
            used.close(call, 50, 20);
            (used.day.nano(), used.month.nano())
        };
        assert_eq!(closed(april, &april), (20, 20));
        assert_eq!(closed(next, &april), (50, 20));
        assert_eq!(closed(may, &april), (50, 50));
        // The day of a call is known and its month is not.
        assert_eq!(closed(april, &Used { month_number: 0, month: Money::ZERO, ..april }), (20, 50));
        // An end that did not happen is taken back where it counted, and nowhere else.
        let reopened = |mut used: Used, call: &Used| {
            used.reopen(call, 50, 20);
            (used.day.nano(), used.month.nano())
        };
        assert_eq!(reopened(april, &april), (80, 80));
        assert_eq!(reopened(next, &april), (50, 80));
        assert_eq!(reopened(may, &april), (50, 50));
        assert_eq!(reopened(Used::default(), &Used { day_number: 0, month_number: 0, ..april }), (0, 0));
    }

    #[test]
    fn the_next_day_and_month_begin_at_midnight() {
        let (noon, day) = (DAY_MS * 100 + DAY_MS / 2, DAY_MS * 100);
        assert_eq!([next_day(noon), next_day(day), next_day(day - 1)], [day + DAY_MS, day + DAY_MS, day]);
        // 1 May 1970.
        assert_eq!([next_month(noon), next_month(DAY_MS * 120 - 1)], [DAY_MS * 120; 2]);
        assert_eq!(next_month(DAY_MS * 120), DAY_MS * 151);
    }

    #[test]
    fn limits_and_their_changes_reach_the_database() {
        let parts = [Change::Keep, Change::Lift, Change::Set(Money::from_nano(7))].map(Change::parts);
        assert_eq!(parts, [(false, None), (true, None), (true, Some(7))]);
        let names = LimitKind::ALL.map(LimitKind::name);
        assert_eq!(names, ["key_total", "key_day", "key_month", "account_day", "account_month"]);
    }

    #[test]
    fn a_clock_that_goes_back_opens_no_day_again() {
        let mut used = Used::default();
        used.add(DAY_MS * 100, 10);
        used.add(DAY_MS * 100 - BOUND_MS, 5);
        assert_eq!((used.day_number, used.day.nano()), (100, 15));
    }

    proptest::proptest! {
        /// Whatever clocks said before: a day that is the same has the same month.
        #[test]
        fn the_same_day_needs_no_look_at_the_month(times in proptest::collection::vec((0..40_000_i64, 0..DAY_MS, 1..9_i64), 1..20)) {
            let mut used = Used::default();
            for (day, moment, amount) in times {
                for at in [day * DAY_MS + moment, day * DAY_MS + moment + BOUND_MS / 2] {
                    proptest::prop_assert_eq!(used.at(at), used.turned(at));
                    used.add(at, amount);
                }
            }
        }
    }

    #[test]
    fn what_a_wrong_clock_counted_in_a_day_to_come_counts_today() {
        let noon = DAY_MS * 100 + DAY_MS / 2;
        let mut used = Used::default();
        let mut call = Used::default();
        for used in [&mut used, &mut call] {
            used.add(noon + 400 * DAY_MS, 10);
        }
        used.add(noon, 5);
        assert_eq!((used.day_number, used.day.nano(), used.month.nano()), (100, 15, 15));
        assert_eq!(used.month_number, month_of(noon));
        used.close(&call, 10, 3);
        assert_eq!((used.day.nano(), used.month.nano()), (8, 8), "what the call gives back too");
        assert_eq!(used.at(noon + DAY_MS).day.nano(), 0, "and tomorrow begins with nothing");
        // Tomorrow may have begun elsewhere by a clock that is not wrong.
        used.add(DAY_MS * 101, 2);
        assert_eq!(used.at(DAY_MS * 101 - BOUND_MS).day_number, 101);
        assert_eq!(used.at(DAY_MS * 101 - BOUND_MS - 1).day_number, 100);
    }

    #[test]
    fn the_limit_that_stands_in_the_way_is_named() {
        let at = DAY_MS * 100;
        let limits = |total, day, month| Limits {
            total: Some(Money::from_nano(total)),
            day: Some(Money::from_nano(day)),
            month: Some(Money::from_nano(month)),
        };
        let mut used = Used::default();
        used.add(at, 40);
        let kinds = (LimitKind::KeyDay, LimitKind::KeyMonth);
        let hit = |limits: Limits, amount| {
            check(&limits, kinds, 40, &used, at, amount).err().map(|hit| (hit.kind, hit.frees_at))
        };
        assert_eq!(hit(limits(100, 100, 100), 60), None);
        assert_eq!(hit(limits(99, 50, 50), 60), Some((LimitKind::KeyTotal, None)));
        assert_eq!(hit(limits(100, 99, 99), 60), Some((LimitKind::KeyDay, Some(at + DAY_MS))));
        assert_eq!(hit(limits(100, 100, 99), 60), Some((LimitKind::KeyMonth, Some(month_ends(month_of(at))))));
        assert_eq!(hit(limits(100, 50, 100), 60), Some((LimitKind::KeyDay, None)), "no day has room for this call");
        assert_eq!(hit(limits(i64::MAX, i64::MAX, i64::MAX), i64::MAX), None, "sums stop at the largest number");
    }
}
