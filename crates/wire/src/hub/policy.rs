//! What happens to members that only the caller's dialect knows.
//!
//! Each has a word: refused (the answer would not be what was asked for), honoured (the gateway itself has seen to
//! it), or dropped and recorded. A member that is not listed is dropped and recorded: a provider of another dialect
//! would refuse it. Values that ask for nothing special are left out without a record.

use super::ask::Member;
use super::dropped::Dropped;
use crate::dialect::Dialect;
use crate::problem::Problem;

enum Word {
    /// Refused with this reason, unless the value is one of these.
    Refused(&'static str, &'static [&'static str]),
    /// Seen to by the gateway, or without any effect on the answer.
    Honoured,
    /// Dropped; not recorded when the value is one of these, which ask for what is done anyway.
    Dropped(&'static [&'static str]),
}

use Word::{Dropped as Drop, Honoured, Refused};

const NOT_HERE: &str = "The model is served by a provider that has nothing like this.";

/// Dialect, member, what happens to it.
const TABLE: &[(Dialect, &str, Word)] = &[
    (Dialect::Chat, "stream_options", Honoured),
    (Dialect::Chat, "store", Drop(&["false"])),
    (Dialect::Chat, "logit_bias", Refused("Token ids of one vocabulary mean nothing in another.", &["{}"])),
    (Dialect::Chat, "audio", Refused(NOT_HERE, &[])),
    (Dialect::Chat, "modalities", Refused(NOT_HERE, &[r#"["text"]"#, r#"[ "text" ]"#])),
    (Dialect::Chat, "web_search_options", Refused(NOT_HERE, &[])),
    (Dialect::Anthropic, "container", Refused(NOT_HERE, &[])),
    (Dialect::Anthropic, "mcp_servers", Refused(NOT_HERE, &["[]"])),
    (Dialect::Anthropic, "thread", Refused("Conversations held by the provider are not offered for this model.", &[])),
    (Dialect::Anthropic, "speed", Drop(&["\"standard\""])),
    (Dialect::Responses, "stream_options", Honoured),
    (Dialect::Responses, "store", Honoured),
    (Dialect::Responses, "include", Honoured),
    (
        Dialect::Responses,
        "previous_response_id",
        Refused("It was not resolved before the request was translated.", &[]),
    ),
    (Dialect::Responses, "conversation", Refused("It was not resolved before the request was translated.", &[])),
    (Dialect::Responses, "background", Refused("Background responses are not offered for this model.", &["false"])),
    (Dialect::Responses, "prompt", Refused("Prompt templates are kept by another provider.", &[])),
    (Dialect::Responses, "truncation", Refused("Nothing is ever cut from the input.", &["\"disabled\""])),
    (Dialect::Gemini, "cachedContent", Refused("Cached content is kept by another provider.", &[])),
    (Dialect::Gemini, "generationConfig.responseModalities", Refused(NOT_HERE, &[r#"["TEXT"]"#])),
    (Dialect::Gemini, "generationConfig.speechConfig", Refused(NOT_HERE, &[])),
    (Dialect::Gemini, "generationConfig.imageConfig", Refused(NOT_HERE, &[])),
];

/// Sees to the members that are left when a request goes to another dialect.
pub(crate) fn leave_out(
    origin: Dialect,
    rest: &[Member<'_>],
    strict: bool,
    dropped: &mut Dropped,
) -> Result<(), Problem> {
    for member in rest {
        let word = TABLE.iter().find(|(dialect, name, _)| *dialect == origin && *name == member.name);
        match word.map(|(_, _, word)| word) {
            Some(Honoured) => {}
            Some(Refused(_, usual) | Drop(usual)) if usual.contains(&member.raw) => {}
            Some(Refused(why, _)) => {
                return Err(Problem::unsupported(&member.name, format!("`{}`: {why}", member.name)));
            }
            Some(Drop(_)) | None if strict => {
                return Err(Problem::unsupported(&member.name, format!("`{}`: {NOT_HERE}", member.name)));
            }
            Some(Drop(_)) | None => dropped.add(&member.name),
        }
    }
    Ok(())
}
