//! The schema of a record, and an evaluator of that part of JSON Schema which it is written in.
//!
//! A whole validator would bring sixty packages for sixteen keywords. A keyword or a pattern that
//! is not known here makes the schema unusable instead of being passed over.

use crate::pattern::matcher;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The published schema, as it is written.
pub const SCHEMA_TEXT: &str = include_str!("schema.json");

/// Something that a schema or a rule does not allow: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Names joined by dots, items by number: `inputs[0].id`. The whole has the empty path.
    pub path: String,
    pub reason: String,
}

/// A schema whose every word is understood.
#[derive(Clone, Debug)]
pub struct RecordSchema(Value);

/// Keywords that say something about a value, and those that are only notes.
const KEYWORDS: &[&str] = &[
    "$ref",
    "additionalProperties",
    "const",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "minLength",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
];
const NOTES: &[&str] = &["$defs", "$id", "$schema", "description", "format", "title"];

/// The schema of workflow records.
pub fn record_schema() -> &'static RecordSchema {
    static SCHEMA: LazyLock<RecordSchema> = LazyLock::new(|| {
        // A test reads the file and finds every word of it known.
        RecordSchema(serde_json::from_str(SCHEMA_TEXT).unwrap_or(Value::Bool(false)))
    });
    &SCHEMA
}

impl RecordSchema {
    /// A schema that somebody wrote. Refused with every word of it that is not understood.
    pub fn of(schema: Value) -> Result<RecordSchema, Vec<Violation>> {
        let mut unknown = Vec::new();
        understood(&schema, &schema, "", &mut unknown);
        if unknown.is_empty() { Ok(RecordSchema(schema)) } else { Err(unknown) }
    }

    /// Everything in a value that the schema does not allow.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Found { root: &self.0, list: Vec::new() };
        found.look(&self.0, value, "");
        found.list
    }
}

/// The path of a member.
pub(crate) fn member(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'$'));
    let name = if bare { name.to_owned() } else { format!("{name:?}") };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// The path of an item.
pub(crate) fn item(path: &str, at: usize) -> String {
    format!("{path}[{at}]")
}

fn understood(root: &Value, schema: &Value, path: &str, unknown: &mut Vec<Violation>) {
    let mut no = |path: String, reason: &str| unknown.push(Violation { path, reason: reason.to_owned() });
    let Some(members) = schema.as_object() else { return no(path.to_owned(), "must be an object") };
    for (word, value) in members {
        let here = member(path, word);
        let right = match word.as_str() {
            "$ref" => ends(root, value),
            "additionalProperties" => value == &Value::Bool(false),
            "enum" => value.is_array(),
            "maxItems" | "minItems" | "minLength" => value.is_u64(),
            "pattern" => value.as_str().and_then(matcher).is_some(),
            "properties" | "$defs" | "items" => value.is_object(),
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "type" => !types(value).is_empty() && types(value).iter().all(|kind| TYPES.contains(kind)),
            "uniqueItems" => value.is_boolean(),
            _ => true,
        };
        if !KEYWORDS.contains(&word.as_str()) && !NOTES.contains(&word.as_str()) {
            no(here, "is not a keyword that is evaluated here");
        } else if !right {
            no(here, "has a value that is not evaluated here");
        }
    }
    for word in ["properties", "$defs"] {
        for (name, inner) in members.get(word).and_then(Value::as_object).into_iter().flatten() {
            understood(root, inner, &member(&member(path, word), name), unknown);
        }
    }
    if let Some(items) = members.get("items") {
        understood(root, items, &member(path, "items"), unknown);
    }
}

fn target<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    root.get("$defs")?.get(reference.as_str()?.strip_prefix("#/$defs/")?)
}

/// A reference leads somewhere, and not in a circle.
fn ends(root: &Value, reference: &Value) -> bool {
    let defined = root.get("$defs").and_then(Value::as_object).map_or(0, Map::len);
    let mut at = reference;
    for _ in 0..=defined {
        match target(root, at).map(|schema| schema.get("$ref")) {
            Some(Some(next)) => at = next,
            Some(None) => return true,
            None => return false,
        }
    }
    false
}

const TYPES: &[&str] = &["string", "boolean", "integer", "number", "null", "object", "array"];

