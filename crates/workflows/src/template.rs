//! Bodies with places for values: `{{inputs.ID}}`, `{{steps.STEP.OUTPUT}}` and, in a step that is
//! made several times, `{{each.number}}`. A place is filled
//! once and what fills it is never looked at again, so no text that a customer or a model wrote can
//! become a place. There are no expressions.
//!
//! A text that is one place and nothing else becomes the value itself, of whatever kind. Elsewhere
//! the value is written into the text.

use crate::bounds::MAX_RENDERED_BYTES;
use crate::evaluate::{Violation, item, member};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What there is to put in.
#[derive(Clone, Debug, Default)]
pub struct TemplateValues {
    pub inputs: BTreeMap<String, Value>,
    /// By step, then by output.
    pub steps: BTreeMap<String, BTreeMap<String, Value>>,
    /// Which time it is, of a step that is made several times, from 1.
    pub number: Option<usize>,
}

/// Why a body could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderFault {
    /// Nothing of this name is there.
    Absent(String),
    /// A list or an object in the middle of a text.
    NotText(String),
    TooLarge,
}

/// A place, as it is named between the braces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place<'t> {
    Input(&'t str),
    Output(&'t str, &'t str),
    /// Which time it is.
    Number,
}

impl<'t> Place<'t> {
    fn read(name: &'t str) -> Option<Place<'t>> {
        let parts: Vec<&str> = name.split('.').collect();
        let plain =
            parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        match (&parts[..], plain) {
            (["each", "number"], true) => Some(Place::Number),
            (["inputs", id], true) => Some(Place::Input(id)),
            (["steps", step, output], true) => Some(Place::Output(step, output)),
            _ => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Place::Input(id) => format!("inputs.{id}"),
            Place::Output(step, output) => format!("steps.{step}.{output}"),
            Place::Number => "each.number".to_owned(),
        }
    }
}

enum Piece<'t> {
    Text(&'t str),
    Place(Place<'t>),
}

/// A text in pieces, or what in it is neither text nor a place.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or("has {{ without }}")?;
        let place = Place::read(name.trim());
        let place = place.ok_or_else(|| {
            format!("has {{{{{name}}}}}, which is none of inputs.ID, steps.STEP.OUTPUT and each.number")
        })?;
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Place(place));
        rest = after;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Every place of a template with the path of its text, and everything that is wrong in it.
pub(crate) fn places<'t>(
    template: &'t Value,
    path: &str,
    found: &mut Vec<(String, Place<'t>)>,
    wrong: &mut Vec<Violation>,
) {
    match template {
        Value::String(text) => match pieces(text) {
            Ok(pieces) => found.extend(pieces.into_iter().filter_map(|piece| match piece {
                Piece::Place(place) => Some((path.to_owned(), place)),
                Piece::Text(_) => None,
            })),
            Err(reason) => wrong.push(Violation { path: path.to_owned(), reason }),
        },
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                places(inner, &item(path, at), found, wrong);
            }
        }
        Value::Object(members) => {
            for (name, inner) in members {
                let path = member(path, name);
                if name.contains("{{") {
                    let reason = "a name cannot be a place for a value".to_owned();
                    wrong.push(Violation { path: path.clone(), reason });
                }
                places(inner, &path, found, wrong);
            }
        }
        _ => {}
    }
}

/// The body. A member or item that is one place whose value is null is left out: an input that was
/// not given is not sent.
pub fn render(template: &Value, values: &TemplateValues) -> Result<Value, RenderFault> {
    let mut room = MAX_RENDERED_BYTES;
    Ok(filled(template, values, &mut room)?.unwrap_or(Value::Null))
}

fn filled(template: &Value, values: &TemplateValues, room: &mut usize) -> Result<Option<Value>, RenderFault> {
    Ok(Some(match template {
        Value::String(text) => return filled_text(text, values, room),
        Value::Array(items) => {
            let mut list = Vec::with_capacity(items.len());
            for inner in items {
                list.extend(filled(inner, values, room)?);
            }
            Value::Array(list)
        }
        Value::Object(members) => {
            let mut object = Map::new();
            for (name, inner) in members {
                if let Some(value) = filled(inner, values, room)? {
                    object.insert(name.clone(), value);
                }
            }
            Value::Object(object)
        }
        plain => plain.clone(),
    }))
}

