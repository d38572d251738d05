//! Reading a JSON request as strictly as a provider does.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

pub(super) type Fields = Map<String, Value>;

/// Refuses a member that is not in the list.
pub(super) fn known(fields: &Fields, names: &str) -> Result<(), Refusal> {
    match fields.keys().find(|key| !names.split(' ').any(|name| name == key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Refusal::bad(key, &format!("Unrecognized request argument supplied: {key}"))),
    }
}

/// A string that is not empty.
pub(super) fn text(value: &Value, place: &str) -> Result<String, Refusal> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_string).ok_or_else(|| Refusal::bad(place, &format!("'{place}': expected a non-empty string.")))
}

/// A list of strings, of so many at most.
pub(super) fn texts(value: &Value, place: &str, most: usize) -> Result<Vec<String>, Refusal> {
    let list = value.as_array().filter(|list| !list.is_empty() && list.len() <= most);
    let list = list.ok_or_else(|| Refusal::bad(place, &format!("'{place}': expected a list of 1 to {most} items.")))?;
    list.iter().enumerate().map(|(at, item)| text(item, &format!("{place}[{at}]"))).collect()
}

/// A whole number of at least one, if it is there.
pub(super) fn count(fields: &Fields, name: &str) -> Result<Option<u64>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|number| *number > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::bad(name, &format!("'{name}': expected an integer of at least 1."))),
        },
    }
}
