//! How a session and its responses go. A handshake reads the model's name, `gpt-realtime+error401`
//! or `sim-cut-2`; a response reads a `[[sim:cut after=2]]` marker in the instructions of the
//! session, in those of the response, and in the last user text. The last one found wins.

use std::collections::BTreeMap;

/// Name, the option that `sim-<name>-<arg>` sets, and what it does.
const TABLE: &[(&str, &str, &str)] = &[
    ("plain", "tokens", "a well-behaved response"),
    ("error400", "", "handshake refused with 400"),
    ("error401", "", "handshake refused with 401"),
    ("error403", "", "handshake refused with 403"),
    ("error404", "", "handshake refused with 404"),
    ("error429", "", "handshake refused with 429"),
    ("error500", "", "handshake refused with 500"),
    ("error503", "", "handshake refused with 503"),
    ("handshake_hang", "", "the handshake is never answered"),
    ("not_upgraded", "", "the handshake is answered with 200 and a page"),
    ("silent", "", "an open connection on which nothing is ever said, not even session.created"),
    ("ping_only", "ping_ms", "after session.created nothing but pings, one every ping_ms (1000)"),
    ("no_usage", "", "response.done without usage"),
    ("wrong_usage", "kind", "usage that cannot be (kind=sum|negative|huge|cached|text)"),
    ("hold", "after", "stops after so many deltas until it is cancelled or interrupted"),
    ("hang", "after", "stops after so many deltas and never goes on, whatever is asked"),
    ("cut", "after", "ends the connection after so many deltas (cut=reset|fin), without response.done"),
    ("close", "code", "closes with a code after so many deltas (code=1011 after=3)"),
    ("close_first", "code", "closes with a code instead of an answer"),
    ("garbage", "kind", "a frame that is no event (kind=text|json|binary|utf8|type|empty), then goes on"),
    ("huge", "mib", "one frame of so many MiB (20), then goes on"),
    ("unknown_event", "kind", "an event that nobody knows (or of this kind), then goes on"),
    ("error_event", "code", "an error event instead of a response"),
    ("error_midway", "code", "an error event between the deltas, then goes on"),
    ("failed", "code", "a response that ends as failed"),
    ("incomplete", "reason", "ends as incomplete (reason=max_output_tokens|content_filter)"),
    ("tool", "tool", "calls a function (tool=NAME args=JSON calls=N)"),
    ("uninvited", "count", "so many responses (1) that nobody asked for, as soon as the session is set up"),
    ("no_done", "", "all of the response but response.done; the connection stays"),
    ("twice", "", "response.done twice"),
    ("expired", "", "the error session_expired and a close with 1001"),
    ("ignore_max", "", "takes no notice of max_output_tokens"),
    ("ignore_cancel", "", "goes on after response.cancel"),
];

/// All option keys.
const KEYS: &[&str] = &[
    "tokens",
    "ms",
    "after",
    "code",
    "reason",
    "kind",
    "cut",
    "mib",
    "tool",
    "args",
    "calls",
    "count",
    "delay_ms",
    "think_ms",
    "ping_ms",
    "text_in",
    "audio_in",
    "image_in",
    "cached_text",
    "cached_audio",
    "cached_image",
    "text_out",
    "audio_out",
    "reply_model",
    "usage",
    "heard",
    "details",
    "cumulative",
    "going_ms",
];

/// Every scenario of realtime sessions with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().map(|(name, _, meaning)| (*name, *meaning))
}

/// A scenario with its options.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub name: &'static str,
    options: BTreeMap<String, String>,
}

impl Choice {
    /// By the name of a model: behind a plus sign, or after `sim-`.
    pub(super) fn of_model(model: &str) -> Option<Choice> {
        let mut choice = Choice { name: "plain", options: BTreeMap::new() };
        if let Some((_, word)) = model.split_once('+') {
            let (name, rest) = word.split_once('+').unwrap_or((word, ""));
            choice.name = row(name)?.0;
            for (key, value) in rest.split('+').filter_map(|pair| pair.split_once('=')) {
                choice.set(key, value)?;
            }
        } else if let Some(rest) = model.strip_prefix("sim-") {
            let fits = |name: &str| rest.strip_prefix(name).is_some_and(|end| end.is_empty() || end.starts_with('-'));
            let (name, key, _) = TABLE.iter().filter(|row| fits(row.0)).max_by_key(|row| row.0.len())?;
            choice.name = name;
            if let Some(value) = rest[name.len()..].strip_prefix('-') {
                choice.set(key, value)?;
            }
        }
        Some(choice)
    }

    /// As the marker in a text changes it. An unknown word is the second value.
    pub(super) fn marked(&self, text: &str) -> Result<Choice, String> {
        let Some((_, rest)) = text.rsplit_once("[[sim:") else { return Ok(self.clone()) };
        let Some((marker, _)) = rest.split_once("]]") else { return Err("the marker does not end".to_string()) };
        let mut choice = self.clone();
        for word in marker.split_whitespace() {
            let known = match word.split_once('=') {
                Some((key, value)) => choice.set(key, value),
                None => row(word).map(|row| {
                    if row.0 != choice.name {
                        choice.options.clear();
                    }
                    choice.name = row.0;
                }),
            };
            known.ok_or_else(|| format!("no scenario or option `{word}`"))?;
        }
        Ok(choice)
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        if !KEYS.contains(&key) {
            return None;
        }
        self.options.insert(key.to_string(), value.to_string());
        Some(())
    }

    pub(super) fn is(&self, name: &str) -> bool {
        debug_assert!(row(name).is_some(), "{name}");
        self.name == name
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        debug_assert!(KEYS.contains(&key), "{key}");
        self.options.get(key).map(String::as_str)
    }

    /// The code of a close, 1011 if none is asked for.
    pub(super) fn close_code(&self) -> u16 {
        self.number("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(1011)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.text(key).and_then(|text| text.parse().ok())
    }
}

fn row(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    TABLE.iter().find(|row| row.0 == name)
}
