//! How a video task shall go, chosen by a marker in the prompt: `[[sim:fail
//! code=InvalidParameter]]`, `[[sim:queue=3 run=2]]`. Without a marker it waits one poll, runs one
//! poll and succeeds. Everything is counted in polls, so tests need no clock. With `kb` the file is
//! longer by so many kilobytes; with `reported` the maker reports a length of so many seconds, or
//! counts by it, with `over_ms` DashScope tells so much more; with `away` and `blind` so many
//! searches for the caller's own id fail at Kling, and then so many do not find it yet.

use std::collections::BTreeMap;

/// Names and meanings, for listings and for checking markers.
pub(super) const TABLE: &[(&str, &str)] = &[
    ("ok", "waits `queue` polls (1), runs `run` polls (1), succeeds"),
    ("refuse", "refused at submission with the provider's `code`"),
    ("fail", "accepted, fails with `code` and `text` (underscores are blanks)"),
    ("moderation", "accepted, fails as the provider's own moderation does"),
    ("cancelled", "ends as if cancelled at the provider"),
    ("expired", "ends as expired, where the provider has that"),
    ("unknown", "the provider has forgotten the task, where it says so in a status"),
    ("word", "a status nobody knows for `n` polls, then success"),
    ("limited", "submission answered 429"),
    ("poll_limited", "the first `n` polls are answered 429"),
    ("broken_once", "the first submission of this prompt answered 500, nothing made"),
    ("poll_broken", "the first `n` polls are answered 500"),
    ("poll_slow", "polls that name the task in their path are answered after `ms`"),
    ("slow", "the task is made, the answer comes after `ms`"),
    ("lost", "the task is made, the connection is reset instead of an answer"),
    ("page", "the task is made, a proxy answers 502 with a page"),
    ("vanished_once", "the first submission of this prompt is lost on its way: nothing made, the connection is reset"),
    ("packed", "the task is made, the answer is compressed"),
    ("poll_packed", "the first `n` polls are answered with what is compressed"),
    ("packed_file", "OpenAI: the file is compressed"),
    ("garbage", "the task is made, the answer is 200 and no JSON"),
    ("taken", "Kling: the task is made, the answer says that our id of it is taken"),
    ("no_url", "success without a link for the first `n` polls that succeed"),
    ("never_url", "success without a link for ever"),
    ("file_error", "the file step fails `n` times"),
    ("usage", "numbers of the usage as `kind=string|float|none`"),
    ("flap", "succeeds for one poll and runs again after that"),
    ("sizeless", "DashScope: `size` is not read, as by a strict server; where no `resolution` is named, 1080P is made"),
    ("dead_link", "the link has already ended"),
    ("file_status", "the file server answers with the status `code` and no file"),
    ("early_link", "the file is refused the first `n` times it is asked for: storage is behind its maker's word"),
];

const KEYS: &str = "queue run code text n ms kind id kb reported over_ms away blind";

/// A scenario with its options.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub name: &'static str,
    options: BTreeMap<String, String>,
}

impl Choice {
    /// A marker that is a mistake comes back as a message.
    pub fn of(prompt: &str) -> Result<Choice, String> {
        let mut choice = Choice { name: "ok", options: BTreeMap::new() };
        let Some((_, rest)) = prompt.split_once("[[sim:") else { return Ok(choice) };
        let (inside, _) = rest.split_once("]]").ok_or("a [[sim:…]] marker does not end")?;
        for (place, word) in inside.split_whitespace().enumerate() {
            match word.split_once('=') {
                Some((key, value)) if KEYS.split(' ').any(|known| known == key) => {
                    choice.options.insert(key.to_string(), value.to_string());
                }
                None if place == 0 => {
                    let row = TABLE.iter().find(|row| row.0 == word);
                    choice.name = row.ok_or_else(|| format!("no video scenario `{word}`"))?.0;
                }
                _ => return Err(format!("no video scenario option `{word}`")),
            }
        }
        Ok(choice)
    }

    pub fn is(&self, name: &str) -> bool {
        debug_assert!(TABLE.iter().any(|row| row.0 == name));
        self.name == name
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.options.get(key).map(|value| value.replace('_', " "))
    }

    pub fn raw(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub fn number(&self, key: &str, otherwise: u32) -> u32 {
        self.options.get(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }
}
