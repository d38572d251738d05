//! Which JSON Schemas OpenAI takes with `strict: true`: it refuses a call with any other.

use tollgate_wire::json::{Node, NodeKind};

/// Keywords with a value that is not looked into.
const PLAIN: &[&str] = &[
    "$schema",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Whether a schema can be sent with `strict: true`: the root is an object, every object is closed
/// and requires all of its properties, and no keyword is one that strict schemas do not have.
pub(crate) fn fits_strict(raw: &str) -> bool {
    Node::read(raw).is_ok_and(|node| node.str_of("type") == "object" && node.get("anyOf").is_none() && fits(&node))
}

fn fits(node: &Node<'_>) -> bool {
    let typed = ["type", "anyOf", "$ref", "enum", "const"].iter().any(|name| node.get(name).is_some());
    let object = is_type(node, "object") || node.get("properties").is_some();
    typed
        && (!object || is_closed(node))
        && (!is_type(node, "array") || node.get("items").is_some())
        && node.members().iter().all(|(name, value)| keyword(name, value))
}

fn keyword(name: &str, value: &Node<'_>) -> bool {
    match name {
        "properties" | "$defs" | "definitions" => value.members().iter().all(|(_, schema)| fits(schema)),
        "items" => fits(value),
        "anyOf" => !value.items().is_empty() && value.items().iter().all(fits),
        "format" => value.text().is_some_and(|format| FORMATS.contains(&format.as_ref())),
        "additionalProperties" => matches!(value.kind, NodeKind::Bool(false)),
        other => PLAIN.contains(&other),
    }
}

/// Nothing beside its properties, and none of them optional.
fn is_closed(node: &Node<'_>) -> bool {
    let required = node.get("required").map_or(&[][..], Node::items);
    let is_required = |name: &str| required.iter().any(|one| one.text().is_some_and(|one| one == name));
    let properties = node.get("properties").map_or(&[][..], |properties| properties.members());
    node.get("additionalProperties").is_some() && properties.iter().all(|(name, _)| is_required(name))
}

fn is_type(node: &Node<'_>, word: &str) -> bool {
    let is = |one: &Node<'_>| one.text().is_some_and(|one| one == word);
    node.get("type").is_some_and(|types| is(types) || types.items().iter().any(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_closed_objects_without_optional_properties_are_strict() {
        for fit in [
            r#"{"type":"object","properties":{},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":["string","null"]},"type":{"enum":[1]}},"required":["type","a"],"additionalProperties":false}"#,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"array","items":{"type":"string","format":"date"}}}}"##,
        ] {
            assert!(fits_strict(fit), "{fit}");
        }
        let inside = |schema: &str| {
            format!(
                r#"{{"type":"object","properties":{{"a":{schema}}},"required":["a"],"additionalProperties":false}}"#
            )
        };
        for loose in [
            "{}",
            "true",
            r#"{"type":"object"}"#,
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":true}"#,
            &inside("{}"),
            &inside(r#"{"type":"array"}"#),
            &inside(r#"{"type":"string","minLength":1}"#),
            &inside(r#"{"type":"string","format":"uri"}"#),
            &inside(r#"{"oneOf":[{"type":"string"}],"type":"string"}"#),
            &inside(r#"{"type":["object","null"]}"#),
            &inside(
                r#"{"anyOf":[{"type":"string"},{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}]}"#,
            ),
        ] {
            assert!(!fits_strict(loose), "{loose}");
        }
        assert!(fits_strict(&inside(r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#)));
    }
}
