//! Nothing of a request is lost in silence. What the hub has no place for, and what stands where
//! something else was expected, reaches a provider of another dialect inside a value that is passed
//! on as a whole, or is reported by its name, or is refused.

mod forms;

use super::{CheckedRequest, Path};
use crate::hub::Target;
use bytes::Bytes;
use std::fs;
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Node, NodeKind, Object};

/// A name and a value that no dialect knows.
const UNKNOWN: &str = "x_unknown";
const VALUE: &str = r#"{"a":[1,null,"\u2028"]}"#;

struct Golden {
    name: String,
    dialect: Dialect,
    original: String,
}

/// Every original of the matrix, and [`forms::FORMS`].
fn goldens() -> Vec<Golden> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/requests");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (words, rest) = text.split_once("=== original\n").unwrap();
        let dialect = match words.lines().next().unwrap().strip_prefix("from: ").unwrap() {
            "chat" => Dialect::Chat,
            "anthropic" => Dialect::Anthropic,
            "responses" => Dialect::Responses,
            "gemini" => Dialect::Gemini,
            other => panic!("no dialect {other}"),
        };
        let original = rest.split_once("=== result\n").unwrap().0.to_owned();
        Golden { name: path.file_stem().unwrap().to_string_lossy().into_owned(), dialect, original }
    };
    let mut goldens: Vec<Golden> = fs::read_dir(folder).unwrap().map(read).collect();
    goldens.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(goldens.len() >= 50, "{}", goldens.len());
    let named = |(at, (dialect, text)): (usize, &(Dialect, &str))| Golden {
        name: format!("{dialect:?} form {at}"),
        dialect: *dialect,
        original: (*text).to_owned(),
    };
    goldens.extend(forms::FORMS.iter().enumerate().map(named));
    goldens
}

/// Writes a value again with the unknown member in the objects that `here` picks by their number.
fn with_unknown(node: &Node<'_>, at: &mut usize, here: &impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    match &node.kind {
        NodeKind::List(items) => {
            let mut list = Array::begin(out);
            for item in items {
                with_unknown(item, at, here, list.item());
            }
            list.end();
        }
        NodeKind::Map(members) => {
            let mut object = Object::begin(out);
            let number = *at;
            *at += 1;
            for (name, value) in members {
                with_unknown(value, at, here, object.key(name));
            }
            if here(number) {
                object.raw(UNKNOWN, VALUE);
            }
            object.end();
        }
        _ => out.extend_from_slice(node.raw.as_bytes()),
    }
}

fn marked(text: &str, here: impl Fn(usize) -> bool) -> (String, usize) {
    let mut out = Vec::new();
    let mut objects = 0;
    with_unknown(&Node::read(text).unwrap(), &mut objects, &here, &mut out);
    (String::from_utf8(out).unwrap(), objects)
}

/// The names on the way to an object, and the kinds of the objects on it.
fn way_to(node: &Node<'_>, at: &mut usize, wanted: usize, way: &mut Vec<String>) -> bool {
    let depth = way.len();
    match &node.kind {
        NodeKind::List(items) => items.iter().any(|item| way_to(item, at, wanted, way)),
        NodeKind::Map(members) => {
            let number = *at;
            *at += 1;
            way.extend(node.text_of("type").map(|kind| kind.to_string()));
            if number == wanted {
                return true;
            }
            for (name, value) in members {
                way.push(name.to_string());
                if way_to(value, at, wanted, way) {
                    return true;
                }
                way.pop();
            }
            way.truncate(depth);
            false
        }
        _ => false,
    }
}

