//! One live event, written once for all who read it.

use bytes::Bytes;
use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;
use tollgate_store::KeyId;

/// Where a reader of an account was: the last entry of the ledger that it knows, and when. It is
/// the `id` of every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveMark {
    pub entry: i64,
    pub at_ms: i64,
}

impl fmt::Display for LiveMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.entry, self.at_ms)
    }
}

impl FromStr for LiveMark {
    type Err = ();

    fn from_str(text: &str) -> Result<LiveMark, ()> {
        let (entry, at_ms) = text.split_once('-').ok_or(())?;
        let number = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0).ok_or(());
        Ok(LiveMark { entry: number(entry)?, at_ms: number(at_ms)? })
    }
}

/// Something that happened.
#[derive(Debug)]
pub struct LiveEvent {
    /// Whose usage it is about: not everybody in an account sees that of every key.
    pub key: Option<KeyId>,
    /// The entry it comes from, for whoever has read it already.
    pub entry: Option<i64>,
    /// As it goes out.
    pub text: Bytes,
}

impl LiveEvent {
    /// `data` is an object, which gets its `type`.
    pub fn new(kind: &'static str, mark: Option<LiveMark>, data: Value) -> LiveEvent {
        LiveEvent { key: None, entry: None, text: written(kind, mark, data) }
    }

    /// About what somebody did with this key.
    pub fn of(self, key: KeyId) -> LiveEvent {
        LiveEvent { key: Some(key), ..self }
    }

    pub fn at(self, entry: Option<i64>) -> LiveEvent {
        LiveEvent { entry, ..self }
    }
}

fn written(kind: &str, mark: Option<LiveMark>, mut data: Value) -> Bytes {
    data["type"] = json!(kind);
    let id = mark.map(|mark| format!("id: {mark}\n")).unwrap_or_default();
    // JSON has no line breaks of its own.
    Bytes::from(format!("event: {kind}\n{id}data: {data}\n\n"))
}

/// The first event of a stream. A browser that loses it comes back after so many milliseconds.
pub fn opened(mark: Option<LiveMark>, data: Value) -> Bytes {
    let text = written("ready", mark, data);
    [Bytes::from_static(b"retry: 3000\n"), text].concat().into()
}

/// What was shown so far may lack something: read it again.
pub fn reset(reason: &'static str, mark: Option<LiveMark>) -> Bytes {
    written("reset", mark, json!({ "reason": reason }))
}

/// The last event of a stream.
pub fn ended(reason: &str, message: &str) -> Bytes {
    written("end", None, json!({ "reason": reason, "message": message }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = LiveMark { entry: 17, at_ms: 1_800_000_000_000 };
        assert_eq!(mark.to_string().parse(), Ok(mark));
        for wrong in ["", "17", "-", "17-", "a-b", "17-1-2", "-1-2", "99999999999999999999-1", "17-é"] {
            assert_eq!(wrong.parse::<LiveMark>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn an_event_is_three_lines_and_a_blank_one() {
        let mark = Some(LiveMark { entry: 1, at_ms: 2 });
        let event = LiveEvent::new("key.changed", mark, json!({ "name": "two\nlines" }));
        let text = String::from_utf8(event.text.to_vec()).expect("text");
        assert_eq!(text, "event: key.changed\nid: 1-2\ndata: {\"name\":\"two\\nlines\",\"type\":\"key.changed\"}\n\n");
        let end = String::from_utf8(ended("server_draining", "later").to_vec()).expect("text");
        assert!(end.starts_with("event: end\ndata: {") && end.ends_with("}\n\n"), "{end}");
    }
}
