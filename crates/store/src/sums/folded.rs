//! Time that is over is added up once more, by a worker: of the whole house by quarter, hour and
//! day, and of each account and key by six hours and by day. A question reads those instead of
//! quarters of accounts wherever they say the same. Whoever changes a quarter that was folded
//! touches its day with it, in one transaction; until the day is folded again, its quarters are
//! read. So an answer is exact at any moment. Days are those of UTC, and on PostgreSQL also those
//! of zones that are asked for (`postgres/zones.rs`). Days of other zones are cut at their ends.

use std::collections::HashMap;

use super::spans::SumUnit;
use super::{SUM_KEY, SUMS, SumColumn, SumQuery, UsageSum};
use crate::ids::{AccountId, KeyId};
use crate::route_health::QUARTER_MS;
use crate::sums::SumKey;

/// Quarters of a day.
pub(crate) const DAY: i64 = 96;
/// Quarters of a block: so much is folded at a time of a day that is not over.
pub(crate) const BLOCK: i64 = 24;
pub(crate) const HOUR: i64 = 4;
/// A block is folded so long after its end, when nearly all of its calls have ended.
const SETTLED_MS: i64 = 3_600_000;
/// The most sums that a question reads: so many take a third of a second.
pub(crate) const MOST_READ: usize = 300_000;
/// Zones of one question that are not at the same time: two where clocks are changed.
const MOST_SHIFTS: usize = 3;

/// The quarter up to which blocks are over, by a clock.
pub(crate) fn over(now_ms: i64) -> i64 {
    now_ms.saturating_sub(SETTLED_MS).div_euclid(QUARTER_MS * BLOCK) * BLOCK
}

/// What is folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// Quarters before this one, which is the first of a block. Of its day there are no sums by
    /// day yet.
    pub until: i64,
    /// But for these days, in order.
    pub touched: Vec<i64>,
    /// Days that are not those of UTC.
    pub zones: Vec<ZoneDays>,
    pub packed: PackedDays,
}

/// Whose quarters are packed, a row for each day (`days.rs`): those before one quarter, but for
/// some days, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedDays {
    pub until: i64,
    pub touched: Vec<i64>,
}

impl PackedDays {
    pub fn has(&self, quarter: i64) -> bool {
        quarter < self.until && self.touched.binary_search(&quarter.div_euclid(DAY)).is_err()
    }
}

/// Days that begin so many quarters before those of UTC, from one of them to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneDays {
    pub shift: i64,
    pub since: i64,
    pub until: i64,
}

impl ZoneDays {
    /// Whether the day that begins with this quarter is one of them.
    pub fn has(&self, begins: i64) -> bool {
        (begins + self.shift).rem_euclid(DAY) == 0 && self.since <= begins && begins + DAY <= self.until
    }
}

impl Folded {
    /// Whether a quarter is.
    pub fn has(&self, quarter: i64) -> bool {
        quarter < self.until && self.touched.binary_search(&quarter.div_euclid(DAY)).is_err()
    }

    /// Whether an answer that was read while this was folded is right for who took that to be
    /// folded. Days of zones only become more, until they are forgotten.
    pub fn allows(&self, taken: &Folded) -> bool {
        let zone = |was: &ZoneDays| {
            self.zones.iter().any(|is| is.shift == was.shift && is.since <= was.since && was.until <= is.until)
        };
        self.until == taken.until
            && self.touched == taken.touched
            && self.packed == taken.packed
            && taken.zones.iter().all(zone)
    }

    /// Whether the sums of a source are there that begin with this quarter.
    pub fn has_sums(&self, source: SumSource, begins: i64) -> bool {
        let last = begins + source.width() - 1;
        match source {
            SumSource::Quarters => true,
            SumSource::Packed => self.packed.has(begins),
            SumSource::Days(0) => begins.rem_euclid(DAY) == 0 && self.has(last),
            SumSource::Days(shift) => {
                self.zones.iter().any(|zone| zone.shift == shift && zone.has(begins))
                    && self.has(begins)
                    && self.has(last)
            }
            _ => begins.rem_euclid(source.width()) == 0 && self.has(last),
        }
    }
}

