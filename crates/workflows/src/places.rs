//! JSON read strictly, with the line of every value. A name that stands twice in an object is
//! refused: readers disagree about which of the two counts, so a record could be checked as one
//! thing and used as another.

use crate::bounds::{MAX_DEPTH, MAX_FILE_BYTES};
use crate::evaluate::{Violation, item, member};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tollgate_wire::json::{BrokenJson, DEPTH, Scan, Text};

/// A value, and where each part of it was written.
#[derive(Clone, Debug)]
pub struct PlacedJson {
    pub value: Value,
    /// Lines by path; the whole has the empty path.
    lines: BTreeMap<String, usize>,
}

impl PlacedJson {
    /// Reads a whole text, or says at which line it cannot be read and why.
    pub fn read(text: &str) -> Result<PlacedJson, (usize, Violation)> {
        let whole = |reason: String| Violation { path: String::new(), reason };
        if text.len() > MAX_FILE_BYTES {
            return Err((1, whole(format!("is larger than {MAX_FILE_BYTES} bytes"))));
        }
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut reading = Reading { starts, lines: BTreeMap::new() };
        let mut scan = Scan::new(text.as_bytes());
        let read = reading.value(&mut scan, "", 0).and_then(|value| scan.end().map(|()| value).map_err(Fault::from));
        match read {
            Ok(value) => Ok(PlacedJson { value, lines: reading.lines }),
            Err(Fault::Broken(BrokenJson::Syntax { at })) => Err((reading.line(at), whole("is not JSON".to_owned()))),
            Err(Fault::Broken(BrokenJson::Depth)) => Err((1, whole(format!("is nested deeper than {DEPTH}")))),
            Err(Fault::Refused(at, violation)) => Err((reading.line(at), violation)),
        }
    }

    /// The line of a value; of what is nearest around it where it is not there.
    pub fn line(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(at) => path = &path[..at],
                None if path.is_empty() => return 1,
                None => path = "",
            }
        }
    }
}

enum Fault {
    Broken(BrokenJson),
    Refused(usize, Violation),
}

impl From<BrokenJson> for Fault {
    fn from(broken: BrokenJson) -> Self {
        Fault::Broken(broken)
    }
}

struct Reading {
    /// Offset of the first byte of every line.
    starts: Vec<usize>,
    lines: BTreeMap<String, usize>,
}

impl Reading {
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    fn value(&mut self, scan: &mut Scan<'_>, path: &str, depth: usize) -> Result<Value, Fault> {
        let first = scan.peek();
        let start = scan.at();
        let refused = |reason: String| Fault::Refused(start, Violation { path: path.to_owned(), reason });
        if depth > MAX_DEPTH {
            return Err(refused(format!("is nested deeper than {MAX_DEPTH}")));
        }
        self.lines.insert(path.to_owned(), self.line(start));
        match first {
            Some(b'{') => {
                let mut members = Map::new();
                scan.object(|name, scan| {
                    let at = scan.at();
                    let name = whole_text(&name)
                        .map_err(|reason| Fault::Refused(at, Violation { path: member(path, &name.text()), reason }))?;
                    let path = member(path, &name);
                    if members.contains_key(&name) {
                        let reason = "stands twice in its object".to_owned();
                        return Err(Fault::Refused(scan.at(), Violation { path, reason }));
                    }
                    members.insert(name, self.value(scan, &path, depth + 1)?);
                    Ok(())
                })?;
                Ok(Value::Object(members))
            }
            Some(b'[') => {
                let mut items = Vec::new();
                scan.array(|scan| {
                    items.push(self.value(scan, &item(path, items.len()), depth + 1)?);
                    Ok::<(), Fault>(())
                })?;
                Ok(Value::Array(items))
            }
            Some(b'"') => Ok(Value::String(whole_text(&scan.string()?).map_err(refused)?)),
            _ => {
                let raw = scan.value()?;
                serde_json::from_slice(raw).map_err(|_| refused("is a number beyond every range".to_owned()))
            }
        }
    }
}

/// What a string means. Half of a character, such as `\ud800`, is something else to each reader.
fn whole_text(string: &Text<'_>) -> Result<String, String> {
    let text = string.text().into_owned();
    let quoted = || [&b"\""[..], string.raw(), b"\""].concat();
    if text.contains(char::REPLACEMENT_CHARACTER) && serde_json::from_slice::<String>(&quoted()).is_err() {
        return Err("has half of a character".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let read = PlacedJson::read("{\n \"a\": [1,\n  {\"b c\": null}],\n \"d\": \"x\\n\"\n}\n").unwrap();
        assert_eq!(read.value, serde_json::json!({ "a": [1, { "b c": null }], "d": "x\n" }));
        for (path, line) in [("", 1), ("a", 2), ("a[0]", 2), ("a[1]", 3), ("a[1].\"b c\"", 3), ("d", 4), ("e.f", 1)] {
            assert_eq!(read.line(path), line, "{path}");
        }
        assert_eq!(read.line("a[1].missing"), 3, "what is missing is missing where it should be");
    }

    #[test]
    fn what_readers_disagree_about_is_refused() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 2), "]".repeat(MAX_DEPTH + 2));
        for (text, line, path, reason) in [
            ("{\"a\": 1,\n\"a\": 1}", 2, "a", "stands twice in its object"),
            ("{\"a\": {\"b\": 1,\n\n\"\\u0062\": 2}}", 3, "a.b", "stands twice in its object"),
            ("{\n\"a\": tru}", 2, "", "is not JSON"),
            ("{} {}", 1, "", "is not JSON"),
            ("", 1, "", "is not JSON"),
            ("{\n\"a\": \"\\ud800\"}", 2, "a", "has half of a character"),
            ("{\n\"\\udc00\": 1}", 2, "\"\u{fffd}\"", "has half of a character"),
            ("[1,\n1e999]", 2, "[1]", "is a number beyond every range"),
            (&deep, 1, &"[0]".repeat(MAX_DEPTH + 1), "is nested deeper than 16"),
        ] {
            let (found, violation) = PlacedJson::read(text).unwrap_err();
            assert_eq!((found, &*violation.path, &*violation.reason), (line, path, reason), "{text}");
        }
        let large = format!("\"{}\"", "x".repeat(MAX_FILE_BYTES));
        assert_eq!(PlacedJson::read(&large).unwrap_err().1.reason, "is larger than 262144 bytes");
    }
}
