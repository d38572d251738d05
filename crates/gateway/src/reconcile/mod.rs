//! A provider's bill against our calls: which lines are in both, which in one only, and where the
//! amounts differ by more than they may. The bill is in memory, our calls stream by.

mod bill_file;

pub use bill_file::{BillRow, read_bill};

use serde::Serialize;
use std::collections::HashMap;
use tollgate_catalog::Money;
use tollgate_store::{CallId, Side, UsageRow};

const CALL: &[&str] = &["call", "call_id", "x-request-id", "x_request_id", "request_id", "id"];
const AMOUNT: &[&str] = &["amount", "amount_usd", "cost", "cost_usd", "total_cost", "usage"];
const AT: &[&str] = &["at", "time", "timestamp", "created_at", "date"];
const MODEL: &[&str] = &["upstream_model", "model"];
const INPUT: &[&str] = &["input", "input_tokens", "prompt_tokens", "tokens_prompt"];
const OUTPUT: &[&str] = &["output", "output_tokens", "completion_tokens", "tokens_completion"];
/// So many lines of each kind are shown; the counts are of all.
const SHOWN: usize = 100;
const MILLION: i128 = 1_000_000;

/// Why a bill cannot be compared, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadBill(pub String);

impl BadBill {
    fn because<T>(why: impl Into<String>) -> Result<T, BadBill> {
        Err(BadBill(why.into()))
    }
}

/// How far apart the two sides may be.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// What the provider is expected to bill for one dollar of ours, in millionths.
    pub ratio: i64,
    /// Allowed difference, in millionths of what is expected, and in money; the larger counts.
    pub relative: i64,
    pub absolute: Money,
    /// How far apart the times of a line and a call may be where there is no call id.
    pub window_ms: i64,
}

/// One line of the bill.
#[derive(Clone, Debug)]
struct Line {
    number: usize,
    call: Option<CallId>,
    facts: Option<(String, u64, u64)>,
    at: Option<i64>,
    amount: Money,
    matched: bool,
}

/// What came out.
#[derive(Debug, Default, Serialize)]
pub struct BillReport {
    pub lines: usize,
    pub calls: usize,
    pub matched: usize,
    pub differing: usize,
    pub only_billed: usize,
    pub only_ours: usize,
    /// Lines of a call that had a line before.
    pub billed_twice: usize,
    #[serde(rename = "billed_nano_usd")]
    pub billed: Money,
    #[serde(rename = "charged_nano_usd")]
    pub charged: Money,
    pub rows: Vec<Difference>,
}

impl BillReport {
    pub fn is_clean(&self) -> bool {
        self.differing + self.only_billed + self.only_ours + self.billed_twice == 0
    }

