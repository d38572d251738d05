//! OpenAI chat completions: reading requests, replies and streamed events.
//!
//! Everything passes through as bytes; only `model`, `stream_options.include_usage` and the
//! events a client must not see are touched.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod details;
mod ending;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod known;
mod out;
mod part;
mod passing;
mod prompt;
mod reply;
mod seen;
pub(crate) mod separators;
mod tools_in;
mod tools_out;
mod turns_in;
mod turns_out;

pub(crate) use answer_out::joined;
pub(crate) use details::is_ours;
pub use ending::{BrokenStream, HEARTBEAT, StreamEnd, error_event};
pub(crate) use events_in::citation;
pub(crate) use out::Out;
pub use passing::StreamSetup;
pub(crate) use passing::{Came, Passing};
pub(crate) use prompt::{Estimate, EstimatedPart};
pub use reply::{ChatReply, NotAReply, count_output, read_reply};

use tollgate_wire::usage::Usage;

/// The usage to bill, and whether it rests on our own count.
///
/// `current` says that the report covers all output seen. An early report in a stream that then
/// broke does not, nor does one that claims no output where there was some: the output is then at
/// least what we counted.
pub(crate) fn best_usage(reported: Option<&Usage>, current: bool, counted: u64, prompt_estimate: u64) -> (Usage, bool) {
    let Some(reported) = reported else {
        return (Usage { input: prompt_estimate, output: counted, ..Usage::default() }, true);
    };
    let missing = counted.saturating_sub(reported.output_total());
    if current || missing == 0 {
        return (*reported, false);
    }
    (Usage { output: reported.output.saturating_add(missing), ..*reported }, true)
}
