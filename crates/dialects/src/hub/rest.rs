//! What an answer holds beside what the hub has a place for.
//!
//! Each dialect lists, as data, the members of its objects that its reader takes (`known.rs` of the
//! dialect). The rest is reported to a client of another dialect by name; one of the same dialect
//! gets the provider's bytes, and with them all of it. Reader and list are held to each other by
//! the tests in `exchange/again`: what is listed as taken comes back out of the hub, what is not
//! listed is reported, whatever object it stands in, and both together are the answer that came.

use tollgate_wire::json::{Node, NodeKind};
use tollgate_wire::usage::UsageShape;

/// Members of one object.
pub(crate) type RestMembers = &'static [Known];

/// What becomes of a member. One that no entry names is reported as lost, unless it says nothing.
#[derive(Debug)]
pub(crate) enum Known {
    /// The hub has a place for these, whatever they hold.
    Is(&'static [&'static str]),
    /// These say again what others say, are the provider's own bookkeeping, or come as counters:
    /// nobody misses them.
    Apart(&'static [&'static str]),
    /// An object whose members are seen to one by one.
    In(&'static str, RestMembers),
    /// The same, reported with its own name in front.
    Dotted(&'static str, RestMembers),
    /// An object, or a list of objects, of several kinds. `None`: the reader tells of such a one as
    /// a whole.
    Each(&'static str, fn(&Node<'_>) -> Option<RestMembers>),
    /// The same of counters: one that is zero says nothing.
    Counts(&'static str, RestMembers),
    /// A report of usage, which comes as counters; numbers that nobody counts are reported with its
    /// name.
    Usage(&'static str, UsageShape),
    /// Reported like the entry in it; its meaning reaches the hub in another form, from which it
    /// cannot be written as it was.
    Recast(&'static Known),
    /// The same of a whole object.
    Whole,
    /// Every other member is taken.
    All,
}

impl Known {
    fn names(&self, member: &str) -> bool {
        match self {
            Known::Is(names) | Known::Apart(names) => names.contains(&member),
            Known::In(name, _) | Known::Dotted(name, _) | Known::Counts(name, _) => *name == member,
            Known::Each(name, _) | Known::Usage(name, _) => *name == member,
            Known::Recast(inner) => inner.names(member),
            Known::Whole => false,
            Known::All => true,
        }
    }
}

/// The entry for a member.
pub(crate) fn entry(known: RestMembers, member: &str) -> Option<&'static Known> {
    known.iter().find(|entry| entry.names(member))
}

/// Whether a value says anything at all.
pub(crate) fn says(value: &Node<'_>) -> bool {
    match &value.kind {
        NodeKind::Null => false,
        NodeKind::Text(text) => !text.is_empty(),
        NodeKind::List(items) => !items.is_empty(),
        NodeKind::Map(members) => !members.is_empty(),
        NodeKind::Bool(_) | NodeKind::Number => true,
    }
}

/// An object of the provider's as it came, and which of its members the hub has taken. Nothing is
/// copied or looked at until it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub node: &'a Node<'a>,
    pub known: RestMembers,
}

impl PartialEq for Rest<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.node.raw == other.node.raw && std::ptr::eq(self.known, other.known)
    }
}

impl Rest<'_> {
    /// Names what the hub has no place for, each with the name of the object it is reported with.
    pub fn report(&self, tell: &mut dyn FnMut(&str, &str)) {
        Walk { inside: "", says, tell }.object(self.node, self.known);
    }
}

struct Walk<'t> {
    inside: &'static str,
    says: fn(&Node<'_>) -> bool,
    tell: &'t mut dyn FnMut(&str, &str),
}

impl Walk<'_> {
    fn object(&mut self, node: &Node<'_>, known: RestMembers) {
        for (name, value) in node.members() {
            match entry(known, name) {
                Some(entry) => self.member(entry, value),
                None if (self.says)(value) => (self.tell)(self.inside, name),
                None => {}
            }
        }
    }

    fn member(&mut self, entry: &Known, value: &Node<'_>) {
        match entry {
            Known::Is(_) | Known::Apart(_) | Known::All | Known::Whole => {}
            Known::In(_, members) => self.object(value, members),
            Known::Dotted(name, members) => {
                Walk { inside: name, says: self.says, tell: self.tell }.object(value, members);
            }
            Known::Counts(name, members) => {
                Walk { inside: name, says: |count| !count.is_zero(), tell: self.tell }.object(value, members);
            }
            Known::Each(_, kind) => {
                for one in value.items().iter().chain(value.is_map().then_some(value)) {
                    if let Some(members) = kind(one) {
                        self.object(one, members);
                    }
                }
            }
            Known::Usage(name, shape) => shape.uncounted(value, &mut |member| (self.tell)(name, member)),
            Known::Recast(inner) => self.member(inner, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: RestMembers = &[Known::Is(&["type", "text"])];
    const ANSWER: RestMembers = &[
        Known::Is(&["id"]),
        Known::Apart(&["time"]),
        Known::In("message", &[Known::Each("parts", |part| (part.str_of("type") == "text").then_some(PART))]),
        Known::Recast(&Known::Dotted("links", &[Known::Is(&["url"])])),
        Known::Counts("times", &[Known::In("web", &[Known::Is(&["n"])])]),
    ];

    #[test]
    fn what_is_not_listed_is_reported_wherever_it_stands() {
        let text = r#"{"id":1,"time":2,"odd":3,"null":null,"none":{},"message":{"mood":"good","parts":[{"type":"text","text":"a","tone":1},{"type":"wave","x":1}]},"links":{"url":"u","age":4},"times":{"web":{"n":1,"m":2},"files":{"n":0}}}"#;
        let node = Node::read(text).unwrap();
        let mut dropped = Vec::new();
        Rest { node: &node, known: ANSWER }.report(&mut |inside, name| dropped.push(format!("{inside}/{name}")));
        assert_eq!(dropped, ["/odd", "/mood", "/tone", "links/age", "times/m"]);
    }
}
