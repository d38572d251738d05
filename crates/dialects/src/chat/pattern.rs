//! The pattern of a stream's events. Nearly all of them differ in what was said and in nothing else, so once an event was read
//! in full, one that has the same bytes around its strings is known but for those strings, and they alone are read.
//!
//! Sound because the bytes around a string leave a JSON reader in the same state as before, and the string is checked
//! to end where the pattern goes on.

use super::part::{Said, Tally};
use std::ops::Range;
use tollgate_wire::json::Scan;

/// Longer patterns are not kept: they would cost more memory than time.
const LONGEST: usize = 1_024;
/// A pattern is given up for another when it failed this often.
const PATIENCE: u32 = 8;

/// What is known of the next event, if it is like those before.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    known: Option<Box<Pattern>>,
    misses: u32,
}

/// An event with holes where strings stand.
#[derive(Debug)]
struct Pattern {
    /// Each ends with the quote that opens a string; the last one ends the event.
    pieces: Vec<Box<[u8]>>,
    /// What the string after a piece is.
    holes: Vec<Hole>,
    /// Where the model's name stands that is written anew, counted from the start of the event.
    model: Option<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Said(Said),
    /// Noise that some providers add to hide the length of what is said.
    Padding,
}

/// An event that was read in full.
pub(super) struct Read<'a> {
    pub raw: &'a [u8],
    /// Where its data begins, and ends but for the two line feeds of the event.
    pub data: Range<usize>,
    /// Of the whole chunk: `before` and the one string that was said give `after`.
    pub before: &'a Tally,
    pub after: &'a Tally,
    /// Places in the data.
    pub padding: Option<Range<usize>>,
    pub model: Option<Range<usize>>,
}

/// An event that follows the pattern.
pub(super) struct Match {
    pub len: usize,
    pub model: Option<Range<usize>>,
}

impl Patterns {
    /// Learns from an event, if it says one thing and does nothing else.
    pub fn learn(&mut self, read: &Read<'_>) {
        if self.known.is_some() && self.misses < PATIENCE {
            self.misses += 1;
            return;
        }
        self.misses = 0;
        self.known = Pattern::of(read).map(Box::new);
    }

    /// The event at the start of `bytes`, when it follows the pattern: what it says is counted.
    pub fn take(&mut self, bytes: &[u8], most: usize, tally: &mut Tally) -> Option<Match> {
        let known = self.known.as_deref()?;
        let (len, said, text) = known.fits(bytes).filter(|(len, ..)| *len <= most)?;
        self.misses = 0;
        tally.say(said, &bytes[text]);
        Some(Match { len, model: known.model.clone() })
    }
}

impl Pattern {
    fn of(read: &Read<'_>) -> Option<Pattern> {
        // Of an empty string nothing is learnt: the first that is not makes its choice one that spoke, which the pattern would not see.
        let said = read.after.said.filter(|said| said.from < said.to)?;
        let text = said.from..said.to;
        let mut expected = *read.before;
        expected.say(said.kind, read.raw.get(read.data.start + text.start..read.data.start + text.end)?);
        let end = read.raw.get(read.data.end..)?;
        if !expected.same(read.after) || end != b"\n\n" || !read.raw.starts_with(b"data:") || read.data.start > 6 {
            return None;
        }
        let mut holes = vec![(text, Hole::Said(said.kind))];
        // Only a string can be free.
        holes.extend(read.padding.clone().map(|place| (place.start + 1..place.end.saturating_sub(1), Hole::Padding)));
        holes.sort_by_key(|(place, _)| place.start);
        let mut pieces: Vec<Box<[u8]>> = Vec::with_capacity(holes.len() + 1);
        let mut from = 0;
        for (place, _) in &holes {
            let to = read.data.start + place.start;
            pieces.push(read.raw.get(from..to).filter(|piece| piece.last() == Some(&b'"'))?.into());
            from = read.data.start + place.end + 1;
        }
        pieces.push(read.raw.get(from..)?.into());
        let model = read.model.clone().map(|place| read.data.start + place.start..read.data.start + place.end);
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        // The name must stand before anything whose length changes.
        let fixed = model.as_ref().is_none_or(|place| place.end <= pieces[0].len());
        (size <= LONGEST && fixed).then(|| Pattern {
            pieces,
            holes: holes.into_iter().map(|(_, hole)| hole).collect(),
            model,
        })
    }

    /// The length of the event and what it says.
    fn fits(&self, bytes: &[u8]) -> Option<(usize, Said, Range<usize>)> {
        let (last, pieces) = self.pieces.split_last()?;
        let mut at = 0;
        let mut said = None;
        for (piece, hole) in pieces.iter().zip(&self.holes) {
            if !bytes.get(at..)?.starts_with(piece) {
                return None;
            }
            at += piece.len();
            let mut scan = Scan::new(&bytes[at - 1..]);
            scan.string().ok()?;
            let start = at;
            at += scan.at() - 1;
            if let Hole::Said(kind) = hole {
                said = Some((*kind, start..at - 1));
            }
        }
        let (kind, text) = said?;
        bytes[at..].starts_with(last).then_some((at + last.len(), kind, text))
    }
}
