//! The body of a record that is one operation, as a template: each input in the field it is mapped
//! to.

use crate::record::WorkflowRecord;
use serde_json::{Map, Value};

impl WorkflowRecord {
    /// The body, with a place for each input. One that was not given is not sent.
    pub fn mapped_body(&self) -> Value {
        let mut body = Map::new();
        for (id, field) in &self.runtime_binding.request_field_map {
            if let Some(field) = field.as_str() {
                set(&mut body, field, Value::from(format!("{{{{inputs.{id}}}}}")));
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
