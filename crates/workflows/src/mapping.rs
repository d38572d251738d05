//! The body of a record that is one operation: each input in the field it is mapped to.

use crate::record::WorkflowRecord;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl WorkflowRecord {
    /// The body. An input that was not given is not sent.
    pub fn mapped_body(&self, inputs: &BTreeMap<String, Value>, model: &str) -> Value {
        let mut body = Map::new();
        body.insert("model".to_owned(), Value::from(model));
        for (id, field) in &self.runtime_binding.request_field_map {
            if let (Some(value), Some(field)) = (inputs.get(id).filter(|value| !value.is_null()), field.as_str()) {
                set(&mut body, field, value.clone());
            }
        }
        Value::Object(body)
    }
}

/// Puts a value at a path of names. What stands in the way of a deeper name gives way to it.
fn set(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}