/// Where this reaches a provider of another dialect neither by itself nor by its name, nor is
/// reported: by the names on the way to it.
fn silent(golden: &Golden, text: &str, mark: &str, way: &[String]) -> String {
    let path = Path { model: "gemini-x", stream: false };
    let path = (golden.dialect == Dialect::Gemini).then_some(path);
    let Ok(request) = CheckedRequest::read(golden.dialect, Bytes::copy_from_slice(text.as_bytes()), path) else {
        return String::new();
    };
    let reported = |field: &String| {
        let last = field.rsplit('.').next().unwrap_or_default();
        // Gemini's name for what is reported as metadata; and a tool that may not be called is left
        // out as a whole.
        let other = match field.as_str() {
            "metadata" => way.iter().any(|name| name == "labels"),
            "tool_choice.allowed_tools" => way.first().is_some_and(|name| name == "tools"),
            whole if whole.starts_with("tools.") => way.first().is_some_and(|name| name == "tools"),
            _ => false,
        };
        other || field == "?" || last == mark || way.iter().any(|name| name == last)
    };
    let mut silent = String::new();
    for to in Dialect::ALL.into_iter().filter(|to| *to != golden.dialect) {
        let Ok(sent) = request.upstream_body(&Target::new(to, "m")) else { continue };
        if !sent.dropped.fields().iter().any(reported) && !String::from_utf8_lossy(&sent.body).contains(mark) {
            silent.push_str(&format!("{} to {to:?}: {}; reported {}\n", golden.name, way.join("."), sent.dropped));
        }
    }
    silent
}

/// What of a request has no place in the hub is refused, reported, or reaches the provider inside
/// something that is passed on as a whole (a schema, arguments, the answer of a tool). Nothing is
/// lost in silence.
#[test]
fn unknown_members_are_reported() {
    let mut lost = String::new();
    for golden in goldens() {
        let (_, objects) = marked(&golden.original, |_| false);
        for one in 0..objects {
            let (text, _) = marked(&golden.original, |at| at == one);
            let mut way = Vec::new();
            way_to(&Node::read(&golden.original).unwrap(), &mut 0, one, &mut way);
            lost.push_str(&silent(&golden, &text, UNKNOWN, &way));
        }
    }
    assert!(lost.is_empty(), "{lost}");
}

/// Writes a value again with one of its values, by its number, exchanged for another.
fn exchanged(node: &Node<'_>, at: &mut usize, here: usize, other: &str, out: &mut Vec<u8>) {
    let number = *at;
    *at += 1;
    match &node.kind {
        _ if number == here => out.extend_from_slice(other.as_bytes()),
        NodeKind::List(items) => {
            let mut list = Array::begin(out);
            for item in items {
                exchanged(item, at, here, other, list.item());
            }
            list.end();
        }
        NodeKind::Map(members) => {
            let mut object = Object::begin(out);
            for (name, value) in members {
                exchanged(value, at, here, other, object.key(name));
            }
            object.end();
        }
        _ => out.extend_from_slice(node.raw.as_bytes()),
    }
}

/// Schemas are rewritten for providers that take only part of the language; the others are the
/// gateway's own to see to.
const SEEN_TO: &[&str] = &[
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "response_schema",
    "include",
    "store",
    "stream_options",
    "model",
];

/// A value of an unexpected kind at a place that we know is reported like a member that we do
/// not know.
#[test]
fn values_of_another_kind_are_reported() {
    let mut lost = String::new();
    for golden in goldens() {
        let node = Node::read(&golden.original).unwrap();
        let mut values = 0;
        exchanged(&node, &mut values, usize::MAX, "", &mut Vec::new());
        for here in 1..values {
            let mut out = Vec::new();
            exchanged(&node, &mut 0, here, r#"{"x_odd":1}"#, &mut out);
            let text = String::from_utf8(out).unwrap();
            let mut way = Vec::new();
            way_to_odd(&Node::read(&text).unwrap(), &mut way);
            if !way.iter().any(|name| SEEN_TO.contains(&name.as_str())) {
                lost.push_str(&silent(&golden, &text, "x_odd", &way));
            }
        }
    }
    assert!(lost.is_empty(), "{lost}");
}

fn way_to_odd(node: &Node<'_>, way: &mut Vec<String>) -> bool {
    let depth = way.len();
    way.extend(node.text_of("type").map(|kind| kind.to_string()));
    for (name, value) in node.members() {
        way.push(name.to_string());
        if name == "x_odd" || way_to_odd(value, way) {
            return true;
        }
        way.pop();
    }
    way.truncate(depth);
    node.items().iter().any(|item| way_to_odd(item, way))
}
