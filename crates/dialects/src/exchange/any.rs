//! A stream between two dialects, or within one that is not chat: cut into events, read into the hub, metered, written again or passed on.

use super::meter::Meter;
use super::pass::Pass;
use super::reader::Reader;
use super::reply::malformed;
use super::stream::Setup;
use super::writer::Writer;
use crate::chat::{Broken, End};
use crate::hub::{Event, Lost, Places, Restore, Stop};
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::json::{self, Node};
use tollgate_wire::sse::{self, Cutter, Data, Frame};
use tollgate_wire::{StreamFault, UpstreamError};

/// The last event of a Responses stream repeats all of it, so it is kept: up to this much of the provider's stream.
const MOST_KEPT: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Any {
    from: Dialect,
    call_id: String,
    /// How many choices were asked for.
    choices: u64,
    /// Our estimate of the prompt.
    prompt_tokens: u64,
    cutter: Cutter,
    reader: Reader,
    restore: Restore,
    places: Places,
    pub meter: Meter,
    /// Within one dialect events pass; the writer then only writes what the provider left out.
    pass: Option<Pass>,
    pub lost: Lost,
    pub writer: Writer,
    state: State,
    pub events: u64,
    /// Bytes from upstream so far.
    taken: usize,
    /// A Responses stream that passed: its final object.
    pub object: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// The end came though nothing was said.
    Empty,
    Broken,
}

impl Any {
    pub fn new(setup: Setup) -> Self {
        let Setup { from, to, voice, names, rename, max_event_bytes } = setup;
        Any {
            from,
            call_id: voice.id.clone(),
            choices: voice.choices.max(1),
            prompt_tokens: voice.prompt_tokens,
            cutter: Cutter::new(max_event_bytes),
            reader: Reader::new(from, to, &voice.id),
            lost: Lost::new(from, to, &names),
            writer: Writer::new(from, to, &voice, &names),
            restore: Restore::new(names),
            places: Places::new(from, to),
            meter: Meter::new(from),
            pass: (from == to).then(|| Pass::new(from, &voice, rename)),
            state: State::Open,
            events: 0,
            taken: 0,
            object: None,
        }
    }

    /// The provider's mark of the end was seen.
    pub fn saw_done(&self) -> bool {
        matches!(self.state, State::Done | State::Empty)
    }

    pub fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
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
            if self.cutter.at_start()
                && let Some(len) = self.follows(&bytes[at..], out)
            {
                at += len;
                if at == bytes.len() {
                    return Ok(());
                }
                continue;
            }
            let Some(frame) = self.cutter.next(&bytes[at..]).map_err(too_long)? else {
                return self.cutter.hold(&bytes[at..]).map_err(too_long);
            };
            let raw = &bytes[at..at + frame.end];
            at += frame.end;
            self.frame(raw, &frame, out)?;
            if self.writer.is_full() || self.restore.is_full() {
                return Err(StreamFault::TooLong);
            }
        }
        Ok(())
    }

    /// Passes the event at the start of `bytes` when it is like those before: its length.
    fn follows(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let pass = self.pass.as_mut()?;
        let found = pass.follow.take(bytes, self.cutter.most())?;
        // A number that does not rise is put right, which the pattern cannot.
        if found.number.is_some_and(|number| number < pass.number) {
            return None;
        }
        let text = &bytes[found.text.clone()];
        self.events += 1;
        self.meter.say(found.thought, text);
        if let Some(number) = found.number {
            pass.number = number.saturating_add(1);
        }
        out.extend_from_slice(&bytes[..found.len]);
        Some(found.len)
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
        let start = out.len();
        self.event(data, out)?;
        if let Some(pass) = &mut self.pass
            && out[start..] == *raw
        {
            pass.follow.learn(raw);
        }
        Ok(())
    }

    /// Chat's end; others may send it after theirs.
    fn done(&mut self, out: &mut Vec<u8>) {
        if self.from != Dialect::Chat {
            return;
        }
        let Any { reader, restore, places, meter, lost, writer, .. } = self;
        meter.ending();
        let said = reader.done(&mut |event: Event<'_>| {
            restore.pass(event, &mut |event| {
                meter.see(&event);
                places.pass(event, &mut |event| {
                    lost.see(&event);
                    writer.write(&event, meter.usage(), out);
                });
            });
        });
        self.meter.over();
        if !said {
            self.state = State::Empty;
            return;
        }
        self.state = State::Done;
        self.writer.end(self.meter.told(self.prompt_tokens).as_ref(), out);
    }

    fn event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), StreamFault> {
        let text = json::lossy(data);
        let node = Node::read(&text).map_err(|_| StreamFault::Garbage)?;
        if !node.is_map() {
            return Err(StreamFault::Garbage);
        }
        let mut fault = None;
        let mut ended = false;
        let passing = self.pass.is_some();
        let Any { reader, restore, places, meter, lost, writer, .. } = self;
        reader.read(&node, &mut |event: Event<'_>| {
            restore.pass(event, &mut |event| match event {
                Event::Fail(error) => fault = Some(StreamFault::Upstream(error)),
                Event::End => ended = true,
                // Nothing but a call which cannot be read is a fault of the provider's.
                Event::Finish { ref finish, .. } if finish.stop == Stop::Malformed && !passing && !meter.output => {
                    fault = Some(StreamFault::Upstream(Box::new(malformed(&finish.native))));
                }
                event => {
                    meter.see(&event);
                    if !passing {
                        places.pass(event, &mut |event| {
                            lost.see(&event);
                            writer.write(&event, meter.usage(), out);
                        });
                    }
                }
            });
        });
        self.meter.over();
        self.meter.look(self.from, &node, false);
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(pass) = &mut self.pass {
            pass.write(&text, &node, out);
        }
        if ended {
            self.state = State::Done;
            if let (Some(pass), Dialect::Responses) = (&self.pass, self.from) {
                let own = node.get("response").map(|response| pass.ours.written(response));
                self.object = own.and_then(|own| String::from_utf8(own).ok());
            }
            if !passing {
                self.writer.end(self.meter.told(self.prompt_tokens).as_ref(), out);
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> End {
        let mut out = Vec::new();
        if self.state == State::Open
            && let Some((raw, frame)) = self.cutter.rest()
            && let Err(fault) = self.last(&raw, &frame, &mut out)
        {
            return End::Fault(fault);
        }
        match self.state {
            State::Done => End::Complete { tail: Bytes::from(out) },
            // Gemini has no other end; elsewhere the reason of the stop says that all was said, and many servers leave out the rest.
            State::Open if self.reader.ended(self.choices) => {
                self.state = State::Done;
                match &self.pass {
                    None => self.writer.end(self.meter.told(self.prompt_tokens).as_ref(), &mut out),
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

    /// Nothing of the stream reached the client, so what ends it must stand alone.
    pub fn unsent(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.number = 0;
            pass.begun = false;
            pass.response = None;
        }
        match &mut self.writer {
            Writer::Responses(writer) => writer.unsent(),
            Writer::Gemini(writer) => writer.go_on(false),
            Writer::Chat(_) | Writer::Anthropic(_) => {}
        }
    }

    pub fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        let mut out = Vec::new();
        match (&mut self.pass, &mut self.writer) {
            (Some(pass), Writer::Responses(writer)) => writer.go_on(pass.number, pass.response.take()),
            (Some(pass), Writer::Gemini(writer)) => writer.go_on(pass.begun),
            _ => {}
        }
        self.state = State::Broken;
        self.writer.fail(code, message, &self.call_id, self.meter.usage(), &mut out);
        Bytes::from(out)
    }
}