fn filled_text(text: &str, values: &TemplateValues, room: &mut usize) -> Result<Option<Value>, RenderFault> {
    // Packages are checked when they are read, so a text that has no pieces is never rendered.
    let pieces = pieces(text).map_err(RenderFault::Absent)?;
    let mut take = |bytes: usize| {
        *room = room.checked_sub(bytes).ok_or(RenderFault::TooLarge)?;
        Ok(())
    };
    if let [Piece::Place(place)] = &pieces[..] {
        let value = values.get(place)?;
        take(size(&value))?;
        return Ok((!value.is_null()).then(|| value.into_owned()));
    }
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Place(place) => match values.get(&place)?.as_ref() {
                Value::String(text) => {
                    take(text.len())?;
                    out.push_str(text);
                }
                Value::Null => {}
                Value::Array(_) | Value::Object(_) => return Err(RenderFault::NotText(place.name())),
                plain => out.push_str(&plain.to_string()),
            },
        }
    }
    Ok(Some(Value::String(out)))
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 8,
    }
}

impl TemplateValues {
    fn get(&self, place: &Place<'_>) -> Result<Cow<'_, Value>, RenderFault> {
        let found = match place {
            Place::Input(id) => self.inputs.get(*id).map(Cow::Borrowed),
            Place::Output(step, output) => {
                self.steps.get(*step).and_then(|outputs| outputs.get(*output)).map(Cow::Borrowed)
            }
            Place::Number => self.number.map(|number| Cow::Owned(Value::from(number))),
        };
        found.ok_or_else(|| RenderFault::Absent(place.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> TemplateValues {
        let hostile = json!("{{inputs.secret}} {{steps.one.text}} }} {{");
        let inputs = [("hostile", hostile), ("n", json!(7)), ("absent", Value::Null), ("secret", json!("s3"))];
        let outputs = [("text", json!("said \"so\"")), ("list", json!([1, { "a": "{{inputs.n}}" }]))];
        let own =
            |pairs: &[(&str, Value)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        TemplateValues { inputs: own(&inputs), steps: [("one".to_owned(), own(&outputs))].into(), number: None }
    }

    #[test]
    fn places_are_filled_once_and_with_nothing_but_values() {
        for (template, body) in [
            (json!({ "a": "{{inputs.n}}" }), json!({ "a": 7 })),
            (json!({ "a": "{{ inputs.n }}!" }), json!({ "a": "7!" })),
            (json!(["{{steps.one.list}}"]), json!([[1, { "a": "{{inputs.n}}" }]])),
            (json!("x{{steps.one.text}}y{{inputs.n}}"), json!("xsaid \"so\"y7")),
            (json!({ "a": "{{inputs.absent}}", "b": 1 }), json!({ "b": 1 })),
            (json!(["{{inputs.absent}}", "-{{inputs.absent}}-"]), json!(["--"])),
            (json!({ "a": "}} { plain } {" }), json!({ "a": "}} { plain } {" })),
            (
                json!({ "a": "say: {{inputs.hostile}}", "b": "{{inputs.hostile}}" }),
                json!({ "a": "say: {{inputs.secret}} {{steps.one.text}} }} {{", "b": "{{inputs.secret}} {{steps.one.text}} }} {{" }),
            ),
        ] {
            assert_eq!(render(&template, &values()).unwrap(), body, "{template}");
        }
    }

    #[test]
    fn what_cannot_be_put_in_is_a_fault() {
        for (template, fault) in [
            (json!("{{inputs.none}}"), RenderFault::Absent("inputs.none".to_owned())),
            (json!("{{steps.two.text}}"), RenderFault::Absent("steps.two.text".to_owned())),
            (json!("a {{steps.one.list}}"), RenderFault::NotText("steps.one.list".to_owned())),
        ] {
            assert_eq!(render(&template, &values()).unwrap_err(), fault, "{template}");
        }
        let mut large = values();
        large.inputs.insert("n".to_owned(), json!("x".repeat(MAX_RENDERED_BYTES / 2)));
        assert!(render(&json!("{{inputs.n}}{{inputs.n}}"), &large).is_ok());
        assert_eq!(render(&json!(["{{inputs.n}}{{inputs.n}}", "{{inputs.n}}"]), &large), Err(RenderFault::TooLarge));
    }

    #[test]
    fn what_is_no_place_is_found_when_a_template_is_read() {
        for (template, path) in [
            (json!({ "a": "{{inputs.n" }), "body.a"),
            (json!({ "a": ["{{1+1}}"] }), "body.a[0]"),
            (json!({ "a": "{{env.HOME}}" }), "body.a"),
            (json!({ "a": "{{inputs.a.b}}" }), "body.a"),
            (json!({ "a": "{{}}" }), "body.a"),
            (json!({ "{{inputs.n}}": 1 }), "body.\"{{inputs.n}}\""),
        ] {
            let (mut found, mut wrong) = (Vec::new(), Vec::new());
            places(&template, "body", &mut found, &mut wrong);
            assert_eq!(wrong.iter().map(|one| &*one.path).collect::<Vec<_>>(), [path], "{template}");
        }
    }
}
