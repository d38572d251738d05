//! A streamed reply on its way from a provider's dialect to the caller's, metered as it passes.
//!
//! Events are cut, followed and ended here, for every pair. What they say is read by
//! `chat/passing.rs` where both sides speak chat, which scans an event without building anything,
//! and by `any.rs` for every other pair. A stream ends with its dialect's mark, and what comes
//! after it is not looked at; or, where the provider leaves the mark out, with its connection, once
//! every choice that was asked for has said why it stopped. Any other end is a cut, whatever the
//! connection says.

mod metered;

use super::any::Any;
use super::writer::DialectWriter;
use crate::chat::{self, BrokenStream, Came, Out, Passing, StreamEnd, separators};
use crate::hub::{ToolNames, Voice};
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::sse::{self, Cutter, EventData, Frame};
use tollgate_wire::{StreamFault, UpstreamError};

/// How one stream is to be treated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The provider's dialect.
    pub from: Dialect,
    /// The caller's dialect.
    pub to: Dialect,
    pub voice: Voice,
    /// Of the request that was sent.
    pub names: ToolNames,
    /// Within one dialect: put the public name of the model in place of the provider's.
    pub rename: bool,
    /// An event longer than this is a fault.
    pub max_event_bytes: usize,
}

/// Reads a streamed reply as it passes and gives what the caller gets.
#[derive(Debug)]
pub struct ReplyStream {
    cutter: Cutter,
    state: State,
    events: u64,
    /// How many choices were asked for.
    choices: u64,
    to: Dialect,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Chat(Box<Passing>),
    Any(Box<Any>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// The end came though nothing was said.
    Empty,
    Broken,
}

impl ReplyStream {
    pub fn new(setup: Setup) -> Self {
        let Setup { from, to, ref voice, rename, max_event_bytes, .. } = setup;
        let choices = voice.choices;
        let form = if (from, to) == (Dialect::Chat, Dialect::Chat) {
            let rename_to = rename.then_some(voice.model.as_str());
            Form::Chat(Box::new(Passing::new(voice.wants_usage, rename_to)))
        } else {
            Form::Any(Box::new(Any::new(setup)))
        };
        Self::with(form, to, choices, max_event_bytes)
    }

    fn with(form: Form, to: Dialect, choices: u64, max_event_bytes: usize) -> Self {
        let (state, events, choices) = (State::Open, 0, choices.max(1));
        ReplyStream { cutter: Cutter::new(max_event_bytes), state, events, choices, to, form }
    }

    /// A stream that nothing is read from any more, to stand where one was taken out.
    pub fn spent() -> Self {
        Self::with(Form::Chat(Box::new(Passing::new(false, None))), Dialect::Chat, 1, 0)
    }

    /// Takes a chunk from upstream and gives what the client gets now: whole events only, possibly
    /// nothing, and the chunk itself when it holds only whole events that pass unchanged.
    pub fn feed(&mut self, chunk: Bytes) -> Result<Bytes, BrokenStream> {
        if self.state != State::Open {
            return Ok(Bytes::new());
        }
        let fits = match &mut self.form {
            Form::Chat(_) => true,
            Form::Any(any) => any.takes(chunk.len()),
        };
        let bytes = match self.cutter.take(chunk) {
            Ok(Some(bytes)) if fits => bytes,
            Ok(None) if fits => return Ok(Bytes::new()),
            Ok(_) | Err(sse::TooLong) => {
                self.state = State::Broken;
                return Err(BrokenStream { before: Bytes::new(), fault: StreamFault::TooLong });
            }
        };
        let mut out = Out::new(&bytes);
        let walked = self.walk(&bytes, &mut out);
        let given = self.given(out);
        match walked {
            Ok(()) => Ok(given),
            Err(fault) => {
                self.state = State::Broken;
                Err(BrokenStream { before: given, fault })
            }
        }
    }

    /// What goes on to the client.
    fn given(&self, out: Out<'_>) -> Bytes {
        match self.form {
            Form::Chat(_) => separators::escaped(out.finish()),
            Form::Any(_) => out.finish(),
        }
    }

    fn walk(&mut self, bytes: &Bytes, out: &mut Out<'_>) -> Result<(), StreamFault> {
        let too_long = |_: sse::TooLong| StreamFault::TooLong;
        while self.state == State::Open {
            if self.cutter.at_start() && self.follows(out) {
                if out.at == bytes.len() {
                    return Ok(());
                }
                continue;
            }
            let Some(frame) = self.cutter.next(&bytes[out.at..]).map_err(too_long)? else {
                return self.cutter.hold(&bytes[out.at..]).map_err(too_long);
            };
            self.frame(&frame, out)?;
            if let Form::Any(any) = &self.form
                && any.is_full()
            {
                return Err(StreamFault::TooLong);
            }
        }
        Ok(())
    }

    /// Takes the event at `out.at` when it is like those before.
    fn follows(&mut self, out: &mut Out<'_>) -> bool {
        let most = self.cutter.most();
        let follows = match &mut self.form {
            Form::Chat(passing) => passing.follows(most, out),
            Form::Any(any) => any.follows(most, out),
        };
        self.events += u64::from(follows);
        follows
    }

