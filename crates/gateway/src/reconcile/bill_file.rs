//! Tables in files: a provider's bill, as CSV or as JSON lines. Numbers stay text until somebody
//! says what they are, so no amount goes through a float.

use super::BadBill;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// One row: the value of each column that is there.
pub struct BillRow {
    /// Where it stands, for messages.
    pub line: usize,
    cells: HashMap<String, String>,
}

impl BillRow {
    /// The first of these columns that has a value.
    pub fn get(&self, names: &[&str]) -> Option<&str> {
        self.all(names).next()
    }

    /// The values of these columns, in this order.
    pub fn all(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        names.iter().filter_map(|name| self.cells.get(*name)).map(|text| text.trim()).filter(|text| !text.is_empty())
    }
}

/// Reads a whole file: JSON lines if it begins with `{`, else CSV with a header.
pub fn read_bill(text: &str) -> Result<Vec<BillRow>, BadBill> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') { json_lines(text) } else { csv(text) }
}

fn json_lines(text: &str) -> Result<Vec<BillRow>, BadBill> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(text, line)| {
            let fields: HashMap<String, Box<RawValue>> =
                serde_json::from_str(text).map_err(|_| BadBill(format!("line {line}: not a JSON object")))?;
            let cells = fields.into_iter().map(|(name, value)| (name.to_lowercase(), plain(value.get()))).collect();
            Ok(BillRow { line, cells })
        })
        .collect()
}

/// A JSON value as text: strings without their quotes, nothing for null.
fn plain(raw: &str) -> String {
    match raw {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
        other => other.to_owned(),
    }
}

fn csv(text: &str) -> Result<Vec<BillRow>, BadBill> {
    let mut records = Records { rest: text, line: 1 };
    let Some((_, header)) = records.next_record()? else { return BadBill::because("the file is empty") };
    let header: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
    let mut rows = Vec::new();
    while let Some((line, cells)) = records.next_record()? {
        if cells.len() != header.len() {
            return BadBill::because(format!("line {line}: {} values for {} columns", cells.len(), header.len()));
        }
        rows.push(BillRow { line, cells: header.iter().cloned().zip(cells).collect() });
    }
    Ok(rows)
}

/// CSV as RFC 4180 has it: quotes around values with commas, quotes or line ends in them.
struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl Records<'_> {
    fn next_record(&mut self) -> Result<Option<(usize, Vec<String>)>, BadBill> {
        while let Some(rest) = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')) {
            self.rest = rest;
            self.line += 1;
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (line, mut cells) = (self.line, Vec::new());
        loop {
            cells.push(self.value()?);
            match self.rest.chars().next() {
                Some(',') => self.rest = &self.rest[1..],
                _ => return Ok(Some((line, cells))),
            }
        }
    }

    fn value(&mut self) -> Result<String, BadBill> {
        let Some(mut quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (value, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Ok(value.trim_end_matches('\r').to_owned());
        };
        let mut value = String::new();
        loop {
            let Some((part, rest)) = quoted.split_once('"') else {
                return BadBill::because(format!("line {}: a quote is not closed", self.line));
            };
            value.push_str(part);
            match rest.strip_prefix('"') {
                Some(rest) => {
                    value.push('"');
                    quoted = rest;
                }
                None => {
                    self.line += value.matches('\n').count();
                    self.rest = rest.strip_prefix('\r').filter(|r| r.starts_with('\n') || r.is_empty()).unwrap_or(rest);
                    return Ok(value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Vec<(usize, Option<String>, Option<String>)> {
        let rows = read_bill(text).expect("readable");
        rows.iter().map(|r| (r.line, r.get(&["a"]).map(str::to_owned), r.get(&["x", "b"]).map(str::to_owned))).collect()
    }

    #[test]
    fn csv_and_json_lines() {
        let some = |text: &str| Some(text.to_owned());
        let csv = "A,b\r\n1,\"two, \"\"2\"\"\nlines\"\r\n\r\n3,\n";
        assert_eq!(table(csv), [(2, some("1"), some("two, \"2\"\nlines")), (5, some("3"), None)]);
        let lines = "{\"a\":0.10,\"B\":\"x\\ny\"}\n\n{\"a\":null}\n";
        assert_eq!(table(lines), [(1, some("0.10"), some("x\ny")), (3, None, None)]);
        assert!(
            read_bill("a,b\n1\n").is_err()
                && read_bill("").is_err()
                && read_bill("a\n\"1\n").is_err()
                && read_bill("{\n").is_err()
        );
    }
}
