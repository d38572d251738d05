//! The inputs of a run, held to what the record says about them.

use crate::bounds::MAX_INPUT_CHARS;
use crate::evaluate::{Violation, kind_of, member};
use crate::record::{InputKind, WorkflowInput, WorkflowRecord};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// All inputs of a run, defaults put in; or everything that is wrong with what was given. An input
/// that was not given and has no default is null.
pub fn checked_inputs(
    record: &WorkflowRecord,
    given: &Map<String, Value>,
) -> Result<BTreeMap<String, Value>, Vec<Violation>> {
    let file = "must be the id of an uploaded file or an address with https";
    checked(record, given, &|text| names_a_file(text).then_some(()).ok_or(file))
}

/// What is wrong with the inputs of a fixture, whose assets are files beside it.
pub(crate) fn checked_fixture(
    record: &WorkflowRecord,
    given: &Map<String, Value>,
    beside: &[String],
) -> Vec<Violation> {
    let there =
        |text: &str| beside.iter().any(|name| name == text).then_some(()).ok_or("must be a file beside the fixture");
    checked(record, given, &there).err().unwrap_or_default()
}

/// What a text says about a file, or why it says nothing.
type NamesAFile<'f> = &'f dyn Fn(&str) -> Result<(), &'static str>;

fn checked(
    record: &WorkflowRecord,
    given: &Map<String, Value>,
    names_a_file: NamesAFile<'_>,
) -> Result<BTreeMap<String, Value>, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut add = |id: &str, reason: String| wrong.push(Violation { path: member("inputs", id), reason });
    for id in given.keys().filter(|id| record.input(id).is_none()) {
        add(id, "is not an input of this workflow".to_owned());
    }
    let mut inputs = BTreeMap::new();
    for input in &record.inputs {
        let value = given.get(&input.id).filter(|value| !value.is_null());
        match value {
            None if input.required => add(&input.id, "is required".to_owned()),
            None => {
                inputs.insert(input.id.clone(), input.default.clone());
            }
            Some(value) => match fits(input, value, names_a_file) {
                Ok(()) => {
                    inputs.insert(input.id.clone(), value.clone());
                }
                Err(reason) => add(&input.id, reason),
            },
        }
    }
    if wrong.is_empty() { Ok(inputs) } else { Err(wrong) }
}

fn fits(input: &WorkflowInput, value: &Value, names_a_file: NamesAFile<'_>) -> Result<(), String> {
    if !input.kind.takes(value) {
        return Err(format!("must be {}, not {}", input.kind.in_words(), kind_of(value)));
    }
    if !input.allowed_values.is_empty() && !input.allowed_values.contains(value) {
        let values: Vec<String> = input.allowed_values.iter().map(Value::to_string).collect();
        return Err(format!("must be one of {}", values.join(", ")));
    }
    match value.as_str() {
        Some(text) if text.chars().count() > MAX_INPUT_CHARS => {
            Err(format!("must have at most {MAX_INPUT_CHARS} characters"))
        }
        Some(text) if input.kind == InputKind::Asset => names_a_file(text).map_err(str::to_owned),
        _ => Ok(()),
    }
}

/// The id of an upload, or a link. Whether the link may be opened is judged where it is opened.
fn names_a_file(text: &str) -> bool {
    let id = text.strip_prefix("asset_").is_some_and(|id| {
        (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    id || text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}
