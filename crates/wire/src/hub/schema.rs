//! JSON Schemas on their way to providers that take only part of the language.
//!
//! Only keywords are touched, never the names of properties, whatever those are called.

use crate::json::{Array, Kind, Node, Object, write_str};
use std::borrow::Cow;

/// The schema of a tool's arguments as Anthropic wants it: an object at the root.
pub(crate) fn object_schema(raw: Option<&str>) -> String {
    const EMPTY: &str = r#"{"type":"object","properties":{}}"#;
    let Some(node) = raw.and_then(|raw| Node::read(raw).ok()).filter(Node::is_map) else {
        return EMPTY.to_owned();
    };
    if node.str_of("type") == "object" {
        return node.raw.to_owned();
    }
    let mut out = Vec::with_capacity(node.raw.len() + 16);
    let mut object = Object::begin(&mut out);
    object.text("type", "object");
    for (key, value) in node.members().iter().filter(|(key, _)| key != "type") {
        object.raw(key, value.raw);
    }
    object.end();
    String::from_utf8(out).unwrap_or_else(|_| EMPTY.to_owned())
}

/// A schema with these texts as members of its own, and the names of those that it has already, as something else. A reference
/// takes nothing beside it.
pub(crate) fn labelled(raw: &str, texts: &[(&'static str, &Option<Cow<'_, str>>)]) -> (String, Vec<&'static str>) {
    let node = Node::read(raw).ok().filter(Node::is_map);
    let mut left = Vec::new();
    let mut new = Vec::new();
    for (name, text) in texts.iter().filter_map(|(name, text)| Some((*name, text.as_deref()?))) {
        match node.as_ref().map(|node| (node.get(name), node.get("$ref"))) {
            Some((Some(known), _)) if known.text().is_some_and(|known| known == text) => {}
            Some((None, None)) => new.push((name, text)),
            _ => left.push(name),
        }
    }
    let Some(node) = node.filter(|_| !new.is_empty()) else { return (raw.to_owned(), left) };
    let mut out = Vec::with_capacity(raw.len() + 64);
    let mut object = Object::begin(&mut out);
    new.iter().for_each(|(name, text)| object.text(name, text));
    node.members().iter().for_each(|(key, value)| object.raw(key, value.raw));
    object.end();
    (String::from_utf8(out).unwrap_or_else(|_| raw.to_owned()), left)
}

/// Keywords Anthropic's structured output refuses; they are told to the model in the description instead.
const LIMITS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// A schema for Anthropic's `output_config.format`.
pub(crate) fn for_anthropic(raw: &str) -> String {
    let Ok(node) = Node::read(raw) else { return raw.to_owned() };
    let mut out = Vec::with_capacity(raw.len() + 64);
    closed(&node, &mut out);
    String::from_utf8(out).unwrap_or_else(|_| raw.to_owned())
}

/// One schema with limits moved, references under `$defs` and objects closed.
fn closed(node: &Node<'_>, out: &mut Vec<u8>) {
    if !node.is_map() {
        out.extend_from_slice(node.raw.as_bytes());
        return;
    }
    let mut object = Object::begin(out);
    let mut moved = Vec::new();
    for (key, value) in node.members() {
        match key.as_ref() {
            limit if LIMITS.contains(&limit) => moved.push(format!("{limit}: {}", value.raw)),
            "description" | "additionalProperties" => {}
            "$ref" => {
                let text = value.text().map_or("", |text| text);
                let name = ["#/definitions/", "#/components/schemas/"].iter().find_map(|p| text.strip_prefix(p));
                match name {
                    Some(name) => object.text("$ref", &format!("#/$defs/{name}")),
                    None => object.raw("$ref", value.raw),
                }
            }
            "definitions" | "$defs" => named(&mut object, "$defs", value),
            "properties" | "patternProperties" => named(&mut object, key, value),
            "items" | "not" | "contains" => closed(value, object.key(key)),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" if value.is_list() => {
                let mut list = Array::begin(object.key(key));
                for item in value.items() {
                    closed(item, list.item());
                }
                list.end();
            }
            _ => object.raw(key, value.raw),
        }
    }
    let said = node.text_of("description");
    if said.is_some() || !moved.is_empty() {
        let mut text = said.map_or(String::new(), |text| text.to_string());
        if !moved.is_empty() {
            let gap = if text.is_empty() { "" } else { " " };
            text = format!("{text}{gap}({})", moved.join(", "));
        }
        object.text("description", &text);
    }
    if node.str_of("type") == "object" || node.get("properties").is_some() {
        object.bool("additionalProperties", false);
    }
    object.end();
}

/// Schemas by name; the names are nobody's keywords.
fn named(object: &mut Object<'_>, key: &str, value: &Node<'_>) {
    object.object(key, |inner| {
        for (name, schema) in value.members() {
            closed(schema, inner.key(name));
        }
    });
}

