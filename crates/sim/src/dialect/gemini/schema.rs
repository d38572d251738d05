//! Google's own schema, which is a part of OpenAPI's: any other keyword is an unknown name.

use super::super::check::{Checked, Place};
use crate::refusal::Refusal;

const WORDS: &str = "type nullable enum format description title default example items properties required \
    propertyOrdering anyOf minimum maximum minLength maxLength minItems maxItems minProperties maxProperties pattern \
    additionalProperties ref defs $ref $defs";
const TYPES: &str = "STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL TYPE_UNSPECIFIED";

pub(super) fn check(schema: &Place<'_>) -> Checked {
    schema.fields(WORDS)?;
    if let Some(kind) = schema.field("type") {
        let word = serde_json::Value::from(kind.text()?.to_uppercase());
        Place { value: &word, ..kind.clone() }.one_of(TYPES)?;
        if word == "ARRAY" && schema.field("items").is_none() {
            return Err(Refusal::bad(
                &schema.path,
                &format!("* GenerateContentRequest.{}.items: missing field.", schema.path),
            ));
        }
    }
    for word in schema.entries("enum")? {
        if !word.value.is_string() {
            return Err(word.wrong(&format!("(TYPE_STRING), {}", word.value)));
        }
    }
    let properties = schema.field("properties").and_then(|place| place.value.as_object());
    for name in schema.entries("required")? {
        if properties.is_none_or(|map| !map.contains_key(name.text().unwrap_or_default())) {
            let text = format!("* GenerateContentRequest.{}: property is not defined", name.path);
            return Err(Refusal::bad(&name.path, &text));
        }
    }
    if let Some(properties) = schema.field("properties") {
        for (key, value) in properties.value.as_object().into_iter().flatten() {
            check(&Place { path: format!("{}.{key}", properties.path), value, ..properties.clone() })?;
        }
    }
    for inner in schema.entries("anyOf")? {
        check(&inner)?;
    }
    schema.field("items").map_or(Ok(()), |items| check(&items))
}
