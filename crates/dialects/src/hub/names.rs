//! Tool names on their way to a provider and back.
//!
//! Names that a provider would refuse are shortened and marked with a hash; tools in a namespace
//! get it in front; a tool that takes free text becomes a function with one text argument. The
//! answer is put back by this map.

use super::ask::{Tool, ToolKind};
use super::ids::short_hash;
use super::part::CallKind;
use super::target::Target;
use std::borrow::Cow;
use tollgate_wire::Dialect;

/// What the tools of one request are called at the provider, and how the client wants to hear of
/// calls. Empty when no name had to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    changed: Vec<Name>,
    old: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    sent: String,
    name: String,
    namespace: Option<String>,
    custom: bool,
}

/// The single argument of a function that stands for a tool with free text.
pub(crate) const FREE_TEXT: &str = "input";

impl ToolNames {
    pub(crate) fn of(tools: &[Tool<'_>], target: &Target) -> ToolNames {
        let mut names = ToolNames { changed: Vec::new(), old: are_functions(tools) };
        for tool in tools {
            let custom = matches!(tool.kind, ToolKind::Custom { .. });
            let keeps_custom = target.takes_free_text();
            let sent = sent_name(target.dialect, tool.namespace.as_deref(), &tool.name);
            let changed = sent != tool.name || (custom && !keeps_custom);
            if changed {
                names.changed.push(Name {
                    sent: sent.into_owned(),
                    name: tool.name.to_string(),
                    namespace: tool.namespace.as_deref().map(str::to_owned),
                    custom: custom && !keeps_custom,
                });
            }
        }
        names
    }

    /// Chat: the client declared its tools in `functions`, knows one call in an answer and reads it
    /// as `function_call`.
    pub(crate) fn is_old(&self) -> bool {
        self.old
    }

    /// The caller's name, namespace and kind for a name in the answer.
    pub(crate) fn back<'a>(&'a self, sent: &'a str) -> (&'a str, Option<&'a str>, CallKind) {
        match self.changed.iter().find(|one| one.sent == sent) {
            Some(one) => {
                let kind = if one.custom { CallKind::Custom } else { CallKind::Function };
                (&one.name, one.namespace.as_deref(), kind)
            }
            None => (sent, None, CallKind::Function),
        }
    }

    pub(crate) fn is_custom(&self, sent: &str) -> bool {
        self.changed.iter().any(|one| one.custom && one.sent == sent)
    }
}

/// Chat: all tools of the client's own were declared in `functions`.
pub(crate) fn are_functions(tools: &[Tool<'_>]) -> bool {
    let mut own = tools.iter().filter(|tool| !matches!(tool.kind, ToolKind::WebSearch)).peekable();
    own.peek().is_some() && own.all(|tool| tool.old)
}

/// The name as the target accepts it, namespace in front.
pub(crate) fn sent_name<'a>(target: Dialect, namespace: Option<&str>, name: &'a str) -> Cow<'a, str> {
    let whole = match namespace {
        Some(space) if target != Dialect::Responses => Cow::Owned(format!("{space}__{name}")),
        _ => Cow::Borrowed(name),
    };
    let most = match target {
        Dialect::Chat | Dialect::Responses => 64,
        Dialect::Anthropic | Dialect::Gemini => 128,
    };
    let plain = |b: u8| match target {
        Dialect::Gemini => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'),
        _ => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
    };
    let first = target != Dialect::Gemini || whole.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !whole.is_empty() && whole.len() <= most && whole.bytes().all(plain) && first {
        return whole;
    }
    let mut out = String::with_capacity(most);
    if !first {
        out.push('_');
    }
    out.extend(whole.chars().map(|c| if c.is_ascii() && plain(c as u8) { c } else { '_' }).take(most - 18));
    out.push('_');
    out.push_str(&short_hash(&whole));
    Cow::Owned(out)
}

/// The name of a tool that is chosen by its own name alone, namespace in front where it has one.
pub(crate) fn chosen_name<'a>(target: Dialect, tools: &[Tool<'_>], name: &'a str) -> Cow<'a, str> {
    let spaces = tools.iter().filter(|tool| tool.name == name).map(|tool| tool.namespace.as_deref());
    // One outside every namespace is meant before others.
    sent_name(target, spaces.min_by_key(Option::is_some).flatten(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_target() {
        assert_eq!(sent_name(Dialect::Chat, None, "get_weather"), "get_weather");
        assert!(sent_name(Dialect::Anthropic, None, "fs/read.file").starts_with("fs_read_file_"));
        assert_eq!(sent_name(Dialect::Gemini, None, "fs.read"), "fs.read");
        assert!(sent_name(Dialect::Gemini, None, "1st").starts_with("_1st_"));
        assert_eq!(sent_name(Dialect::Anthropic, Some("mcp"), "go"), "mcp__go");
        for dialect in Dialect::ALL {
            let long = "é".repeat(200);
            let name = sent_name(dialect, None, &long);
            assert!(name.is_ascii() && name.len() <= 128);
            assert_eq!(sent_name(dialect, None, &name), name, "fits already");
        }
    }
}
