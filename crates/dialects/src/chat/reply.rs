//! Reads a whole chat reply: usage, whether there is any output, an error in disguise.

use super::part::{OutputTally, UsageSeen};
use crate::reads::ToolUses;
use bytes::Bytes;
use std::ops::Range;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::{self, BrokenJson, Scan};
use tollgate_wire::usage::{Usage, UsageReport};

/// The body is no chat completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReply;

/// What a whole reply says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// As reported; `None` when missing, all zero or of an odd shape.
    pub usage: Option<Usage>,
    /// The provider's `usage` as it came, for the usage row.
    pub raw_usage: Option<String>,
    /// Text, refusal, tool call, audio or reasoning is there.
    pub has_output: bool,
    /// There is an answer at all, with or without output: a choice, a block, an item, a candidate.
    pub has_answer: bool,
    /// Own count of the output; only when the report is missing or denies the output.
    pub counted_output: u64,
    /// The reply is an error object.
    pub error: Option<UpstreamError>,
    /// Uses of tools that ran at the provider, as far as the answer shows them.
    pub tools: ToolUses,
    pub(crate) model: Option<Range<usize>>,
}

/// Longest `usage` text stored.
pub(crate) const MOST_RAW_USAGE: usize = 8 << 10;

/// Reads a whole (not streamed) reply.
pub fn read_reply(body: &Bytes) -> Result<ChatReply, NotAReply> {
    let mut reply = ChatReply::default();
    let mut usage = UsageSeen::default();
    let mut tally = OutputTally::default();
    let choices = scan_reply(body, &mut reply, &mut tally, &mut usage).map_err(|_| NotAReply)?;
    if reply.error.is_none() && !choices {
        return Err(NotAReply);
    }
    reply.has_output = tally.output;
    reply.has_answer = tally.choice;
    reply.usage = usage.read.as_ref().and_then(UsageReport::usage);
    if let Some(place) = usage.place.filter(|p| p.len() <= MOST_RAW_USAGE) {
        reply.raw_usage = Some(json::lossy(&body[place]).into_owned());
    }
    if reply.has_output && reply.usage.is_none_or(|u| u.output_total() == 0) {
        reply.counted_output = count_output(body);
    }
    Ok(reply)
}

/// Own count of the output of a reply that was read without fault.
pub fn count_output(body: &[u8]) -> u64 {
    let mut tally = OutputTally::counting();
    let _ = scan_reply(body, &mut ChatReply::default(), &mut tally, &mut UsageSeen::default());
    tally.tokens()
}

/// One pass over the reply; says whether `choices` is there.
fn scan_reply(
    body: &[u8],
    reply: &mut ChatReply,
    tally: &mut OutputTally,
    usage: &mut UsageSeen,
) -> Result<bool, BrokenJson> {
    let mut scan = Scan::new(body);
    let mut choices = false;
    scan.object(|key, scan| match key.raw() {
        b"choices" if scan.peek() == Some(b'[') => {
            choices = true;
            scan.array(|scan| tally.choice(scan, usage))
        }
        b"usage" => usage.scan(scan),
        b"model" => {
            reply.model = Some(scan.span()?);
            Ok(())
        }
        b"error" if matches!(scan.peek(), Some(b'{' | b'"')) => {
            reply.error = Some(UpstreamError::scan(scan)?);
            Ok(())
        }
        b"base_resp" => {
            reply.error = UpstreamError::base_resp(scan)?.or(reply.error.take());
            Ok(())
        }
        _ => scan.skip(),
    })?;
    scan.end()?;
    Ok(choices)
}

impl ChatReply {
    /// The body with the public model name; the same `Bytes` when it already has it.
    /// `body` must be the one this reply was read from.
    pub fn with_model(&self, body: Bytes, public: &str) -> Bytes {
        let Some(place) = self.model.clone() else { return body };
        let name = json::quoted(public);
        if body.get(place.clone()).is_none_or(|now| now == name) {
            return body;
        }
        Bytes::from(json::splice(&body, &[(place, &name)]))
    }

    /// The usage to bill and whether it rests on our own count; `prompt_estimate` stands in for an
    /// input that was not reported.
    pub fn best_usage(&self, prompt_estimate: u64) -> (Usage, bool) {
        super::best_usage(self.usage.as_ref(), false, self.counted_output, prompt_estimate)
    }
}
