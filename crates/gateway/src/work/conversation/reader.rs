//! The stream of a conversation as the till reads it.

use crate::call::{BrokenEvents, EventReader, EventsEnd, Tokens};
use bytes::Bytes;
use tollgate_dialects::{ReplyStream, StreamEnd};
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;
use tollgate_wire::{Dropped, HiddenCosts};

pub struct ConversationReader {
    stream: ReplyStream,
    /// What is taken out of the events before they go out.
    hidden: Option<HiddenCosts>,
    /// All of the answer without what is hidden.
    shown: Option<String>,
    /// What the client has no form for, where something is hidden.
    dropped: Option<Dropped>,
}

impl ConversationReader {
    pub fn new(stream: ReplyStream, hidden: Option<HiddenCosts>) -> ConversationReader {
        let mut reader = ConversationReader { stream, hidden, shown: None, dropped: None };
        reader.note_dropped();
        reader
    }

    fn note_dropped(&mut self) {
        self.dropped = self.hidden.as_ref().zip(self.stream.dropped()).map(|(hidden, all)| hidden.unnamed(all));
    }

    fn shown(&self, events: Bytes) -> Bytes {
        match &self.hidden {
            None => events,
            Some(hidden) => hidden.events(events),
        }
    }
}

impl EventReader for ConversationReader {
    fn feed(&mut self, chunk: Bytes) -> Result<Bytes, BrokenEvents> {
        let fed = self.stream.feed(chunk);
        self.note_dropped();
        match fed {
            Ok(events) => Ok(self.shown(events)),
            Err(broken) => Err(BrokenEvents { before: self.shown(broken.before), fault: broken.fault }),
        }
    }

    fn finish(&mut self) -> EventsEnd {
        let end = self.stream.finish();
        self.note_dropped();
        if let (Some(hidden), Some(answer)) = (&self.hidden, self.stream.response_object()) {
            let shown = hidden.answer(Bytes::copy_from_slice(answer.as_bytes()));
            self.shown = String::from_utf8(shown.into()).ok();
        }
        match end {
            StreamEnd::Complete { tail } => EventsEnd::Complete { tail: self.shown(tail) },
            StreamEnd::Truncated { rest } => EventsEnd::Truncated { rest: self.shown(rest) },
            StreamEnd::Fault(fault) => EventsEnd::Fault(fault),
        }
    }

    fn saw_done(&self) -> bool {
        self.stream.saw_done()
    }

    fn needs_time(&self) -> bool {
        self.stream.needs_time()
    }

    fn now(&mut self, seconds: u64) {
        self.stream.now(seconds);
    }

    fn forget_unsent(&mut self) {
        self.stream.forget_unsent();
    }

    fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        self.stream.error_event(code, message)
    }

    fn heartbeat(&self) -> Bytes {
        self.stream.heartbeat()
    }

    fn whole_answer(&self) -> Option<&str> {
        self.shown.as_deref().or_else(|| self.stream.response_object())
    }

    fn usage(&self) -> Option<&Usage> {
        self.stream.usage()
    }

    fn usage_is_current(&self) -> bool {
        self.stream.usage_is_current()
    }

    fn counted_output(&self) -> u64 {
        self.stream.counted_output()
    }

    fn has_output(&self) -> bool {
        self.stream.has_output()
    }

    fn measure(&self, tokens: &mut Tokens) {
        let stream = &self.stream;
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
        if self.hidden.is_some() { self.dropped.as_ref() } else { self.stream.dropped() }
    }

    fn take(&mut self) -> Box<dyn EventReader> {
        let stream = std::mem::replace(&mut self.stream, ReplyStream::spent());
        let (hidden, shown, dropped) = (self.hidden.take(), self.shown.take(), self.dropped.take());
        Box::new(ConversationReader { stream, hidden, shown, dropped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_dialects::{Setup, ToolNames, Voice};
    use tollgate_wire::{ChatQuirks, Dialect};

    const CHAT: &str = "data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"the cost\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5,\"cost\":0.95,\"cost_details\":{\"upstream\":19}}}\n\n\
        data: [DONE]\n\n";
    const CLAUDE: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1,\"cost\":0.1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"the cost\"}}\n\n\
        event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2,\"cost\":0.95,\"cost_details\":{\"upstream\":19}}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    const RESPONSES: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"m\",\"output\":[],\"usage\":null}}\n\n\
        event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"the cost\"}\n\n\
        event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"message\",\"id\":\"i\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"the cost\",\"annotations\":[]}]}],\"usage\":{\"input_tokens\":3,\"output_tokens\":2,\"total_tokens\":5,\"cost\":0.95,\"cost_details\":{\"upstream\":19}}}}\n\n";

    fn reader(dialect: Dialect, to: Dialect, hides: bool) -> ConversationReader {
        let voice = Voice { id: "c".into(), model: "m".into(), wants_usage: true, ..Voice::default() };
        let names = ToolNames::default();
        let setup = Setup { from: dialect, to, voice, names, rename: true, max_event_bytes: 1 << 20 };
        let quirks =
            ChatQuirks { cost_at: Some("cost".into()), hide: vec!["cost_details".into()], ..ChatQuirks::default() };
        ConversationReader::new(ReplyStream::new(setup), quirks.hidden_costs().filter(|_| hides))
    }

    /// What the client gets of a stream that comes in two pieces, and what we know of its usage.
    fn passed(mut reader: ConversationReader, text: &str, cut: usize) -> (String, String, Option<String>) {
        let (first, second) = text.as_bytes().split_at(cut);
        let mut out = Vec::new();
        for piece in [first, second] {
            out.extend(reader.feed(Bytes::copy_from_slice(piece)).unwrap_or_else(|_| panic!("cut at {cut}")));
        }
        let EventsEnd::Complete { tail } = reader.finish() else { panic!("cut at {cut}") };
        out.extend(tail);
        let raw = reader.stream.raw_usage().unwrap_or_default().to_owned();
        (String::from_utf8(out).expect("UTF-8"), raw, reader.whole_answer().map(str::to_owned))
    }

    #[test]
    fn what_a_call_cost_is_read_and_not_shown_wherever_a_stream_is_cut() {
        let of = [(Dialect::Chat, CHAT), (Dialect::Anthropic, CLAUDE), (Dialect::Responses, RESPONSES)];
        for (from, text) in of {
            for (to, _) in of {
                let (shown, ..) = passed(reader(from, to, false), text, 0);
                assert_eq!(shown.contains("0.95"), from == to, "{from:?} to {to:?}: {shown}");
                // Between two dialects a writer makes the events, and the report with them.
                let step = if from == to { 1 } else { 50 };
                for cut in (0..=text.len()).step_by(step) {
                    let (events, raw, answer) = passed(reader(from, to, true), text, cut);
                    let clean = |text: &str| !text.contains("cost\":") && !text.contains("cost_details");
                    assert!(clean(&events) && events.contains("the cost"), "{from:?} to {to:?} at {cut}: {events}");
                    assert!(answer.as_deref().is_none_or(clean), "{from:?} to {to:?} at {cut}: {answer:?}");
                    assert!(raw.contains("\"cost\":0.95"), "{from:?} to {to:?} at {cut}: {raw}");
                }
            }
        }
    }
}
