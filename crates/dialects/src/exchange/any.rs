//! The events of a stream between two dialects, or within one that is not chat: read into the hub,
//! metered, written again or passed on.

use super::follow::{is_plain, sample};
use super::meter::StreamMeter;
use super::pass::Pass;
use super::reader::DialectReader;
use super::reply::malformed;
use super::stream::Setup;
use super::writer::DialectWriter;
use crate::chat::Out;
use crate::hub::{CitationPlaces, Event, Lost, Restore, Stop};
use crate::pattern::PatternMatch;
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::StreamFault;
use tollgate_wire::error::Code;
use tollgate_wire::json::{self, Node};

/// The last event of a Responses stream repeats all of it, so it is buffered: up to this much of
/// the provider's stream.
const MAX_BUFFERED: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Any {
    pub from: Dialect,
    call_id: String,
    /// Our estimate of the prompt.
    prompt_tokens: u64,
    reader: DialectReader,
    restore: Restore,
    places: CitationPlaces,
    pub meter: StreamMeter,
    /// Within one dialect events pass; the writer then only writes what the provider left out.
    pass: Option<Pass>,
    pub lost: Lost,
    pub writer: DialectWriter,
    /// Bytes from upstream so far.
    taken: usize,
    /// A Responses stream that passed: its final object.
    pub object: Option<String>,
}

impl Any {
    pub fn new(setup: Setup) -> Self {
        let Setup { from, to, voice, names, rename, .. } = setup;
        Any {
            from,
            call_id: voice.id.clone(),
            prompt_tokens: voice.prompt_tokens,
            reader: DialectReader::new(from, to, &voice.id),
            lost: Lost::new(from, to, &names),
            writer: DialectWriter::new(from, to, &voice, &names),
            restore: Restore::new(names),
            places: CitationPlaces::new(from, to),
            meter: StreamMeter::new(from),
            pass: (from == to).then(|| Pass::new(from, &voice, rename)),
            taken: 0,
            object: None,
        }
    }

    /// Notes how much comes; false where that is more than can be buffered.
    pub fn takes(&mut self, more: usize) -> bool {
        self.taken = self.taken.saturating_add(more);
        self.taken <= MAX_BUFFERED || self.pass.is_some() || !matches!(self.writer, DialectWriter::Responses(_))
    }

    /// Passes the event at `out.at` when it is like those before.
    pub fn follows(&mut self, most: usize, out: &mut Out<'_>) -> bool {
        let Some(pass) = &mut self.pass else { return false };
        let bytes = &out.from[out.at..];
        // A number that does not rise is put right, which the pattern cannot.
        let next = pass.number;
        let fits = |found: &PatternMatch| is_plain(bytes, found) && found.number.is_none_or(|number| number >= next);
        let Some(found) = pass.patterns.take(bytes, most, fits) else { return false };
        self.meter.say(found.said, &bytes[found.text]);
        if let Some(number) = found.number {
            pass.number = number.saturating_add(1);
        }
        out.keep(found.len);
        true
    }

    /// Reads the event at `out.at` and moves past it. True when it ends the stream.
    pub fn event(&mut self, raw: &[u8], data: &[u8], out: &mut Out<'_>) -> Result<bool, StreamFault> {
        let new = out.instead(raw.len());
        let start = new.len();
        let ended = self.read(data, new)?;
        if let Some(pass) = &mut self.pass
            && new[start..] == *raw
        {
            pass.patterns.learn(|| sample(raw));
        }
        Ok(ended)
    }

    /// No more can be buffered of what the end needs.
    pub fn is_full(&self) -> bool {
        self.writer.is_full() || self.restore.is_full()
    }

    /// Chat's end. False when nothing was said.
    pub fn done(&mut self, out: &mut Vec<u8>) -> bool {
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
        if said {
            self.writer.end(self.meter.usage_so_far(self.prompt_tokens).as_ref(), out);
        }
        said
    }

    fn read(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<bool, StreamFault> {
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
            if let (Some(pass), Dialect::Responses) = (&self.pass, self.from) {
                let own = node.get("response").map(|response| pass.ours.written(response));
                self.object = own.and_then(|own| String::from_utf8(own).ok());
            }
            if !passing {
                self.writer.end(self.meter.usage_so_far(self.prompt_tokens).as_ref(), out);
            }
        }
        Ok(ended)
    }

    /// Every choice has said why it stopped.
    pub fn ended(&self, choices: u64) -> bool {
        self.reader.ended(choices)
    }

    /// All that a provider owes that closed without its end.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        match &self.pass {
            None => self.writer.end(self.meter.usage_so_far(self.prompt_tokens).as_ref(), out),
            Some(pass) => pass.end(out),
        }
    }

    /// Nothing of the stream reached the client, so what ends it must stand alone.
    pub fn forget_unsent(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.number = 0;
            pass.begun = false;
            pass.response = None;
        }
        match &mut self.writer {
            DialectWriter::Responses(writer) => writer.forget_unsent(),
            DialectWriter::Gemini(writer) => writer.go_on(false),
            DialectWriter::Chat(_) | DialectWriter::Anthropic(_) => {}
        }
    }

    pub fn error_event(&mut self, code: Code, message: &str) -> Bytes {
        let mut out = Vec::new();
        match (&mut self.pass, &mut self.writer) {
            (Some(pass), DialectWriter::Responses(writer)) => writer.go_on(pass.number, pass.response.take()),
            (Some(pass), DialectWriter::Gemini(writer)) => writer.go_on(pass.begun),
            _ => {}
        }
        self.writer.fail(code, message, &self.call_id, self.meter.usage(), &mut out);
        Bytes::from(out)
    }
}
