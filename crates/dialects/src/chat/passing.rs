//! The events of a chat stream for a chat client: each is read once as it passes, and metered.
//!
//! Events go on as the bytes they are. Rewritten or left out is only what a client must not see
//! (usage it did not ask for, anything after `[DONE]`) or what its SDK would choke on: any framing
//! but one `data: ` line that ends with a line feed, events without data, objects without
//! `choices`.

use super::out::Out;
use super::part::{OutputTally, UsageSeen};
use super::reply::MOST_RAW_USAGE;
use super::seen::SeenInChunk;
use crate::pattern::{Patterns, Sample};
use std::ops::Range;
use tollgate_wire::StreamFault;
use tollgate_wire::json;
use tollgate_wire::usage::{Usage, UsageReport, UsageShape};

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

/// What is known of a stream as it passes.
#[derive(Debug)]
pub(crate) struct Passing {
    wants_usage: bool,
    /// The public name as JSON.
    rename_to: Option<Box<[u8]>>,
    tally: OutputTally,
    reported: UsageReport,
    usage: Option<Usage>,
    raw_usage: String,
    /// Output came after the last report.
    output_since: bool,
    /// The client has seen a usage chunk of the standard form.
    usage_sent: bool,
    /// `"id":…,"object":…,"created":…,"model":…` for chunks of our own.
    envelope: Vec<u8>,
    patterns: Patterns,
}

/// An event with data, as it came.
pub(crate) struct Came<'a> {
    pub raw: &'a [u8],
    /// Its data, trimmed, and where that begins in the event.
    pub data: &'a [u8],
    pub start: usize,
    /// One `data: ` line and a blank one, and nothing else.
    pub plain: bool,
    /// It is the first of its stream.
    pub first: bool,
}

impl Passing {
    pub fn new(wants_usage: bool, rename_to: Option<&str>) -> Self {
        Passing {
            wants_usage,
            rename_to: rename_to.map(|name| json::quoted(name).into_boxed_slice()),
            tally: OutputTally::counting(),
            reported: UsageReport::new(UsageShape::Chat),
            usage: None,
            raw_usage: String::new(),
            output_since: false,
            usage_sent: false,
            envelope: Vec::new(),
            patterns: Patterns::default(),
        }
    }

    /// Takes the event at `out.at` when it is like those before.
    pub fn follows(&mut self, most: usize, out: &mut Out<'_>) -> bool {
        let bytes = &out.from[out.at..];
        let Some(found) = self.patterns.take(bytes, most, |_| true) else { return false };
        let mut tally = self.tally.silent();
        tally.say(found.said, &bytes[found.text]);
        self.produced(tally);
        match (found.model, &self.rename_to) {
            (Some(place), Some(name)) => out.edit(place, name, found.len),
            _ => out.keep(found.len),
        }
        true
    }

    /// Takes over what a sound chunk produced.
    fn produced(&mut self, mut tally: OutputTally) {
        self.output_since |= tally.output;
        tally.output |= self.tally.output;
        self.tally = tally;
    }

    /// Reads the event at `out.at` and moves past it.
    pub fn event(&mut self, came: &Came<'_>, out: &mut Out<'_>) -> Result<(), StreamFault> {
        let (len, start, data) = (came.raw.len(), came.start, came.data);
        match self.chunk(came)? {
            Change::None if came.plain => out.keep(len),
            Change::Drop => out.drop(len),
            Change::Edit(edit, text) if came.plain => out.edit(start + edit.start..start + edit.end, text, len),
            Change::None => out.put(len, &[b"data: ", data, b"\n\n"]),
            Change::Edit(edit, text) => {
                out.put(len, &[b"data: ", &data[..edit.start], text, &data[edit.end..], b"\n\n"]);
            }
        }
        Ok(())
    }

    /// Reads one chunk's JSON, takes what it says, and tells what to do with it.
    fn chunk(&mut self, came: &Came<'_>) -> Result<Change<'_>, StreamFault> {
        let Came { raw, data, start, plain, first } = *came;
        let mut seen = SeenInChunk::default();
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
        if plain && !first && !has_usage {
            let read =
                Read { raw, start, before: &before, after: &tally, padding: seen.padding, model: renamed.clone() };
            self.patterns.learn(|| read.sample());
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

    fn keep_envelope(&mut self, seen: &SeenInChunk, data: &[u8]) {
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

    /// Reads `[DONE]` and moves past it: before it go the last chunks that a provider left out.
    /// False when there was no answer at all.
    pub fn done(&mut self, raw: &[u8], out: &mut Out<'_>) -> bool {
        let mut last = Vec::new();
        let said = self.end_chunks(&mut last);
        if !last.is_empty() {
            out.insert(&last);
        }
        match said {
            true if raw == DONE => out.keep(raw.len()),
            // The last event must be whole however its line ends were cut.
            true => out.put(raw.len(), &[DONE]),
            false => out.drop(raw.len()),
        }
        said
    }

    /// All that a provider owes that closed without its end.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.end_chunks(out);
        out.extend_from_slice(DONE);
    }

    /// As many choices as were asked for have said why they stopped.
    pub fn ended(&self, choices: u64) -> bool {
        self.tally.all_ended(choices)
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
}

/// A chunk that was read in full.
struct Read<'a> {
    raw: &'a [u8],
    /// Where its data begins.
    start: usize,
    /// `before` and the one string that was said give `after`.
    before: &'a OutputTally,
    after: &'a OutputTally,
    /// Places in the data.
    padding: Option<Range<usize>>,
    model: Option<Range<usize>>,
}

impl<'a> Read<'a> {
    /// What is learnt from it, if it says one thing and does nothing else. Of an empty string
    /// nothing is learnt: the first that is not makes its choice one that spoke, which a pattern
    /// would not see.
    fn sample(&self) -> Option<Sample<'a>> {
        let said = self.after.said.filter(|said| said.from < said.to)?;
        let place = |place: &Range<usize>| self.start + place.start..self.start + place.end;
        let text = place(&(said.from..said.to));
        let mut expected = *self.before;
        expected.say(said.kind, self.raw.get(text.clone())?);
        if !expected.same(self.after) || !self.raw.starts_with(b"data:") || self.start > 6 {
            return None;
        }
        let inside = |quoted: &Range<usize>| place(&(quoted.start + 1..quoted.end.saturating_sub(1)));
        Some(Sample {
            raw: self.raw,
            said: said.kind,
            text,
            padding: self.padding.as_ref().map(inside),
            number: None,
            model: self.model.as_ref().map(place),
        })
    }
}

/// What a chunk becomes.
enum Change<'a> {
    None,
    Drop,
    /// A place in the data and what stands there instead.
    Edit(Range<usize>, &'a [u8]),
}
