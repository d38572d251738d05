//! Events of Anthropic's and Responses' streams that say one piece of text and do nothing else:
//! what the pattern of those that pass within one dialect is learnt from (`crate::pattern`).

use crate::pattern::{PatternMatch, Said, Sample};
use tollgate_wire::json::{Node, has_separator};

/// Events that say one thing: their type, that of what is in them, the path to what they say, and
/// what that is.
const SAYING: &[(&str, &str, &[&str], Said)] = &[
    ("content_block_delta", "text_delta", &["delta", "text"], Said::Text),
    ("content_block_delta", "thinking_delta", &["delta", "thinking"], Said::Thought),
    ("response.output_text.delta", "", &["delta"], Said::Text),
    ("response.reasoning_summary_text.delta", "", &["delta"], Said::Thought),
    ("response.reasoning_text.delta", "", &["delta"], Said::Thought),
];

/// An event that was read and passed unchanged, if it is one of those.
pub(super) fn sample(raw: &[u8]) -> Option<Sample<'_>> {
    let text = std::str::from_utf8(raw).ok()?;
    let line = text.strip_prefix("event: ")?.split_once("\ndata: ")?.1;
    let node = Node::read(line.strip_suffix("\n\n")?).ok()?;
    let kind = node.get("delta").map_or("", |delta| delta.str_of("type"));
    let row = SAYING.iter().find(|(event, delta, ..)| *event == node.str_of("type") && *delta == kind)?;
    let said = row.2.iter().try_fold(&node, |node, name| node.get(name))?;
    said.text().filter(|text| !text.is_empty())?;
    let inside = |node: &Node<'_>| {
        let place = node.place_in(text);
        place.start + 1..place.end - 1
    };
    let number = node.get("sequence_number").filter(|one| one.number().is_some());
    Some(Sample {
        raw,
        said: row.3,
        text: inside(said),
        padding: node.get("obfuscation").filter(|one| one.text().is_some()).map(inside),
        number: number.map(|one| one.place_in(text)),
        model: None,
    })
}

/// What is empty says nothing; an escape, a separator or half a character is read in full.
pub(super) fn is_plain(bytes: &[u8], found: &PatternMatch) -> bool {
    let (event, text) = (&bytes[..found.len], &bytes[found.text.clone()]);
    let plain = !text.is_empty() && memchr::memchr(b'\\', text).is_none() && !has_separator(event);
    plain && std::str::from_utf8(event).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Patterns;

    const CLAUDE: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    const RESPONSES: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":9,\"item_id\":\"m\",\"delta\":\"Hi\",\"obfuscation\":\"abc\"}\n\n";

    fn known(event: &str) -> Patterns {
        let mut patterns = Patterns::default();
        patterns.learn(|| sample(event.as_bytes()));
        assert!(patterns.is_known(), "{event}");
        patterns
    }

    fn take(patterns: &mut Patterns, bytes: &[u8], most: usize) -> Option<PatternMatch> {
        patterns.take(bytes, most, |found| is_plain(bytes, found))
    }

    #[test]
    fn only_the_text_may_differ() {
        let mut patterns = known(CLAUDE);
        let next = CLAUDE.replace("Hi", "größer");
        let found = take(&mut patterns, format!("{next}event: x").as_bytes(), 1_000).expect("follows");
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
            assert_eq!(take(&mut patterns, other.as_bytes(), 1_000), None, "{other}");
        }
        assert_eq!(take(&mut patterns, CLAUDE.as_bytes(), 10), None, "longer than is taken");
        let half = [&CLAUDE.as_bytes()[..CLAUDE.len() - 6], b"\xff\"}}\n\n"].concat();
        assert_eq!(take(&mut patterns, &half, 1_000), None);
    }

    #[test]
    fn numbers_and_padding_may_differ_too() {
        let mut patterns = known(RESPONSES);
        let next = RESPONSES.replace(":9", ":10").replace("abc", "").replace("Hi", "there");
        let found = take(&mut patterns, next.as_bytes(), 1_000).expect("follows");
        assert_eq!((found.number, &next[found.text]), (Some(10), "there"));
        assert_eq!(take(&mut patterns, RESPONSES.replace(":9", ":-1").as_bytes(), 1_000), None);
        assert_eq!(take(&mut patterns, RESPONSES.replace("\"m\"", "\"n\"").as_bytes(), 1_000), None);
    }

    #[test]
    fn what_says_more_than_text_is_no_pattern() {
        let mut patterns = Patterns::default();
        for other in [
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
        ] {
            patterns.learn(|| sample(other.as_bytes()));
            assert!(!patterns.is_known(), "{other}");
        }
    }
}
