//! Days that are over are added up once more, by a worker: of the whole house by quarter of an hour
//! and by day, and of each account and key by day. A question reads those instead of quarters of
//! accounts wherever they say the same. Whoever changes a quarter of a day that was folded touches
//! the day with it, in one transaction; until the day is folded again, its quarters are read. So an
//! answer is exact at any moment. Days are those of UTC: a day of another zone is cut at its ends.

use super::{SUM_KEY, SUMS, SumColumn, SumQuery, UsageSum};
use crate::ids::{AccountId, KeyId};
use crate::sums::SumKey;

/// Quarters of a day.
pub(crate) const DAY: i64 = 96;
/// A day is folded so long after its end, when nearly all of its calls have ended.
const SETTLED_MS: i64 = 3_600_000;
/// The most sums that a question reads: so many take a third of a second.
pub(crate) const MOST_READ: usize = 300_000;

/// The day up to which days are over, by a clock.
pub(crate) fn over(now_ms: i64) -> i64 {
    now_ms.saturating_sub(SETTLED_MS).div_euclid(86_400_000)
}

/// Which days are folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// Those before this one.
    pub until: i64,
    /// But for these, in order.
    pub touched: Vec<i64>,
}

impl Folded {
    pub fn has(&self, day: i64) -> bool {
        day < self.until && self.touched.binary_search(&day).is_err()
    }
}

/// Where sums are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumSource {
    /// `usage_quarter`
    Quarters,
    /// `usage_house`, by quarter.
    HouseQuarters,
    /// `usage_house`, by day.
    HouseDays,
    /// `usage_day`
    Days,
}

impl SumSource {
    pub const ALL: [Self; 4] = [Self::Quarters, Self::HouseQuarters, Self::HouseDays, Self::Days];

    pub fn table(self) -> &'static str {
        match self {
            Self::Quarters => "usage_quarter",
            Self::HouseQuarters | Self::HouseDays => "usage_house",
            Self::Days => "usage_day",
        }
    }

    /// The column of time, and how many quarters one of it is.
    pub fn time(self) -> (&'static str, i64) {
        match self {
            Self::Days => ("day", DAY),
            _ => ("quarter", 1),
        }
    }

    /// Reads all of it, by the columns of [`SUM_KEY`]: those of the house have no account and key.
    pub fn all(self) -> String {
        let (time, _) = self.time();
        let house = matches!(self, Self::HouseQuarters | Self::HouseDays);
        let key = SUM_KEY.iter().map(|column| match *column {
            "account_id" | "key_id" if house => format!("CAST(NULL AS bytea) AS {column}"),
            "quarter" => time.to_owned(),
            other => other.to_owned(),
        });
        let columns: Vec<String> = key.chain(SUMS.iter().map(|column| (*column).to_owned())).collect();
        format!("SELECT {} FROM {} WHERE {}1 = 1", columns.join(", "), self.table(), self.condition())
    }

    /// What rows of the table are of this source, with AND after it.
    pub fn condition(self) -> &'static str {
        match self {
            Self::HouseQuarters => "width = 1 AND ",
            Self::HouseDays => "width = 96 AND ",
            Self::Quarters | Self::Days => "",
        }
    }
}

/// Stretches of quarters that are read from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumPart {
    pub source: SumSource,
    pub ranges: Vec<(i64, i64)>,
}

impl SumPart {
    /// The values of the column of time that are read, where there are several stretches.
    pub fn values(&self) -> Vec<i64> {
        let (_, width) = self.source.time();
        let step = if self.source == SumSource::HouseDays { DAY } else { width };
        let all = self.ranges.iter().flat_map(|(from, to)| (*from..*to).step_by(usize::try_from(step).unwrap_or(1)));
        all.map(|quarter| quarter.div_euclid(width)).collect()
    }

    /// The one stretch of it, by its column of time.
    pub fn range(&self) -> Option<(i64, i64)> {
        let (_, width) = self.source.time();
        match self.ranges.as_slice() {
            [(from, to)] => Some((from.div_euclid(width), to.div_euclid(width))),
            _ => None,
        }
    }
}

impl SumQuery {
    /// Whether accounts and keys do not matter.
    pub(crate) fn of_the_house(&self) -> bool {
        let apart = [SumColumn::Key, SumColumn::Account, SumColumn::Groups];
        self.filter.account.is_none()
            && !self.filter.wanted.iter().any(|(column, _)| *column == "key_id")
            && !self.by.iter().any(|column| apart.contains(column))
    }

    /// From where the time of a question is read.
    pub(crate) fn parts(&self, folded: &Folded) -> Vec<SumPart> {
        let house = self.of_the_house();
        let mut parts: Vec<SumPart> =
            SumSource::ALL.into_iter().map(|source| SumPart { source, ranges: Vec::new() }).collect();
        let mut cuts = self.spans.iter().copied().peekable();
        let mut from = self.from;
        while from < self.to {
            let day = from.div_euclid(DAY);
            let (begins, ends) = (day * DAY, (day + 1) * DAY);
            let to = ends.min(self.to);
            while cuts.next_if(|cut| *cut <= begins).is_some() {}
            let whole = from == begins && to == ends && cuts.peek().is_none_or(|cut| *cut >= ends);
            let source = match (folded.has(day), house, whole) {
                (true, true, true) => SumSource::HouseDays,
                (true, true, false) => SumSource::HouseQuarters,
                (true, false, true) => SumSource::Days,
                _ => SumSource::Quarters,
            };
            for part in parts.iter_mut().filter(|part| part.source == source) {
                match part.ranges.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => part.ranges.push((from, to)),
                }
            }
            from = to;
        }
        parts.retain(|part| !part.ranges.is_empty());
        parts
    }
}

