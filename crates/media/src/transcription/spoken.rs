//! A provider's reply in pieces of any length: the text of a transcript piece by piece, its words
//! one by one, and what is around them as a short document. None of it is held as a whole.

use super::shape::{HeardItem, TranscriptShape};
use crate::trail::Trail;
use tollgate_wire::json::{BrokenJson, JsonStep, Push, Steps};

/// Longest object with a word or a line.
const MOST_ITEM: usize = 1 << 20;
/// Longest document around them.
const MOST_REST: usize = 1 << 20;

/// The reply has no transcript, or none in this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTranscript;

impl From<BrokenJson> for NoTranscript {
    fn from(_: BrokenJson) -> NoTranscript {
        NoTranscript
    }
}

/// What is found on the way, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    /// A text begins.
    Begin,
    Text(String),
    Item(HeardItem),
}

/// Reads one reply once.
#[derive(Debug)]
pub(super) struct SpokenReader {
    push: Push,
    pass: Pass,
}

impl SpokenReader {
    pub fn new(shape: &'static TranscriptShape) -> SpokenReader {
        let pass = Pass {
            shape,
            trail: Trail::default(),
            taking: Taking::Nothing,
            raw: Vec::new(),
            rest: Vec::new(),
            found: Vec::new(),
            wrong: false,
        };
        SpokenReader { push: Push::default(), pass }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Spoken>, NoTranscript> {
        self.push.feed(bytes, &mut self.pass)?;
        if self.pass.wrong { Err(NoTranscript) } else { Ok(std::mem::take(&mut self.pass.found)) }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.pass.raw.capacity() + self.pass.rest.len()
    }

    /// The reply is at its end. What is around text and words.
    pub fn end(self) -> Result<Vec<u8>, NoTranscript> {
        self.push.finish()?;
        Ok(self.pass.rest)
    }
}

/// What the bytes that come belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Nothing,
    Text,
    /// How many brackets inside it are open.
    Item(usize),
}

#[derive(Debug)]
struct Pass {
    shape: &'static TranscriptShape,
    trail: Trail,
    taking: Taking,
    /// The item so far; of a text, an escape or a letter that is not there as a whole.
    raw: Vec<u8>,
    rest: Vec<u8>,
    found: Vec<Spoken>,
    wrong: bool,
}

impl Steps for Pass {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match self.taking {
            Taking::Text => self.text(step, text),
            Taking::Item(depth) => self.item(depth, step, text),
            Taking::Nothing => self.look(step, text),
        }
        Ok(())
    }
}

impl Pass {
    fn look(&mut self, step: JsonStep, text: &[u8]) {
        let value = matches!(step, JsonStep::Open { .. } | JsonStep::Plain { .. });
        if value && self.trail.is_at(self.shape.items) {
            return self.item(0, step, text);
        }
        if matches!(step, JsonStep::Plain { .. }) && text.first() == Some(&b'"') && self.trail.is_at(self.shape.text) {
            self.note(b"\"\"");
            self.found.push(Spoken::Begin);
            return self.text(step, &text[1..]);
        }
        match step {
            JsonStep::Open { list } => self.trail.open(list),
            JsonStep::Close => self.trail.close(),
            JsonStep::Name { last } => self.trail.name(text, last),
            // Between items, none of which is in the rest.
            JsonStep::Comma if self.trail.is_at(self.shape.items) => return,
            JsonStep::Blank => return,
            JsonStep::Plain { .. } | JsonStep::Comma | JsonStep::Colon => {}
        }
        self.note(text);
    }

    /// Of the document around text and items.
    fn note(&mut self, text: &[u8]) {
        self.wrong |= self.rest.len() + text.len() > MOST_REST;
        if !self.wrong {
            self.rest.extend_from_slice(text);
        }
    }

    /// A piece of the text, without the quote it begins with.
    fn text(&mut self, step: JsonStep, text: &[u8]) {
        let last = step == (JsonStep::Plain { last: true });
        self.raw.extend_from_slice(text.strip_suffix(b"\"").filter(|_| last).unwrap_or(text));
        let whole = if last { self.raw.len() } else { whole_letters(&self.raw) };
        let mut quoted = Vec::with_capacity(whole + 2);
        quoted.push(b'"');
        quoted.extend(self.raw.drain(..whole));
        quoted.push(b'"');
        match serde_json::from_slice::<String>(&quoted) {
            Ok(said) if said.is_empty() => {}
            Ok(said) => self.found.push(Spoken::Text(said)),
            Err(_) => self.wrong = true,
        }
        self.taking = if last { Taking::Nothing } else { Taking::Text };
    }

    fn item(&mut self, depth: usize, step: JsonStep, text: &[u8]) {
        self.wrong |= self.raw.len() + text.len() > MOST_ITEM;
        if !self.wrong {
            self.raw.extend_from_slice(text);
        }
        let (depth, over) = match step {
            JsonStep::Open { .. } => (depth + 1, false),
            JsonStep::Close => (depth.saturating_sub(1), depth <= 1),
            JsonStep::Plain { last } => (depth, depth == 0 && last),
            _ => (depth, false),
        };
        self.taking = if over { Taking::Nothing } else { Taking::Item(depth) };
        if over {
            match serde_json::from_slice(&std::mem::take(&mut self.raw)) {
                Ok(item) => self.found.push(Spoken::Item((self.shape.item)(&item))),
                Err(_) => self.wrong = true,
            }
        }
    }
}

/// How much of a JSON text, without its quotes, ends with a whole letter.
fn whole_letters(raw: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let length = match byte {
            b'\\' => match (raw.get(at + 1), raw.get(at + 2), raw.get(at + 3)) {
                // Two of them are one letter beyond the first plane.
                (Some(b'u'), Some(b'd' | b'D'), Some(b'8' | b'9' | b'a' | b'b' | b'A' | b'B')) => 12,
                (Some(b'u'), ..) => 6,
                _ => 2,
            },
            0xF0.. => 4,
            0xE0.. => 3,
            0xC0.. => 2,
            _ => 1,
        };
        if at + length > raw.len() {
            break;
        }
        at += length;
    }
    at
}
