//! Google's own schema, which is a part of OpenAPI's: any other keyword is an unknown name.

use super::super::check::{Checked, Place};

const WORDS: &str = "type nullable enum format description title default example items properties required \
    propertyOrdering anyOf minimum maximum minLength maxLength minItems maxItems minProperties maxProperties pattern \
    additionalProperties ref defs $ref $defs";
const TYPES: &str = "STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL TYPE_UNSPECIFIED";

pub(super) fn check(schema: &Place<'_>) -> Checked {
    schema.fields(WORDS)?;
    if let Some(kind) = schema.field("type") {
        let word = serde_json::Value::from(kind.text()?.to_uppercase());
        Place { value: &word, ..kind.clone() }.one_of(TYPES)?;
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
