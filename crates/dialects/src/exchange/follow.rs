//! The pattern of the events that pass within one dialect. Pieces of text come in events that differ in the text, in a number and in
//! padding, and in nothing else; once one was read in full, the next with the same bytes around is passed without being read again.
//! `chat/pattern.rs` is the same for chat, whose events carry more at once.
//!
//! Sound because the bytes around the text are those of an event that passed unchanged and did nothing but say something.

use std::ops::Range;
use tollgate_wire::json::{Node, Scan, has_separator, whole_number};

/// Longer patterns are not kept: they would cost more memory than time.
const LONGEST: usize = 1_024;
/// A pattern is given up for another when so many events did not follow it.
const PATIENCE: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Follow {
    known: Option<Pattern>,
    misses: u32,
}

#[derive(Debug)]
struct Pattern {
    /// What stands before each hole, and after the last.
    pieces: Vec<Box<[u8]>>,
    holes: Vec<Hole>,
    thought: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Said,
    /// Noise that hides the length of what is said.
    Padding,
    /// Of the event.
    Number,
}

/// An event that follows the pattern: its length, where its text stands, and its number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub len: usize,
    pub text: Range<usize>,
    pub thought: bool,
    pub number: Option<u64>,
}

impl Follow {
    /// Learns from an event that was read and passed unchanged.
    pub fn learn(&mut self, raw: &[u8]) {
        if self.known.is_some() && self.misses < PATIENCE {
            self.misses += 1;
            return;
        }
        self.misses = 0;
        self.known = Pattern::of(raw);
    }

    /// The event at the start of `bytes`, when it follows the pattern.
    pub fn take(&mut self, bytes: &[u8], most: usize) -> Option<Found> {
        let found = self.known.as_ref()?.fits(bytes).filter(|found| found.len <= most)?;
        self.misses = 0;
        Some(found)
    }
}

/// Events that say one thing: their type, the path to what they say, and whether it is a thought.
const SAYING: &[(&str, &str, &[&str], bool)] = &[
    ("content_block_delta", "text_delta", &["delta", "text"], false),
    ("content_block_delta", "thinking_delta", &["delta", "thinking"], true),
    ("response.output_text.delta", "", &["delta"], false),
    ("response.reasoning_summary_text.delta", "", &["delta"], true),
    ("response.reasoning_text.delta", "", &["delta"], true),
];

impl Pattern {
    fn of(raw: &[u8]) -> Option<Pattern> {
        let text = std::str::from_utf8(raw).ok()?;
        let line = text.strip_prefix("event: ")?.split_once("\ndata: ")?.1;
        let node = Node::read(line.strip_suffix("\n\n")?).ok()?;
        let kind = node.get("delta").map_or("", |delta| delta.str_of("type"));
        let row = SAYING.iter().find(|(event, delta, ..)| *event == node.str_of("type") && *delta == kind)?;
        let said = row.2.iter().try_fold(&node, |node, name| node.get(name))?;
        said.text().filter(|text| !text.is_empty())?;
        let place = |node: &Node<'_>| node.raw.as_ptr() as usize - text.as_ptr() as usize;
        let inside = |node: &Node<'_>| place(node) + 1..place(node) + node.raw.len() - 1;
        let mut holes = vec![(inside(said), Hole::Said)];
        holes
            .extend(node.get("obfuscation").filter(|one| one.text().is_some()).map(|one| (inside(one), Hole::Padding)));
        let number = node.get("sequence_number").filter(|one| one.number().is_some());
        holes.extend(number.map(|one| (place(one)..place(one) + one.raw.len(), Hole::Number)));
        holes.sort_by_key(|(place, _)| place.start);
        let mut from = 0;
        let mut pieces: Vec<Box<[u8]>> = Vec::with_capacity(holes.len() + 1);
        for (place, _) in &holes {
            pieces.push(raw[from..place.start].into());
            from = place.end;
        }
        pieces.push(raw[from..].into());
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        let holes = holes.into_iter().map(|(_, hole)| hole).collect();
        (size <= LONGEST).then_some(Pattern { pieces, holes, thought: row.3 })
    }

    fn fits(&self, bytes: &[u8]) -> Option<Found> {
        let mut found = Found { len: 0, text: 0..0, thought: self.thought, number: None };
        let mut at = 0;
        for (piece, hole) in self.pieces.iter().zip(&self.holes) {
            at += bytes.get(at..)?.starts_with(piece).then_some(piece.len())?;
            let start = at;
            if *hole == Hole::Number {
                at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                found.number = Some(whole_number(&bytes[start..at])?);
                continue;
            }
            let mut scan = Scan::new(&bytes[start - 1..]);
            scan.string().ok()?;
            at = start + scan.at() - 2;
            if *hole == Hole::Said {
                found.text = start..at;
            }
        }
        let last = self.pieces.last()?;
        found.len = bytes[at..].starts_with(last).then_some(at + last.len())?;
        let text = &bytes[found.text.clone()];
        // What is empty says nothing; an escape, a separator or half a character is read in full.
        let plain = !text.is_empty() && memchr::memchr(b'\\', text).is_none() && !has_separator(&bytes[..found.len]);
        (plain && std::str::from_utf8(&bytes[..found.len]).is_ok()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    const RESPONSES: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":9,\"item_id\":\"m\",\"delta\":\"Hi\",\"obfuscation\":\"abc\"}\n\n";

    fn known(event: &str) -> Follow {
        let mut follow = Follow::default();
        follow.learn(event.as_bytes());
        assert!(follow.known.is_some(), "{event}");
        follow
    }

    #[test]
    fn only_the_text_may_differ() {
        let mut follow = known(CLAUDE);
        let next = CLAUDE.replace("Hi", "größer");
        let found = follow.take(format!("{next}event: x").as_bytes(), 1_000).expect("follows");
        assert_eq!((found.len, &next.as_bytes()[found.text]), (next.len(), "größer".as_bytes()));
        for other in [
            CLAUDE.replace("\"index\":0", "\"index\":1"),
            CLAUDE.replace("Hi", ""),
            CLAUDE.replace("Hi", "a\\nb"),
            CLAUDE.replace("Hi", "a\u{2028}b"),
            CLAUDE.replace("text_delta", "thinking_delta"),
            CLAUDE.replace("}}", "},\"x\":1}"),
            CLAUDE[..CLAUDE.len() - 1].to_owned(),
        ] {
            assert_eq!(follow.take(other.as_bytes(), 1_000), None, "{other}");
        }
        assert_eq!(follow.take(CLAUDE.as_bytes(), 10), None, "longer than is taken");
        assert_eq!(follow.take(&[&CLAUDE.as_bytes()[..CLAUDE.len() - 6], b"\xff\"}}\n\n"].concat(), 1_000), None);
    }

    #[test]
    fn numbers_and_padding_may_differ_too() {
        let mut follow = known(RESPONSES);
        let next = RESPONSES.replace(":9", ":10").replace("abc", "").replace("Hi", "there");
        let found = follow.take(next.as_bytes(), 1_000).expect("follows");
        assert_eq!((found.number, &next[found.text]), (Some(10), "there"));
        assert_eq!(follow.take(RESPONSES.replace(":9", ":-1").as_bytes(), 1_000), None);
        assert_eq!(follow.take(RESPONSES.replace("\"m\"", "\"n\"").as_bytes(), 1_000), None);
    }

    #[test]
    fn what_says_more_than_text_is_no_pattern() {
        let mut follow = Follow::default();
        for other in [
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
        ] {
            follow.learn(other.as_bytes());
            assert!(follow.known.is_none(), "{other}");
        }
    }
}
