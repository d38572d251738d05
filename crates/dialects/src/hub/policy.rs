//! What happens to members that only the caller's dialect knows.
//!
//! Each has a word: refused (the answer would not be what was asked for), honoured (the gateway
//! itself has seen to it), or dropped and recorded. A member that is not listed is dropped and
//! recorded: a provider of another dialect would refuse it. Empty values, and those that ask for
//! what is done anyway, are left out without a record.

use super::ask::Member;
use super::fields::same_name;
use super::kinds::right_kind;
use tollgate_wire::Dialect;
use tollgate_wire::Dropped;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

enum Word {
    /// Refused with this reason, unless the value is one of these.
    Refused(&'static str, &'static [&'static str]),
    /// Seen to by the gateway, or without any effect on the answer.
    Honoured,
    /// A list whose entries are seen to when they are among these; the others are dropped.
    Each(&'static [&'static str]),
    /// Dropped; not recorded when the value is one of these, which ask for what is done anyway.
    Dropped(&'static [&'static str]),
}

use Word::{Dropped as Drop, Each, Honoured, Refused};

const NOT_HERE: &str = "The model is served by a provider that has nothing like this.";

/// Dialect, member of the request, what happens to it.
const TABLE: &[(Dialect, &str, Word)] = &[
    (Dialect::Chat, "stream", Drop(&["false"])),
    (Dialect::Chat, "logprobs", Drop(&["false"])),
    // The smaller one of the two limits holds.
    (Dialect::Chat, "max_completion_tokens", Honoured),
    (Dialect::Chat, "max_tokens", Honoured),
    (Dialect::Chat, "reasoning.enabled", Drop(&["true", "false"])),
    (Dialect::Chat, "stream_options", Honoured),
    (Dialect::Chat, "store", Drop(&["false"])),
    (Dialect::Chat, "logit_bias", Refused("Token ids of one vocabulary mean nothing in another.", &[])),
    (Dialect::Chat, "audio", Refused(NOT_HERE, &[])),
    (Dialect::Chat, "modalities", Refused(NOT_HERE, &[r#"["text"]"#, r#"[ "text" ]"#])),
    // A tool of the provider's, seen to among the tools.
    (Dialect::Chat, "web_search_options", Honoured),
    (Dialect::Anthropic, "stream", Drop(&["false"])),
    // Reported where its mark is written.
    (Dialect::Anthropic, "cache_control", Honoured),
    (Dialect::Anthropic, "container", Refused(NOT_HERE, &[])),
    (Dialect::Anthropic, "mcp_servers", Refused(NOT_HERE, &[])),
    (Dialect::Anthropic, "thread", Refused("Conversations held by the provider are not offered for this model.", &[])),
    (Dialect::Anthropic, "speed", Drop(&["\"standard\""])),
    (Dialect::Responses, "stream", Drop(&["false"])),
    (Dialect::Responses, "stream_options", Honoured),
    (Dialect::Responses, "store", Honoured),
    (Dialect::Responses, "include", Each(&["reasoning.encrypted_content", "message.output_text.logprobs"])),
    (
        Dialect::Responses,
        "previous_response_id",
        Refused("It was not resolved before the request was translated.", &[]),
    ),
    (Dialect::Responses, "conversation", Refused("It was not resolved before the request was translated.", &[])),
    (Dialect::Responses, "background", Refused("Background responses are not offered for this model.", &["false"])),
    (Dialect::Responses, "prompt", Refused("Prompt templates are kept by another provider.", &[])),
    (Dialect::Responses, "truncation", Refused("Nothing is ever cut from the input.", &["\"disabled\""])),
    // The path names it.
    (Dialect::Gemini, "model", Honoured),
    (Dialect::Gemini, "generationConfig.responseLogprobs", Drop(&["false"])),
    // Beside a schema, which says so already.
    (Dialect::Gemini, "generationConfig.responseMimeType", Drop(&["\"application/json\""])),
    (Dialect::Gemini, "generationConfig.thinkingConfig.thinkingLevel", Drop(&["\"THINKING_LEVEL_UNSPECIFIED\""])),
    (Dialect::Gemini, "cachedContent", Refused("Cached content is kept by another provider.", &[])),
    (Dialect::Gemini, "generationConfig.responseModalities", Refused(NOT_HERE, &[r#"["TEXT"]"#])),
    (Dialect::Gemini, "generationConfig.speechConfig", Refused(NOT_HERE, &[])),
    (Dialect::Gemini, "generationConfig.imageConfig", Refused(NOT_HERE, &[])),
];

/// Members of turns, parts and tools that are not reported: they mean nothing to another provider,
/// or the hub carries what they say. Dialect, place, member, how its value begins.
const CARRIED: &[(Dialect, &str, &str, &str)] = &[
    (Dialect::Chat, "", "index", ""),
    (Dialect::Chat, "", "reasoning_details", "["),
    (Dialect::Chat, "", "reasoning_content", "\""),
    (Dialect::Chat, "", "reasoning", "\""),
    (Dialect::Chat, "function", "arguments", ""),
    (Dialect::Anthropic, "", "type", "\"custom\""),
    (Dialect::Anthropic, "", "is_error", "false"),
    (Dialect::Anthropic, "source", "media_type", "\"text/"),
    (Dialect::Responses, "", "type", "\""),
    (Dialect::Responses, "", "id", "\""),
    (Dialect::Responses, "", "status", "\""),
    (Dialect::Gemini, "", "role", "\""),
    (Dialect::Gemini, "", "thoughtSignature", "\""),
    (Dialect::Gemini, "fileData", "mimeType", "\""),
    (Dialect::Gemini, "functionCall", "id", ""),
    (Dialect::Gemini, "functionResponse", "id", ""),
    (Dialect::Gemini, "functionResponse", "response", ""),
    (Dialect::Gemini, "functionResponse", "parts", "["),
];

/// Whether a member of a turn, part or tool need not be reported.
pub(crate) fn is_carried(origin: Dialect, member: &Member<'_>) -> bool {
    let is = |(dialect, place, name, value): &(Dialect, &str, &str, &str)| {
        *dialect == origin && *place == member.place && same_name(name, &member.name) && member.raw.starts_with(value)
    };
    asks_nothing(member.raw) || CARRIED.iter().any(is)
}

/// A value that is empty.
pub(crate) fn asks_nothing(raw: &str) -> bool {
    matches!(raw, "" | "null" | "[]" | "{}" | "\"\"")
}

fn all_among(raw: &str, seen: &[&str]) -> bool {
    let known = |entry: &Node<'_>| entry.text().is_some_and(|entry| seen.contains(&entry.as_ref()));
    Node::read(raw).is_ok_and(|list| list.is_list() && list.items().iter().all(known))
}

/// Sees to the members of the request that are left when it goes to another dialect.
pub(crate) fn leave_out(
    origin: Dialect,
    rest: &[Member<'_>],
    strict: bool,
    dropped: &mut Dropped,
) -> Result<(), Problem> {
    rest.iter().try_for_each(|member| right_kind(origin, member))?;
    for member in rest.iter().filter(|member| !asks_nothing(member.raw)) {
        let path = member.path();
        let word = TABLE.iter().find(|(dialect, name, _)| *dialect == origin && same_name(name, &path));
        match word.map(|(_, _, word)| word) {
            Some(Honoured) => {}
            Some(Each(seen)) if all_among(member.raw, seen) => {}
            Some(Refused(_, usual) | Drop(usual)) if usual.contains(&member.raw) => {}
            Some(Refused(why, _)) => {
                return Err(Problem::unsupported(&path, format!("`{path}`: {why}")));
            }
            Some(Drop(_) | Each(_)) | None if strict => {
                return Err(Problem::unsupported(&path, format!("`{path}`: {NOT_HERE}")));
            }
            Some(Drop(_) | Each(_)) | None => dropped.add(&path),
        }
    }
    Ok(())
}
