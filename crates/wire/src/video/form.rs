//! From the flat names of a form to the tree that JSON has: `metadata[ratio]`, `images[]`, `metadata[content][][type]`.
//!
//! `[]` appends. Inside `[]` a name seen before begins the next entry, since that is all a flat list can say; `[0]` says it
//! outright.

use super::{Refusal, Upload};
use crate::multipart::Part;
use serde_json::{Map, Value};

/// Nesting deeper than this is nobody's request.
const DEPTH: usize = 8;

/// The fields of a form as a tree of text, and the file of `input_reference`.
pub(super) fn gather(parts: Vec<Part>) -> Result<(Map<String, Value>, Option<Upload>), Refusal> {
    let mut fields = Map::new();
    let mut file = None;
    for part in parts {
        if part.file_name.is_some() {
            let upload = Upload::read(part)?;
            if file.replace(upload).is_some() {
                return Err(Refusal::invalid("input_reference", "Only one file is accepted."));
            }
            continue;
        }
        let name = part.name;
        let Ok(text) = String::from_utf8(part.body.to_vec()) else {
            return Err(Refusal::invalid(&name, format!("`{name}` is not text.")));
        };
        let path = split(&name).ok_or_else(|| Refusal::invalid(&name, format!("`{name}` is not a field name.")))?;
        insert(&mut fields, path[0], &path[1..], text, &name)?;
    }
    Ok((fields, file))
}

/// `a[b][]` → `a`, `b`, ``.
fn split(name: &str) -> Option<Vec<&str>> {
    let (first, mut rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut path = vec![first];
    while !rest.is_empty() {
        let (step, after) = rest.strip_prefix('[')?.split_once(']')?;
        path.push(step);
        rest = after;
    }
    (!first.is_empty() && path.len() <= DEPTH).then_some(path)
}

fn insert(into: &mut Map<String, Value>, key: &str, path: &[&str], text: String, name: &str) -> Result<(), Refusal> {
    let Some((&next, _)) = path.split_first() else {
        return match into.insert(key.to_owned(), Value::String(text)) {
            None => Ok(()),
            Some(_) => Err(Refusal::invalid(name, format!("`{name}` was sent twice."))),
        };
    };
    let list = next.is_empty() || next.bytes().all(|b| b.is_ascii_digit());
    let empty = if list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    let child = into.entry(key).or_insert(empty);
    match child {
        Value::Array(items) if list => append(items, path, text, name),
        Value::Object(map) if !list => insert(map, next, &path[1..], text, name),
        _ => Err(Refusal::invalid(name, format!("`{name}` does not fit the fields sent before it."))),
    }
}

/// `path` begins with the step into the list: empty, or a place.
fn append(items: &mut Vec<Value>, path: &[&str], text: String, name: &str) -> Result<(), Refusal> {
    let misplaced = || Refusal::invalid(name, format!("`{name}` does not fit the fields sent before it."));
    let Some((&key, deeper)) = path[1..].split_first() else {
        items.push(Value::String(text));
        return Ok(());
    };
    let begins = match path[0].parse::<usize>() {
        Ok(place) if place > items.len() => return Err(misplaced()),
        Ok(place) => place == items.len(),
        Err(_) => items.last().is_none_or(|last| holds(last, &path[1..])),
    };
    if begins {
        items.push(Value::Object(Map::new()));
    }
    let place = path[0].parse::<usize>().unwrap_or(items.len() - 1);
    match items.get_mut(place) {
        Some(Value::Object(map)) if !key.is_empty() => insert(map, key, deeper, text, name),
        _ => Err(misplaced()),
    }
}

/// Whether an entry already has a value at this path.
fn holds(entry: &Value, path: &[&str]) -> bool {
    let found = path.iter().try_fold(entry, |at, step| at.get(step));
    found.is_some_and(|value| !value.is_array())
}
