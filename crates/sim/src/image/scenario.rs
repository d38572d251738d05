//! How pictures shall come out, chosen by a marker in the prompt: `[[sim:partial fail=2]]`,
//! `[[sim:kb=2000]]`. Without a marker all of them do. Several requests of one prompt may go
//! differently: `[[sim:turns of=ok,limited]]`.

use std::collections::BTreeMap;

/// Names and meanings, for listings and for checking markers.
pub(super) const TABLE: &[(&str, &str)] = &[
    ("ok", "all pictures, each `kb` kilobytes longer"),
    ("partial", "`fail` of the pictures are not made, in the maker's own way"),
    ("none", "an answer of 200 without pictures"),
    ("broken", "`fail` of the pictures are cut in the middle of their letters"),
    ("foreign", "what is called a picture is a text"),
    ("moderation", "refused for its content before anything is made"),
    ("moderated", "refused for the content of what was made"),
    ("limited", "429"),
    ("error", "a server's failure with the status `code` (500)"),
    ("refuse", "a parameter is refused"),
    ("surplus", "`made` pictures, whatever was asked for"),
    ("lost", "the pictures are made, the connection is reset instead of an answer"),
    ("garbage", "the pictures are made, the answer is cut JSON"),
    ("page", "a proxy answers 502 with a page"),
    ("packed", "the answer is compressed"),
    ("hang", "no answer for ever"),
    ("cut", "the connection breaks inside the answer, behind `kb` kilobytes; with `cut=fin` it is closed, not reset"),
    ("huge", "`mib` MiB of letters, the same ones again and again inside the first picture"),
    ("jpeg", "pictures of another kind than their names say"),
    ("link", "links that answer as `code` says: 404, 403, html, huge; Ark has them then, whatever was asked for"),
    ("escaped", "base64 in JSON with its slashes and pluses escaped, as some write them"),
    ("svg", "drawings"),
    (
        "slow",
        "the answer comes behind `ms` milliseconds, and so does what a link of it leads to; with `at=middle` its second half does",
    ),
    ("one_choice", "DashScope: all pictures in one list of one choice"),
    ("draft", "Gemini: a draft before the picture, marked behind it"),
    ("ended", "a task that ends with the status `code` and without a picture"),
    ("poll_broken", "questions about the task fail for ever"),
    ("poll_hang", "the task runs for ever"),
    ("word", "a status that nobody knows for one question"),
    ("partials", "a stream with `n` previews before each picture"),
    ("midstream", "a stream that fails behind `n` finished pictures"),
    ("whole", "a stream was asked for, and the answer comes at once"),
    ("turns", "each request of this prompt plays the next scenario of the list `of`, over and over"),
];

const KEYS: &str = "fail code made kb mib n of cut ms at";

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
                    choice.name = row.ok_or_else(|| format!("no picture scenario `{word}`"))?.0;
                }
                _ => return Err(format!("no picture scenario option `{word}`")),
            }
        }
        Ok(choice)
    }

    /// The scenario of the request with this number, counted from zero, with the same options.
    pub fn turn(mut self, number: usize) -> Result<Choice, String> {
        let of = self.raw("of").to_string();
        let names: Vec<&str> = of.split(',').collect();
        let name = names[number % names.len()];
        let row = TABLE.iter().find(|row| row.0 == name && row.0 != "turns");
        self.name = row.ok_or_else(|| format!("no picture scenario `{name}`"))?.0;
        Ok(self)
    }

    pub fn is(&self, name: &str) -> bool {
        debug_assert!(TABLE.iter().any(|row| row.0 == name));
        self.name == name
    }

    pub fn raw(&self, key: &str) -> &str {
        self.options.get(key).map_or("", String::as_str)
    }

    pub fn number(&self, key: &str, otherwise: u64) -> u64 {
        self.options.get(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }
}
