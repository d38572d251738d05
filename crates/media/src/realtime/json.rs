//! Small things that the forms share: an event's type in its place, fields that move.

use serde_json::{Map, Value, json};

use super::form::{LiveFault, LiveFrame};
use super::scan::event_type;

/// The same event under another type; nothing else is read or changed.
pub(super) fn with_type(event: &str, kind: &str) -> String {
    let Some(old) = event_type(event) else { return event.to_string() };
    let start = old.as_ptr() as usize - event.as_ptr() as usize;
    let mut out = String::with_capacity(event.len() + kind.len());
    out.push_str(&event[..start]);
    out.push_str(kind);
    out.push_str(&event[start + old.len()..]);
    out
}

pub(super) fn parse(event: &str) -> Result<Value, LiveFault> {
    match serde_json::from_str(event) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(LiveFault("the frame is not a JSON object".to_string())),
    }
}

/// The text of a frame where only text is spoken.
pub(super) fn text(frame: LiveFrame) -> Result<String, LiveFault> {
    match frame {
        LiveFrame::Text(text) => Ok(text),
        LiveFrame::Binary(_) => Err(LiveFault("binary frames are not part of this interface".to_string())),
    }
}

/// Takes a field out of an object and puts it where `path` says, below objects that are made on
/// the way.
pub(super) fn moved(object: &mut Map<String, Value>, from: &str, path: &[&str]) {
    if let Some(value) = object.remove(from) {
        put(object, path, value);
    }
}

pub(super) fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((last, above)) = path.split_last() else { return };
    let mut place = object;
    for name in above {
        let inner = place.entry((*name).to_string()).or_insert_with(|| json!({}));
        if !inner.is_object() {
            *inner = json!({});
        }
        let Some(next) = inner.as_object_mut() else { return };
        place = next;
    }
    place.insert((*last).to_string(), value);
}

/// Objects field by field, everything else whole; as a session takes over an update.
pub(super) fn merge(into: &mut Value, change: &Value) {
    match (into.as_object_mut(), change.as_object()) {
        (Some(into), Some(change)) => {
            for (name, value) in change {
                merge(into.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        _ => *into = change.clone(),
    }
}

/// `session.updated` says what could not be done, in a field that clients do not know and pass by.
pub(super) fn warn(session: &mut Value, warnings: &mut Vec<String>) {
    if !warnings.is_empty() {
        session["warnings"] = json!(std::mem::take(warnings));
    }
}
