//! The `data` of an answer as text, with places found in it by JSON pointer. The members of the top
//! level are found once; a pointer then descends only where it leads.

use super::{NotJson, PlaceLookup};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::json::{BrokenJson, Scan};

/// A checked piece of JSON text.
#[derive(Clone, Debug)]
pub struct CheckedData {
    raw: Bytes,
    /// Name and place of each member when it is an object: from the key's quote to the value's end.
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    whole: Range<usize>,
    value: Range<usize>,
}

/// What `data` is on the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outline {
    /// Null, an empty text, or a list or object with nothing in it.
    Nothing,
    /// A text, number or flag, which no platform answers with.
    Single,
    Something,
}

/// A value somewhere in the data.
#[derive(Clone, Copy, Debug)]
pub struct FoundValue<'a>(&'a [u8]);

impl CheckedData {
    /// Takes a text that must be one JSON value.
    pub fn read(raw: Bytes) -> Result<CheckedData, NotJson> {
        let mut members = Vec::new();
        let mut scan = Scan::new(&raw);
        if scan.peek() == Some(b'{') {
            let mut start = scan.at() + 1;
            scan.object(|key, scan| -> Result<(), NotJson> {
                let value = scan.span()?;
                members.push(Member { name: key.text().into_owned(), whole: start..value.end, value: value.clone() });
                start = value.end;
                Ok(())
            })?;
        } else {
            scan.skip()?;
        }
        scan.end()?;
        Ok(CheckedData { raw, members })
    }

    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The value itself.
    pub fn whole(&self) -> FoundValue<'_> {
        FoundValue(&self.raw)
    }

    /// What is left of it without some members of its top level.
    pub fn outline(&self, drop: &[String]) -> Outline {
        let whole = self.whole();
        match whole.first() {
            _ if whole.is_nothing() => Outline::Nothing,
            Some(b'[') => Outline::Something,
            Some(b'{') if self.members.iter().any(|member| !drop.contains(&member.name)) => Outline::Something,
            Some(b'{') => Outline::Nothing,
            _ => Outline::Single,
        }
    }

    /// Writes the value without some members of its top level; an array is put into an object.
    pub(super) fn write_without(&self, out: &mut Vec<u8>, drop: &[String]) {
        if self.whole().first() == Some(b'[') {
            out.extend_from_slice(br#"{"items":"#);
            out.extend_from_slice(&self.raw);
            out.push(b'}');
            return;
        }
        if !self.members.iter().any(|member| drop.contains(&member.name)) {
            out.extend_from_slice(&self.raw);
            return;
        }
        out.push(b'{');
        let mut first = true;
        for member in self.members.iter().filter(|member| !drop.contains(&member.name)) {
            // Between two members stands a comma, perhaps with blanks.
            let text = self.raw[member.whole.clone()].trim_ascii_start();
            let text = text.strip_prefix(b",").unwrap_or(text).trim_ascii_start();
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(text);
        }
        out.push(b'}');
    }
}

impl PlaceLookup for CheckedData {
    fn find(&self, pointer: &str) -> Option<FoundValue<'_>> {
        let Some(path) = pointer.strip_prefix('/') else { return Some(self.whole()) };
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        if self.members.is_empty() {
            return path.split('/').try_fold(self.whole(), |at, piece| at.child(piece));
        }
        let found = self.members.iter().find(|member| member.name == first)?;
        let start = FoundValue(&self.raw[found.value.clone()]);
        rest.into_iter().flat_map(|rest| rest.split('/')).try_fold(start, |at, piece| at.child(piece))
    }

    fn find_anywhere(&self, name: &str) -> Option<FoundValue<'_>> {
        let mut found = None;
        // Broken text cannot be met: it was checked when it was read.
        let _ = search(&mut Scan::new(&self.raw), name, &mut found);
        found
    }
}

fn search<'a>(scan: &mut Scan<'a>, name: &str, found: &mut Option<FoundValue<'a>>) -> Result<(), BrokenJson> {
    match scan.peek() {
        _ if found.is_some() => scan.skip(),
        Some(b'{') => scan.object(|key, scan| {
            let scalar = !matches!(scan.peek(), Some(b'{' | b'['));
            if scalar && found.is_none() && key.is(name) {
                let value = FoundValue(scan.value()?);
                if !value.is_nothing() {
                    *found = Some(value);
                }
                return Ok(());
            }
            search(scan, name, found)
        }),
        Some(b'[') => scan.array(|scan| search(scan, name, found)),
        _ => scan.skip(),
    }
}

impl<'a> FoundValue<'a> {
    pub(super) fn new(text: &'a [u8]) -> FoundValue<'a> {
        FoundValue(text)
    }

    fn first(&self) -> Option<u8> {
        self.0.trim_ascii_start().first().copied()
    }

    fn child(self, piece: &str) -> Option<FoundValue<'a>> {
        let mut scan = Scan::new(self.0);
        let mut found = None;
        let _ = match self.first()? {
            b'{' => scan.object(|key, scan| -> Result<(), BrokenJson> {
                let value = scan.value()?;
                if found.is_none() && key.is(piece) {
                    found = Some(FoundValue(value));
                }
                Ok(())
            }),
            b'[' => {
                let wanted: Option<usize> = piece.parse().ok();
                let mut at = 0;
                scan.array(|scan| -> Result<(), BrokenJson> {
                    let value = scan.value()?;
                    if piece == "-1" || wanted == Some(at) {
                        found = Some(FoundValue(value));
                    }
                    at += 1;
                    Ok(())
                })
            }
            _ => return None,
        };
        found
    }