/// Where sums are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumSource {
    /// `usage_quarter`
    Quarters,
    /// `usage_house_sum`, by quarter, hour and day of UTC.
    HouseQuarters,
    HouseHours,
    HouseDays,
    /// `usage_account_sum`, by six hours of UTC.
    Blocks,
    /// `usage_account_sum`, by days that begin so many quarters before those of UTC.
    Days(i64),
    /// `usage_day_packed`, quarters of accounts with those of a day in one row.
    Packed,
}

impl SumSource {
    /// Those that are made of quarters of accounts and have columns of sums.
    pub const FOLDED: [Self; 5] = [Self::Days(0), Self::Blocks, Self::HouseQuarters, Self::HouseHours, Self::HouseDays];

    pub fn table(self) -> &'static str {
        match self {
            Self::Quarters => "usage_quarter",
            Self::HouseQuarters | Self::HouseHours | Self::HouseDays => "usage_house_sum",
            Self::Blocks | Self::Days(_) => "usage_account_sum",
            Self::Packed => "usage_day_packed",
        }
    }

    /// How many quarters one of its rows is of.
    pub fn width(self) -> i64 {
        match self {
            Self::Quarters | Self::HouseQuarters | Self::Packed => 1,
            Self::HouseHours => HOUR,
            Self::Blocks => BLOCK,
            Self::HouseDays | Self::Days(_) => DAY,
        }
    }

    /// Those of the house have no account and key.
    pub fn of_the_house(self) -> bool {
        matches!(self, Self::HouseQuarters | Self::HouseHours | Self::HouseDays)
    }

    /// Reads all of it, by the columns of [`SUM_KEY`].
    pub fn all(self) -> String {
        let key = SUM_KEY.iter().map(|column| match *column {
            "account_id" | "key_id" if self.of_the_house() => format!("CAST(NULL AS bytea) AS {column}"),
            other => other.to_owned(),
        });
        let columns: Vec<String> = key.chain(SUMS.iter().map(|column| (*column).to_owned())).collect();
        format!("SELECT {} FROM {} WHERE {}1 = 1", columns.join(", "), self.table(), self.condition())
    }

    /// What rows of the table are of this source, with AND after it.
    pub fn condition(self) -> String {
        match self {
            Self::Quarters | Self::Packed => String::new(),
            Self::Blocks => format!("width = {BLOCK} AND shift = 0 AND "),
            Self::Days(shift) => format!("width = {DAY} AND shift = {shift} AND "),
            house => format!("width = {} AND ", house.width()),
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
    /// The quarters that its rows begin with, where there are several stretches.
    pub fn values(&self) -> Vec<i64> {
        let step = usize::try_from(self.source.width()).unwrap_or(1);
        self.ranges.iter().flat_map(|(from, to)| (*from..*to).step_by(step)).collect()
    }

    /// The days that it has quarters of, in order.
    pub fn days(&self) -> Vec<i64> {
        let days = self.ranges.iter().flat_map(|(from, to)| from.div_euclid(DAY)..=(to - 1).div_euclid(DAY));
        let mut days: Vec<i64> = days.collect();
        days.dedup();
        days
    }

    /// The one stretch of it.
    pub fn range(&self) -> Option<(i64, i64)> {
        match self.ranges.as_slice() {
            [range] => Some(*range),
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

    /// From where the time of a question is read: at each place from the widest sums that end
    /// within its span.
    pub(crate) fn parts(&self, folded: &Folded) -> Vec<SumPart> {
        use SumSource::{Blocks, Days, HouseDays, HouseHours, HouseQuarters, Packed, Quarters};
        let wide: Vec<SumSource> = if self.of_the_house() {
            vec![HouseDays, HouseHours, HouseQuarters]
        } else {
            let zones = folded.zones.iter().map(|zone| Days(zone.shift));
            // One account has few quarters.
            let packed = self.filter.account.is_none().then_some(Packed);
            std::iter::once(Days(0)).chain(zones).chain([Blocks]).chain(packed).collect()
        };
        let mut parts: Vec<SumPart> = Vec::new();
        let mut cuts = self.spans.iter().copied().peekable();
        let mut from = self.from;
        while from < self.to {
            while cuts.next_if(|cut| *cut <= from).is_some() {}
            let end = cuts.peek().map_or(self.to, |cut| self.to.min(*cut));
            let fits = |source: &&SumSource| from + source.width() <= end && folded.has_sums(**source, from);
            let source = wide.iter().find(fits).copied().unwrap_or(Quarters);
            let to = from + source.width();
            match parts.iter_mut().find(|part| part.source == source) {
                Some(part) => match part.ranges.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => part.ranges.push((from, to)),
                },
                None => parts.push(SumPart { source, ranges: vec![(from, to)] }),
            }
            from = to;
        }
        parts
    }

    /// By how much days are ahead of those of UTC that this asks for of all accounts: sums by them
    /// would spare it reading quarters.
    pub(crate) fn shifts(&self) -> Vec<i64> {
        let by_days = matches!(self.unit, Some(SumUnit::Day | SumUnit::Week | SumUnit::Month));
        if !by_days || self.filter.account.is_some() || self.of_the_house() {
            return Vec::new();
        }
        let mut shifts: Vec<i64> = Vec::new();
        for begins in self.spans.iter().skip(1) {
            let shift = (-begins).rem_euclid(DAY);
            if shift != 0 && !shifts.contains(&shift) && shifts.len() < MOST_SHIFTS {
                shifts.push(shift);
            }
        }
        shifts
    }
}

/// A day whose sums are to be added up again, and how often it had been touched by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedDay {
    pub day: i64,
    pub times: i64,
}

/// A part of the sums of one day.
#[derive(Debug, Default)]
pub(crate) struct FoldedPart {
    pub of: TouchedDay,
    pub sums: Vec<(SumSource, SumKey, UsageSum)>,
    pub packed: PackedQuarters,
    /// With it the day is there.
    pub last: bool,
}

/// The quarters of a day, packed for each of what they are sums; the quarter of such a key is the
/// first of the day.
pub(crate) type PackedQuarters = HashMap<SumKey, Vec<u8>>;

impl SumKey {
    /// The same for the whole house.
    pub(crate) fn of_the_house(mut self) -> Self {
        (self.account, self.key) = (AccountId([0; 16]), KeyId([0; 16]));
        self
    }

    /// The same for so many quarters of UTC.
    pub(crate) fn widened(mut self, width: i64) -> Self {
        self.quarter = self.quarter.div_euclid(width) * width;
        self
    }
}

/// Reads all packed days, by the columns of [`SUM_KEY`], with the number of the day for its
/// quarter.
pub(crate) const PACKED_DAYS: &str =
    "SELECT account_id, day, key_id, model, endpoint, ending, provider, upstream_model, quarters FROM usage_day_packed";

/// The columns of a sum of the house, but for its time.
pub(crate) const HOUSE_KEY: [&str; 5] = ["model", "endpoint", "ending", "provider", "upstream_model"];

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

    fn until(day: i64) -> Folded {
        Folded { until: day * DAY, ..Folded::default() }
    }

    #[test]
    fn what_is_over_is_read_by_the_widest_sums_that_fit() {
        use SumSource::{Blocks, Days, HouseDays, HouseHours, HouseQuarters, Quarters};
        let all = until(FIRST + 10);
        assert_eq!(parts("", "UTC", &all), [(HouseDays, vec![(Q, Q + 4 * DAY)])]);
        assert_eq!(parts("day,account", "UTC", &all), [(Days(0), vec![(Q, Q + 4 * DAY)])]);
        assert_eq!(parts("hour", "UTC", &all), [(HouseHours, vec![(Q, Q + 4 * DAY)])]);
        // Of Nepal's hours and days none is one of UTC; of the whole time the inner ones are.
        assert_eq!(parts("hour", "Asia/Kathmandu", &all), [(HouseQuarters, vec![(Q - 23, Q + 4 * DAY - 23)])]);
        assert_eq!(
            parts("key", "Asia/Kathmandu", &all),
            [
                (Quarters, vec![(Q - 23, Q), (Q + 3 * DAY + 72, Q + 3 * DAY + 73)]),
                (Days(0), vec![(Q, Q + 3 * DAY)]),
                (Blocks, vec![(Q + 3 * DAY, Q + 3 * DAY + 72)])
            ]
        );
        let day = &parts("day,model", "Asia/Kolkata", &all);
        assert_eq!(day[0], (HouseQuarters, (0..=4).flat_map(|n| halves(Q + n * DAY - 22, n)).collect()));
        // A day that was touched is one of the rest.
        let touched = Folded { touched: vec![FIRST + 1], ..until(FIRST + 10) };
        assert_eq!(
            parts("week,key", "UTC", &touched),
            [(Days(0), vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 4 * DAY)]), (Quarters, vec![(Q + DAY, Q + 2 * DAY)])]
        );
        // Of the day that is not over, some blocks are.
        let some = Folded { until: (FIRST + 3) * DAY + BLOCK, touched: vec![FIRST + 1], ..Folded::default() };
        assert_eq!(
            parts("model", "UTC", &some),
            [
                (HouseDays, vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 3 * DAY)]),
                (Quarters, vec![(Q + DAY, Q + 2 * DAY), (Q + 3 * DAY + BLOCK, Q + 4 * DAY)]),
                (HouseHours, vec![(Q + 3 * DAY, Q + 3 * DAY + BLOCK)])
            ]
        );
        assert_eq!(parts("model", "UTC", &Folded::default()), [(Quarters, vec![(Q, Q + 4 * DAY)])]);
    }

    /// The half hours around a midnight of Kolkata; the first and the last have but one.
    fn halves(midnight: i64, number: i64) -> Vec<(i64, i64)> {
        match number {
            0 => vec![(midnight, midnight + 2)],
            4 => vec![(midnight - 2, midnight)],
            _ => vec![(midnight - 2, midnight + 2)],
        }
    }

    #[test]
    fn days_of_a_zone_are_read_where_they_are_folded() {
        use SumSource::{Blocks, Days, Quarters};
        let zone = ZoneDays { shift: 23, since: Q + DAY - 23, until: Q + 4 * DAY - 23 };
        let nepal = Folded { zones: vec![zone], ..until(FIRST + 10) };
        let first = Q - 23;
        let found = parts("day,key", "Asia/Kathmandu", &nepal);
        assert_eq!(found.last(), Some(&(Days(23), vec![(first + DAY, first + 4 * DAY)])));
        assert_eq!(found[0], (Quarters, vec![(first, Q), (Q + 72, Q + 73)]), "the first is not folded yet");
        assert_eq!(found[1], (Blocks, vec![(Q, Q + 72)]));
        // A day of a zone has parts of two days of UTC, and is as good as both.
        let touched = Folded { touched: vec![FIRST + 2], ..nepal.clone() };
        let found = parts("day,key", "Asia/Kathmandu", &touched);
        assert_eq!(found.last(), Some(&(Days(23), vec![(first + DAY, first + 2 * DAY)])));
        // Others do not read them.
        assert_eq!(parts("day,key", "UTC", &nepal), [(Days(0), vec![(Q, Q + 4 * DAY)])]);
        assert!(!parts("day,key", "Asia/Kolkata", &nepal).iter().any(|(source, _)| *source == Days(23)));
    }

    #[test]
    fn hours_of_accounts_are_read_from_packed_days() {
        use SumSource::{Blocks, Days, Packed, Quarters};
        let packed = PackedDays { until: Q + 3 * DAY + BLOCK, touched: vec![FIRST + 1] };
        let folded = Folded { packed, ..until(FIRST + 10) };
        let found = parts("hour,account", "Asia/Kathmandu", &folded);
        let first = Q - 23;
        let quarters = vec![(Q + DAY, Q + 2 * DAY), (Q + 3 * DAY + BLOCK, first + 4 * DAY)];
        assert_eq!(found, [(Packed, vec![(first, Q + DAY), (Q + 2 * DAY, Q + 3 * DAY + BLOCK)]), (Quarters, quarters)]);
        let days = SumPart { source: Packed, ranges: found[0].1.clone() }.days();
        assert_eq!(days, [FIRST - 1, FIRST, FIRST + 2, FIRST + 3]);
        // Where wider sums fit they are read, and the house has its own.
        let found = parts("key", "Asia/Kathmandu", &folded);
        let sources: Vec<SumSource> = found.iter().map(|(source, _)| *source).collect();
        assert_eq!(sources, [Packed, Days(0), Blocks, Quarters]);
        assert!(!parts("hour", "Asia/Kathmandu", &folded).iter().any(|(source, _)| *source == Packed));
    }

    #[test]
    fn days_of_all_accounts_are_worth_a_fold_of_their_zone() {
        let shifts = |by: &str, tz: &str, to: &str, account: Option<String>| {
            let text = |text: &str| Some(text.to_owned());
            let (from, to, tz, by) = (text("2026-10-01"), text(to), text(tz), text(by));
            let ask = SumAsk { from, to, tz, by, account, ..SumAsk::default() };
            ask.checked(SumViewer::Operator, 0).expect("a question").shifts()
        };
        assert_eq!(shifts("day,key", "Asia/Kathmandu", "2026-10-05", None), [23]);
        assert_eq!(shifts("week,account", "America/New_York", "2026-10-30", None), [80]);
        assert_eq!(shifts("day,group", "Europe/Berlin", "2026-11-05", None), [8, 4], "clocks change");
        assert_eq!(shifts("day,key", "UTC", "2026-10-05", None), [0i64; 0]);
        assert_eq!(shifts("hour,key", "Asia/Kathmandu", "2026-10-05", None), [0i64; 0]);
        assert_eq!(shifts("day,model", "Asia/Kathmandu", "2026-10-05", None), [0i64; 0]);
        let one = Some(AccountId([1; 16]).to_string());
        assert_eq!(shifts("day,key", "Asia/Kathmandu", "2026-10-05", one), [0i64; 0]);
    }

    #[test]
    fn stretches_become_the_quarters_that_rows_begin_with() {
        let part = |source, ranges| SumPart { source, ranges };
        let days = part(SumSource::Days(0), vec![(Q, Q + DAY), (Q + 2 * DAY, Q + 4 * DAY)]);
        assert_eq!((days.values(), days.range()), (vec![Q, Q + 2 * DAY, Q + 3 * DAY], None));
        assert_eq!(part(SumSource::HouseHours, vec![(Q, Q + 8), (Q + 12, Q + 16)]).values(), [Q, Q + 4, Q + 12]);
        assert_eq!(part(SumSource::Days(0), vec![(Q, Q + 2 * DAY)]).range(), Some((Q, Q + 2 * DAY)));
        assert_eq!(part(SumSource::Quarters, vec![(Q, Q + 2), (Q + 5, Q + 6)]).values(), [Q, Q + 1, Q + 5]);
    }

    #[test]
    fn a_block_is_over_an_hour_after_its_end() {
        let noon = (Q + 2 * BLOCK) * QUARTER_MS;
        assert_eq!(over(noon + SETTLED_MS), Q + 2 * BLOCK);
        assert_eq!(over(noon + SETTLED_MS - 1), Q + BLOCK);
    }
}
