//! The monthly statement of an account: what it had, what came and went, what it has, from ledger
//! entries alone. A month that is over never changes: entries are only added, and their time never
//! goes back.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tollgate_catalog::Money;

use crate::account::{Account, BalanceEvent};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::ledger::EntryKind;
use crate::sums::spans::{SumUnit, label, moment, zone};

/// The most changes of balance that are listed one by one; the others are in the sums.
pub const STATEMENT_EVENTS: usize = 1_000;
const QUARTER_MS: i64 = 900_000;
/// The kind of a top-up of the trial pot, as both engines count it for statements.
const TRIAL_CREDIT: i64 = -(EntryKind::TopUp as i64);

/// What is asked for: a month of a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementSpan {
    /// Such as `2026-10`.
    pub month: String,
    pub zone: String,
    pub from: i64,
    pub to: i64,
}

impl StatementSpan {
    /// `None` with which of the two is wrong: `month` or `tz`.
    pub fn read(month: &str, tz: Option<&str>) -> Result<StatementSpan, &'static str> {
        let name = tz.unwrap_or("UTC");
        let found = zone(name).ok_or("tz")?;
        let (year, number) = month.split_once('-').ok_or("month")?;
        let digits = year.len() == 4 && number.len() == 2 && month.bytes().all(|b| b == b'-' || b.is_ascii_digit());
        let (year, number): (i32, u8) = (year.parse().map_err(|_| "month")?, number.parse().map_err(|_| "month")?);
        if !digits || !(1..=12).contains(&number) || !(1970..=9998).contains(&year) {
            return Err("month");
        }
        let next = if number == 12 { (year + 1, 1) } else { (year, number + 1) };
        let begin =
            |(year, number): (i32, u8)| moment(&format!("{year:04}-{number:02}-01T00:00"), &found).ok_or("month");
        let (from, to) = (begin((year, number))?, begin(next)?);
        Ok(StatementSpan { month: month.to_owned(), zone: name.to_owned(), from, to })
    }

    /// The date of a quarter of an hour since the month began.
    fn day(&self, bucket: i64) -> String {
        let at = self.from.saturating_add(bucket.saturating_mul(QUARTER_MS));
        zone(&self.zone).map(|zone| label(SumUnit::Day, &zone, at.div_euclid(QUARTER_MS))).unwrap_or_default()
    }
}

/// Entries of one kind (and of one model) in a quarter of an hour, or before the month (-1). Credit
/// that nobody paid has a kind of its own.
#[derive(Clone, Debug)]
pub(crate) struct StatementGroup {
    pub bucket: i64,
    pub kind: i64,
    pub model: String,
    pub count: i64,
    /// What the balance changed by.
    pub change: i64,
}

/// All that a statement is made of, read in one moment.
pub(crate) struct StatementRows {
    pub groups: Vec<StatementGroup>,
    /// What the balance was at the end, added up on its own.
    pub closing: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    pub day: String,
    pub model: String,
    pub calls: i64,
    #[serde(rename = "charge_nano_usd")]
    pub charge: Money,
}

/// What an account had, what came and went, and what it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    #[serde(rename = "account_id")]
    pub account: AccountId,
    pub name: String,
    pub month: String,
    #[serde(rename = "tz")]
    pub zone: String,
    #[serde(rename = "from_ms")]
    pub from: i64,
    #[serde(rename = "to_ms")]
    pub to: i64,
    /// The month is over: nothing of it will change.
    pub is_final: bool,
    #[serde(rename = "opening_nano_usd")]
    pub opening: Money,
    /// Money that came in.
    #[serde(rename = "top_ups_nano_usd")]
    pub top_ups: Money,
    /// Credit that was given, and that nobody paid.
    #[serde(rename = "trial_credits_nano_usd", default)]
    pub trial_credits: Money,
    #[serde(rename = "corrections_nano_usd")]
    pub corrections: Money,
    #[serde(rename = "refunds_nano_usd")]
    pub refunds: Money,
    #[serde(rename = "expired_nano_usd")]
    pub expired: Money,
    #[serde(rename = "charges_nano_usd")]
    pub charges: Money,
    #[serde(rename = "closing_nano_usd")]
    pub closing: Money,
    pub charges_by_day: Vec<StatementLine>,
    pub events: Vec<BalanceEvent>,
    /// Changes of balance that are in the sums and not listed.
    pub more_events: i64,
    /// SHA-256 of all of it but this.
    pub content_hash: String,
}