/// Gemini's own subset (types in capitals, `nullable`, numbers as text) as plain JSON Schema.
pub(crate) fn from_gemini(node: &Node<'_>) -> String {
    let mut out = Vec::with_capacity(node.raw.len());
    plain(node, &mut out);
    String::from_utf8(out).unwrap_or_else(|_| node.raw.to_owned())
}

fn plain(node: &Node<'_>, out: &mut Vec<u8>) {
    if !node.is_map() {
        out.extend_from_slice(node.raw.as_bytes());
        return;
    }
    let nullable = node.get("nullable").and_then(Node::bool) == Some(true);
    let mut object = Object::begin(out);
    for (key, value) in node.members() {
        match (key.as_ref(), &value.kind) {
            ("type", Kind::Text(text)) if nullable => object.array("type", |list| {
                list.text(&text.to_lowercase());
                list.text("null");
            }),
            ("type", Kind::Text(text)) => object.text("type", &text.to_lowercase()),
            ("nullable" | "propertyOrdering" | "property_ordering" | "example", _) => {}
            ("properties", _) => object.object("properties", |inner| {
                for (name, schema) in value.members() {
                    plain(schema, inner.key(name));
                }
            }),
            ("items", _) => plain(value, object.key("items")),
            ("anyOf" | "any_of", Kind::List(items)) => {
                let mut list = Array::begin(object.key("anyOf"));
                for item in items {
                    plain(item, list.item());
                }
                list.end();
            }
            (name, Kind::Text(text)) if is_count(name) && text.bytes().all(|b| b.is_ascii_digit()) => {
                object.raw(camel(name), if text.is_empty() { "0" } else { text });
            }
            (name, _) if is_count(name) => object.raw(camel(name), value.raw),
            _ => object.raw(key, value.raw),
        }
    }
    object.end();
}

const COUNTS: &[(&str, &str)] = &[
    ("minItems", "min_items"),
    ("maxItems", "max_items"),
    ("minLength", "min_length"),
    ("maxLength", "max_length"),
    ("minProperties", "min_properties"),
    ("maxProperties", "max_properties"),
];

fn is_count(name: &str) -> bool {
    COUNTS.iter().any(|(camel, snake)| name == *camel || name == *snake)
}

fn camel(name: &str) -> &str {
    COUNTS.iter().find(|(_, snake)| name == *snake).map_or(name, |(camel, _)| camel)
}

/// A text argument for tools that take free text.
pub(crate) fn free_text_schema(name: &str) -> String {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.text("type", "object");
    object.object("properties", |inner| inner.object(name, |one| one.text("type", "string")));
    object.array("required", |list| list.text(name));
    object.bool("additionalProperties", false);
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

/// Whether the `format` of a tool that takes free text says only that.
pub(crate) fn any_text(format: Option<&str>) -> bool {
    let Some(node) = format.and_then(|raw| Node::read(raw).ok()) else { return true };
    node.str_of("type") == "text" && node.members().len() == 1
}

/// A JSON string as text.
pub(crate) fn quoted_text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_str(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_at_the_root() {
        assert_eq!(object_schema(None), r#"{"type":"object","properties":{}}"#);
        assert_eq!(object_schema(Some("{}")), r#"{"type":"object"}"#);
        assert_eq!(object_schema(Some("[1]")), r#"{"type":"object","properties":{}}"#);
        assert_eq!(
            object_schema(Some(r#"{"properties":{"a":{}},"type":"string"}"#)),
            r#"{"type":"object","properties":{"a":{}}}"#
        );
        let same = r#"{ "type":"object", "x":1 }"#;
        assert_eq!(object_schema(Some(same)), same);
    }

    #[test]
    fn limits_move_to_the_description_and_names_stay() {
        let raw = r##"{"type":"object","properties":{"maximum":{"type":"integer","minimum":1,"description":"How many"},
            "format":{"$ref":"#/definitions/F"}},"definitions":{"F":{"type":"array","items":{"type":"string","maxLength":3}}}}"##;
        assert_eq!(
            for_anthropic(raw),
            r##"{"type":"object","properties":{"maximum":{"type":"integer","description":"How many (minimum: 1)"},"format":{"$ref":"#/$defs/F"}},"$defs":{"F":{"type":"array","items":{"type":"string","description":"(maxLength: 3)"}}},"additionalProperties":false}"##
        );
        assert_eq!(for_anthropic("{}"), "{}");
    }

    #[test]
    fn geminis_subset_becomes_json_schema() {
        let raw = r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"min_length":"1"},
            "n":{"type":"ARRAY","items":{"type":"NUMBER"},"maxItems":"3"}},"required":["n"],"propertyOrdering":["n"]}"#;
        assert_eq!(
            from_gemini(&Node::read(raw).unwrap()),
            r#"{"type":"object","properties":{"type":{"type":["string","null"],"minLength":1},"n":{"type":"array","items":{"type":"number"},"maxItems":3}},"required":["n"]}"#
        );
    }
}
