//! How results are shown: JSON for scripts, plain tables for people.

use serde::Serialize;
use serde_json::Value;

pub struct Output {
    pub json: bool,
}

impl Output {
    /// One result, as a JSON line or as a sentence.
    pub fn say(&self, value: &impl Serialize, sentence: impl FnOnce() -> String) {
        if self.json {
            println!("{}", serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
        } else {
            println!("{}", sentence());
        }
    }

    /// Rows with the named columns; a column is a path such as `counters.input`.
    pub fn table(&self, value: &Value, rows: &[Value], columns: &[(&str, &str)]) {
        if self.json {
            println!("{value}");
            return;
        }
        let header: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let mut lines = vec![header];
        lines.extend(rows.iter().map(|row| columns.iter().map(|(_, path)| cell(row, path)).collect()));
        let widths: Vec<usize> =
            (0..columns.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
        for line in &lines {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("{}", cells.join("  ").trim_end());
        }
        if rows.is_empty() {
            println!("(none)");
        }
    }
}

/// A value for people: amounts of nano-USD (columns that end in `$`) as dollars, times as UTC.
fn cell(row: &Value, path: &str) -> String {
    let (path, as_money) = path.strip_suffix('$').map_or((path, false), |path| (path, true));
    let (path, as_time) = path.strip_suffix('@').map_or((path, false), |path| (path, true));
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    let value = parts.try_fold(row, |value, part| value.get(part));
    match value {
        Some(Value::Number(number)) if as_money => number
            .as_i64()
            .map_or_else(|| number.to_string(), |nano| tollgate_catalog::Money::from_nano(nano).to_string()),
        Some(Value::Number(number)) if as_time => number.as_i64().map_or_else(|| number.to_string(), utc),
        value => plain(value.unwrap_or(&Value::Null)),
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
        let row = json!({ "a": { "b": 1_500_000_000 }, "at": 1_709_210_096_789_i64, "none": null, "list": ["x", "y"] });
        assert_eq!(cell(&row, "a.b$"), "1.5");
        assert_eq!(cell(&row, "at@"), "2024-02-29 12:34:56Z");
        assert_eq!(cell(&row, "none"), "-");
        assert_eq!(cell(&row, "list"), "x,y");
        assert_eq!(cell(&row, "missing.deep"), "-");
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
    }
}
