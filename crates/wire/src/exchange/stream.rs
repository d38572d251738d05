//! A streamed reply on its way from a provider's dialect to the caller's, metered as it passes.
//!
//! Chat to chat keeps its own, faster reader; every other pair runs through here. One terminal mark ends a stream; what
//! comes after it is not looked at, and a stream without one is truncated, whatever its connection says.

use super::meter::Meter;
use super::pass::Pass;
use super::reader::Reader;
use super::writer::Writer;
use crate::chat::{self, Broken, End, StreamFault, UpstreamError};
use crate::dialect::Dialect;
use crate::error::Code;
use crate::hub::{Event, Names, Restore, Voice};
use crate::json::Node;
use crate::sse::{self, Cutter, Data, Frame};
use crate::usage::Usage;
use bytes::Bytes;

/// The last event of a Responses stream repeats all of it, so it is kept: up to this much of the provider's stream.
const MOST_KEPT: usize = 64 << 20;

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

#[derive(Debug)]
struct Any {
    from: Dialect,
    call_id: String,
    cutter: Cutter,
    reader: Reader,
    restore: Restore,
    meter: Meter,
    /// Within one dialect events pass; the writer then only writes what the provider left out.
    pass: Option<Pass>,
    writer: Writer,
    state: State,
    events: u64,
    /// Bytes from upstream so far.
    taken: usize,
    /// A Responses stream that passed: its final object.
    object: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// The end came though nothing was said.
    Empty,
    Broken,
}

impl Stream {
    pub fn new(setup: Setup) -> Self {
        let Setup { from, to, voice, names, rename, max_event_bytes } = setup;
        if from == Dialect::Chat && to == Dialect::Chat {
            let rename_to = rename.then_some(voice.model);
            let setup = chat::StreamSetup { wants_usage: voice.wants_usage, rename_to, max_event_bytes };
            return Stream::from(chat::Stream::new(setup));
        }
        let any = Any {
            from,
            call_id: voice.id.clone(),
            cutter: Cutter::new(max_event_bytes),
            reader: Reader::new(from),
            restore: Restore::new(names),
            meter: Meter::new(from),
            pass: (from == to).then(|| Pass::new(from, rename.then_some(voice.model.as_str()), voice.array)),
            writer: Writer::new(to, &voice),
            state: State::Open,
            events: 0,
            taken: 0,
            object: None,
        };
        Stream { form: Form::Any(Box::new(any)), to }
    }

