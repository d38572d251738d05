//! What a stream used and held so far.

use super::{Form, ReplyStream, State};
use crate::chat;
use crate::exchange::writer::DialectWriter;
use crate::reads::ToolUses;
use tollgate_wire::Dropped;
use tollgate_wire::usage::Usage;

impl ReplyStream {
    /// Uses of tools that ran at the provider, as far as the answer shows them; chat completions
    /// show none.
    pub fn tools(&self) -> ToolUses {
        match &self.form {
            Form::Chat(_) => ToolUses::default(),
            Form::Any(any) => any.meter.tools,
        }
    }

    /// Disjoint counters from what was reported so far.
    pub fn usage(&self) -> Option<&Usage> {
        match &self.form {
            Form::Chat(passing) => passing.usage(),
            Form::Any(any) => any.meter.usage(),
        }
    }

    /// The provider's reports as they came: the last, or a JSON list of the first and the last.
    pub fn raw_usage(&self) -> Option<&str> {
        match &self.form {
            Form::Chat(passing) => passing.raw_usage(),
            Form::Any(any) => any.meter.raw(),
        }
    }

    /// True when the last report covers all output seen.
    pub fn usage_is_current(&self) -> bool {
        match &self.form {
            Form::Chat(passing) => passing.usage_is_current(),
            Form::Any(any) => any.meter.is_current(),
        }
    }

    /// The usage to bill and whether it rests on our own count; `prompt_estimate` stands in for an
    /// input that was not reported.
    pub fn best_usage(&self, prompt_estimate: u64) -> (Usage, bool) {
        chat::best_usage(self.usage(), self.usage_is_current(), self.counted_output(), prompt_estimate)
    }

    /// Own count of text, thoughts, refusals, tool names and arguments seen so far.
    pub fn counted_output(&self) -> u64 {
        match &self.form {
            Form::Chat(passing) => passing.counted_output(),
            Form::Any(any) => any.meter.counted(),
        }
    }

    pub fn has_output(&self) -> bool {
        match &self.form {
            Form::Chat(passing) => passing.has_output(),
            Form::Any(any) => any.meter.output,
        }
    }

    /// There is an answer at all, with or without output: a choice, a block, an item, a candidate.
    pub fn has_answer(&self) -> bool {
        match &self.form {
            Form::Chat(passing) => passing.has_answer(),
            Form::Any(any) => any.meter.answer || any.meter.output,
        }
    }

    /// The provider's mark of the end was seen: nothing of interest follows.
    pub fn saw_done(&self) -> bool {
        matches!(self.state, State::Done | State::Empty)
    }

    /// The final object of a Responses client's stream, once it has ended: what is stored so that
    /// the conversation can go on.
    pub fn response_object(&self) -> Option<&str> {
        match &self.form {
            Form::Chat(_) => None,
            Form::Any(any) => match &any.writer {
                DialectWriter::Responses(writer) => any.object.as_deref().or(writer.object()),
                _ => None,
            },
        }
    }

    /// What of the answer the client's dialect has no form for, so far.
    pub fn dropped(&self) -> Option<&Dropped> {
        match &self.form {
            Form::Chat(_) => None,
            Form::Any(any) => Some(&any.lost.dropped).filter(|dropped| !dropped.is_empty()),
        }
    }

    /// Events with data seen so far.
    pub fn events(&self) -> u64 {
        self.events
    }
}
