//! One day of sums, read in parts. First come those of accounts, in slices of what
//! quarters are of, then those of the house, an hour after the other, and its day at the end. So
//! there is never more of a day in memory than a part, and the sums of the house by day.
//!
//! Parts are read at different moments. The day's quarters are the same at all of them, or else the
//! day was touched, and no part is stored after that.

use std::collections::HashMap;
use std::sync::LazyLock;

use rusqlite::{Connection, Row, params};

use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::sums::days::pack_quarter;
use crate::sums::folded::{BLOCK, DAY, FoldedPart, HOUR, SumSource, TouchedDay};
use crate::sums::{SUM_KEY, SUMS, SumKey, UsageSum};

static COLUMNS: LazyLock<String> =
    LazyLock::new(|| SUM_KEY.iter().chain(SUMS.iter()).copied().collect::<Vec<&str>>().join(", "));
static QUARTERS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM usage_quarter WHERE quarter >= ?1 AND quarter < ?2", *COLUMNS));
/// Of one quarter, after one place and up to another.
static SLICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM usage_quarter INDEXED BY usage_quarter_time WHERE quarter = ?1 \
         AND (account_id, key_id, model) > (?2, ?3, ?4) AND (account_id, key_id, model) <= (?5, ?6, ?7)",
        *COLUMNS
    )
});
/// How many quarters there are of each place, from the index alone.
const PLACES: &str = "SELECT account_id, key_id, model, count(*) FROM usage_quarter INDEXED BY usage_quarter_time \
     WHERE quarter >= ?1 AND quarter < ?2 GROUP BY account_id, key_id, model ORDER BY account_id, key_id, model";
/// After all ids.
const LAST_ID: [u8; 17] = [0xff; 17];

type Added = HashMap<SumKey, UsageSum>;

/// A place in the order of accounts, keys and models: a slice ends with it.
#[derive(Clone, Debug, Default)]
struct SliceEnd {
    account: Vec<u8>,
    key: Vec<u8>,
    model: String,
}

/// A day that is folded, and how far that is.
pub(in crate::sqlite) struct FoldingDay {
    pub of: TouchedDay,
    /// Whether nothing of an earlier fold is left.
    pub is_clear: bool,
    /// Quarters from this one are over, to before that one.
    from: i64,
    to: i64,
    /// Where slices end that are not read yet, the next one last.
    slices: Vec<SliceEnd>,
    /// Where the last one ended that was read.
    after: SliceEnd,
    /// The first quarter that is not in the sums of the house.
    hour: i64,
    /// The whole day, so far.
    house: Added,
}

impl FoldingDay {
    /// Of one moment. `until` is the quarter that nothing is folded from on.
    pub fn begin(conn: &Connection, of: TouchedDay, until: i64, most: u32) -> rusqlite::Result<Self> {
        let from = of.day.saturating_mul(DAY);
        let to = from.saturating_add(DAY).min(until);
        let mut slices = Vec::new();
        let mut statement = conn.prepare_cached(PLACES)?;
        let mut rows = statement.query(params![from, to])?;
        let mut count = 0;
        while let Some(r) = rows.next()? {
            count += r.get::<_, i64>(3)?;
            if count >= i64::from(most) {
                slices.push(SliceEnd { account: r.get(0)?, key: r.get(1)?, model: r.get(2)? });
                count = 0;
            }
        }
        slices.push(SliceEnd { account: LAST_ID.to_vec(), ..SliceEnd::default() });
        slices.reverse();
        Ok(Self {
            of,
            is_clear: false,
            from,
            to,
            slices,
            after: SliceEnd::default(),
            hour: from,
            house: Added::default(),
        })
    }

    /// Whether all of the day is over.
    fn is_whole(&self) -> bool {
        self.to == self.from.saturating_add(DAY)
    }

    /// The next part: so many sums, and those of the same slice or hour.
    pub fn next_part(&mut self, conn: &Connection, most: u32) -> Result<FoldedPart, StoreError> {
        let mut part = FoldedPart { of: self.of, ..FoldedPart::default() };
        while part.sums.len() + part.packed.len() < most as usize && !part.last {
            match self.slices.pop() {
                Some(end) => {
                    self.add_slice(conn, &end, &mut part)?;
                    self.after = end;
                }
                None if self.hour < self.to => self.add_hour(conn, &mut part)?,
                None => {
                    part.add(SumSource::HouseDays, std::mem::take(&mut self.house));
                    part.last = true;
                }
            }
        }
        Ok(part)
    }

    fn add_slice(&self, conn: &Connection, end: &SliceEnd, part: &mut FoldedPart) -> Result<(), StoreError> {
        let after = &self.after;
        let mut statement = conn.prepare_cached(&SLICE)?;
        let mut blocks = Added::new();
        for number in self.from..self.to {
            let mut rows = statement.query(params![
                number,
                after.account,
                after.key,
                after.model,
                end.account,
                end.key,
                end.model
            ])?;
            while let Some(r) = rows.next()? {
                let (of, sum) = quarter(r)?;
                pack_quarter(part.packed.entry(of.clone().widened(DAY)).or_default(), of.quarter, &sum);
                blocks.entry(of.widened(BLOCK)).or_default().add(&sum);
            }
        }
        if self.is_whole() {
            part.add(SumSource::Days(0), widened(&blocks, DAY));
        }
        part.add(SumSource::Blocks, blocks);
        Ok(())
    }

    fn add_hour(&mut self, conn: &Connection, part: &mut FoldedPart) -> Result<(), StoreError> {
        let end = self.hour.saturating_add(HOUR);
        let mut statement = conn.prepare_cached(&QUARTERS)?;
        let mut rows = statement.query(params![self.hour, end.min(self.to)])?;
        let mut quarters = Added::new();
        while let Some(r) = rows.next()? {
            let (of, sum) = quarter(r)?;
            quarters.entry(of.of_the_house()).or_default().add(&sum);
        }
        let hours = widened(&quarters, HOUR);
        if self.is_whole() {
            for (of, sum) in &hours {
                self.house.entry(of.clone().widened(DAY)).or_default().add(sum);
            }
        }
        part.add(SumSource::HouseQuarters, quarters);
        part.add(SumSource::HouseHours, hours);
        self.hour = end;
        Ok(())
    }
}

impl FoldedPart {
    fn add(&mut self, source: SumSource, sums: Added) {
        self.sums.extend(sums.into_iter().map(|(of, sum)| (source, of, sum)));
    }
}

fn widened(narrow: &Added, width: i64) -> Added {
    let mut wide = Added::new();
    for (of, sum) in narrow {
        wide.entry(of.clone().widened(width)).or_default().add(sum);
    }
    wide
}

fn quarter(r: &Row<'_>) -> rusqlite::Result<(SumKey, UsageSum)> {
    let of = SumKey {
        account: AccountId(r.get(0)?),
        quarter: r.get(1)?,
        key: KeyId(r.get(2)?),
        model: r.get(3)?,
        endpoint: r.get(4)?,
        ending: r.get(5)?,
        provider: r.get(6)?,
        upstream_model: r.get(7)?,
    };
    let mut sum = UsageSum::default();
    for (place, value) in (SUM_KEY.len()..).zip(&mut sum.0) {
        *value = r.get(place)?;
    }
    Ok((of, sum))
}
