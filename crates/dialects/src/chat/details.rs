//! `reasoning_details`: the extension in which chat carries thoughts with their seals.
//!
//! Entries are `reasoning.text`, `reasoning.summary` and `reasoning.encrypted`, each with the
//! `format` of its maker and the `id` it is bound to, so that a client that sends them back lets
//! the next turn go on. Ids begin with a mark: providers of this dialect that have the same
//! extension want their own entries back, and none of ours.

use crate::hub::{MARK, SealMaker, Thought};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Node};

/// The entries of one thought. `index` numbers thoughts of a message.
pub(super) fn write_thought(list: &mut Array<'_>, thought: &Thought<'_>, index: u64) {
    let seal = thought.seal.as_ref();
    let format = seal.map_or(SealMaker::Other, |seal| seal.origin).format();
    // OpenAI seals summaries; Anthropic signs the text it shows.
    let beside = thought.summary || thought.redacted || seal.is_some_and(|seal| seal.origin != SealMaker::Anthropic);
    // A signed thought whose text was not sent is no redacted one: its maker tells them apart.
    if !thought.text.is_empty() || (seal.is_some() && !beside) {
        list.object(|one| {
            one.text("type", if thought.summary { "reasoning.summary" } else { "reasoning.text" });
            one.text(if thought.summary { "summary" } else { "text" }, &thought.text);
            if let Some(seal) = seal.filter(|_| !beside) {
                one.text("signature", &seal.data);
            }
            one.text("format", format);
            one.text("id", MARK);
            one.number("index", index);
        });
    }
    if let Some(seal) = seal.filter(|_| beside) {
        list.object(|one| {
            one.text("type", "reasoning.encrypted");
            one.text("data", &seal.data);
            one.text("format", format);
            one.text("id", &format!("{MARK}{}", seal.bound_in(Dialect::Chat)));
            one.number("index", index);
        });
    }
}

/// What an entry is bound to. Helpers of streams may have joined the ids of all its pieces.
pub(super) fn bound<'a>(detail: &Node<'a>) -> Cow<'a, str> {
    let id = detail.text_of("id").cloned().unwrap_or_default();
    match id.trim_start_matches(MARK) {
        own if own.len() == id.len() => id,
        own => Cow::Owned(own.to_owned()),
    }
}

/// Whether we made an entry.
pub(crate) fn is_ours(detail: &Node<'_>) -> bool {
    detail.str_of("id").starts_with(MARK)
}
