//! How a call for a transcript goes.

use std::collections::BTreeMap;

/// Every scenario with a line about it.
const TABLE: &[(&str, &str)] = &[
    ("plain", "a transcript"),
    ("error400", "400 that names the file"),
    ("error401", "401: the provider does not know our key"),
    ("error429", "429 with Retry-After"),
    ("error500", "500 in the provider's own words"),
    ("error503", "503: too busy to begin"),
    ("html502", "502 with a page of an edge"),
    ("moderation", "400: the content is refused"),
    ("garbage", "200 with JSON that breaks off, as if it were whole"),
    ("textless", "200 with JSON that has no transcript"),
    ("cut", "half of the reply, then the connection ends"),
    ("hang", "never answers"),
    ("huge", "a transcript of `mib` MiB"),
    ("whole", "ignores `stream`"),
    ("no_done", "events without the last one"),
    ("late_error", "an error among the events"),
    ("json", "JSON, whatever format was asked for"),
    ("nostore", "DashScope's files: 500 where the file is to be put"),
    ("never", "DashScope's files: a task that is never over"),
    ("failed", "DashScope's files: a task that fails"),
    ("silent", "DashScope's files: nobody speaks in the recording"),
    ("undecodable", "DashScope's files: the file cannot be decoded"),
    ("nolink", "DashScope's files: the link leads nowhere"),
    ("pollerror", "DashScope's files: 500 to the first questions about a task, or to all (`ever`)"),
    ("packed", "a reply that is said to be compressed"),
];

/// Every scenario of transcripts with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().copied()
}

const KEYS: &str = "seconds words think_ms delay_ms mib usage mb ever";

/// A scenario with its options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    name: &'static str,
    options: BTreeMap<String, String>,
}

impl Wish {
    /// By the model's name behind a plus sign, and by a marker, which wins. The model without it
    /// comes along.
    pub fn of<'m>(model: &'m str, prompt: &str) -> Result<(&'m str, Wish), String> {
        let (model, behind) = model.split_once('+').unwrap_or((model, ""));
        let mut wish = Wish { name: "plain", options: BTreeMap::new() };
        wish.read(&behind.replace('+', " "))?;
        if let Some((_, rest)) = prompt.split_once("[[sim:") {
            let (inside, _) = rest.split_once("]]").ok_or("a [[sim:…]] marker does not end")?;
            wish.read(inside)?;
        }
        Ok((model, wish))
    }

    fn read(&mut self, words: &str) -> Result<(), String> {
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) if KEYS.split(' ').any(|known| known == key) => {
                    self.options.insert(key.to_string(), value.to_string());
                }
                None => {
                    let row = TABLE.iter().find(|row| row.0 == word);
                    self.name = row.ok_or_else(|| format!("no scenario `{word}`"))?.0;
                }
                Some(_) => return Err(format!("no scenario option `{word}`")),
            }
        }
        Ok(())
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn is(&self, name: &str) -> bool {
        debug_assert!(TABLE.iter().any(|row| row.0 == name), "{name}");
        self.name == name
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    pub fn seconds(&self) -> Option<f64> {
        self.text("seconds")?.parse().ok()
    }
}
