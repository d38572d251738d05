//! Gemini's own language of schemas as plain JSON Schema, which every other dialect speaks.
//!
//! Each of its members has a counterpart: types in capitals are small, `nullable` is one more type
//! (or value, or branch), numbers and values of an `enum` that came as text are numbers, `example`
//! is one of `examples`, `ref` and `defs` get their sign, and `propertyOrdering` is the order in
//! which the properties stand. What has a value that nobody understands stays as it is: JSON Schema
//! allows words it does not know.

use std::collections::{HashMap, HashSet};
use tollgate_wire::json::{Array, Node, NodeKind, Object};

pub(super) fn from_gemini(node: &Node<'_>) -> String {
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
        let name = usual(key);
        match (name, &value.kind) {
            ("default", _) => object.raw(name, value.raw),
            ("example", _) if node.get("examples").is_none() => object.array("examples", |list| list.raw(value.raw)),
            (_, NodeKind::Null) | ("nullable", NodeKind::Bool(_)) => {}
            ("type", NodeKind::Text(text)) => kind(text, nullable, &mut object),
            ("enum", NodeKind::List(values)) => choices(values, is_numeric(node), nullable, &mut object),
            ("ref" | "$ref", NodeKind::Text(text)) => reference(text, nullable && !has_any_of(node), &mut object),
            ("propertyOrdering", _) if order(node).is_some() => {}
            ("properties", NodeKind::Map(_)) => properties(node, value, &mut object),
            ("defs" | "$defs", NodeKind::Map(_)) => object.object("$defs", |inner| {
                value.members().iter().for_each(|(name, schema)| plain(schema, inner.key(name)));
            }),
            ("items" | "additionalProperties" | "not", _) => plain(value, object.key(name)),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", NodeKind::List(items)) => {
                let mut list = Array::begin(object.key(name));
                items.iter().for_each(|item| plain(item, list.item()));
                if nullable && name == "anyOf" && !items.iter().any(takes_null) {
                    list.raw(NULL);
                }
                list.end();
            }
            (_, NodeKind::Text(text)) if NUMBERS.contains(&name) && text.is_empty() => object.raw(name, "0"),
            (_, NodeKind::Text(text)) if NUMBERS.contains(&name) && is_number(text) => object.raw(name, text),
            _ => object.raw(name, value.raw),
        }
    }
    object.end();
}

const NULL: &str = r#"{"type":"null"}"#;

/// Members of two words, in both spellings.
const SPELT: &[(&str, &str)] = &[
    ("additionalProperties", "additional_properties"),
    ("anyOf", "any_of"),
    ("maxItems", "max_items"),
    ("maxLength", "max_length"),
    ("maxProperties", "max_properties"),
    ("minItems", "min_items"),
    ("minLength", "min_length"),
    ("minProperties", "min_properties"),
    ("propertyOrdering", "property_ordering"),
];

/// Members whose numbers may come as text, as 64-bit numbers do in this dialect.
const NUMBERS: &[&str] =
    &["maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum"];

fn usual(name: &str) -> &str {
    SPELT.iter().find(|(_, other)| name == *other).map_or(name, |(usual, _)| usual)
}

fn is_number(text: &str) -> bool {
    Node::read(text).is_ok_and(|node| node.decimal().is_some() && node.raw == text)
}

fn is_numeric(node: &Node<'_>) -> bool {
    ["integer", "number"].iter().any(|kind| node.str_of("type").eq_ignore_ascii_case(kind))
}

fn has_any_of(node: &Node<'_>) -> bool {
    node.either("anyOf", "any_of").is_some_and(Node::is_list)
}

fn takes_null(node: &Node<'_>) -> bool {
    node.str_of("type").eq_ignore_ascii_case("null") || node.get("nullable").and_then(Node::bool) == Some(true)
}

fn kind(text: &str, nullable: bool, object: &mut Object<'_>) {
    let small = text.to_ascii_lowercase();
    match small.as_str() {
        "type_unspecified" => {}
        _ if nullable && small != "null" => object.array("type", |list| {
            list.text(&small);
            list.text("null");
        }),
        _ => object.text("type", &small),
    }
}