fn types(value: &Value) -> Vec<&str> {
    match value {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // 1.0 is an integer to JSON Schema.
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        _ => value.is_array(),
    }
}

struct Found<'s> {
    root: &'s Value,
    list: Vec<Violation>,
}

impl Found<'_> {
    fn add(&mut self, path: &str, reason: impl Into<String>) {
        self.list.push(Violation { path: path.to_owned(), reason: reason.into() });
    }

    fn look(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(schema) = schema.as_object() else { return self.add(path, "is not allowed") };
        if let Some(inner) = schema.get("$ref").and_then(|name| target(self.root, name)) {
            self.look(inner, value, path);
        }
        if let Some(kinds) = schema.get("type").map(types)
            && !kinds.iter().any(|kind| is_of(value, kind))
        {
            // What it lacks besides is no news.
            return self.add(path, format!("must be {}, not {}", kinds.join(" or "), kind_of(value)));
        }
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            self.add(path, format!("must be {only}"));
        }
        if let Some(Value::Array(words)) = schema.get("enum")
            && !words.contains(value)
        {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            self.add(path, format!("must be one of {}", words.join(", ")));
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Array(items) => self.items(schema, items, path),
            Value::Object(members) => self.members(schema, members, path),
            _ => {}
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, path: &str) {
        if let Some(least) = number(schema, "minLength")
            && text.chars().count() < least
        {
            self.add(path, format!("must have at least {least} characters"));
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !matcher(pattern).is_some_and(|matches| matches(text))
        {
            self.add(path, format!("must match {pattern}"));
        }
    }

    fn items(&mut self, schema: &Map<String, Value>, items: &[Value], path: &str) {
        if let Some(least) = number(schema, "minItems")
            && items.len() < least
        {
            self.add(path, format!("must have at least {least} items"));
        }
        if let Some(most) = number(schema, "maxItems")
            && items.len() > most
        {
            self.add(path, format!("must have at most {most} items"));
        }
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut seen = BTreeSet::new();
        for (at, value) in items.iter().enumerate() {
            if let Some(inner) = schema.get("items") {
                self.look(inner, value, &item(path, at));
            }
            if unique && !seen.insert(value.to_string()) {
                self.add(&item(path, at), "stands in the list before");
            }
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, members: &Map<String, Value>, path: &str) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.add(&member(path, name), "is missing");
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            match known.and_then(|known| known.get(name)) {
                Some(inner) => self.look(inner, value, &member(path, name)),
                None if schema.contains_key("additionalProperties") => {
                    self.add(&member(path, name), "is not a field of this object");
                }
                None => {}
            }
        }
    }
}

fn number(schema: &Map<String, Value>, word: &str) -> Option<usize> {
    schema.get(word).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_word_of_the_published_schema_is_evaluated() {
        let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
        RecordSchema::of(schema.clone()).unwrap();
        assert!(schema["$id"] == "/api/workflows/schema" && schema["title"].is_string());
    }

    #[test]
    fn a_schema_with_a_word_that_is_not_evaluated_is_refused() {
        for (schema, path) in [
            (json!({ "maximum": 3 }), "maximum"),
            (json!({ "properties": { "a": { "pattern": "^x$" } } }), "properties.a.pattern"),
            (json!({ "items": { "type": "float" } }), "items.type"),
            (json!({ "$defs": { "a": { "oneOf": [] } } }), "$defs.a.oneOf"),
            (json!({ "$ref": "#/$defs/none" }), "$ref"),
            (json!({ "$defs": { "a": { "$ref": "#/$defs/a" } } }), "$defs.a.$ref"),
            (json!({ "additionalProperties": true }), "additionalProperties"),
            (json!([]), ""),
        ] {
            let found = RecordSchema::of(schema.clone()).unwrap_err();
            assert_eq!(found.iter().map(|one| &*one.path).collect::<Vec<_>>(), [path], "{schema}");
        }
    }

    #[test]
    fn whole_numbers_may_be_written_as_decimals() {
        let schema = RecordSchema::of(json!({ "type": "integer" })).unwrap();
        assert!(schema.violations(&json!(1.0)).is_empty() && schema.violations(&json!(-7)).is_empty());
        assert_eq!(schema.violations(&json!(1.5))[0].reason, "must be integer, not number");
    }
}
