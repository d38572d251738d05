//! A place in a request, and what a provider's validator says about it. The three providers word
//! the same three complaints (unknown field, missing field, bad value) and spell paths differently;
//! [`Voice`] is that difference.

use serde_json::{Map, Value};

use super::Dialect;
use crate::refusal::Refusal;

pub(super) type Checked<T = ()> = Result<T, Refusal>;

#[derive(Clone)]
pub(super) struct Place<'a> {
    pub voice: Dialect,
    pub path: String,
    pub value: &'a Value,
}

impl<'a> Place<'a> {
    pub fn root(voice: Dialect, value: &'a Value) -> Self {
        Self { voice, path: String::new(), value }
    }

    /// An object with these fields only; a name that ends with `!` must be there.
    pub fn fields(&self, allowed: &str) -> Checked<&'a Map<String, Value>> {
        let map = self.value.as_object().ok_or_else(|| self.wrong("expected an object"))?;
        let names = || allowed.split_whitespace().map(|name| name.trim_end_matches('!'));
        if let Some(odd) = map.keys().find(|key| !names().any(|name| name == self.voice.spelt(key))) {
            return Err(self.unknown(odd));
        }
        for name in allowed.split_whitespace().filter_map(|name| name.strip_suffix('!')) {
            self.need(name)?;
        }
        Ok(map)
    }

    /// A field that is there and not null.
    pub fn field(&self, name: &str) -> Option<Place<'a>> {
        let map = self.value.as_object()?;
        let (_, value) = map.iter().find(|(key, _)| self.voice.spelt(key) == name)?;
        (!value.is_null()).then(|| Place { voice: self.voice, path: self.beneath(name), value })
    }

    pub fn need(&self, name: &str) -> Checked<Place<'a>> {
        self.field(name).ok_or_else(|| {
            let path = self.beneath(name);
            match self.voice {
                Dialect::Anthropic => Refusal::bad(&path, &format!("{path}: Field required")),
                Dialect::Responses => Refusal::missing(&path),
                Dialect::Gemini => Refusal::bad(&path, &format!("* GenerateContentRequest.{path}: must be set")),
            }
        })
    }

    pub fn list(&self) -> Checked<Vec<Place<'a>>> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("expected a list"))?;
        let beneath = |at: usize| match self.voice {
            Dialect::Anthropic => format!("{}.{at}", self.path),
            _ => format!("{}[{at}]", self.path),
        };
        let places = list.iter().enumerate();
        Ok(places.map(|(at, value)| Place { voice: self.voice, path: beneath(at), value }).collect())
    }

    /// The entries of a list that may be absent.
    pub fn entries(&self, name: &str) -> Checked<Vec<Place<'a>>> {
        self.field(name).map_or_else(|| Ok(Vec::new()), |list| list.list())
    }

    pub fn text(&self) -> Checked<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("expected a string"))
    }

    pub fn flag(&self, name: &str) -> Checked<bool> {
        self.field(name)
            .map_or(Ok(false), |place| place.value.as_bool().ok_or_else(|| place.wrong("expected a boolean")))
    }

    /// A whole number within bounds, if it is there.
    pub fn whole(&self, name: &str, least: i64, most: i64) -> Checked<Option<i64>> {
        let Some(place) = self.field(name) else { return Ok(None) };
        match place.value.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(place.wrong(&format!("expected an integer from {least} to {most}"))),
        }
    }

    pub fn number(&self, name: &str, least: f64, most: f64) -> Checked<Option<f64>> {
        let Some(place) = self.field(name) else { return Ok(None) };
        match place.value.as_f64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(place.wrong(&format!("expected a number from {least} to {most}"))),
        }
    }

    pub fn one_of(&self, words: &str) -> Checked<&'a str> {
        let said = self.text()?;
        if words.split_whitespace().any(|word| word == said) {
            return Ok(said);
        }
        Err(self.wrong(&format!("'{said}' is not one of: {words}")))
    }

    pub fn wrong(&self, what: &str) -> Refusal {
        let path = &self.path;
        match self.voice {
            Dialect::Anthropic => Refusal::bad(path, &format!("{path}: {what}")),
            Dialect::Responses => Refusal::bad(path, &format!("Invalid value for '{path}': {what}.")),
            Dialect::Gemini => Refusal::bad(path, &format!("Invalid value at '{path}': {what}")),
        }
    }

    fn unknown(&self, key: &str) -> Refusal {
        let path = self.beneath(key);
        match self.voice {
            Dialect::Anthropic => Refusal::bad(&path, &format!("{path}: Extra inputs are not permitted")),
            Dialect::Responses => {
                Refusal::bad(&path, &format!("Unknown parameter: '{path}'.")).with_code(Some("unknown_parameter"))
            }
            Dialect::Gemini => {
                let at = if self.path.is_empty() { String::new() } else { format!(" at '{}'", self.path) };
                let text = format!("Invalid JSON payload received. Unknown name \"{key}\"{at}: Cannot find field.");
                Refusal::bad(&path, &text)
            }
        }
    }

    fn beneath(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }
}

/// Settings of thinking, sent to a model of OpenAI's that does not.
pub(super) fn no_thinking(root: &Place<'_>) -> Checked {
    let unsupported = |path: &str| {
        let text = format!("Unsupported parameter: '{path}' is not supported with this model.");
        Err(Refusal::bad(path, &text).with_code(Some("unsupported_parameter")))
    };
    if root.field("reasoning_effort").is_some() {
        return unsupported("reasoning_effort");
    }
    if let Some(reasoning) = root.field("reasoning") {
        for name in ["effort", "summary", "generate_summary"] {
            if let Some(place) = reasoning.field(name) {
                return unsupported(&place.path);
            }
        }
    }
    if root.entries("include")?.iter().any(|entry| entry.value == "reasoning.encrypted_content") {
        return Err(Refusal::bad("include", "Encrypted content is not supported with this model."));
    }
    Ok(())
}

/// Marks for the cache, which only few of OpenAI's models know: here those that have the word
/// `marks` in their names.
pub(super) fn no_marks(root: &Place<'_>) -> Checked {
    const MARK: &str = "prompt_cache_breakpoint";
    fn find(value: &Value, path: &str) -> Option<String> {
        match value {
            Value::Object(map) if map.contains_key(MARK) => Some(format!("{path}.{MARK}")),
            Value::Object(map) => map.iter().find_map(|(name, value)| find(value, &format!("{path}.{name}"))),
            Value::Array(list) => list.iter().enumerate().find_map(|(at, value)| find(value, &format!("{path}[{at}]"))),
            _ => None,
        }
    }
    if root.value["model"].as_str().is_some_and(|model| model.contains("marks")) {
        return Ok(());
    }
    match ["messages", "input"].iter().find_map(|name| find(&root.value[*name], name)) {
        Some(path) => {
            let text = format!("Unknown parameter: '{path}'.");
            Err(Refusal::bad(&path, &text).with_code(Some("unknown_parameter")))
        }
        None => Ok(()),
    }
}

/// Who asks, and under which name its prompts are cached: at most 64 characters each.
pub(super) fn short_names(root: &Place<'_>, names: &[&str]) -> Checked {
    for name in names {
        let long = |place: &Place<'_>| place.value.as_str().is_none_or(|text| text.chars().count() > 64);
        if let Some(place) = root.field(name).filter(long) {
            return Err(place.wrong("expected a string of at most 64 characters"));
        }
    }
    Ok(())
}

/// Letters, digits, `_` and `-`, and so many of them at most.
pub(super) fn is_name(text: &str, most: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=most).contains(&text.len()) && text.bytes().all(fits)
}
