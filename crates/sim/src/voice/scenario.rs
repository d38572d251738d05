//! How an answer with audio goes, said by a marker in the text that is to be spoken:
//! `[[sim:cut cut=fin]]`. `ms=N` says how long it plays (50 ms a character otherwise), `pieces=N`
//! in how many pieces it comes (4).

use std::collections::BTreeMap;

use crate::refusal::Refusal;

/// Name, and what it does.
const TABLE: &[(&str, &str)] = &[
    ("plain", "a well-behaved answer"),
    ("slow", "thinks for a second"),
    ("door", "waits after the first piece until the door /_door is open"),
    ("cut", "the connection ends in the middle of the audio (cut=reset|fin)"),
    ("hang", "takes the call, never answers"),
    ("hang_midway", "falls silent in the middle of the audio"),
    ("empty", "200 without any audio"),
    ("header_only", "a wav file without samples"),
    ("json200", "200 with an error object, as JSON"),
    ("json_as_audio", "200 with an error object that says it is audio"),
    ("wrong_format", "mp3, or flac where mp3 was asked for"),
    ("packed", "200 with a compressed body"),
    ("redirect", "307 to a file elsewhere"),
    ("limited", "429"),
    ("moderated", "the text is refused"),
    ("bad", "a refusal of a field"),
    ("error500", "500 in the provider's own words"),
    ("page502", "502 with a web page"),
    ("money", "our account is empty"),
    ("huge", "mib=N of audio, the same piece again and again"),
    ("again", "MiniMax: all of the audio once more at the end, although it was asked not to"),
    ("odd", "MiniMax: a hexadecimal text of an odd length"),
    ("unfinished", "events that end without the last one"),
    ("error_midway", "an error in the middle of the events"),
    ("link_only", "DashScope: a link and no samples"),
    ("other_rate", "Gemini: samples at 16 kHz"),
];

/// All option keys.
const KEYS: &[&str] = &["ms", "pieces", "cut", "mib", "think_ms"];

/// Every scenario of speech with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().copied()
}

/// A scenario with its options.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub name: &'static str,
    options: BTreeMap<String, String>,
    characters: u64,
}

impl Choice {
    pub(super) fn of(text: &str) -> Result<Choice, Refusal> {
        let characters = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let mut choice = Choice { name: "plain", options: BTreeMap::new(), characters };
        let Some((_, rest)) = text.split_once("[[sim:") else { return Ok(choice) };
        let Some((marker, _)) = rest.split_once("]]") else {
            return Err(Refusal::bad("input", "a [[sim:…]] marker does not end"));
        };
        for word in marker.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) if KEYS.contains(&key) => {
                    choice.options.insert(key.to_string(), value.to_string());
                }
                None if TABLE.iter().any(|(name, _)| *name == word) => {
                    choice.name = TABLE.iter().find(|(name, _)| *name == word).map_or("plain", |(name, _)| name);
                }
                _ => return Err(Refusal::bad("input", &format!("no scenario or option `{word}`"))),
            }
        }
        Ok(choice)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        debug_assert!(TABLE.iter().any(|(known, _)| *known == name), "{name}");
        self.name == name
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub(super) fn number(&self, key: &str, otherwise: u64) -> u64 {
        self.text(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    /// The same, lasting so many milliseconds unless it says otherwise.
    pub(super) fn lasting(mut self, ms: u64) -> Choice {
        self.options.entry("ms".to_string()).or_insert_with(|| ms.to_string());
        self
    }

    /// How long the audio plays.
    pub(super) fn millis(&self) -> u64 {
        self.number("ms", self.characters.saturating_mul(50).clamp(100, 60_000))
    }
}
