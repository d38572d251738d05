//! Where a writer does otherwise than the original, so that at home what came is preserved: all of
//! it, each with its why.
//!
//! Whatever the tests of this folder find must be on the list, and whatever is on it must be found.

use std::collections::BTreeSet;
use tollgate_wire::Dialect::{self, Anthropic, Chat, Gemini, Responses};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A member has a value that the writer makes itself.
    Made,
    /// A member was not there.
    Added,
    /// A member was there and said nothing.
    Filled,
    /// An event has no part in what was written.
    Skipped,
    /// An event was written that was not there.
    Repaired,
}

use What::{Added, Filled, Made, Repaired, Skipped};

#[rustfmt::skip]
const LIST: &[(Dialect, What, &[&str], &str)] = &[
    (Chat, Made, &["id"], "an id without OpenAI's prefix gets it"),
    (Chat, Made, &["index"], "calls that share a number are distinguished"),
    (Chat, Made, &["model"], "one stream has two names of its model"),
    (Anthropic, Made, &["index"], "a block that no other dialect knows is not counted"),
    (Responses, Made, &["id", "item_id"], "items have ids of the call, so that a stored response is found by them"),
    (Responses, Made, &["output_index", "sequence_number"], "an item that no other dialect knows is not counted"),
    (Responses, Made, &["summary_index"], "the parts of a summary are one thought"),
    (Responses, Made, &["completed_at"], "the writer knows one time"),
    (Responses, Made, &["image_gen"], "counters of another form, all zero"),
    (Chat, Added, &["id", "object", "created", "model", "choices"], "a chunk or reply that lacks what each must have"),
    (Chat, Added, &["role", "content", "refusal", "logprobs", "usage"], "null or empty, where strict clients look"),
    (Chat, Added, &["index"], "the place of an annotation or a call, by which clients put them together"),
    (Chat, Added, &["reasoning_content", "reasoning_details"], "a thought in the forms that clients know beside its own"),
    (Chat, Added, &["native_finish_reason"], "the provider's word beside chat's"),
    (Anthropic, Added, &["stop_reason", "stop_sequence"], "null, where strict clients look"),
    (Gemini, Added, &["candidates"], "why a prompt was refused is written as the end of an answer"),
    (Gemini, Added, &["id"], "a call without an id has one, by which its result finds it"),
    (Gemini, Added, &["responseId"], "the call's own"),
    (Responses, Added, &["error", "incomplete_details", "instructions", "max_output_tokens", "max_tool_calls"], DOCUMENTED),
    (Responses, Added, &["metadata", "parallel_tool_calls", "previous_response_id", "prompt_cache_key"], DOCUMENTED),
    (Responses, Added, &["background", "completed_at", "created_at", "frequency_penalty", "presence_penalty"], DOCUMENTED),
    (Responses, Added, &["reasoning", "safety_identifier", "service_tier", "store", "temperature", "text"], DOCUMENTED),
    (Responses, Added, &["tool_choice", "tools", "top_logprobs", "top_p", "truncation", "usage", "user"], DOCUMENTED),
    (Responses, Added, &["image_gen", "logprobs", "name", "status"], "the same, of what is in a response"),
    (Chat, Filled, &["arguments"], "a call without arguments has none: `{}`"),
    (Chat, Added, &["tool_calls"], "the same, said when the call is over"),
    (Responses, Filled, &["arguments"], "the same"),
    (Responses, Filled, &["output"], "what the stream said, in a last event that leaves it out"),
    (Anthropic, Filled, &["content"], "a first block, at which clients look without asking"),
    (Anthropic, Skipped, &["content_block_start", "content_block_delta", "content_block_stop"], FOREIGN),
    (Anthropic, Skipped, &["news"], FOREIGN),
    (Responses, Skipped, &["response.output_item.added", "response.output_item.done"], FOREIGN),
    (Responses, Skipped, &["response.file_search_call.searching", "response.output_text.annotation.added"], FOREIGN),
    (Responses, Skipped, &["rate_limits.updated"], FOREIGN),
    (Responses, Skipped, &["response.reasoning_summary_part.added", "response.reasoning_summary_text.done"], "a part between two of one thought"),
    (Anthropic, Repaired, &["message_delta", "message_stop", "content_block_stop"], "an end that was left out"),
    (Anthropic, Repaired, &["content_block_delta"], "the arguments of a call without any"),
    (Anthropic, Repaired, &["content_block_start"], "a first block, at which clients look without asking"),
    (Responses, Repaired, &["response.in_progress", "response.output_item.added", "response.output_item.done"], ANNOUNCED),
    (Responses, Repaired, &["response.content_part.added", "response.content_part.done"], ANNOUNCED),
    (Responses, Repaired, &["response.output_text.delta", "response.output_text.done", "response.refusal.done"], ANNOUNCED),
    (Responses, Repaired, &["response.function_call_arguments.delta", "response.function_call_arguments.done"], ANNOUNCED),
    (Responses, Repaired, &["response.reasoning_summary_part.added", "response.reasoning_summary_part.done"], ANNOUNCED),
    (Responses, Repaired, &["response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"], ANNOUNCED),
    (Responses, Repaired, &["response.output_text.annotation.added"], "written only with the finished text"),
];

const DOCUMENTED: &str = "every documented member is there, null or usual: strict clients insist";
const FOREIGN: &str = "only its own dialect knows it, or it says nothing";
const ANNOUNCED: &str = "what begins and ends items and parts, and pieces of those that come only as a whole";

/// What was found.
#[derive(Default)]
pub(super) struct Notes(BTreeSet<(String, What, String)>);

impl Notes {
    pub fn add(&mut self, dialect: Dialect, what: What, name: &str) {
        self.0.insert((format!("{dialect:?}"), what, name.to_owned()));
    }

    /// Found, but not on the list.
    pub fn unlisted(&self) -> Vec<&(String, What, String)> {
        let listed = listed();
        self.0.iter().filter(|note| !listed.contains(*note)).collect()
    }

    /// On the list, but not found.
    pub fn unneeded(&self) -> Vec<(String, What, String)> {
        listed().into_iter().filter(|note| !self.0.contains(note)).collect()
    }
}

fn listed() -> BTreeSet<(String, What, String)> {
    let one = |(dialect, what, names, _): &(Dialect, What, &[&str], &str)| {
        let (dialect, what) = (format!("{dialect:?}"), *what);
        names.iter().map(move |name| (dialect.clone(), what, (*name).to_owned())).collect::<Vec<_>>()
    };
    LIST.iter().flat_map(one).collect()
}
