//! TOML on one line, in the order that people read it: what the catalog commands write.

use crate::Faces;
use std::fmt::Write as _;
use toml::Value;

/// The keys of a model in the order of the commented example; others follow by name.
const ORDER: [&str; 30] = [
    "dim",
    "path",
    "origin",
    "description",
    "type",
    "vendor",
    "owner_by",
    "tags",
    "context_window",
    "max_input_tokens",
    "max_output_tokens",
    "input_modalities",
    "output_modalities",
    "reasoning_efforts",
    "resolutions",
    "max_duration_seconds",
    "pricing_notes",
    "supported_endpoint_types",
    "capabilities",
    "tasks",
    "billing_unit",
    "default_voice",
    "default_response_format",
    "speech_input",
    "accepted_upload_formats",
    "chat",
    "image",
    "speech",
    "transcription",
    "video",
];

/// The keys of a table, in that order.
pub(super) fn ordered(table: &toml::Table) -> Vec<(&str, &Value)> {
    let place = |key: &str| ORDER.iter().position(|one| *one == key).unwrap_or(ORDER.len());
    let mut entries: Vec<(&str, &Value)> = table.iter().map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_by_key(|(key, _)| (place(key), *key));
    entries
}

pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(one) => text(one),
        Value::Integer(number) if *number >= 0 => whole(number.unsigned_abs()),
        Value::Array(items) => format!("[{}]", items.iter().map(self::value).collect::<Vec<_>>().join(", ")),
        Value::Table(inner) => table(ordered(inner).into_iter().map(|(name, one)| (name, self::value(one)))),
        other => other.to_string(),
    }
}

pub(super) fn faces(faces: &Faces) -> String {
    table(faces.iter().map(|(face, price)| (face.name(), whole(price))))
}

pub(super) fn table<'a>(entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let entries: Vec<String> = entries.map(|(name, value)| format!("{} = {value}", key(name))).collect();
    if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
}

pub(super) fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if bare { name.to_owned() } else { text(name) }
}

/// With its thousands apart, as prices are written by hand.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut spaced = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            spaced.push('_');
        }
        spaced.push(digit);
    }
    spaced
}

pub(super) fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let hostile = "a \"quote\", a \\ and \u{1}\n\t\u{7f}é";
        let line = format!("{} = {}", key(hostile), text(hostile));
        let read: toml::Table = line.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(read[hostile], Value::String(hostile.to_owned()));
        for (number, written) in [(0, "0"), (999, "999"), (1_000, "1_000"), (1_047_576, "1_047_576")] {
            assert_eq!(whole(number), written);
        }
        let nested: toml::Table =
            "b = [{ x = 1, y = [\"z\"] }]\nday = 2026-11-16\non = true\nless = -5".parse().expect("TOML");
        let again: toml::Table = ordered(&nested)
            .into_iter()
            .map(|(name, one)| format!("{} = {}\n", key(name), value(one)))
            .collect::<String>()
            .parse()
            .expect("TOML");
        assert_eq!(again, nested);
    }
}
