//! The meter of a streamed chat reply: reads each event once as it passes.
//!
//! Events go on as the bytes they are. Rewritten or left out is only what a client must not see
//! (usage it did not ask for, anything after `[DONE]`) or what its SDK would choke on: any framing but
//! one `data: ` line that ends with a line feed, events without data, objects without `choices`.

use super::ending::{Broken, End};
use super::out::Out;
use super::part::{Tally, UsageSeen};
use super::pattern::{Patterns, Read};
use super::reply::MOST_RAW_USAGE;
use super::seen::Seen;
use super::separators;
use bytes::Bytes;
use std::ops::Range;
use tollgate_wire::json;
use tollgate_wire::sse::{self, Cutter, Data, Frame};
use tollgate_wire::usage::{Report, Shape, Usage};
use tollgate_wire::{StreamFault, UpstreamError};

const DONE: &[u8] = b"data: [DONE]\n\n";

/// How one stream is to be treated.
#[derive(Clone, Debug)]
pub struct StreamSetup {
    /// The client asked for the usage chunk.
    pub wants_usage: bool,
    /// The public model name, when the upstream's differs.
    pub rename_to: Option<String>,
    /// How many choices the client asked for; 0 stands for one.
    pub choices: u64,
    /// An event longer than this is a fault.
    pub max_event_bytes: usize,
}

/// Reads a streamed reply as it passes.
#[derive(Debug)]
pub struct Stream {
    cutter: Cutter,
    wants_usage: bool,
    choices: u64,
    /// The public name as JSON.
    rename_to: Option<Box<[u8]>>,
    tally: Tally,
    reported: Report,
    usage: Option<Usage>,
    raw_usage: String,
    /// Output came after the last report.
    output_since: bool,
    /// The client has seen a usage chunk of the standard form.
    usage_sent: bool,
    /// `"id":…,"object":…,"created":…,"model":…` for chunks of our own.
    envelope: Vec<u8>,
    state: State,
    events: u64,
    patterns: Patterns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// `[DONE]` came though nothing was said: withheld.
    Empty,
    Broken,
}

impl Stream {
    pub fn new(setup: StreamSetup) -> Self {
        Stream {
            cutter: Cutter::new(setup.max_event_bytes),
            wants_usage: setup.wants_usage,
            choices: setup.choices.max(1),
            rename_to: setup.rename_to.map(|name| json::quoted(&name).into_boxed_slice()),
            tally: Tally::counting(),
            reported: Report::new(Shape::Chat),
            usage: None,
            raw_usage: String::new(),
            output_since: false,
            usage_sent: false,
            envelope: Vec::new(),
            state: State::Open,
            events: 0,
            patterns: Patterns::default(),
        }
    }

