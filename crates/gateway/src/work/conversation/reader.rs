//! The stream of a conversation as the till reads it.

use crate::call::{BrokenEvents, EventReader, EventsEnd, Tokens};
use bytes::Bytes;
use tollgate_dialects::{ReplyStream, StreamEnd};
use tollgate_wire::Dropped;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;

pub struct ConversationReader(pub ReplyStream);

impl EventReader for ConversationReader {
    fn feed(&mut self, chunk: Bytes) -> Result<Bytes, BrokenEvents> {
        self.0.feed(chunk).map_err(|broken| BrokenEvents { before: broken.before, fault: broken.fault })
    }

    fn finish(&mut self) -> EventsEnd {
        match self.0.finish() {
            StreamEnd::Complete { tail } => EventsEnd::Complete { tail },
            StreamEnd::Truncated { rest } => EventsEnd::Truncated { rest },
            StreamEnd::Fault(fault) => EventsEnd::Fault(fault),
        }
    }

    fn saw_done(&self) -> bool {
        self.0.saw_done()
    }

    fn needs_time(&self) -> bool {
        self.0.needs_time()
    }

    fn now(&mut self, seconds: u64) {
        self.0.now(seconds);
    }

    fn forget_unsent(&mut self) {
        self.0.forget_unsent();
    }

    fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        self.0.error_event(code, message)
    }

    fn heartbeat(&self) -> Bytes {
        self.0.heartbeat()
    }

    fn whole_answer(&self) -> Option<&str> {
        self.0.response_object()
    }

    fn usage(&self) -> Option<&Usage> {
        self.0.usage()
    }

    fn usage_is_current(&self) -> bool {
        self.0.usage_is_current()
    }

    fn counted_output(&self) -> u64 {
        self.0.counted_output()
    }

    fn has_output(&self) -> bool {
        self.0.has_output()
    }

    fn measure(&self, tokens: &mut Tokens) {
        let stream = &self.0;
        tokens.reported = stream.usage().copied();
        tokens.raw_usage = stream.raw_usage().map(str::to_owned);
        tokens.report_is_whole = stream.usage_is_current();
        tokens.counted_output = stream.counted_output();
        tokens.has_output = stream.has_output();
        tokens.has_answer = stream.has_answer();
        let tools = stream.tools();
        tokens.note_tools(|name| tools.of(name));
    }

    fn dropped(&self) -> Option<&Dropped> {
        self.0.dropped()
    }

    fn take(&mut self) -> Box<dyn EventReader> {
        Box::new(ConversationReader(std::mem::replace(&mut self.0, ReplyStream::spent())))
    }
}
