//! JSON Schemas on their way to providers that take only part of the language.
//!
//! Only keywords are touched, never the names of properties, whatever those are called.

use std::borrow::Cow;
use tollgate_wire::json::{Array, Node, Object, write_str};

/// A tool that takes nothing.
pub(crate) const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The schema of a tool's arguments with an object at the root, and what else stood there: a name
/// that is added to the schema's.
pub(crate) fn object_schema(raw: &str) -> (String, Option<&'static str>) {
    let Some(node) = Node::read(raw).ok().filter(Node::is_map) else {
        return (NO_ARGUMENTS.to_owned(), Some("").filter(|_| raw != "true"));
    };
    if node.str_of("type") == "object" {
        return (node.raw.to_owned(), None);
    }
    let mut out = Vec::with_capacity(node.raw.len() + 16);
    let mut object = Object::begin(&mut out);
    object.text("type", "object");
    for (key, value) in node.members().iter().filter(|(key, _)| key != "type") {
        object.raw(key, value.raw);
    }
    object.end();
    let other = node.get("type").map(|_| ".type");
    (String::from_utf8(out).unwrap_or_else(|_| NO_ARGUMENTS.to_owned()), other)
}

/// A schema with these texts as members of its own, and the names of those that it has already, as
/// something else. A reference takes nothing beside it.
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

/// Keywords Anthropic's structured output does not take; they are put for the model in the
/// description instead.
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
    "example",
    "examples",
    "nullable",
    "propertyOrdering",
];

/// Values of `format` it takes; others go the same way.
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// A schema for Anthropic's `output_config.format`, and whether one of its objects was open in so
/// many words, which none can be there.
pub(crate) fn for_anthropic(raw: &str) -> (String, bool) {
    let Ok(node) = Node::read(raw) else { return (raw.to_owned(), false) };
    let mut out = Vec::with_capacity(raw.len() + 64);
    let open = closed(&node, &mut out);
    (String::from_utf8(out).unwrap_or_else(|_| raw.to_owned()), open)
}

fn is_reported(keyword: &str, value: &Node<'_>) -> bool {
    match keyword {
        "format" => value.text().is_none_or(|text| !FORMATS.contains(&text.as_ref())),
        "description" => true,
        _ => LIMITS.contains(&keyword),
    }
}

/// One schema with limits moved, references under `$defs` and objects closed; whether one was said
/// to be open.
fn closed(node: &Node<'_>, out: &mut Vec<u8>) -> bool {
    if !node.is_map() {
        out.extend_from_slice(node.raw.as_bytes());
        return false;
    }
    let mut open = false;
    let mut object = Object::begin(out);
    let mut moved = Vec::new();
    for (key, value) in node.members() {
        match key.as_ref() {
            "description" if value.text().is_some() => {}
            limit if is_reported(limit, value) => moved.push(format!("{limit}: {}", value.raw)),
            "additionalProperties" => open |= value.raw != "false",
            "$ref" => {
                let text = value.text().map_or("", |text| text);
                let name = ["#/definitions/", "#/components/schemas/"].iter().find_map(|p| text.strip_prefix(p));
                match name {
                    Some(name) => object.text("$ref", &format!("#/$defs/{name}")),
                    None => object.raw("$ref", value.raw),
                }
            }
            "definitions" | "$defs" => open |= named(&mut object, "$defs", value),
            "properties" | "patternProperties" => open |= named(&mut object, key, value),
            "items" | "not" | "contains" => open |= closed(value, object.key(key)),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" if value.is_list() => {
                let mut list = Array::begin(object.key(key));
                for item in value.items() {
                    open |= closed(item, list.item());
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
    open
}

/// Schemas by name; the names are nobody's keywords.
fn named(object: &mut Object<'_>, key: &str, value: &Node<'_>) -> bool {
    let mut open = false;
    object.object(key, |inner| {
        for (name, schema) in value.members() {
            open |= closed(schema, inner.key(name));
        }
    });
    open
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

/// The `format` of a tool that takes free text, with its grammar in an object of its own, as chat
/// has it, or beside its type, as Responses does.
pub(crate) fn grammar(format: Option<&str>, nested: bool) -> Option<Cow<'_, str>> {
    let raw = format?;
    let Ok(node) = Node::read(raw) else { return Some(Cow::Borrowed(raw)) };
    let inner = node.get("grammar").filter(|inner| inner.is_map());
    if node.str_of("type") != "grammar" || inner.is_some() == nested {
        return Some(Cow::Borrowed(raw));
    }
    let mut out = Vec::with_capacity(raw.len() + 16);
    let mut object = Object::begin(&mut out);
    object.text("type", "grammar");
    let own = node.members().iter().filter(|(name, _)| !matches!(&**name, "type" | "grammar"));
    let members = own.chain(inner.map_or(&[][..], |inner| inner.members()));
    if nested {
        object.object("grammar", |one| members.for_each(|(name, value)| one.raw(name, value.raw)));
    } else {
        members.for_each(|(name, value)| object.raw(name, value.raw));
    }
    object.end();
    Some(Cow::Owned(String::from_utf8(out).unwrap_or_default()))
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
        let same = r#"{ "type":"object", "x":1 }"#;
        for (raw, sent, other) in [
            ("{}", r#"{"type":"object"}"#, None),
            ("true", NO_ARGUMENTS, None),
            ("[1]", NO_ARGUMENTS, Some("")),
            (r#"{"properties":{"a":{}},"type":"string"}"#, r#"{"type":"object","properties":{"a":{}}}"#, Some(".type")),
            (r#"{"type":["object","null"]}"#, r#"{"type":"object"}"#, Some(".type")),
            (same, same, None),
        ] {
            assert_eq!(object_schema(raw), (sent.to_owned(), other), "{raw}");
        }
    }

    #[test]
    fn limits_move_to_the_description_and_names_stay() {
        let raw = r##"{"type":"object","properties":{"maximum":{"type":"integer","minimum":1,"description":"How many"},
            "format":{"$ref":"#/definitions/F"}},"definitions":{"F":{"type":"array","items":{"type":"string","maxLength":3}}}}"##;
        assert_eq!(
            for_anthropic(raw).0,
            r##"{"type":"object","properties":{"maximum":{"type":"integer","description":"How many (minimum: 1)"},"format":{"$ref":"#/$defs/F"}},"$defs":{"F":{"type":"array","items":{"type":"string","description":"(maxLength: 3)"}}},"additionalProperties":false}"##
        );
        assert_eq!(for_anthropic("{}").0, "{}");
    }

    #[test]
    fn words_it_does_not_take_are_said_and_open_objects_are_seen() {
        let raw = r#"{"type":"string","format":"int64","examples":["a"],"description":1}"#;
        let said = r#"{"type":"string","description":"(format: \"int64\", examples: [\"a\"], description: 1)"}"#;
        assert_eq!(for_anthropic(raw), (said.to_owned(), false));
        assert_eq!(for_anthropic(r#"{"format":"date"}"#).0, r#"{"format":"date"}"#);
        let open = r#"{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
        let shut = r#"{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}},"additionalProperties":false}"#;
        assert_eq!((for_anthropic(open), for_anthropic(shut)), ((shut.to_owned(), true), (shut.to_owned(), false)));
    }
}
