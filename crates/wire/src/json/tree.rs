//! A tree over JSON text for the translations between dialects.
//!
//! Unlike a general JSON value it keeps the order of members, the exact text of every value and
//! numbers as they were written, so what is not understood can be sent on unchanged. Strings are
//! borrowed where they hold no escape.

use super::{BrokenJson, Scan, whole_number};
use std::borrow::Cow;

/// A value and its exact text.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub raw: &'a str,
    pub kind: NodeKind<'a>,
}

#[derive(Clone, Debug)]
pub enum NodeKind<'a> {
    Null,
    Bool(bool),
    Number,
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Map(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Members of an object in their order.
pub type Members<'a> = [(Cow<'a, str>, Node<'a>)];

impl<'a> Node<'a> {
    /// Reads a whole text.
    pub fn read(text: &'a str) -> Result<Node<'a>, BrokenJson> {
        let mut scan = Scan::new(text.as_bytes());
        let node = Self::scan(text, &mut scan)?;
        scan.end()?;
        Ok(node)
    }

    fn scan(text: &'a str, scan: &mut Scan<'a>) -> Result<Node<'a>, BrokenJson> {
        let first = scan.peek();
        let start = scan.at();
        let kind = match first {
            Some(b'"') => NodeKind::Text(scan.string()?.of(text)),
            Some(b'{') => {
                let mut members = Vec::new();
                scan.object(|key, scan| {
                    members.push((key.of(text), Self::scan(text, scan)?));
                    Ok::<(), BrokenJson>(())
                })?;
                NodeKind::Map(members)
            }
            Some(b'[') => {
                let mut items = Vec::new();
                scan.array(|scan| {
                    items.push(Self::scan(text, scan)?);
                    Ok::<(), BrokenJson>(())
                })?;
                NodeKind::List(items)
            }
            Some(b't') => NodeKind::Bool(true),
            Some(b'f') => NodeKind::Bool(false),
            Some(b'n') => NodeKind::Null,
            _ => NodeKind::Number,
        };
        if !matches!(first, Some(b'"' | b'{' | b'[')) {
            scan.skip()?;
        }
        Ok(Node { raw: &text[start..scan.at()], kind })
    }

    /// A member of an object; null counts as absent.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, node)| node).filter(|node| !node.is_null())
    }

    /// A member under either of two spellings.
    pub fn either(&self, one: &str, other: &str) -> Option<&Node<'a>> {
        self.get(one).or_else(|| self.get(other))
    }

    pub fn members(&self) -> &Members<'a> {
        match &self.kind {
            NodeKind::Map(members) => members,
            _ => &[],
        }
    }

    pub fn items(&self) -> &[Node<'a>] {
        match &self.kind {
            NodeKind::List(items) => items,
            _ => &[],
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Null)
    }

    pub fn is_map(&self) -> bool {
        matches!(self.kind, NodeKind::Map(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.kind, NodeKind::List(_))
    }

    pub fn text(&self) -> Option<&Cow<'a, str>> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a member.
    pub fn text_of(&self, key: &str) -> Option<&Cow<'a, str>> {
        self.get(key)?.text()
    }

    /// The text of a member, or nothing.
    pub fn str_of(&self, key: &str) -> &str {
        self.text_of(key).map_or("", |text| text)
    }

    pub fn bool(&self) -> Option<bool> {
        match self.kind {
            NodeKind::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<u64> {
        match self.kind {
            NodeKind::Number => whole_number(self.raw.as_bytes()),
            _ => None,
        }
    }

    /// Says nothing as a count: zero, null or empty, or holds nothing else.
    pub fn is_zero(&self) -> bool {
        match &self.kind {
            NodeKind::Null | NodeKind::Bool(false) => true,
            NodeKind::Bool(true) => false,
            NodeKind::Number => self.number() == Some(0),
            NodeKind::Text(text) => text.is_empty(),
            NodeKind::List(items) => items.iter().all(Node::is_zero),
            NodeKind::Map(members) => members.iter().all(|(_, value)| value.is_zero()),
        }
    }

    /// The exact text of a number.
    pub fn decimal(&self) -> Option<&'a str> {
        matches!(self.kind, NodeKind::Number).then_some(self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_texts_orders_and_numbers() {
        let text = r#" {"b":[1.50,"x\n"],"a":null,"n":7,"b2":true} "#;
        let node = Node::read(text).unwrap();
        let keys: Vec<_> = node.members().iter().map(|(key, _)| key.as_ref()).collect();
        assert_eq!(keys, ["b", "a", "n", "b2"]);
        assert_eq!(node.get("b").unwrap().raw, r#"[1.50,"x\n"]"#);
        assert_eq!(node.get("b").unwrap().items()[0].decimal(), Some("1.50"));
        assert_eq!(node.get("b").unwrap().items()[1].text().unwrap(), "x\n");
        assert!(node.get("a").is_none(), "null is absent");
        assert_eq!(node.get("n").unwrap().number(), Some(7));
        assert_eq!(node.get("b2").unwrap().bool(), Some(true));
        assert!(Node::read("{").is_err() && Node::read("1 2").is_err() && Node::read("").is_err());
    }
}
