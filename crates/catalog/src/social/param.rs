//! A parameter of a cell: its type, its limits, and the check of one value against them.

use std::fmt;

use super::Wrong;

/// A parameter as the catalog defines it.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub required: bool,
    /// Filled in when the caller gives none.
    pub default: Option<ParamValue>,
    /// What the source assumes when it is not sent: documentation, and the start of paging.
    pub upstream_default: Option<ParamValue>,
    pub example: Option<String>,
    pub en: String,
    pub zh: String,
    pub min: Option<i64>,
    pub max: Option<i64>,
    /// Above zero: blanks around the value are dropped before it is counted.
    pub min_length: usize,
    /// In Unicode scalar values.
    pub max_length: usize,
    /// Known values: enforced where `strict`, documentation elsewhere.
    pub allowed: Vec<String>,
    pub strict: bool,
    /// Takes one of these words or its place in the list as a number; the word is sent.
    pub text_keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    Text,
    Integer,
    Boolean,
}

impl ParamKind {
    pub const ALL: [(&'static str, ParamKind); 3] =
        [("string", ParamKind::Text), ("integer", ParamKind::Integer), ("boolean", ParamKind::Boolean)];

    pub const fn name(self) -> &'static str {
        match self {
            ParamKind::Text => "string",
            ParamKind::Integer => "integer",
            ParamKind::Boolean => "boolean",
        }
    }
}

/// A checked value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Text(text) => f.write_str(text),
            ParamValue::Integer(int) => int.fmt(f),
            ParamValue::Boolean(flag) => flag.fmt(f),
        }
    }
}

impl ParamValue {
    pub fn json(&self) -> serde_json::Value {
        match self {
            ParamValue::Text(text) => text.as_str().into(),
            ParamValue::Integer(int) => (*int).into(),
            ParamValue::Boolean(flag) => (*flag).into(),
        }
    }
}

impl Param {
    /// English and Chinese in one text, as the public catalog shows it.
    pub fn description(&self) -> String {
        if self.zh.is_empty() { self.en.clone() } else { format!("{} / {}", self.en, self.zh) }
    }

    /// What a value counts as: without the blanks around it where those mean nothing.
    pub(super) fn trimmed<'v>(&self, value: &'v str) -> &'v str {
        if self.min_length > 0 || self.kind != ParamKind::Text { value.trim() } else { value }
    }

    /// The type alone.
    pub(super) fn typed(&self, value: &str) -> Result<ParamValue, Wrong> {
        match self.kind {
            ParamKind::Text => Ok(ParamValue::Text(value.to_owned())),
            ParamKind::Integer => whole(value).map(ParamValue::Integer).ok_or(Wrong::Type),
            ParamKind::Boolean => match value {
                "1" => Ok(ParamValue::Boolean(true)),
                "0" => Ok(ParamValue::Boolean(false)),
                word if word.eq_ignore_ascii_case("true") => Ok(ParamValue::Boolean(true)),
                word if word.eq_ignore_ascii_case("false") => Ok(ParamValue::Boolean(false)),
                _ => Err(Wrong::Type),
            },
        }
    }

    pub(super) fn length(&self, value: &ParamValue) -> Result<(), Wrong> {
        let ParamValue::Text(text) = value else { return Ok(()) };
        // Bytes are never fewer than characters: most values need no counting.
        if text.len() > self.max_length && text.chars().count() > self.max_length {
            return Err(Wrong::TooLong);
        }
        if self.min_length > 1 && text.chars().count() < self.min_length {
            return Err(Wrong::TooShort);
        }
        Ok(())
    }

    /// Range and list of values; a number that stands for a word becomes the word.
    pub(super) fn range(&self, value: ParamValue) -> Result<ParamValue, Wrong> {
        match value {
            ParamValue::Integer(int)
                if self.min.is_some_and(|min| int < min) || self.max.is_some_and(|max| int > max) =>
            {
                Err(Wrong::Range)
            }
            ParamValue::Text(text) if !self.text_keys.is_empty() => self.word(text).map(ParamValue::Text),
            ParamValue::Text(text) if self.strict && !self.allowed.contains(&text) => Err(Wrong::NotAllowed),
            value => Ok(value),
        }
    }

    fn word(&self, text: String) -> Result<String, Wrong> {
        if self.text_keys.contains(&text) {
            return Ok(text);
        }
        let at = whole(&text).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.text_keys.get(at)).cloned().ok_or(Wrong::NotAllowed)
    }

    /// Every value a caller may send, where only some are taken.
    pub fn choices(&self) -> Vec<String> {
        if self.text_keys.is_empty() {
            return if self.strict { self.allowed.clone() } else { Vec::new() };
        }
        let pairs = self.text_keys.iter().enumerate();
        pairs.flat_map(|(at, word)| [word.clone(), at.to_string()]).collect()
    }
}

/// An optional minus and digits, within 64 bits. `str::parse` would take a plus as well.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