/// One day of sums, added up.
#[derive(Debug, Default)]
pub(crate) struct FoldedDay {
    pub day: i64,
    /// How often it had been touched when its quarters were read.
    pub times: i64,
    /// By account and key; the quarter is the day's number.
    pub days: Vec<(SumKey, UsageSum)>,
    /// Of the house, by width and quarter.
    pub house: Vec<(i64, SumKey, UsageSum)>,
}

impl SumKey {
    /// The same for the whole house.
    pub(crate) fn of_the_house(mut self, quarter: i64) -> Self {
        (self.account, self.key, self.quarter) = (AccountId([0; 16]), KeyId([0; 16]), quarter);
        self
    }
}

/// The columns of a sum of the house, but for its width.
pub(crate) const HOUSE_KEY: [&str; 6] = ["quarter", "model", "endpoint", "ending", "provider", "upstream_model"];

/// [`SUM_KEY`] with another column of time.
pub(crate) fn day_key() -> Vec<&'static str> {
    SUM_KEY.iter().map(|column| if *column == "quarter" { "day" } else { column }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::{SumAsk, SumViewer};

    fn parts(by: &str, tz: &str, folded: &Folded) -> Vec<(SumSource, Vec<(i64, i64)>)> {
        let text = |text: &str| Some(text.to_owned());
        let by = (!by.is_empty()).then(|| by.to_owned());
        let ask = SumAsk { from: text("2026-09-01"), to: text("2026-09-05"), tz: text(tz), by, ..SumAsk::default() };
        let query = ask.checked(SumViewer::Operator, 0).expect("a question");
        query.parts(folded).into_iter().map(|part| (part.source, part.ranges)).collect()
    }

    const FIRST: i64 = 20_697;
    const Q: i64 = FIRST * DAY;

    #[test]
    fn whole_days_are_read_as_days_and_the_rest_by_quarters() {
        use SumSource::{Days, HouseDays, HouseQuarters, Quarters};
        let all = Folded { until: FIRST + 10, touched: vec![] };
        assert_eq!(parts("", "UTC", &all), [(HouseDays, vec![(Q, Q + 4 * DAY)])]);
        assert_eq!(parts("day,account", "UTC", &all), [(Days, vec![(Q, Q + 4 * DAY)])]);
        // Of Nepal's days none is one of UTC; of the whole time the inner ones are.
        assert_eq!(parts("day", "Asia/Kathmandu", &all), [(HouseQuarters, vec![(Q - 23, Q + 4 * DAY - 23)])]);
        assert_eq!(parts("day,key", "Asia/Kathmandu", &all), [(Quarters, vec![(Q - 23, Q + 4 * DAY - 23)])]);
        assert_eq!(
            parts("key", "Asia/Kathmandu", &all),
            [(Quarters, vec![(Q - 23, Q), (Q + 3 * DAY, Q + 4 * DAY - 23)]), (Days, vec![(Q, Q + 3 * DAY)])]
        );
        // A day that was touched is one of the rest.
        let week = parts("week,key", "Asia/Kathmandu", &Folded { until: FIRST + 10, touched: vec![FIRST + 1] });
        assert_eq!(
            week,
            [
                (Quarters, vec![(Q - 23, Q), (Q + DAY, Q + 2 * DAY), (Q + 3 * DAY, Q + 4 * DAY - 23)]),
                (Days, vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 3 * DAY)])
            ]
        );
        // What is not folded, or was touched, is read by quarters of accounts.
        let some = Folded { until: FIRST + 3, touched: vec![FIRST + 1] };
        assert_eq!(
            parts("model", "UTC", &some),
            [
                (Quarters, vec![(Q + DAY, Q + 2 * DAY), (Q + 3 * DAY, Q + 4 * DAY)]),
                (HouseDays, vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 3 * DAY)])
            ]
        );
        assert_eq!(parts("model", "UTC", &Folded::default()), [(Quarters, vec![(Q, Q + 4 * DAY)])]);
    }

    #[test]
    fn stretches_become_values_of_the_column_of_time() {
        let part = |source, ranges| SumPart { source, ranges };
        let days = part(SumSource::Days, vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 4 * DAY)]);
        assert_eq!((days.values(), days.range()), (vec![FIRST, FIRST + 2, FIRST + 3], None));
        let house = part(SumSource::HouseDays, vec![(Q, Q + 2 * DAY), (Q + 3 * DAY, Q + 4 * DAY)]);
        assert_eq!(house.values(), [Q, Q + DAY, Q + 3 * DAY]);
        assert_eq!(part(SumSource::Days, vec![(Q, Q + 2 * DAY)]).range(), Some((FIRST, FIRST + 2)));
        assert_eq!(part(SumSource::Quarters, vec![(Q, Q + 2), (Q + 5, Q + 6)]).values(), [Q, Q + 1, Q + 5]);
    }
}