    /// Reads the event at `out.at` and moves past it.
    fn frame(&mut self, frame: &Frame, out: &mut Out<'_>) -> Result<(), StreamFault> {
        let raw = &out.from[out.at..out.at + frame.end];
        // A line feed that ends the CRLF of the event before, cut off from it by a chunk's end.
        let lead = usize::from(frame.end > 1 && raw[0] == b'\n');
        out.drop(lead);
        let raw = &raw[lead..];
        let joined;
        let (line, place) = match &frame.data {
            EventData::None => {
                out.drop(raw.len());
                return Ok(());
            }
            EventData::One(place) => (&raw[place.start - lead..place.end - lead], place.start - lead),
            EventData::Many => {
                joined = sse::join(raw, b' ');
                (joined.as_slice(), 0)
            }
        };
        let data = line.trim_ascii();
        if data.is_empty() {
            out.drop(raw.len());
            return Ok(());
        }
        self.events += 1;
        if data == b"[DONE]" {
            self.done(raw, out);
            return Ok(());
        }
        match &mut self.form {
            Form::Chat(passing) => {
                let plain = raw.strip_prefix(b"data: ").and_then(|rest| rest.strip_suffix(b"\n\n")) == Some(line);
                let start = place + line.len() - line.trim_ascii_start().len();
                passing.event(&Came { raw, data, start, plain, first: self.events == 1 }, out)
            }
            Form::Any(any) => {
                if any.event(raw, data, out)? {
                    self.state = State::Done;
                }
                Ok(())
            }
        }
    }

    /// Chat's end; others may send it after theirs.
    fn done(&mut self, raw: &[u8], out: &mut Out<'_>) {
        let said = match &mut self.form {
            Form::Chat(passing) => passing.done(raw, out),
            Form::Any(any) if any.from == Dialect::Chat => any.done(out.instead(raw.len())),
            Form::Any(_) => return out.drop(raw.len()),
        };
        self.state = if said { State::Done } else { State::Empty };
    }

    /// The upstream has closed its side (or [`ReplyStream::saw_done`] said that nothing more
    /// matters).
    pub fn finish(&mut self) -> StreamEnd {
        let mut tail = Bytes::new();
        if self.state == State::Open
            && let Some((raw, frame)) = self.cutter.rest()
        {
            match self.last(&raw, frame) {
                Ok(bytes) => tail = bytes,
                Err(fault) => return StreamEnd::Fault(fault),
            }
        }
        match self.state {
            State::Done => StreamEnd::Complete { tail },
            State::Open if self.all_ended() => {
                let mut all = tail.to_vec();
                match &mut self.form {
                    Form::Chat(passing) => passing.end(&mut all),
                    Form::Any(any) => any.end(&mut all),
                }
                self.state = State::Done;
                StreamEnd::Complete { tail: Bytes::from(all) }
            }
            _ => StreamEnd::Truncated { rest: tail },
        }
    }

    /// Gemini has no other end; elsewhere the reason of the stop says that all was said, and many
    /// servers leave out the rest.
    fn all_ended(&self) -> bool {
        match &self.form {
            Form::Chat(passing) => passing.ended(self.choices),
            Form::Any(any) => any.ended(self.choices),
        }
    }

    /// What came after the last blank line: a whole event without its end, an error outside any
    /// event, or scraps.
    fn last(&mut self, raw: &[u8], frame: Frame) -> Result<Bytes, StreamFault> {
        if frame.data == EventData::None {
            return match UpstreamError::read(raw) {
                Some(error) => Err(StreamFault::Upstream(Box::new(error))),
                None => Ok(Bytes::new()),
            };
        }
        let bytes = Bytes::from([raw, b"\n\n"].concat());
        let frame = Frame { end: bytes.len(), ..frame };
        let mut out = Out::new(&bytes);
        match self.frame(&frame, &mut out) {
            Ok(()) => Ok(self.given(out)),
            // Half an event is a cut, not nonsense.
            Err(StreamFault::Garbage) => Ok(Bytes::new()),
            Err(fault) => Err(fault),
        }
    }

    /// The time stands in what the client gets when the answer ends, so that [`ReplyStream::now`]
    /// must say it.
    pub fn needs_time(&self) -> bool {
        matches!(&self.form, Form::Any(any) if matches!(any.writer, DialectWriter::Responses(_)))
    }

    /// It is so late now, in seconds since 1970.
    pub fn now(&mut self, seconds: u64) {
        if let Form::Any(any) = &mut self.form
            && let DialectWriter::Responses(writer) = &mut any.writer
        {
            writer.now(seconds);
        }
    }

    /// Says that nothing of what was given so far went out: what is given next stands alone.
    pub fn forget_unsent(&mut self) {
        if let Form::Any(any) = &mut self.form {
            any.forget_unsent();
        }
    }

    /// The event that ends the stream with an error, in the caller's dialect and at this point of
    /// its stream.
    pub fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        match &mut self.form {
            Form::Chat(_) => chat::error_event(code, message),
            Form::Any(any) => {
                self.state = State::Broken;
                any.error_event(code, message)
            }
        }
    }

    /// A keep-alive the caller's client tolerates between events.
    pub fn heartbeat(&self) -> Bytes {
        Bytes::from_static(self.to.heartbeat())
    }
}

/// Chat to chat.
impl From<chat::StreamSetup> for ReplyStream {
    fn from(setup: chat::StreamSetup) -> ReplyStream {
        let passing = Passing::new(setup.wants_usage, setup.rename_to.as_deref());
        ReplyStream::with(Form::Chat(Box::new(passing)), Dialect::Chat, setup.choices, setup.max_event_bytes)
    }
}
