//! JSON with its numbers as they are written. A key that stands twice is refused: one of the two
//! would win in silence.

use super::digits::Digits;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PriceNode {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<PriceNode>),
    Map(BTreeMap<String, PriceNode>),
}

/// Deeper than any price list.
const DEEPEST: usize = 12;

impl PriceNode {
    pub(super) fn parse(text: &str) -> Result<PriceNode, String> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        PriceNode::of(raw, DEEPEST)
    }

    fn of(raw: &RawValue, depth: usize) -> Result<PriceNode, String> {
        let text = raw.get();
        let depth = depth.checked_sub(1).ok_or("is nested too deeply")?;
        let broken = |error: serde_json::Error| error.to_string();
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text).map_err(broken)?;
                let mut map = BTreeMap::new();
                for (key, value) in members {
                    let node = PriceNode::of(&value, depth)?;
                    if map.insert(key.clone(), node).is_some() {
                        return Err(format!("has the key {key:?} twice"));
                    }
                }
                PriceNode::Map(map)
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(broken)?;
                PriceNode::List(items.iter().map(|item| PriceNode::of(item, depth)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => PriceNode::Text(serde_json::from_str(text).map_err(broken)?),
            Some(b't' | b'f') => PriceNode::Bool(text == "true"),
            Some(b'n') => PriceNode::Null,
            _ => PriceNode::Number(text.to_owned()),
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<&PriceNode> {
        match self {
            PriceNode::Map(map) => map.get(key).filter(|node| **node != PriceNode::Null),
            _ => None,
        }
    }

    pub(super) fn map(&self) -> impl Iterator<Item = (&str, &PriceNode)> {
        let map = if let PriceNode::Map(map) = self { Some(map) } else { None };
        map.into_iter().flatten().map(|(key, node)| (key.as_str(), node))
    }

    pub(super) fn list(&self) -> &[PriceNode] {
        if let PriceNode::List(items) = self { items } else { &[] }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(PriceNode::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key) == Some(&PriceNode::Bool(true))
    }

    /// A whole number, or a text of one.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let (whole, exact) = self.get(key)?.digits()?.scaled(0)?;
        exact.then_some(whole)
    }

    /// A number, or a text of one; `None` for anything else, negative numbers included.
    pub(super) fn digits(&self) -> Option<Digits> {
        match self {
            PriceNode::Number(text) | PriceNode::Text(text) => Digits::parse(text),
            _ => None,
        }
    }
}

/// The members of an object in their order, with repetitions.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    members.push(entry);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_as_they_are_written() {
        let node = PriceNode::parse(r#"{"a":{"b":[1.10, 5e-07, "0.2"]},"n":null,"on":true}"#).expect("JSON");
        let list = node.get("a").and_then(|a| a.get("b")).expect("a list").list();
        assert_eq!(list[0], PriceNode::Number("1.10".to_owned()));
        assert_eq!(list[1].digits().and_then(|digits| digits.scaled(12)), Some((500_000, true)));
        assert_eq!(list[2].digits().and_then(|digits| digits.scaled(1)), Some((2, true)));
        assert!(node.get("n").is_none() && node.flag("on"));
    }

    #[test]
    fn what_is_broken_is_refused() {
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        for text in ["", "{", r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":1}}"#, "[1,]", "{\"a\":01}", deep.as_str()] {
            assert!(PriceNode::parse(text).is_err(), "{text}");
        }
    }
}