    /// Takes a chunk from upstream and gives what the client gets now: whole events only, possibly
    /// nothing, and the chunk itself when it holds only whole events that pass unchanged.
    pub fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
        if self.state != State::Open {
            return Ok(Bytes::new());
        }
        let bytes = match self.cutter.take(chunk) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Bytes::new()),
            Err(sse::TooLong) => return Err(self.broken(Bytes::new(), StreamFault::TooLong)),
        };
        let mut out = Out::new(&bytes);
        match self.walk(&bytes, &mut out) {
            Ok(()) => Ok(separators::escaped(out.finish())),
            Err(fault) => {
                let before = separators::escaped(out.finish());
                Err(self.broken(before, fault))
            }
        }
    }

    fn walk(&mut self, bytes: &Bytes, out: &mut Out<'_>) -> Result<(), StreamFault> {
        while self.state == State::Open {
            if self.cutter.at_start() && self.follows(bytes, out) {
                if out.at == bytes.len() {
                    return Ok(());
                }
                continue;
            }
            let Some(frame) = self.cutter.next(&bytes[out.at..]).map_err(|_| StreamFault::TooLong)? else {
                return self.cutter.hold(&bytes[out.at..]).map_err(|_| StreamFault::TooLong);
            };
            self.event(&frame, out)?;
        }
        Ok(())
    }

    /// Takes the event at `out.at` when it is like those before.
    fn follows(&mut self, bytes: &[u8], out: &mut Out<'_>) -> bool {
        let mut tally = self.tally.silent();
        let Some(found) = self.patterns.take(&bytes[out.at..], self.cutter.most(), &mut tally) else { return false };
        self.events += 1;
        self.produced(tally);
        match (found.model, &self.rename_to) {
            (Some(place), Some(name)) => out.edit(place, name, found.len),
            _ => out.keep(found.len),
        }
        true
    }

    /// Takes over what a sound chunk produced.
    fn produced(&mut self, mut tally: Tally) {
        self.output_since |= tally.output;
        tally.output |= self.tally.output;
        self.tally = tally;
    }

    fn broken(&mut self, before: Bytes, fault: StreamFault) -> Broken {
        self.state = State::Broken;
        Broken { before, fault }
    }

    /// Reads the event at `out.at` and moves past it.
    fn event(&mut self, frame: &Frame, out: &mut Out<'_>) -> Result<(), StreamFault> {
        let raw = &out.from[out.at..out.at + frame.end];
        // A line feed that ends the CRLF of the event before, cut off from it by a chunk's end.
        let lead = usize::from(frame.end > 1 && raw[0] == b'\n');
        out.drop(lead);
        let (raw, len) = (&raw[lead..], frame.end - lead);
        let joined;
        let (line, place) = match &frame.data {
            Data::None => {
                out.drop(len);
                return Ok(());
            }
            Data::One(place) => (&raw[place.start - lead..place.end - lead], place.start - lead),
            Data::Many => {
                joined = sse::join(raw, b' ');
                (joined.as_slice(), 0)
            }
        };
        let data = line.trim_ascii();
        if data.is_empty() {
            out.drop(len);
            return Ok(());
        }
        self.events += 1;
        if data == b"[DONE]" {
            self.done(out);
            match self.state {
                State::Done if raw == DONE => out.keep(len),
                // The last event must be whole however its line ends were cut.
                State::Done => out.put(len, &[DONE]),
                _ => out.drop(len),
            }
            return Ok(());
        }
        let plain = raw.strip_prefix(b"data: ").and_then(|rest| rest.strip_suffix(b"\n\n")) == Some(line);
        let place = place + line.len() - line.trim_ascii_start().len();
        match self.chunk(data, plain.then_some((raw, place)))? {
            Change::None if plain => out.keep(len),
            Change::Drop => out.drop(len),
            Change::Edit(edit, text) if plain => out.edit(place + edit.start..place + edit.end, text, len),
            Change::None => out.put(len, &[b"data: ", data, b"\n\n"]),
            Change::Edit(edit, text) => {
                out.put(len, &[b"data: ", &data[..edit.start], text, &data[edit.end..], b"\n\n"]);
            }
        }
        Ok(())
    }

    /// Reads one chunk's JSON, takes what it says, and tells what to do with it. `whole` is the event and where its data begins.
    fn chunk(&mut self, data: &[u8], whole: Option<(&[u8], usize)>) -> Result<Change<'_>, StreamFault> {
        let mut seen = Seen::default();
        // Taken over only when the chunk is sound: what the client does not get is not counted.
        let mut tally = self.tally.silent();
        if seen.scan(data, &mut tally).is_err() {
            return Err(StreamFault::Garbage);
        }
        if let Some(error) = seen.error(data) {
            return Err(StreamFault::Upstream(Box::new(error)));
        }
        let has_usage = seen.usage.place.is_some();
        let before = self.tally.silent();
        self.produced(tally);
        self.take_usage(&seen.usage, data);
        if self.envelope.is_empty() && seen.choices.is_some() {
            self.keep_envelope(&seen, data);
        }
        match seen.choices {
            // Filters and the like: nothing in it for us, but the client may want it.
            Some(0) if !has_usage => {}
            None if !has_usage => return Ok(Change::Drop),
            Some(0) | None if !self.wants_usage => return Ok(Change::Drop),
            Some(0) => self.usage_sent = true,
            None => {
                self.usage_sent = true;
                return Ok(Change::Edit(1..1, br#""choices":[],"#));
            }
            Some(_) => {}
        }
        let renamed =
            seen.model.filter(|place| self.rename_to.as_deref().is_some_and(|name| data[place.clone()] != *name));
        // An event may be the only one of its kind; of the second on there are many.
        if let Some((raw, start)) = whole.filter(|_| self.events > 1 && !has_usage) {
            let (data, model) = (start..start + data.len(), renamed.clone());
            self.patterns.learn(&Read { raw, data, before: &before, after: &tally, padding: seen.padding, model });
        }
        match (&self.rename_to, renamed) {
            (Some(name), Some(place)) => Ok(Change::Edit(place, name)),
            _ => Ok(Change::None),
        }
    }

    fn take_usage(&mut self, seen: &UsageSeen, data: &[u8]) {
        let Some(place) = seen.place.clone() else { return };
        if let Some(read) = &seen.read {
            if !self.reported.merge(read) {
                return;
            }
            self.usage = self.reported.usage();
            self.output_since = false;
        }
        if place.len() <= MOST_RAW_USAGE {
            self.raw_usage.clear();
            match std::str::from_utf8(&data[place.clone()]) {
                Ok(text) => self.raw_usage.push_str(text),
                Err(_) => self.raw_usage.push_str(&String::from_utf8_lossy(&data[place])),
            }
        }
    }

    fn keep_envelope(&mut self, seen: &Seen, data: &[u8]) {
        let text = |place: &Option<Range<usize>>| place.clone().map_or(&b"null"[..], |p| &data[p]);
        let model = self.rename_to.as_deref().unwrap_or(text(&seen.model));
        let parts: [&[u8]; 6] = [
            br#""id":"#,
            text(&seen.id),
            br#","object":"chat.completion.chunk","created":"#,
            text(&seen.created),
            br#","model":"#,
            model,
        ];
        self.envelope = parts.concat();
    }

    /// Before `[DONE]` goes out: adds the last chunks a provider left out.
    fn done(&mut self, out: &mut Out<'_>) {
        let mut last = Vec::new();
        self.state = if self.end_chunks(&mut last) { State::Done } else { State::Empty };
        if !last.is_empty() {
            out.insert(&last);
        }
    }

    /// Writes the finish and usage chunks still owed. False when there was no answer at all.
    fn end_chunks(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.tally.output && self.tally.ended == 0 {
            return false;
        }
        for (index, reason) in self.tally.left_open() {
            let choice = format!(r#"[{{"index":{index},"delta":{{}},"finish_reason":"{reason}"}}]"#);
            self.write_chunk(out, choice.as_bytes(), None);
        }
        if self.wants_usage && !self.usage_sent && self.usage.is_some() && !self.raw_usage.is_empty() {
            self.usage_sent = true;
            self.write_chunk(out, b"[]", Some(self.raw_usage.as_bytes()));
        }
        true
    }

    fn write_chunk(&self, out: &mut Vec<u8>, choices: &[u8], usage: Option<&[u8]>) {
        for part in [b"data: {", self.envelope.as_slice(), br#","choices":"#, choices] {
            out.extend_from_slice(part);
        }
        if let Some(usage) = usage {
            out.extend_from_slice(br#","usage":"#);
            out.extend_from_slice(usage);
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// The upstream has closed its side (or [`Stream::saw_done`] said that nothing more matters).
    pub fn finish(&mut self) -> End {
        let mut tail = Bytes::new();
        if self.state == State::Open
            && let Some((raw, frame)) = self.cutter.rest()
        {
            match self.last_event(raw, &frame) {
                Ok(bytes) => tail = bytes,
                Err(fault) => return End::Fault(fault),
            }
        }
        match self.state {
            State::Done => End::Complete { tail },
            State::Open if self.tally.all_ended(self.choices) => {
                let mut all = tail.to_vec();
                self.end_chunks(&mut all);
                all.extend_from_slice(DONE);
                self.state = State::Done;
                End::Complete { tail: Bytes::from(all) }
            }
            _ => End::Truncated { rest: tail },
        }
    }

    /// What came after the last blank line: a whole event without its end, an error, or scraps.
    fn last_event(&mut self, raw: Vec<u8>, frame: &Frame) -> Result<Bytes, StreamFault> {
        if frame.data == Data::None {
            return match UpstreamError::read(&raw) {
                Some(error) => Err(StreamFault::Upstream(Box::new(error))),
                None => Ok(Bytes::new()),
            };
        }
        let bytes = Bytes::from([&raw[..], b"\n\n"].concat());
        let frame = Frame { end: bytes.len(), ..frame.clone() };
        let mut out = Out::new(&bytes);
        match self.event(&frame, &mut out) {
            Ok(()) => Ok(separators::escaped(out.finish())),
            // Half an event is a cut, not nonsense.
            Err(StreamFault::Garbage) => Ok(Bytes::new()),
            Err(fault) => Err(fault),
        }
    }

    /// Disjoint counters from what was reported so far.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// The last `usage` object as it came.
    pub fn raw_usage(&self) -> Option<&str> {
        (!self.raw_usage.is_empty()).then_some(self.raw_usage.as_str())
    }

    /// True when the last report covers all output seen.
    pub fn usage_is_current(&self) -> bool {
        let denied = self.tally.output && self.usage.is_some_and(|u| u.output_total() == 0);
        self.usage.is_some() && !self.output_since && !denied
    }

    /// The usage to bill and whether it rests on our own count; `prompt_estimate` stands in for an
    /// input that was not reported.
    pub fn best_usage(&self, prompt_estimate: u64) -> (Usage, bool) {
        super::best_usage(self.usage(), self.usage_is_current(), self.counted_output(), prompt_estimate)
    }

    /// Own count of text, reasoning, refusal, tool names and arguments seen so far.
    pub fn counted_output(&self) -> u64 {
        self.tally.tokens()
    }

    pub fn has_output(&self) -> bool {
        self.tally.output
    }

    /// There was a choice at all, with or without output.
    pub fn has_answer(&self) -> bool {
        self.tally.choice
    }

    /// `[DONE]` was seen: nothing of interest follows.
    pub fn saw_done(&self) -> bool {
        matches!(self.state, State::Done | State::Empty)
    }

    /// Events with data seen so far.
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// What a chunk becomes.
enum Change<'a> {
    None,
    Drop,
    /// A place in the data and what stands there instead.
    Edit(Range<usize>, &'a [u8]),
}
