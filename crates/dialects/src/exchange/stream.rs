//! A streamed reply on its way from a provider's dialect to the caller's, metered as it passes.
//!
//! Chat to chat keeps its own, faster reader; every other pair runs through `any.rs`. A stream ends with its
//! dialect's mark, and what comes after it is not looked at; or, where the provider leaves the mark out, with its
//! connection, once every choice that was asked for has said why it stopped. Any other end is a cut, whatever the connection says.

use super::any::Any;
use super::writer::Writer;
use crate::chat::{self, Broken, End};
use crate::hub::{Dropped, Names, Voice};
use crate::reads::ToolUses;
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;

/// How one stream is to be treated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The provider's dialect.
    pub from: Dialect,
    /// The caller's dialect.
    pub to: Dialect,
    pub voice: Voice,
    /// Of the request that was sent.
    pub names: Names,
    /// Within one dialect: put the public name of the model in place of the provider's.
    pub rename: bool,
    /// An event longer than this is a fault.
    pub max_event_bytes: usize,
}

/// Reads a streamed reply as it passes and gives what the caller gets.
#[derive(Debug)]
pub struct Stream {
    form: Form,
    to: Dialect,
}

#[derive(Debug)]
enum Form {
    Chat(Box<chat::Stream>),
    Any(Box<Any>),
}

impl Stream {
    pub fn new(setup: Setup) -> Self {
        if setup.from == Dialect::Chat && setup.to == Dialect::Chat {
            let Setup { voice, rename, max_event_bytes, .. } = setup;
            let rename_to = rename.then_some(voice.model);
            let setup = chat::StreamSetup {
                wants_usage: voice.wants_usage,
                rename_to,
                choices: voice.choices,
                max_event_bytes,
            };
            return Stream::from(chat::Stream::new(setup));
        }
        let to = setup.to;
        Stream { form: Form::Any(Box::new(Any::new(setup))), to }
    }

    /// A stream that nothing is read from any more, to stand where one was taken out.
    pub fn spent() -> Self {
        let setup = chat::StreamSetup { wants_usage: false, rename_to: None, choices: 1, max_event_bytes: 0 };
        Stream::from(chat::Stream::new(setup))
    }

    /// Takes a chunk from upstream and gives what the client gets now: whole events only, possibly nothing.
    pub fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
        match &mut self.form {
            Form::Chat(stream) => stream.feed(chunk),
            Form::Any(any) => any.feed(chunk),
        }
    }

    /// The upstream has closed its side (or [`Stream::saw_done`] said that nothing more matters).
    pub fn finish(&mut self) -> End {
        match &mut self.form {
            Form::Chat(stream) => stream.finish(),
            Form::Any(any) => any.finish(),
        }
    }

    /// The time is told in what the client gets when the answer ends, so that [`Stream::now`] must say it.
    pub fn tells_time(&self) -> bool {
        matches!(&self.form, Form::Any(any) if matches!(any.writer, Writer::Responses(_)))
    }

    /// It is so late now, in seconds since 1970.
    pub fn now(&mut self, seconds: u64) {
        if let Form::Any(any) = &mut self.form
            && let Writer::Responses(writer) = &mut any.writer
        {
            writer.now(seconds);
        }
    }

    /// Says that nothing of what was given so far went out: what is given next stands alone.
    pub fn unsent(&mut self) {
        if let Form::Any(any) = &mut self.form {
            any.unsent();
        }
    }

    /// The event that ends the stream with an error, in the caller's dialect and at this point of its stream.
    pub fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        match &mut self.form {
            Form::Chat(_) => chat::error_event(code, message),
            Form::Any(any) => any.error_event(code, message),
        }
    }

    /// A keep-alive the caller's client tolerates between events.
    pub fn heartbeat(&self) -> Bytes {
        Bytes::from_static(self.to.heartbeat())
    }

    /// Uses of tools that ran at the provider, as far as the answer shows them; chat completions show none.
    pub fn tools(&self) -> ToolUses {
        match &self.form {
            Form::Chat(_) => ToolUses::default(),
            Form::Any(any) => any.meter.tools,
        }
    }

    /// Disjoint counters from what was reported so far.
    pub fn usage(&self) -> Option<&Usage> {
        match &self.form {
            Form::Chat(stream) => stream.usage(),
            Form::Any(any) => any.meter.usage(),
        }
    }

    /// The provider's reports as they came: the last, or a JSON list of the first and the last.
    pub fn raw_usage(&self) -> Option<&str> {
        match &self.form {
            Form::Chat(stream) => stream.raw_usage(),
            Form::Any(any) => any.meter.raw(),
        }
    }

    /// True when the last report covers all output seen.
    pub fn usage_is_current(&self) -> bool {
        match &self.form {
            Form::Chat(stream) => stream.usage_is_current(),
            Form::Any(any) => any.meter.is_current(),
        }
    }

    /// The usage to bill and whether it rests on our own count; `prompt_estimate` stands in for an input that was
    /// not reported.
    pub fn best_usage(&self, prompt_estimate: u64) -> (Usage, bool) {
        chat::best_usage(self.usage(), self.usage_is_current(), self.counted_output(), prompt_estimate)
    }

    /// Own count of text, thoughts, refusals, tool names and arguments seen so far.
    pub fn counted_output(&self) -> u64 {
        match &self.form {
            Form::Chat(stream) => stream.counted_output(),
            Form::Any(any) => any.meter.counted(),
        }
    }

    pub fn has_output(&self) -> bool {
        match &self.form {
            Form::Chat(stream) => stream.has_output(),
            Form::Any(any) => any.meter.output,
        }
    }

    /// There is an answer at all, with or without output: a choice, a block, an item, a candidate.
    pub fn has_answer(&self) -> bool {
        match &self.form {
            Form::Chat(stream) => stream.has_answer(),
            Form::Any(any) => any.meter.answer || any.meter.output,
        }
    }

    /// The provider's mark of the end was seen: nothing of interest follows.
    pub fn saw_done(&self) -> bool {
        match &self.form {
            Form::Chat(stream) => stream.saw_done(),
            Form::Any(any) => any.saw_done(),
        }
    }

    /// The final object of a Responses client's stream, once it has ended: what is stored so that the conversation can go on.
    pub fn response_object(&self) -> Option<&str> {
        match &self.form {
            Form::Chat(_) => None,
            Form::Any(any) => match &any.writer {
                Writer::Responses(writer) => any.object.as_deref().or(writer.object()),
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
        match &self.form {
            Form::Chat(stream) => stream.events(),
            Form::Any(any) => any.events,
        }
    }
}

/// Chat to chat.
impl From<chat::Stream> for Stream {
    fn from(stream: chat::Stream) -> Stream {
        Stream { form: Form::Chat(Box::new(stream)), to: Dialect::Chat }
    }
}
