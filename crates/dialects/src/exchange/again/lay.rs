//! What was written out of the hub, laid into the original where the hub has a place for it.
//!
//! The original comes from `Event::Rest`, the hub's own place for all that no other dialect has:
//! unknown members, the provider's ids and numbers, forms that are heard as something else. Those
//! stand as they came, and where the writer says otherwise it is noted.

use super::notes::{Notes, What};
use crate::hub::{Known, RestMembers, entry, says};
use serde_json::{Map, Value};
use std::collections::HashSet;
use tollgate_wire::Dialect;
use tollgate_wire::json::{Node, NodeKind};

/// Puts objects together and remembers what a stream may say before or after the event it stands
/// in.
pub(super) struct Lay<'n> {
    dialect: Dialect,
    notes: &'n mut Notes,
    /// Ids, kinds and names of calls and tiers that were written, and those that the original has
    /// where nothing was written: servers say them again with every piece, or before there is
    /// anything to say.
    written: HashSet<String>,
    owed: HashSet<String>,
}

const OFTEN: [&str; 4] = ["id", "type", "name", "service_tier"];

/// The meaning of a node; half a surrogate means what the reader takes it for.
pub(super) fn value(node: &Node<'_>) -> Value {
    match &node.kind {
        NodeKind::Null => Value::Null,
        NodeKind::Bool(one) => Value::Bool(*one),
        NodeKind::Number => serde_json::from_str(node.raw).expect("a number"),
        NodeKind::Text(text) => Value::String(text.to_string()),
        NodeKind::List(items) => items.iter().map(value).collect(),
        NodeKind::Map(members) => members.iter().map(|(name, one)| (name.to_string(), value(one))).collect(),
    }
}

/// It says nothing. An object whose members are seen to one by one is looked into, be it empty.
fn is_void(one: &Node<'_>, known: &Known) -> bool {
    match known {
        Known::In(..) | Known::Dotted(..) | Known::Counts(..) if one.is_map() => false,
        _ => !says(one),
    }
}

/// The object is not written at all: it was reported as a whole.
pub(super) fn is_whole(members: Option<RestMembers>) -> bool {
    members.is_none_or(|members| members.iter().any(|known| matches!(known, Known::Whole)))
}

impl<'n> Lay<'n> {
    pub fn new(dialect: Dialect, notes: &'n mut Notes) -> Self {
        Lay { dialect, notes, written: HashSet::new(), owed: HashSet::new() }
    }

    /// The object as it came, but for what the hub has a place for: that is taken from what was
    /// written, or missing.
    pub fn again(&mut self, node: &Node<'_>, known: RestMembers, written: Option<&Value>) -> Value {
        let mut again = Map::new();
        for (name, one) in node.members() {
            let place = written.and_then(|written| written.get(name.as_ref()));
            let laid = match entry(known, name) {
                // What says nothing is not carried, and who does not say it need not hear it.
                Some(known) if is_void(one, known) => {
                    self.note(What::Filled, name, place.filter(|place| !is_empty(place)).is_some());
                    Some(value(one))
                }
                // A text is carried as one; only other forms of the same member are heard as
                // something else.
                Some(Known::Recast(_)) if matches!(one.kind, NodeKind::Text(_)) => {
                    self.carried(name, &value(one), place)
                }
                None | Some(Known::Apart(_)) => {
                    self.note(What::Made, name, place.is_some_and(|place| *place != value(one)));
                    Some(value(one))
                }
                // Their meaning is compared by `meaning`.
                Some(Known::Usage(..) | Known::Recast(_)) => Some(value(one)),
                Some(Known::Is(_) | Known::All | Known::Whole) => self.carried(name, &value(one), place),
                Some(Known::In(_, members) | Known::Dotted(_, members) | Known::Counts(_, members)) => {
                    Some(self.again(one, members, place))
                }
                Some(Known::Each(_, kind)) => Some(self.each(one, *kind, place)),
            };
            if let Some(laid) = laid {
                again.insert(name.to_string(), laid);
            }
        }
        for (name, _) in written.and_then(Value::as_object).into_iter().flatten() {
            self.note(What::Added, name, !node.members().iter().any(|(known, _)| known == name));
        }
        Value::Object(again)
    }

    fn note(&mut self, what: What, name: &str, here: bool) {
        if here {
            self.notes.add(self.dialect, what, name);
        }
    }

    fn carried(&mut self, name: &str, original: &Value, written: Option<&Value>) -> Option<Value> {
        let said = format!("{name} {original}");
        match written {
            // Arguments that came as an object are written as text.
            Some(Value::String(text)) if serde_json::from_str(text).is_ok_and(|read: Value| read == *original) => {
                Some(original.clone())
            }
            Some(written) => {
                self.written.insert(format!("{name} {written}"));
                Some(written.clone())
            }
            None if OFTEN.contains(&name) => {
                self.owed.insert(said);
                Some(original.clone())
            }
            None => None,
        }
    }

    fn each(&mut self, node: &Node<'_>, kind: fn(&Node<'_>) -> Option<RestMembers>, written: Option<&Value>) -> Value {
        if !node.is_list() {
            let members = kind(node);
            return if is_whole(members) { value(node) } else { self.again(node, members.unwrap_or(&[]), written) };
        }
        let mut rest = written.and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter();
        let mut again: Vec<Value> = Vec::new();
        for one in node.items() {
            let members = kind(one);
            let whole = is_whole(members);
            again.push(if whole { value(one) } else { self.again(one, members.unwrap_or(&[]), rest.next()) });
        }
        // More than there was would show.
        again.extend(rest.filter(|more| !is_empty(more)).cloned());
        Value::Array(again)
    }

    /// What was put off or said again has been said.
    pub fn settled(&self) -> bool {
        self.owed.is_subset(&self.written)
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the hub has a place for anything in it but its type.
pub(super) fn says_anything(node: &Node<'_>, known: RestMembers) -> bool {
    node.members().iter().any(|(name, one)| match entry(known, name) {
        Some(Known::Is(_) | Known::All) => name != "type" && says(one),
        Some(Known::In(_, members) | Known::Dotted(_, members) | Known::Counts(_, members)) => {
            says_anything(one, members)
        }
        Some(Known::Each(_, kind)) => {
            let mut inner = one.items().iter().chain(one.is_map().then_some(one));
            inner.any(|one| kind(one).is_some_and(|members| says_anything(one, members)))
        }
        _ => false,
    })
}
