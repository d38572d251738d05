//! The tier that served a call, in the words of an answer.

use crate::dialect::Dialect;

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