    fn show(&mut self, kind: &'static str, call: Option<CallId>, line: Option<usize>, amounts: [Option<Money>; 3]) {
        let [billed, expected, charged] = amounts;
        if self.rows.iter().filter(|row| row.kind == kind).count() < SHOWN {
            self.rows.push(Difference { kind, call, line, billed, expected, charged });
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Difference {
    /// `differs`, `only_billed`, `only_ours` or `billed_twice`.
    pub kind: &'static str,
    #[serde(rename = "call_id")]
    pub call: Option<CallId>,
    pub line: Option<usize>,
    #[serde(rename = "billed_nano_usd")]
    pub billed: Option<Money>,
    #[serde(rename = "expected_nano_usd")]
    pub expected: Option<Money>,
    #[serde(rename = "charged_nano_usd")]
    pub charged: Option<Money>,
}

pub struct Bill {
    lines: Vec<Line>,
    by_call: HashMap<CallId, usize>,
    by_facts: HashMap<(String, u64, u64), Vec<usize>>,
    terms: Tolerance,
    report: BillReport,
}

impl Bill {
    pub fn read(rows: &[BillRow], terms: Tolerance) -> Result<Self, BadBill> {
        let mut bill = Self {
            lines: Vec::with_capacity(rows.len()),
            by_call: HashMap::new(),
            by_facts: HashMap::new(),
            terms,
            report: BillReport::default(),
        };
        for row in rows {
            let line = line(row).map_err(|BadBill(why)| BadBill(format!("line {}: {why}", row.line)))?;
            let place = bill.lines.len();
            match (line.call, &line.facts) {
                (Some(call), _) => match bill.by_call.get(&call).and_then(|first| bill.lines.get_mut(*first)) {
                    // Reported, and counted with the first line: the call costs what all of them
                    // say together.
                    Some(first) => {
                        first.amount = sum(first.amount, line.amount)?;
                        bill.report.billed_twice += 1;
                        let amounts = [Some(line.amount), None, None];
                        bill.report.show("billed_twice", Some(call), Some(line.number), amounts);
                        bill.report.billed = sum(bill.report.billed, line.amount)?;
                        continue;
                    }
                    None => {
                        bill.by_call.insert(call, place);
                    }
                },
                (None, Some(facts)) => bill.by_facts.entry(facts.clone()).or_default().push(place),
                // A picture, a search, a fee: nothing of ours is like it.
                (None, None) => {}
            }
            bill.report.billed = sum(bill.report.billed, line.amount)?;
            bill.lines.push(line);
        }
        if bill.by_call.is_empty() && bill.by_facts.is_empty() {
            return BadBill::because(
                "no line has a call id, nor model, input, output and time: there is nothing to compare",
            );
        }
        bill.report.lines = rows.len();
        Ok(bill)
    }

    /// The time of the first and of the last line: those of the calls, where they are named.
    pub fn span(&self) -> Option<(i64, i64)> {
        let times = self.lines.iter().filter_map(|line| line.call.map(|call| call.made_at()).or(line.at));
        times.fold(None, |span, at| Some(span.map_or((at, at), |(from, to): (i64, i64)| (from.min(at), to.max(at)))))
    }

    /// One of our calls that may have cost the provider something. `within`: it is of the time of
    /// the bill, so it should be in it.
    pub fn ours(&mut self, row: &UsageRow, within: bool) -> Result<(), BadBill> {
        let cost = sum(row.charge, row.write_off)?;
        let Some(place) = self.find(row) else {
            // What we did not charge, the provider need not have billed.
            if within && !cost.is_zero() {
                self.report.calls += 1;
                self.report.charged = sum(self.report.charged, cost)?;
                self.report.only_ours += 1;
                self.report.show("only_ours", Some(row.call), None, [None, None, Some(cost)]);
            }
            return Ok(());
        };
        self.report.calls += 1;
        self.report.charged = sum(self.report.charged, cost)?;
        let Some(line) = self.lines.get_mut(place) else { return Ok(()) };
        line.matched = true;
        let (number, billed) = (line.number, line.amount);
        let expected = i128::from(cost.nano()) * i128::from(self.terms.ratio) / MILLION;
        let allowed =
            (expected.abs() * i128::from(self.terms.relative) / MILLION).max(self.terms.absolute.nano().into());
        if (i128::from(billed.nano()) - expected).abs() > allowed {
            let expected = i64::try_from(expected).map_err(|_| too_large())?;
            let expected = Money::from_nano(expected);
            self.report.differing += 1;
            self.report.show("differs", Some(row.call), Some(number), [Some(billed), Some(expected), Some(cost)]);
        } else {
            self.report.matched += 1;
        }
        Ok(())
    }

    /// By the call's id, else the nearest line in time with the same model and counts.
    fn find(&self, row: &UsageRow) -> Option<usize> {
        if let Some(place) = self.by_call.get(&row.call) {
            return Some(*place);
        }
        let (input, output) = (row.counters.total(Side::Input), row.counters.total(Side::Output));
        let model = row.upstream_model.as_ref().unwrap_or(&row.model);
        let places = self.by_facts.get(&(model.clone(), input, output))?;
        let apart = |place: &usize| {
            self.lines[*place].at.map_or(i64::MAX, |at| (at - row.at).abs().min((at - row.ended_at).abs()))
        };
        let free = places.iter().copied().filter(|place| !self.lines[*place].matched);
        free.min_by_key(apart).filter(|place| apart(place) <= self.terms.window_ms)
    }

    pub fn finish(mut self) -> BillReport {
        for line in self.lines.iter().filter(|line| !line.matched) {
            self.report.only_billed += 1;
            self.report.show("only_billed", line.call, Some(line.number), [Some(line.amount), None, None]);
        }
        self.report
    }
}

fn line(row: &BillRow) -> Result<Line, BadBill> {
    let bad = |text: &str, what: &str| BadBill(format!("{text:?} is not {what}"));
    let amount = row.get(AMOUNT).ok_or_else(|| BadBill("no amount".to_owned()))?;
    let amount = usd(amount).ok_or_else(|| bad(amount, "an amount"))?;
    let at = row.get(AT).map(|text| time(text).ok_or_else(|| bad(text, "a time"))).transpose()?;
    let count = |names| row.get(names).map(|text| text.parse().map_err(|_| bad(text, "a count"))).transpose();
    let facts = match (row.get(MODEL), count(INPUT)?, count(OUTPUT)?, at) {
        (Some(model), Some(input), Some(output), Some(_)) => Some((model.to_owned(), input, output)),
        _ => None,
    };
    // An id of the provider's own is not a call of ours; ours may stand beside it.
    let call = row.all(CALL).find_map(|text| text.parse().ok());
    Ok(Line { number: row.line, call, facts, at, amount, matched: false })
}

fn too_large() -> BadBill {
    BadBill("the amounts are too large".to_owned())
}

fn sum(a: Money, b: Money) -> Result<Money, BadBill> {
    a.nano().checked_add(b.nano()).map(Money::from_nano).ok_or_else(too_large)
}

/// Dollars as providers write them: `$0.0123456789`, `1.2e-05`; rounded to the nearest nano-dollar.
pub fn usd(text: &str) -> Option<Money> {
    let text = text.trim().trim_start_matches('$');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{decimals}");
    if all.is_empty() || all.len() > 30 || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits: i128 = all.parse().ok()?;
    // The last digit stands for 10^shift nano-dollars.
    let shift = exponent.checked_add(9)?.checked_sub(i32::try_from(decimals.len()).ok()?)?;
    let nano = if shift >= 0 {
        digits.checked_mul(10i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(unit) => (digits + unit / 2) / unit,
            None => 0,
        }
    };
    i64::try_from(if negative { -nano } else { nano }).ok().map(Money::from_nano)
}

/// Seconds or milliseconds since 1970, or a date and time as in RFC 3339.
pub fn time(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(if number.abs() < 100_000_000_000 { number * 1_000 } else { number });
    }
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(moment.as_millisecond());
    }
    // A bare date begins at midnight, UTC.
    let date: jiff::civil::Date = text.parse().ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// A decimal such as 0.85, exact to six places, in millionths.
pub fn millionths(text: &str) -> Option<i64> {
    usd(text).map(Money::nano).filter(|nano| *nano >= 0).map(|nano| nano / 1_000)
}

/// The smallest call id of a moment.
pub fn first_call_at(ms: i64) -> CallId {
    let mut id = [0u8; 16];
    id[..6].copy_from_slice(&ms.clamp(0, (1 << 48) - 1).to_be_bytes()[2..]);
    CallId(id)
}

/// Whose calls of which time a bill is compared with.
#[derive(Clone, Debug)]
pub struct BillSpan {
    /// Calls that a line may be of.
    pub wide: (i64, i64),
    /// Calls that should be in the bill: what is ours alone is reported for this time only.
    pub own: (i64, i64),
    pub provider: Option<String>,
}

/// A call may have begun this long after the last line of its bill, by the provider's clock, and
/// this long before the first: a video is billed when it is finished, or found to be, which may
/// take days.
const MARGIN_MS: i64 = 3_600_000;
const BILLED_LATER_MS: i64 = 4 * 24 * 3_600_000;

impl BillSpan {
    /// The time of the bill, unless another is said.
    pub fn of(bill: &Bill, from: Option<i64>, to: Option<i64>, provider: Option<String>) -> Result<BillSpan, BadBill> {
        let (first, last) = bill.span().ok_or_else(|| BadBill("the file has no lines".to_owned()))?;
        let wide = (
            from.unwrap_or_else(|| first.saturating_sub(BILLED_LATER_MS)),
            to.unwrap_or_else(|| last.saturating_add(MARGIN_MS)),
        );
        let own = (from.unwrap_or(first), to.unwrap_or(last.saturating_add(1)));
        Ok(BillSpan { wide, own, provider })
    }

    /// Compares a page of calls, newest first. `false`: those before it are too old.
    pub fn compare(&self, bill: &mut Bill, calls: &[UsageRow]) -> Result<bool, BadBill> {
        for call in calls.iter().filter(|call| call.call.made_at() >= self.wide.0) {
            if self.provider.is_none() || self.provider == call.provider {
                bill.ours(call, (self.own.0..self.own.1).contains(&call.at))?;
            }
        }
        Ok(calls.last().is_some_and(|call| call.call.made_at() >= self.wide.0))
    }
}

#[cfg(test)]
mod tests;
