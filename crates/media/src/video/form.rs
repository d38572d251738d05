//! From the flat names of a form to the tree that JSON has: `metadata[ratio]`, `images[]`,
//! `metadata[content][][type]`.
//!
//! Lists of objects are the hard part, since `[]` does not say which entry is meant. Some SDKs
//! write entry after entry, others gather equal names: all types, then all links, then all roles.
//! Both are read ([`entries`]); what could be meant in two ways is refused. Numbers (`[0]`) say it
//! outright.

mod entries;

use super::{PictureUpload, VideoRefusal};
use serde_json::{Map, Value};
use tollgate_wire::multipart::FormPart;

/// Nesting deeper than this is nobody's request.
const DEPTH: usize = 8;

/// One step of a name after its first word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Name(String),
    At(usize),
    /// `[]`
    Next,
}

/// A field with its name taken apart.
#[derive(Clone, Debug)]
struct Field {
    /// As it was sent.
    name: String,
    first: String,
    path: Vec<Step>,
    text: String,
}

impl Field {
    fn misplaced(&self) -> VideoRefusal {
        VideoRefusal::invalid(&self.name, format!("`{}` does not fit the fields sent before it.", self.name))
    }
}

/// The fields of a form as a tree of text, and the file of `input_reference`.
pub(super) fn gather(parts: Vec<FormPart>) -> Result<(Map<String, Value>, Option<PictureUpload>), VideoRefusal> {
    let mut fields = Vec::new();
    let mut file = None;
    for part in parts {
        if part.file_name.is_some() {
            let upload = PictureUpload::read(part)?;
            if file.replace(upload).is_some() {
                return Err(VideoRefusal::invalid("input_reference", "Only one file is accepted."));
            }
            continue;
        }
        let name = part.name;
        let Ok(text) = String::from_utf8(part.body.to_vec()) else {
            return Err(VideoRefusal::invalid(&name, format!("`{name}` is not text.")));
        };
        let parsed = split(&name, text);
        fields.push(parsed.ok_or_else(|| VideoRefusal::invalid(&name, format!("`{name}` is not a field name.")))?);
    }
    entries::number(&mut fields)?;
    let mut tree = Map::new();
    for field in &fields {
        insert(&mut tree, &field.first, &field.path, field)?;
    }
    Ok((tree, file))
}

/// `a[b][]` → `a`, then `b`, then next.
fn split(name: &str, text: String) -> Option<Field> {
    let (first, mut rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut path = Vec::new();
    while !rest.is_empty() {
        let (step, after) = rest.strip_prefix('[')?.split_once(']')?;
        path.push(match step {
            "" => Step::Next,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => Step::At(digits.parse().ok()?),
            name => Step::Name(name.to_owned()),
        });
        rest = after;
    }
    let fits = !first.is_empty() && path.len() < DEPTH;
    fits.then(|| Field { name: name.to_owned(), first: first.to_owned(), path, text })
}

fn insert(into: &mut Map<String, Value>, key: &str, path: &[Step], field: &Field) -> Result<(), VideoRefusal> {
    let empty = match path.first() {
        None => {
            let twice = into.insert(key.to_owned(), Value::String(field.text.clone())).is_some();
            let message = || VideoRefusal::invalid(&field.name, format!("`{}` was sent twice.", field.name));
            return if twice { Err(message()) } else { Ok(()) };
        }
        Some(Step::Name(_)) => Value::Object(Map::new()),
        Some(Step::At(_) | Step::Next) => Value::Array(Vec::new()),
    };
    let child = into.entry(key).or_insert(empty);
    descend(child, path, field)
}

/// `path` is not empty, and its first step leads into `value`.
fn descend(value: &mut Value, path: &[Step], field: &Field) -> Result<(), VideoRefusal> {
    match (value, path) {
        (Value::Object(map), [Step::Name(name), rest @ ..]) => insert(map, name, rest, field),
        (Value::Array(items), [Step::Next]) => {
            items.push(Value::String(field.text.clone()));
            Ok(())
        }
        (Value::Array(items), [Step::At(place)]) if *place == items.len() => {
            items.push(Value::String(field.text.clone()));
            Ok(())
        }
        (Value::Array(items), [Step::At(place), rest @ ..]) if *place <= items.len() && !rest.is_empty() => {
            if *place == items.len() {
                items.push(if matches!(rest[0], Step::Name(_)) {
                    Value::Object(Map::new())
                } else {
                    Value::Array(vec![])
                });
            }
            descend(&mut items[*place], rest, field)
        }
        _ => Err(field.misplaced()),
    }
}
