//! `reasoning_details`: the extension in which chat carries thoughts with their seals.
//!
//! Entries are `reasoning.text`, `reasoning.summary` and `reasoning.encrypted`, each with the `format` of its maker and
//! the `id` it is bound to, so that a client that sends them back lets the next turn go on.

use crate::dialect::Dialect;
use crate::hub::{Origin, Thought};
use crate::json::Array;

/// The entries of one thought. `index` numbers thoughts of a message.
pub(super) fn write_thought(list: &mut Array<'_>, thought: &Thought<'_>, index: u64) {
    let seal = thought.seal.as_ref();
    let format = seal.map_or(Origin::Other, |seal| seal.origin).format();
    // OpenAI seals summaries; Anthropic signs the text it shows.
    let beside = thought.summary || thought.redacted || seal.is_some_and(|seal| seal.origin != Origin::Anthropic);
    // A signed thought whose text was not sent is no redacted one: its maker tells them apart.
    if !thought.text.is_empty() || (seal.is_some() && !beside) {
        list.object(|one| {
            one.text("type", if thought.summary { "reasoning.summary" } else { "reasoning.text" });
            one.text(if thought.summary { "summary" } else { "text" }, &thought.text);
            if let Some(seal) = seal.filter(|_| !beside) {
                one.text("signature", &seal.data);
            }
            one.text("format", format);
            one.number("index", index);
        });
    }
    if let Some(seal) = seal.filter(|_| beside) {
        list.object(|one| {
            one.text("type", "reasoning.encrypted");
            one.text("data", &seal.data);
            one.text("format", format);
            if !seal.bound.is_empty() {
                one.text("id", &seal.bound_in(Dialect::Chat));
            }
            one.number("index", index);
        });
    }
}