    /// A stream that nothing is read from any more, to stand where one was taken out.
    pub fn spent() -> Self {
        let setup = chat::StreamSetup { wants_usage: false, rename_to: None, max_event_bytes: 0 };
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

    /// The provider's mark of the end was seen: nothing of interest follows.
    pub fn saw_done(&self) -> bool {
        match &self.form {
            Form::Chat(stream) => stream.saw_done(),
            Form::Any(any) => matches!(any.state, State::Done | State::Empty),
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

impl Any {
    fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
        if self.state != State::Open {
            return Ok(Bytes::new());
        }
        self.taken = self.taken.saturating_add(chunk.len());
        let mut out = Vec::with_capacity(chunk.len() + 128);
        match self.walk(chunk, &mut out) {
            Ok(()) => Ok(Bytes::from(out)),
            Err(fault) => {
                self.state = State::Broken;
                Err(Broken { before: Bytes::from(out), fault })
            }
        }
    }

    fn walk(&mut self, chunk: Bytes, out: &mut Vec<u8>) -> Result<(), StreamFault> {
        let too_long = |_: sse::TooLong| StreamFault::TooLong;
        if self.taken > MOST_KEPT && self.pass.is_none() && matches!(self.writer, Writer::Responses(_)) {
            return Err(StreamFault::TooLong);
        }
        let Some(bytes) = self.cutter.take(chunk).map_err(too_long)? else { return Ok(()) };
        let mut at = 0;
        while self.state == State::Open {
            let Some(frame) = self.cutter.next(&bytes[at..]).map_err(too_long)? else {
                return self.cutter.hold(&bytes[at..]).map_err(too_long);
            };
            let raw = &bytes[at..at + frame.end];
            at += frame.end;
            self.frame(raw, &frame, out)?;
        }
        Ok(())
    }

    fn frame(&mut self, raw: &[u8], frame: &Frame, out: &mut Vec<u8>) -> Result<(), StreamFault> {
        let joined;
        let data = match &frame.data {
            Data::None => return Ok(()),
            Data::One(place) => &raw[place.clone()],
            Data::Many => {
                joined = sse::join(raw, b' ');
                joined.as_slice()
            }
        };
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        self.events += 1;
        if data == b"[DONE]" {
            self.done(out);
            return Ok(());
        }
        self.event(data, out)
    }

    /// Chat's end; others may send it after theirs.
    fn done(&mut self, out: &mut Vec<u8>) {
        if self.from != Dialect::Chat {
            return;
        }
        let Any { reader, restore, meter, writer, .. } = self;
        let said = reader.done(&mut |event: Event<'_>| {
            restore.pass(event, &mut |event| {
                meter.see(&event);
                writer.write(&event, meter.usage(), out);
            });
        });
        if !said {
            self.state = State::Empty;
            return;
        }
        self.state = State::Done;
        self.writer.end(self.meter.usage(), out);
    }

    fn event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), StreamFault> {
        let text = String::from_utf8_lossy(data);
        let node = Node::read(&text).map_err(|_| StreamFault::Garbage)?;
        if !node.is_map() {
            return Err(StreamFault::Garbage);
        }
        let mut fault = None;
        let mut ended = false;
        let passing = self.pass.is_some();
        let Any { reader, restore, meter, writer, .. } = self;
        reader.read(&node, &mut |event: Event<'_>| {
            restore.pass(event, &mut |event| match event {
                Event::Fail(error) => fault = Some(StreamFault::Upstream(error)),
                Event::End => ended = true,
                event => {
                    meter.see(&event);
                    if !passing {
                        writer.write(&event, meter.usage(), out);
                    }
                }
            });
        });
        self.meter.keep_raw(self.from, &node, false);
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(pass) = &mut self.pass {
            pass.write(&text, &node, out);
        }
        if ended {
            self.state = State::Done;
            if passing && self.from == Dialect::Responses {
                self.object = node.get("response").map(|response| response.raw.to_owned());
            }
            if !passing {
                self.writer.end(self.meter.usage(), out);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> End {
        let mut out = Vec::new();
        if self.state == State::Open
            && let Some((raw, frame)) = self.cutter.rest()
            && let Err(fault) = self.last(&raw, &frame, &mut out)
        {
            return End::Fault(fault);
        }
        match self.state {
            State::Done => End::Complete { tail: Bytes::from(out) },
            // Gemini has no other end; elsewhere the reason of the stop says that all was said.
            State::Open if self.reader.finished() => {
                self.state = State::Done;
                match &self.pass {
                    None => self.writer.end(self.meter.usage(), &mut out),
                    Some(pass) => pass.end(&mut out),
                }
                End::Complete { tail: Bytes::from(out) }
            }
            _ => End::Truncated { rest: Bytes::from(out) },
        }
    }

    /// What came after the last blank line: a whole event without its end, an error outside any event, or scraps.
    fn last(&mut self, raw: &[u8], frame: &Frame, out: &mut Vec<u8>) -> Result<(), StreamFault> {
        if frame.data == Data::None {
            return match UpstreamError::read(raw) {
                Some(error) => Err(StreamFault::Upstream(Box::new(error))),
                None => Ok(()),
            };
        }
        let start = out.len();
        match self.frame(raw, frame, out) {
            // Half an event is a cut, not nonsense.
            Err(StreamFault::Garbage) => {
                out.truncate(start);
                Ok(())
            }
            other => other,
        }
    }

    fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        let mut out = Vec::new();
        match (&self.pass, &mut self.writer) {
            (Some(pass), Writer::Responses(writer)) => writer.go_on(pass.number),
            (Some(pass), Writer::Gemini(writer)) => writer.go_on(pass.begun),
            _ => {}
        }
        self.state = State::Broken;
        self.writer.fail(code, message, &self.call_id, self.meter.usage(), &mut out);
        Bytes::from(out)
    }
}
