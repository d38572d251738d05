//! The tier that a request asks for and the tier that served it, in the words of each dialect.

use std::borrow::Cow;
use tollgate_wire::Dialect;

/// The tier that a request asks for, in the one word that prices and other dialects know.
pub(crate) fn tier_asked(dialect: Dialect, word: Cow<'_, str>) -> Cow<'_, str> {
    match dialect {
        Dialect::Anthropic if word == "standard_only" => Cow::Borrowed("default"),
        Dialect::Gemini if word.eq_ignore_ascii_case("standard") => Cow::Borrowed("default"),
        Dialect::Gemini => Cow::Owned(word.to_ascii_lowercase()),
        _ => word,
    }
}

/// The tier as a client of the dialect knows it, if it has a word for it.
pub(crate) fn tier_in(dialect: Dialect, tier: &str) -> Option<&str> {
    let known: &[&str] = match dialect {
        Dialect::Chat | Dialect::Responses => &["auto", "default", "flex", "scale", "priority"],
        Dialect::Anthropic => &["standard", "priority", "batch"],
        Dialect::Gemini => &[],
    };
    Some(tier).filter(|tier| known.contains(tier))
}

/// Who gets what everybody gets need not hear of it.
pub(super) fn is_usual(tier: &str) -> bool {
    matches!(tier, "" | "auto" | "default" | "standard")
}
