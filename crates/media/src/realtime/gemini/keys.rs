//! Members by either spelling: `turnComplete` as the interface is written down, `turn_complete` as
//! Google's own Python client sends it.

use serde_json::{Map, Value};

/// A member of an object, null if there is none.
pub(super) fn get<'a>(object: &'a Value, camel: &str) -> &'a Value {
    match &object[camel] {
        Value::Null => &object[snake(camel).as_str()],
        value => value,
    }
}

/// Down a path of members.
pub(super) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, name| get(value, name))
}

pub(super) fn snake(camel: &str) -> String {
    let mut out = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

pub(super) fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.chars() {
        if letter == '_' {
            upper = true;
        } else {
            out.push(if upper { letter.to_ascii_uppercase() } else { letter });
            upper = false;
        }
    }
    out
}

/// The first member that is not in a list of names, by its camel name. Null members count as left
/// out.
pub(super) fn unknown(object: &Value, known: &[&str]) -> Option<String> {
    let members = object.as_object().into_iter().flatten();
    let mut set = members.filter(|(_, value)| !value.is_null()).map(|(name, _)| camel(name));
    set.find(|name| !known.contains(&name.as_str()))
}

/// A member set in camel spelling, whichever one was there before.
pub(super) fn set(object: &mut Map<String, Value>, name: &str, value: Value) {
    object.remove(&snake(name));
    object.insert(name.to_string(), value);
}
