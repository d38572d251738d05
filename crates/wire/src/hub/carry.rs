//! What readers and writers of requests share: members left over, data URLs, and the record of what is left behind.

use super::{Dropped, Member, Place, Target, leave_out};
use crate::dialect::Dialect;
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

/// Members that are not in `known`; null asks for nothing.
pub(crate) fn others<'a>(node: &Node<'a>, known: &[&str]) -> Vec<Member<'a>> {
    let left = node.members().iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_ref()));
    left.map(|(name, value)| Member { name: name.clone(), raw: value.raw }).collect()
}

/// The same for an object inside a part, whose name is told with theirs.
pub(crate) fn others_in<'a>(outer: &str, node: &Node<'a>, known: &[&str]) -> impl Iterator<Item = Member<'a>> {
    others(node, known).into_iter().map(move |one| Member { name: Cow::Owned(format!("{outer}.{}", one.name)), ..one })
}

/// A part of a text as borrowed as the text itself.
pub(crate) fn part_of<'a>(text: &Cow<'a, str>, from: usize, to: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
        Cow::Owned(text) => Cow::Owned(text[from..to].to_owned()),
    }
}

/// A link, or the data it carries itself.
pub(crate) fn place_of_url<'a>(url: &Cow<'a, str>) -> Place<'a> {
    if url.len() > 5
        && url.is_char_boundary(5)
        && url[..5].eq_ignore_ascii_case("data:")
        && let Some(comma) = url.find(',')
        && let Some(mark) = url[..comma].rfind(";base64")
    {
        let mime = part_of(url, 5, mark.max(5));
        return Place::Data { mime, base64: part_of(url, comma + 1, url.len()) };
    }
    Place::Url(url.clone())
}

/// The usual spelling of a type, without parameters.
pub(crate) fn tidy_mime(mime: Cow<'_, str>) -> Cow<'_, str> {
    let end = mime.find(';').unwrap_or(mime.len());
    let mime = part_of(&mime, 0, end);
    if mime == "image/jpg" { Cow::Borrowed("image/jpeg") } else { mime }
}

/// A data URL.
pub(crate) fn data_url(mime: &str, base64: &str) -> String {
    format!("data:{mime};base64,{base64}")
}

/// A request being written: where to, and what was left behind.
pub(crate) struct Carry<'t> {
    pub target: &'t Target,
    pub dropped: Dropped,
}

impl<'t> Carry<'t> {
    pub fn new(target: &'t Target) -> Self {
        Carry { target, dropped: Dropped::default() }
    }

    /// Records a field that is not sent; refused when the caller asked for strictness.
    pub fn drop(&mut self, field: &str) -> Result<(), Problem> {
        if self.target.strict {
            let text = format!("`{field}`: the model is served by a provider that has nothing like this.");
            return Err(Problem::unsupported(field, text));
        }
        self.dropped.add(field);
        Ok(())
    }

    pub fn drop_if(&mut self, field: &str, given: bool) -> Result<(), Problem> {
        if given { self.drop(field) } else { Ok(()) }
    }

    /// Sees to members without a place in the hub, by their policy.
    pub fn rest(&mut self, origin: Dialect, rest: &[Member<'_>]) -> Result<(), Problem> {
        leave_out(origin, rest, self.target.strict, &mut self.dropped)
    }

    /// A cache mark at a place where the target takes none.
    pub fn unmarked(&mut self, cached: bool) -> Result<(), Problem> {
        self.drop_if("cache_control", cached)
    }
}

impl Carry<'_> {
    /// Sees to members of a part without a place in the hub. Cache marks are carried by their position.
    pub fn part_rest(&mut self, rest: &[Member<'_>]) -> Result<(), Problem> {
        for member in rest {
            match member.name.as_ref() {
                "cache_control" | "prompt_cache_breakpoint" if !member.raw.contains("ttl") => {}
                "cache_control" => self.drop("cache_control.ttl")?,
                "prompt_cache_breakpoint" => self.drop("prompt_cache_breakpoint.ttl")?,
                other => self.drop(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls() {
        let place = place_of_url(&"data:image/jpg;base64,QUJD".into());
        assert_eq!(place, Place::Data { mime: "image/jpg".into(), base64: "QUJD".into() });
        let place = place_of_url(&"data:text/plain;charset=utf-8;base64,QQ==".into());
        assert_eq!(place, Place::Data { mime: "text/plain;charset=utf-8".into(), base64: "QQ==".into() });
        for url in ["https://x.example/a.png", "data:image/png,raw", "data:", "", "d\u{e4}ta:x;base64,"] {
            assert_eq!(place_of_url(&url.into()), Place::Url(url.into()));
        }
    }
}