fn choices(values: &[Node<'_>], numeric: bool, nullable: bool, object: &mut Object<'_>) {
    object.array("enum", |list| {
        for value in values {
            list.raw(value.text().filter(|text| numeric && is_number(text)).map_or(value.raw, |text| text));
        }
        if nullable && !values.iter().any(Node::is_null) {
            list.raw("null");
        }
    });
}

/// A schema that stands elsewhere, or null.
fn reference(text: &str, nullable: bool, object: &mut Object<'_>) {
    let place = text.strip_prefix("#/defs/").map(|name| format!("#/$defs/{name}"));
    let place = place.as_deref().unwrap_or(text);
    if !nullable {
        return object.text("$ref", place);
    }
    object.array("anyOf", |list| {
        list.object(|one| one.text("$ref", place));
        list.raw(NULL);
    });
}

/// The rank of each property that is named in `propertyOrdering`; none where that is anything but a
/// list of properties.
fn order<'n>(node: &'n Node<'_>) -> Option<HashMap<&'n str, usize>> {
    let list = node.either("propertyOrdering", "property_ordering").filter(|list| list.is_list())?;
    let known: HashSet<&str> = match node.get("properties") {
        Some(properties) => properties.members().iter().map(|(name, _)| name.as_ref()).collect(),
        None => HashSet::new(),
    };
    let mut ranks = HashMap::new();
    for (at, name) in list.items().iter().enumerate() {
        let name = name.text().map(AsRef::as_ref).filter(|name| known.contains(name))?;
        ranks.entry(name).or_insert(at);
    }
    Some(ranks)
}

/// Those with a rank first, by it; the others as they stand.
fn properties(node: &Node<'_>, value: &Node<'_>, object: &mut Object<'_>) {
    let mut members: Vec<_> = value.members().iter().collect();
    if let Some(ranks) = order(node) {
        members.sort_by_key(|(name, _)| ranks.get(name.as_ref()).copied().unwrap_or(usize::MAX));
    }
    object.object("properties", |inner| members.iter().for_each(|(name, schema)| plain(schema, inner.key(name))));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every member of the language, in Gemini's words and in JSON Schema's.
    const MEMBERS: &[(&str, &str)] = &[
        (r#"{"type":"STRING"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"TYPE_UNSPECIFIED"}"#, "{}"),
        (r#"{"type":"NULL","nullable":true}"#, r#"{"type":"null"}"#),
        (r#"{"type":"INTEGER","format":"int64"}"#, r#"{"type":"integer","format":"int64"}"#),
        (r#"{"title":"T","description":"D"}"#, r#"{"title":"T","description":"D"}"#),
        (r#"{"type":"STRING","nullable":true}"#, r#"{"type":["string","null"]}"#),
        (r#"{"type":"STRING","nullable":false}"#, r#"{"type":"string"}"#),
        (
            r#"{"type":"STRING","nullable":true,"enum":["a","b"]}"#,
            r#"{"type":["string","null"],"enum":["a","b",null]}"#,
        ),
        (
            r#"{"type":"INTEGER","format":"enum","enum":["101","2x"]}"#,
            r#"{"type":"integer","format":"enum","enum":[101,"2x"]}"#,
        ),
        (r#"{"type":"STRING","enum":["101"]}"#, r#"{"type":"string","enum":["101"]}"#),
        (r#"{"anyOf":[{"type":"STRING"}],"nullable":true}"#, r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#),
        (
            r#"{"any_of":[{"type":"STRING","nullable":true}],"nullable":true}"#,
            r#"{"anyOf":[{"type":["string","null"]}]}"#,
        ),
        (
            r#"{"type":"ARRAY","items":{"type":"NUMBER"},"minItems":"1","max_items":3}"#,
            r#"{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3}"#,
        ),
        (r#"{"minLength":"1","maxLength":"2","pattern":"^a"}"#, r#"{"minLength":1,"maxLength":2,"pattern":"^a"}"#),
        (r#"{"minProperties":"1","max_properties":"2"}"#, r#"{"minProperties":1,"maxProperties":2}"#),
        (r#"{"minimum":"0.5","maximum":7}"#, r#"{"minimum":0.5,"maximum":7}"#),
        (r#"{"example":{"a":1}}"#, r#"{"examples":[{"a":1}]}"#),
        (r#"{"default":null,"format":null}"#, r#"{"default":null}"#),
        (r#"{"required":["a"]}"#, r#"{"required":["a"]}"#),
        (
            r#"{"properties":{"type":{"type":"STRING"},"nullable":{"type":"BOOLEAN"},"z":{}},"propertyOrdering":["z","type"]}"#,
            r#"{"properties":{"z":{},"type":{"type":"string"},"nullable":{"type":"boolean"}}}"#,
        ),
        (r#"{"additional_properties":{"type":"STRING"}}"#, r#"{"additionalProperties":{"type":"string"}}"#),
        (r#"{"additionalProperties":false}"#, r#"{"additionalProperties":false}"#),
        (
            r##"{"defs":{"P":{"type":"STRING"}},"items":{"ref":"#/defs/P"}}"##,
            r##"{"$defs":{"P":{"type":"string"}},"items":{"$ref":"#/$defs/P"}}"##,
        ),
        (r##"{"$ref":"#/$defs/P","nullable":true}"##, r##"{"anyOf":[{"$ref":"#/$defs/P"},{"type":"null"}]}"##),
        // What nobody understands is not lost.
        (r#"{"properties":{"a":{}},"propertyOrdering":["b"]}"#, r#"{"properties":{"a":{}},"propertyOrdering":["b"]}"#),
        (r#"{"property_ordering":"a"}"#, r#"{"propertyOrdering":"a"}"#),
        (r#"{"example":1,"examples":[2]}"#, r#"{"example":1,"examples":[2]}"#),
        (
            r#"{"nullable":"yes","minItems":"many","x-own":{"type":"A"}}"#,
            r#"{"nullable":"yes","minItems":"many","x-own":{"type":"A"}}"#,
        ),
    ];

    #[test]
    fn every_member_has_a_counterpart() {
        for (theirs, plain) in MEMBERS {
            assert_eq!(from_gemini(&Node::read(theirs).unwrap()), *plain, "{theirs}");
        }
    }
}