impl Statement {
    pub(crate) fn of(
        account: &Account,
        span: &StatementSpan,
        rows: StatementRows,
        events: Vec<BalanceEvent>,
        now: i64,
    ) -> Result<Statement, StoreError> {
        let (mut opening, mut sums) = (0i64, [0i64; 6]);
        let (mut counted, mut lines) = (0, std::collections::BTreeMap::<(String, String), (i64, i64)>::new());
        for group in rows.groups {
            if group.bucket < 0 {
                opening += group.change;
                continue;
            }
            match EntryKind::from_code(group.kind) {
                None if group.kind == TRIAL_CREDIT => sums[5] += group.change,
                Some(EntryKind::TopUp) => sums[0] += group.change,
                Some(EntryKind::Adjust) => sums[1] += group.change,
                Some(EntryKind::Refund) => sums[2] += group.change,
                Some(EntryKind::Lapse) => sums[3] -= group.change,
                _ => {
                    sums[4] -= group.change;
                    let line = lines.entry((span.day(group.bucket), group.model)).or_default();
                    (line.0, line.1) = (line.0 + group.count, line.1 - group.change);
                    continue;
                }
            }
            counted += group.count;
        }
        let [top_ups, corrections, refunds, expired, charges, trial_credits] = sums;
        if opening + top_ups + trial_credits + corrections + refunds - expired - charges != rows.closing {
            return Err(StoreError::broken("a statement does not add up to the ledger; it is not shown"));
        }
        let by_day = lines.into_iter().filter(|(_, (_, charge))| *charge != 0);
        let by_day = by_day.map(|((day, model), (calls, charge))| StatementLine {
            day,
            model,
            calls,
            charge: Money::from_nano(charge),
        });
        let listed = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let mut statement = Statement {
            account: account.id,
            name: account.name.clone(),
            month: span.month.clone(),
            zone: span.zone.clone(),
            from: span.from,
            to: span.to,
            is_final: now >= span.to,
            opening: Money::from_nano(opening),
            top_ups: Money::from_nano(top_ups),
            trial_credits: Money::from_nano(trial_credits),
            corrections: Money::from_nano(corrections),
            refunds: Money::from_nano(refunds),
            expired: Money::from_nano(expired),
            charges: Money::from_nano(charges),
            closing: Money::from_nano(rows.closing),
            charges_by_day: by_day.collect(),
            events,
            more_events: (counted - listed).max(0),
            content_hash: String::new(),
        };
        let text = serde_json::to_vec(&statement).map_err(StoreError::broken)?;
        statement.content_hash = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_one_of_its_zone() {
        let span = |month, tz| StatementSpan::read(month, tz).map(|span| (span.from, span.to));
        assert_eq!(span("1970-02", None), Ok((31 * 86_400_000, 59 * 86_400_000)));
        assert_eq!(span("2026-12", Some("Asia/Shanghai")), Ok((1_796_054_400_000, 1_798_732_800_000)));
        for (month, tz, wrong) in [
            ("2026-13", None, "month"),
            ("2026-1", None, "month"),
            ("26-01", None, "month"),
            ("2026-0a", None, "month"),
            ("", None, "month"),
            ("2026-01-01", None, "month"),
            ("2026-01", Some("Mars/Base"), "tz"),
        ] {
            assert_eq!(span(month, tz), Err(wrong), "{month}");
        }
    }
}
