//! A value written again with some of what is in it changed: each place by its path, everything
//! else as it came.

use super::build::{Array, Object};
use super::tree::{Node, NodeKind};
use super::write::write_raw;
use std::borrow::Cow;
use std::ops::Range;

/// One step on the path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditKey<'a> {
    Name(&'a str),
    Index(usize),
}

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditChange<'c> {
    /// It stays as it was written.
    Keep,
    /// It goes, and its name with it.
    Drop,
    /// This JSON stands in its place.
    Put(Cow<'c, str>),
    /// It is written again, and its members or items are asked for.
    Enter,
}

impl EditChange<'_> {
    pub fn drop_if(goes: bool) -> Self {
        if goes { EditChange::Drop } else { EditChange::Keep }
    }
}

impl<'a> Node<'a> {
    /// The value anew. `change` is asked for each member and item on the way, with its path from
    /// here.
    pub fn edited<'c>(&self, mut change: impl FnMut(&[EditKey<'_>], &Node<'a>) -> EditChange<'c>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len());
        self.write_edited(&mut Vec::with_capacity(8), &mut change, &mut out);
        out
    }

    fn write_edited<'p, 'c>(
        &'p self,
        path: &mut Vec<EditKey<'p>>,
        change: &mut impl FnMut(&[EditKey<'_>], &Node<'a>) -> EditChange<'c>,
        out: &mut Vec<u8>,
    ) {
        match &self.kind {
            NodeKind::Map(members) => {
                let mut object = Object::begin(out);
                for (name, value) in members {
                    path.push(EditKey::Name(name));
                    match change(path, value) {
                        EditChange::Keep => object.raw(name, value.raw),
                        EditChange::Drop => {}
                        EditChange::Put(new) => object.raw(name, &new),
                        EditChange::Enter => value.write_edited(path, change, object.key(name)),
                    }
                    path.pop();
                }
                object.end();
            }
            NodeKind::List(items) => {
                let mut list = Array::begin(out);
                for (index, item) in items.iter().enumerate() {
                    path.push(EditKey::Index(index));
                    match change(path, item) {
                        EditChange::Keep => list.raw(item.raw),
                        EditChange::Drop => {}
                        EditChange::Put(new) => list.raw(&new),
                        EditChange::Enter => item.write_edited(path, change, list.item()),
                    }
                    path.pop();
                }
                list.end();
            }
            _ => write_raw(out, self.raw.as_bytes()),
        }
    }

    /// Where the value stands in the text that it was read from.
    pub fn place_in(&self, text: &str) -> Range<usize> {
        let at = self.raw.as_ptr() as usize - text.as_ptr() as usize;
        at..at + self.raw.len()
    }
}

impl Object<'_> {
    /// The members of another object as they came, but for those that go.
    pub fn members_of(&mut self, node: &Node<'_>, goes: impl Fn(&str) -> bool) {
        for (name, value) in node.members().iter().filter(|(name, _)| !goes(name)) {
            self.raw(name, value.raw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays_as_it_was_written() {
        let text = r#"{"a":[{"x":1.50,"y":[ 1 ]},7,null],"b":{"x":2},"c":{"x":3}}"#;
        let node = Node::read(text).unwrap();
        let edited = node.edited(|path, value| match path {
            [EditKey::Name("a")] | [EditKey::Name("a"), EditKey::Index(0)] => EditChange::Enter,
            [EditKey::Name("a"), EditKey::Index(_)] => EditChange::drop_if(value.is_null()),
            [EditKey::Name("a"), EditKey::Index(0), EditKey::Name("y")] => EditChange::Put("[2]".into()),
            [EditKey::Name("b")] => EditChange::Drop,
            _ => EditChange::Keep,
        });
        assert_eq!(String::from_utf8(edited).unwrap(), r#"{"a":[{"x":1.50,"y":[2]},7],"c":{"x":3}}"#);
        assert_eq!(&text[node.get("b").unwrap().place_in(text)], r#"{"x":2}"#);
    }

    #[test]
    fn members_of_another_object_may_go() {
        let node = Node::read(r#"{"id":1,"b":[ 2 ],"c":"d"}"#).unwrap();
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.members_of(&node, |name| name == "id");
        object.end();
        assert_eq!(out, br#"{"b":[ 2 ],"c":"d"}"#);
    }
}
