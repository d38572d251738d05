//! How results are shown: JSON for scripts, plain tables for people.

use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write as _};

pub struct Output {
    pub json: bool,
    /// How wide a table may be; `None` where nobody looks at it, as in a pipe.
    pub width: Option<usize>,
}

/// Prints to standard output. Whoever read it may have seen enough (`tollgate usage | head`): that
/// is no failure.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("tollgate: standard output: {error}");
    }
}

pub fn print_line(text: &str) {
    print(&format!("{text}\n"));
}

impl Output {
    /// One result, as a JSON line or as a sentence.
    pub fn say(&self, value: &impl Serialize, sentence: impl FnOnce() -> String) {
        if self.json {
            print_line(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
        } else {
            print_line(&sentence());
        }
    }

    /// Rows with the named columns; a column is the path of a member such as `usage.input`.
    pub fn table(&self, value: &Value, rows: &[Value], columns: &[&str]) {
        if self.json {
            return print_line(&value.to_string());
        }
        print(&laid_out(rows, columns, self.width));
    }

    /// One thing with all there is to say about it, a line for each column.
    pub fn record(&self, value: &Value, columns: &[&str]) {
        if self.json {
            return print_line(&value.to_string());
        }
        print(&records(std::slice::from_ref(value), columns));
    }
}

/// A table, without the columns that are empty in every row; one line for each value instead where
/// it is wider than the terminal.
fn laid_out(rows: &[Value], columns: &[&str], width: Option<usize>) -> String {
    let mut lines = vec![columns.iter().map(|path| title(path)).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|path| cell(row, path)).collect()));
    let says = |at: &usize| rows.is_empty() || lines[1..].iter().any(|line| !matches!(line[*at].as_str(), "" | "-"));
    let shown: Vec<usize> = (0..columns.len()).filter(says).collect();
    let widest = |at: &usize| lines.iter().map(|line| line[*at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = shown.iter().map(widest).collect();
    let whole = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    if !rows.is_empty() && width.is_some_and(|width| whole > width) {
        return records(rows, columns);
    }
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            shown.iter().zip(&widths).map(|(at, width)| format!("{:<width$}", line[*at])).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    if rows.is_empty() {
        text.push_str("(none)\n");
    }
    text
}

/// A paragraph for each row, with a line for each value there is.
fn records(rows: &[Value], columns: &[&str]) -> String {
    let width = columns.iter().map(|path| title(path).chars().count()).max().unwrap_or(0);
    let paragraphs: Vec<String> = rows
        .iter()
        .map(|row| {
            let lines = columns.iter().map(|path| (title(path), cell(row, path)));
            let said = lines.filter(|(_, cell)| !matches!(cell.as_str(), "" | "-"));
            said.map(|(title, cell)| format!("{title:<width$}  {cell}\n")).collect()
        })
        .collect();
    paragraphs.join("\n")
}

/// How members end that are shown in another unit than they are written in.
const NANO_USD: &str = "_nano_usd";
const MS: &str = "_ms";

/// The heading of a column: the member's own words, with the unit that is shown.
fn title(path: &str) -> String {
    let (words, unit) = match path.strip_suffix(NANO_USD) {
        Some(words) => (words, " USD"),
        None => (path.strip_suffix(MS).unwrap_or(path), ""),
    };
    words.replace(['.', '_'], " ").replace(" micro usd", " micro-USD").replace(" usd", " USD") + unit
}

/// A value for people: amounts of nano-USD as dollars, times as UTC.
fn cell(row: &Value, path: &str) -> String {
    let value = path.split('.').try_fold(row, |value, part| value.get(part));
    match value.and_then(|value| value.as_i64()) {
        Some(nano) if path.ends_with(NANO_USD) => tollgate_catalog::Money::from_nano(nano).to_string(),
        Some(ms) if path.ends_with(MS) => utc(ms),
        _ => plain(value.unwrap_or(&Value::Null)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A moment for people.
pub fn utc(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Days to a civil date (Howard Hinnant's algorithm, proleptic Gregorian).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let seconds = rest / 1_000;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_for_people() {
        let row = json!({ "a": { "b_nano_usd": 1_500_000_000 }, "at_ms": 1_709_210_096_789_i64, "none": null, "list": ["x", "y"] });
        assert_eq!(cell(&row, "a.b_nano_usd"), "1.5");
        assert_eq!(cell(&row, "at_ms"), "2024-02-29 12:34:56Z");
        assert_eq!(cell(&row, "none"), "-");
        assert_eq!(cell(&row, "list"), "x,y");
        assert_eq!(cell(&row, "missing.deep"), "-");
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
    }

    #[test]
    fn headings_are_the_names_of_the_members() {
        for (path, heading) in [
            ("call_id", "call id"),
            ("started_at_ms", "started at"),
            ("limits.day_nano_usd", "limits day USD"),
            ("cost_micro_usd", "cost micro-USD"),
            ("price_usd", "price USD"),
            ("usage.input", "usage input"),
        ] {
            assert_eq!(title(path), heading);
        }
    }

    const COLUMNS: &[&str] = &["call", "reason", "charge_nano_usd"];

    #[test]
    fn a_table_has_the_columns_that_say_something() {
        let rows = [
            json!({ "call": "a", "reason": "", "charge_nano_usd": 0 }),
            json!({ "call": "bb", "reason": null, "charge_nano_usd": 5 }),
        ];
        assert_eq!(laid_out(&rows, COLUMNS, None), "call  charge USD\na     0\nbb    0.000000005\n");
        assert_eq!(laid_out(&[], COLUMNS, Some(10)), "call  reason  charge USD\n(none)\n");
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_paragraphs() {
        let rows = [
            json!({ "call": "a", "reason": "late", "charge_nano_usd": 0 }),
            json!({ "call": "b", "charge_nano_usd": 1 }),
        ];
        let wide = laid_out(&rows, COLUMNS, Some(30));
        assert!(wide.starts_with("call  reason  charge USD\n") && wide.lines().all(|line| line.len() <= 30), "{wide}");
        let narrow = "call        a\nreason      late\ncharge USD  0\n\ncall        b\ncharge USD  0.000000001\n";
        assert_eq!(laid_out(&rows, COLUMNS, Some(20)), narrow);
    }
}
