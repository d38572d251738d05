//! The pattern of a stream's events. Nearly all of them differ in what was said, in a number and in
//! padding, and in nothing else. Once an event was read in full, one that has the same bytes around
//! these places is known but for them, and they alone are read.
//!
//! Sound because the bytes around a string leave a JSON reader in the same state as before, and the
//! string is checked to end where the pattern goes on. Only events that say one thing and do
//! nothing else are learnt.

use std::ops::Range;
use tollgate_wire::json::{Scan, whole_number};

/// Longer patterns are not cached: they would cost more memory than time.
const LONGEST: usize = 1_024;
/// A pattern is given up for another when so many events did not follow it.
const PATIENCE: u32 = 8;

/// What the string of an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Text,
    Thought,
}

/// What is known of the next event, if it is like those before.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    known: Option<Box<Pattern>>,
    misses: u32,
}

/// An event that was read in full, and the places in it that may differ in the next: those of
/// strings between their quotes.
#[derive(Debug)]
pub(crate) struct Sample<'a> {
    pub raw: &'a [u8],
    pub said: Said,
    pub text: Range<usize>,
    /// Noise that some providers add to hide the length of what is said.
    pub padding: Option<Range<usize>>,
    /// The number of the event.
    pub number: Option<Range<usize>>,
    /// The model's name, where it is written anew.
    pub model: Option<Range<usize>>,
}

/// An event that follows the pattern: its length, and places from its start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternMatch {
    pub len: usize,
    pub said: Said,
    pub text: Range<usize>,
    pub number: Option<u64>,
    pub model: Option<Range<usize>>,
}

/// An event with holes.
#[derive(Debug)]
struct Pattern {
    /// What stands before each hole, and after the last.
    pieces: Vec<Box<[u8]>>,
    holes: Vec<Hole>,
    said: Said,
    model: Option<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Said,
    Padding,
    Number,
}

impl Patterns {
    /// Learns from an event that was read in full. `sample` is asked for when there is something to
    /// learn.
    pub fn learn<'a>(&mut self, sample: impl FnOnce() -> Option<Sample<'a>>) {
        if self.known.is_some() && self.misses < PATIENCE {
            self.misses += 1;
            return;
        }
        self.misses = 0;
        self.known = sample().and_then(|sample| Pattern::of(&sample)).map(Box::new);
    }

    /// The event at the start of `bytes`, when it follows the pattern and is `fit` for it.
    pub fn take(&mut self, bytes: &[u8], most: usize, fit: impl FnOnce(&PatternMatch) -> bool) -> Option<PatternMatch> {
        let found = self.known.as_deref()?.fits(bytes).filter(|found| found.len <= most && fit(found))?;
        self.misses = 0;
        Some(found)
    }

    #[cfg(test)]
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }
}

impl Pattern {
    fn of(sample: &Sample<'_>) -> Option<Pattern> {
        let raw = sample.raw;
        let mut holes = vec![(sample.text.clone(), Hole::Said)];
        holes.extend(sample.padding.clone().map(|place| (place, Hole::Padding)));
        holes.extend(sample.number.clone().map(|place| (place, Hole::Number)));
        holes.sort_by_key(|(place, _)| place.start);
        let mut pieces: Vec<Box<[u8]>> = Vec::with_capacity(holes.len() + 1);
        let mut from = 0;
        for (place, hole) in &holes {
            let piece = raw.get(from..place.start)?;
            // Only a string can be free.
            if *hole != Hole::Number && piece.last() != Some(&b'"') {
                return None;
            }
            pieces.push(piece.into());
            from = place.end;
        }
        pieces.push(raw.get(from..)?.into());
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        // The name must stand before anything whose length changes.
        let fixed = sample.model.as_ref().is_none_or(|place| place.end <= pieces[0].len());
        let holes = holes.into_iter().map(|(_, hole)| hole).collect();
        (size <= LONGEST && fixed).then(|| Pattern { pieces, holes, said: sample.said, model: sample.model.clone() })
    }

    fn fits(&self, bytes: &[u8]) -> Option<PatternMatch> {
        let (last, pieces) = self.pieces.split_last()?;
        let (mut at, mut text, mut number) = (0, 0..0, None);
        for (piece, hole) in pieces.iter().zip(&self.holes) {
            if !bytes.get(at..)?.starts_with(piece) {
                return None;
            }
            let start = at + piece.len();
            if *hole == Hole::Number {
                at = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                number = Some(whole_number(&bytes[start..at])?);
                continue;
            }
            let mut scan = Scan::new(&bytes[start - 1..]);
            scan.string().ok()?;
            at = start + scan.at() - 2;
            if *hole == Hole::Said {
                text = start..at;
            }
        }
        let len = at + last.len();
        let whole = bytes[at..].starts_with(last);
        whole.then(|| PatternMatch { len, said: self.said, text, number, model: self.model.clone() })
    }
}
