//! An object of a request being read. A member is taken by whoever knows what its value means; what
//! nobody took, nulls and values of an unexpected kind included, is left over: reported or refused.

use super::ask::Member;
use super::effort::Effort;
use std::borrow::Cow;
use tollgate_wire::json::{Members, Node};

pub(crate) struct Fields<'n, 'a> {
    members: &'n Members<'a>,
    /// Gemini's two spellings are one name.
    loose: bool,
    taken: u128,
    /// Places beyond the bits above.
    more: Vec<usize>,
}

impl<'n, 'a> Fields<'n, 'a> {
    pub fn of(node: &'n Node<'a>) -> Self {
        Fields { members: node.members(), loose: false, taken: 0, more: Vec::new() }
    }

    /// The same where `top_p` is `topP`.
    pub fn loose(node: &'n Node<'a>) -> Self {
        Fields { loose: true, ..Fields::of(node) }
    }

    fn find(&self, key: &str) -> Option<(usize, &'n Node<'a>)> {
        let is = |name: &str| if self.loose { same_name(name, key) } else { name == key };
        let at = self.members.iter().position(|(name, _)| is(name))?;
        Some((at, &self.members[at].1)).filter(|(_, node)| !node.is_null())
    }

    /// Looks at a member and leaves it.
    pub fn see(&self, key: &str) -> Option<&'n Node<'a>> {
        self.find(key).map(|(_, node)| node)
    }

    /// Takes a member when `read` understands it.
    pub fn take_if<T>(&mut self, key: &str, read: impl FnOnce(&'n Node<'a>) -> Option<T>) -> Option<T> {
        let (at, node) = self.find(key)?;
        let value = read(node)?;
        match u32::try_from(at) {
            Ok(bit) if bit < u128::BITS => self.taken |= 1 << bit,
            _ if self.more.contains(&at) => {}
            _ => self.more.push(at),
        }
        Some(value)
    }

    /// Takes a member whatever it is.
    pub fn take(&mut self, key: &str) -> Option<&'n Node<'a>> {
        self.take_if(key, Some)
    }

    pub fn raw(&mut self, key: &str) -> Option<&'a str> {
        self.take_if(key, |node| Some(node.raw))
    }

    pub fn text(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.take_if(key, |node| node.text().cloned())
    }

    /// Takes a text that is this word.
    pub fn word(&mut self, key: &str, word: &str) -> bool {
        self.take_if(key, |node| node.text().filter(|text| *text == word)).is_some()
    }

    /// Takes a text with anything in it; nothing where there is none.
    pub fn filled(&mut self, key: &str) -> Cow<'a, str> {
        self.take_if(key, |node| node.text().filter(|text| !text.is_empty()).cloned()).unwrap_or_default()
    }

    pub fn decimal(&mut self, key: &str) -> Option<&'a str> {
        self.take_if(key, Node::decimal)
    }

    pub fn number(&mut self, key: &str) -> Option<u64> {
        self.take_if(key, Node::number)
    }

    pub fn bool(&mut self, key: &str) -> Option<bool> {
        self.take_if(key, Node::bool)
    }

    /// Takes a member that is true: false asks for what is done anyway.
    pub fn on(&mut self, key: &str) -> bool {
        self.take_if(key, |node| node.bool().filter(|on| *on)).is_some()
    }

    /// Takes an object with anything in it.
    pub fn map(&mut self, key: &str) -> Option<&'n Node<'a>> {
        self.take_if(key, |node| Some(node).filter(|node| !node.members().is_empty()))
    }

    /// Takes a list with anything in it.
    pub fn list(&mut self, key: &str) -> Option<&'n [Node<'a>]> {
        self.take_if(key, |node| Some(node.items()).filter(|items| !items.is_empty()))
    }

    /// Takes content: a text, or a list of parts.
    pub fn content(&mut self, key: &str) -> Option<&'n Node<'a>> {
        self.take_if(key, |node| Some(node).filter(|node| node.text().is_some() || node.is_list()))
    }

    /// Takes a list of texts and nothing else.
    pub fn texts(&mut self, key: &str) -> Option<Vec<Cow<'a, str>>> {
        self.take_if(key, |node| {
            let texts: Option<Vec<_>> = node.items().iter().map(|item| item.text().cloned()).collect();
            texts.filter(|texts| !texts.is_empty())
        })
    }

    pub fn effort(&mut self, key: &str) -> Option<Effort> {
        self.take_if(key, |node| node.text().and_then(|word| Effort::of(word)))
    }

    /// What nobody took.
    pub fn rest(self) -> Vec<Member<'a>> {
        let mut rest = Vec::new();
        self.rest_at("", &mut rest);
        rest
    }

    /// What nobody took, of an object inside another.
    pub fn rest_at(self, place: &'static str, rest: &mut Vec<Member<'a>>) {
        if self.taken.count_ones() as usize + self.more.len() == self.members.len() {
            return;
        }
        let taken = |at: usize| if at < 128 { self.taken >> at & 1 == 1 } else { self.more.contains(&at) };
        let left = self.members.iter().enumerate().filter(|(at, _)| !taken(*at));
        rest.extend(left.map(|(_, (name, value))| Member { place, name: name.clone(), raw: value.raw }));
    }
}

/// Whether two names differ by their spelling only: `topP`, `top_p`. The second one is longer.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = char> {
        name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase())
    }
    if one.len() == other.len() {
        return one == other;
    }
    one.as_bytes().first() == other.as_bytes().first()
        && (one.contains('_') || other.contains('_'))
        && letters(one).eq(letters(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_left() {
        let node = Node::read(r#"{"n":"7","t":1.50,"z":null,"x":{},"on":false,"t":2,"s":["a",1]}"#).unwrap();
        let mut fields = Fields::of(&node);
        assert_eq!((fields.number("n"), fields.decimal("t"), fields.on("on")), (None, Some("1.50"), false));
        assert!(fields.map("x").is_none() && fields.texts("s").is_none() && fields.take("z").is_none());
        let rest: Vec<_> = fields.rest().into_iter().map(|member| (member.name.into_owned(), member.raw)).collect();
        let left = [("n", "\"7\""), ("z", "null"), ("x", "{}"), ("on", "false"), ("t", "2"), ("s", "[\"a\",1]")];
        assert_eq!(rest, left.map(|(name, raw)| (name.to_owned(), raw)));
    }

    #[test]
    fn members_beyond_any_number_of_others_are_found() {
        let text = (0..300).map(|at| format!("\"f{at}\":{at}")).collect::<Vec<_>>().join(",");
        let text = format!("{{{text}}}");
        let node = Node::read(&text).unwrap();
        let mut fields = Fields::of(&node);
        assert_eq!(
            (fields.number("f127"), fields.number("f128"), fields.number("f299")),
            (Some(127), Some(128), Some(299))
        );
        let rest = fields.rest();
        assert_eq!(rest.len(), 297);
        assert!(!rest.iter().any(|member| ["f127", "f128", "f299"].contains(&member.name.as_ref())));
    }

    #[test]
    fn two_spellings_are_one_name() {
        assert!(
            same_name("top_p", "topP")
                && same_name("topP", "topP")
                && same_name("response_json_schema", "responseJsonSchema")
        );
        assert!(!same_name("TOPP", "topP") && !same_name("top_p", "topK"));
    }
}
