//! Where in an answer a citation belongs. In the hub that is counted in characters of all that a
//! choice says.
//!
//! Anthropic does not count: a citation is of the block it stands in, so it waits for the block's
//! end and becomes the place of the block. Responses counts within each part: what comes from there
//! is moved by what was said before, and what goes there is moved back.

use super::event::{Citation, Event, Sink};
use tollgate_wire::Dialect;

/// Citations that wait for the end of one block, and their bytes. Those beyond have no place, which
/// is reported.
const MOST: usize = 1_024;
const MOST_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct CitationPlaces {
    from: Dialect,
    to: Dialect,
    /// Characters of the first choice so far, which is the only one that these two dialects have.
    said: u64,
    /// Those before the block that is open.
    start: u64,
    /// The block is over; the next text begins another.
    over: bool,
    held: Vec<Citation<'static>>,
    bytes: usize,
}

impl CitationPlaces {
    pub fn new(from: Dialect, to: Dialect) -> Self {
        CitationPlaces { from, to, said: 0, start: 0, over: false, held: Vec::new(), bytes: 0 }
    }

    fn counts(&self) -> bool {
        let apart = |dialect| matches!(dialect, Dialect::Anthropic | Dialect::Responses);
        self.from != self.to && (apart(self.from) || self.to == Dialect::Responses)
    }

    pub fn pass(&mut self, event: Event<'_>, sink: &mut Sink<'_>) {
        if !self.counts() {
            return sink(event);
        }
        match event {
            Event::Text { choice: 0, ref text } => {
                if std::mem::take(&mut self.over) {
                    self.start = self.said;
                }
                self.said += text.chars().count() as u64;
                sink(event);
            }
            Event::Cite { choice: 0, citation } => self.cite(citation, sink),
            Event::TextEnd { choice: 0 }
            | Event::Refusal { choice: 0, .. }
            | Event::Thought { choice: 0, .. }
            | Event::ThoughtEnd { choice: 0, .. }
            | Event::CallOpen { choice: 0, .. }
            | Event::Image { choice: 0, .. }
            | Event::Search { choice: 0, .. }
            | Event::Finish { choice: 0, .. } => {
                self.release(sink);
                self.over = true;
                sink(event);
            }
            _ => sink(event),
        }
    }

    fn cite(&mut self, citation: Citation<'_>, sink: &mut Sink<'_>) {
        let citation = match self.from {
            Dialect::Anthropic if self.held.len() < MOST && self.bytes < MOST_BYTES => {
                let citation = citation.owned();
                self.bytes += citation.size();
                return self.held.push(citation);
            }
            Dialect::Anthropic => {
                sink(Event::Lost { what: "citations".into() });
                citation
            }
            Dialect::Responses => citation.moved(|place| place.saturating_add(self.start)),
            Dialect::Chat | Dialect::Gemini => citation.moved(|place| place.saturating_sub(self.start)),
        };
        sink(Event::Cite { choice: 0, citation });
    }

    /// The block is whole: its citations are of all of it.
    fn release(&mut self, sink: &mut Sink<'_>) {
        let before = if self.to == Dialect::Responses { self.start } else { 0 };
        for citation in self.held.drain(..) {
            let citation = citation.at(self.start - before, self.said - before);
            sink(Event::Cite { choice: 0, citation });
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: Option<u64>, to: Option<u64>) -> Event<'static> {
        let citation =
            Citation::Url { url: "u".into(), title: "".into(), from, to, quote: "".into(), index: "".into() };
        Event::Cite { choice: 0, citation }
    }

    fn said(text: &str) -> Event<'_> {
        Event::Text { choice: 0, text: text.into() }
    }

    /// Two blocks of three characters, the second with a citation: at its places, if it has any,
    /// within its own block.
    fn played(from: Dialect, to: Dialect, places: Option<(u64, u64)>) -> Vec<(Option<u64>, Option<u64>)> {
        let mut out = Vec::new();
        let mut all = CitationPlaces::new(from, to);
        let cite = link(places.map(|place| place.0), places.map(|place| place.1));
        for event in
            [said("äöü"), Event::TextEnd { choice: 0 }, said("d"), cite, said("ef"), Event::TextEnd { choice: 0 }]
        {
            all.pass(event, &mut |event| {
                if let Event::Cite { citation: Citation::Url { from, to, .. }, .. } = event {
                    out.push((from, to));
                }
            });
        }
        out
    }

    #[test]
    fn a_citation_stands_where_its_block_does() {
        use Dialect::{Anthropic as A, Chat as C, Gemini as G, Responses as R};
        for (from, to, given, place) in [
            (A, C, None, (3, 6)),
            (A, G, None, (3, 6)),
            (A, R, None, (0, 3)),
            (R, C, Some((1, 2)), (4, 5)),
            (R, G, Some((1, 2)), (4, 5)),
            (C, R, Some((4, 5)), (1, 2)),
            (G, R, Some((4, 5)), (1, 2)),
            (C, G, Some((4, 5)), (4, 5)),
            (R, R, Some((1, 2)), (1, 2)),
        ] {
            assert_eq!(played(from, to, given), [(Some(place.0), Some(place.1))], "{from:?} to {to:?}");
        }
        assert_eq!(played(A, A, None), [(None, None)]);
    }

    #[test]
    fn what_waits_is_bounded_and_nothing_of_it_lost() {
        let mut all = CitationPlaces::new(Dialect::Anthropic, Dialect::Chat);
        let (mut placed, mut bare, mut dropped) = (0, 0, 0);
        let mut sink = |event: Event<'_>| match event {
            Event::Cite { citation: Citation::Url { to: Some(1), .. }, .. } => placed += 1,
            Event::Cite { .. } => bare += 1,
            Event::Lost { .. } => dropped += 1,
            _ => {}
        };
        all.pass(said("a"), &mut sink);
        for _ in 0..MOST + 5 {
            all.pass(link(None, None), &mut sink);
        }
        all.pass(Event::TextEnd { choice: 0 }, &mut sink);
        assert_eq!((placed, bare, dropped), (MOST, 5, 5));
    }
}
