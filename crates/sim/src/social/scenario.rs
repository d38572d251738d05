//! How the supplier of social data behaves, well or badly.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::ask::Ask;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    Plain,
    Empty,
    Null,
    EmptyObject,
    Scalar,
    Hollow,
    NotFound,
    ErrorInside,
    Code,
    Error(u16),
    Once400,
    Gone,
    Shape,
    Busy,
    Html,
    Garbage,
    Packed,
    Cut,
    Slow,
    Hang,
    Huge,
    Deleted,
}

const TABLE: &[(Play, &str, &str)] = &[
    (Play::Plain, "plain", "data that fits the cell"),
    (Play::Empty, "empty", "200 with a list or thing that is empty, as the cell's rule says"),
    (Play::Null, "null", "200 with data null, as past the last page of some lists"),
    (Play::EmptyObject, "empty_object", "200 with data {}"),
    (Play::Scalar, "scalar", "200 with a text in the place of data"),
    (Play::Hollow, "hollow", "200 with nothing in data but the supplier's own session"),
    (Play::NotFound, "not_found", "200 with a status inside data that means that there is no such thing, or nothing"),
    (Play::ErrorInside, "error_inside", "200 with a status field inside data that means failure"),
    (Play::Code, "code", "200 with a code other than 200 in the envelope"),
    (Play::Error(400), "error400", "400, as for almost any failed fetch"),
    (Play::Error(401), "error401", "401: the key is wrong"),
    (Play::Error(402), "error402", "402: the account is empty"),
    (Play::Error(403), "error403", "403: the key lacks a scope"),
    (Play::Error(404), "error404", "404: no such thing"),
    (Play::Error(500), "error500", "500"),
    (Play::Once400, "once400", "400 the first time, then data"),
    (Play::Gone, "gone", "404: no such route any more"),
    (Play::Shape, "shape", "422 about a parameter (param=NAME)"),
    (Play::Busy, "busy", "429 (retry_after=SECONDS)"),
    (Play::Html, "html502", "502 with a page of the edge"),
    (Play::Garbage, "garbage", "200 with broken JSON"),
    (Play::Packed, "packed", "200 with what is compressed"),
    (Play::Cut, "cut", "a reset in mid-answer, or with cut=eof its end"),
    (Play::Slow, "slow", "one second of thinking, or think_ms"),
    (Play::Hang, "hang", "no answer at all"),
    (Play::Huge, "huge", "an answer of 5 MiB, or mib"),
    (Play::Deleted, "deleted", "200 with a notice, or with all of it and a mark, for a thing that was deleted"),
];

/// Every scenario with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().map(|&(_, name, meaning)| (name, meaning))
}

#[derive(Clone, Debug)]
pub struct Choice {
    pub play: Play,
    options: BTreeMap<String, String>,
}

impl Choice {
    pub fn plain() -> Choice {
        Choice { play: Play::Plain, options: BTreeMap::new() }
    }

    /// `empty` or `huge mib=5`; an unknown word plays plainly.
    fn parse(text: &str) -> Choice {
        let mut choice = Choice::plain();
        for word in text.split([' ', '+']) {
            match word.split_once('=') {
                Some((key, value)) => drop(choice.options.insert(key.to_owned(), value.to_owned())),
                None => choice.play = TABLE.iter().find(|row| row.1 == word).map_or(choice.play, |row| row.0),
            }
        }
        choice
    }

    pub fn name(&self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self.play).map_or("plain", |row| row.1)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key).and_then(|text| text.parse().ok())
    }

    pub fn millis(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_millis)
    }
}

/// Standing orders for paths, and what was asked before.
#[derive(Default)]
pub struct Orders {
    orders: Mutex<Vec<(String, String)>>,
    seen: Mutex<HashSet<String>>,
}

impl Orders {
    pub fn give(&self, path: &str, scenario: &str) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.retain(|(part, _)| part != path);
        if !scenario.is_empty() {
            orders.push((path.to_owned(), scenario.to_owned()));
        }
    }

    fn of(&self, path: &str) -> Option<String> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.iter().rev().find(|(part, _)| path.contains(part.as_str())).map(|(_, scenario)| scenario.clone())
    }

    /// True the first time a request like this is seen.
    pub fn first(&self, fingerprint: &str) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(fingerprint.to_owned())
    }
}

pub fn choose(orders: &Orders, path: &str, ask: &Ask) -> Choice {
    let marked = ask.given.iter().find_map(|(_, value)| value.split_once("[[sim:")?.1.split_once("]]"));
    match marked {
        Some((marker, _)) => Choice::parse(marker),
        None => orders.of(path).map_or_else(Choice::plain, |order| Choice::parse(&order)),
    }
}