    /// Null, an empty text, an empty list or an empty object.
    pub fn is_nothing(&self) -> bool {
        let text = self.0.trim_ascii();
        match text {
            b"null" | b"\"\"" | b"" => true,
            [b'[', inside @ .., b']'] | [b'{', inside @ .., b'}'] => inside.trim_ascii().is_empty(),
            _ => false,
        }
    }

    /// Something that is not nothing, zero or false.
    pub fn is_true(&self) -> bool {
        let text = self.0.trim_ascii();
        !self.is_nothing() && text != b"false" && text.iter().any(|byte| !b"0.\"-".contains(byte))
    }

    pub fn is_text(&self) -> bool {
        self.first() == Some(b'"')
    }

    /// A text by its meaning, a number or flag as written; `None` for null, lists and objects.
    pub fn plain(&self) -> Option<Cow<'a, str>> {
        match self.first()? {
            b'"' => Scan::new(self.0).string().ok().map(|text| text.text()),
            b'{' | b'[' | b'n' => None,
            _ => std::str::from_utf8(self.0.trim_ascii()).ok().map(Cow::Borrowed),
        }
    }

    /// Entries of a list; 0 for anything else.
    pub fn count(&self) -> usize {
        let mut count = 0;
        if self.first() == Some(b'[') {
            let _ = Scan::new(self.0).array(|scan| -> Result<(), BrokenJson> {
                count += 1;
                scan.skip()
            });
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn data(text: &str) -> CheckedData {
        CheckedData::read(Bytes::copy_from_slice(text.as_bytes())).expect("JSON")
    }

    fn written(text: &str, drop: &[&str]) -> String {
        let drop: Vec<String> = drop.iter().map(|name| (*name).to_owned()).collect();
        String::from_utf8(super::super::write_result("p", "c", &data(text), &drop, &[]).to_vec()).expect("text")
    }

    #[test]
    fn places_are_found() {
        let data =
            data(r#"{"a":{"b":[{"c":7411193113223371043},{"c":"x\n"}]},"n":null,"e":[ ],"s":"","f":false,"z":"0"}"#);
        let plain = |at: &str| data.find(at).and_then(|found| found.plain()).map(Cow::into_owned);
        assert_eq!(plain("/a/b/0/c").as_deref(), Some("7411193113223371043"));
        assert_eq!(plain("/a/b/-1/c").as_deref(), Some("x\n"));
        assert!(
            plain("/a/b").is_none()
                && plain("/n").is_none()
                && data.find("/a/x").is_none()
                && data.find("/a/b/2").is_none()
        );
        assert_eq!(data.find("/a/b").map(|found| found.count()), Some(2));
        let nothing = |at: &str| data.find(at).map(|found| (found.is_nothing(), found.is_true()));
        for at in ["/n", "/e", "/s"] {
            assert_eq!(nothing(at), Some((true, false)), "{at}");
        }
        for at in ["/f", "/z"] {
            assert_eq!(nothing(at), Some((false, false)), "{at}");
        }
        assert_eq!(nothing("/a"), Some((false, true)));
        assert_eq!(nothing(""), Some((false, true)));
        assert_eq!(data.find_anywhere("c").and_then(|found| found.plain()).as_deref(), Some("7411193113223371043"));
        assert!(data.find_anywhere("b").is_none(), "only single values");
    }

    #[test]
    fn a_list_at_the_top_is_a_place_too() {
        let list = data(r#"[{"id":1},{"id":2}]"#);
        assert_eq!(list.find("/-1/id").and_then(|found| found.plain()).as_deref(), Some("2"));
        assert!(!list.find("").expect("itself").is_nothing());
        assert!(
            data("[]").whole().is_nothing() && data(" { } ").whole().is_nothing() && data("null").whole().is_nothing()
        );
    }

    #[test]
    fn what_is_left_stays_byte_for_byte() {
        let head = r#"{"object":"social.result","platform":"p","capability":"c","data":"#;
        assert_eq!(
            written(r#"{"id": 9007199254740993, "x":1.10}"#, &["cookie"]),
            format!(r#"{head}{{"id": 9007199254740993, "x":1.10}}}}"#)
        );
        assert_eq!(written("[1, 2]", &[]), format!(r#"{head}{{"items":[1, 2]}}}}"#));
        let dropped = [
            (r#"{"cookie":"s","a":1, "b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1 , "cookie":{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"a":{"cookie":1},"cookie":1,"b":[]}"#, r#"{"a":{"cookie":1},"b":[]}"#),
            (r#"{"cookie":1}"#, "{}"),
        ];
        for (from, to) in dropped {
            assert_eq!(written(from, &["cookie"]), format!("{head}{to}}}"), "{from}");
        }
        let next = super::super::write_result(
            "p",
            "c",
            &data("{}"),
            &[],
            &[("cursor", "a\"b".to_owned()), ("page", "2".to_owned())],
        );
        assert!(next.ends_with(br#""data":{},"next":{"cursor":"a\"b","page":"2"}}"#));
    }

    proptest! {
        #[test]
        fn pointers_agree_with_a_full_reader(keys in prop::collection::vec("[a-c]{1,2}", 1..4), id in any::<u64>(), pad in " {0,2}") {
            let mut value = Value::from(id);
            for key in keys.iter().rev() {
                value = serde_json::json!({"pad": [1, {"x": "}"}], key.as_str(): value});
            }
            let text = format!("{pad}{value}{pad}");
            let pointer: String = keys.iter().map(|key| format!("/{key}")).collect();
            let data = data(&text);
            let found = data.find(&pointer).and_then(|found| found.plain()).map(Cow::into_owned);
            prop_assert_eq!(found, value.pointer(&pointer).map(Value::to_string));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(data) = CheckedData::read(Bytes::from(bytes)) {
                let _ = (data.find("/a/0"), data.find_anywhere("a"), data.whole().count());
            }
        }
    }
}
