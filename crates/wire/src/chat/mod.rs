//! OpenAI chat completions: reading requests, replies and streamed events.
//!
//! Everything passes through as bytes; only `model`, `stream_options.include_usage` and the
//! events a client must not see are touched.

mod ending;
mod fault;
mod out;
mod part;
mod prompt;
mod reply;
mod request;
mod seen;
mod separators;
mod stream;

pub use ending::{Broken, End, HEARTBEAT, StreamFault, error_event};
pub use fault::UpstreamError;
pub use reply::{NotAReply, Reply, read_reply, with_model};
pub use request::{Problem, Request, read_request};
pub use stream::{Stream, StreamSetup};

use crate::usage::Usage;

/// The usage to bill, and whether it rests on our own count.
///
/// `current` says that the report covers all output seen. An early report in a stream that then broke
/// does not, nor does one that claims no output where there was some: the output is then at least
/// what we counted.
fn best_usage(reported: Option<&Usage>, current: bool, counted: u64, prompt_estimate: u64) -> (Usage, bool) {
    let Some(reported) = reported else {
        return (Usage { input: prompt_estimate, output: counted, ..Usage::default() }, true);
    };
    let missing = counted.saturating_sub(reported.output_total());
    if current || missing == 0 {
        return (*reported, false);
    }
    (Usage { output: reported.output.saturating_add(missing), ..*reported }, true)
}
