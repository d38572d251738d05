//! The fields of an operator's request: what each must be, said once for the check and for the
//! description.

use super::wrong;
use crate::endpoints::openapi::shapes::named;
use crate::refusal::Refusal;
use serde_json::{Map, Value, json};
use tollgate_wire::error::Code;

/// One field of a request, in its path, its query or its body.
#[derive(Clone, Copy)]
pub struct VerbField {
    pub name: &'static str,
    pub kind: FieldKind,
    pub need: FieldNeed,
    pub about: &'static str,
}

/// Whether a field can be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FieldNeed {
    Must,
    May,
    /// It can be left out, and `null` takes away what there is.
    MayBeNull,
}

/// What a field is.
#[derive(Clone, Copy)]
pub enum FieldKind {
    /// One to so many characters, none of them a control character: it stands in logs.
    Text(usize),
    /// An identifier that begins so.
    Id(&'static str),
    Number(i64, i64),
    Flag,
    /// A list of texts.
    Names,
    Word(&'static [&'static str]),
    /// An object that is described under this name; whoever takes it reads it.
    Shape(&'static str),
}

/// A time in milliseconds since 1970, up to the end of the year 9999.
pub const TIME: FieldKind = FieldKind::Number(1, 253_402_300_799_999);

/// The most names in a list, and characters of a name.
const MOST_NAMES: usize = 1_000;
const LONGEST_NAME: usize = 200;

pub const fn must(name: &'static str, kind: FieldKind, about: &'static str) -> VerbField {
    VerbField { name, kind, need: FieldNeed::Must, about }
}

pub const fn may(name: &'static str, kind: FieldKind, about: &'static str) -> VerbField {
    VerbField { name, kind, need: FieldNeed::May, about }
}

pub const fn may_be_null(name: &'static str, kind: FieldKind, about: &'static str) -> VerbField {
    VerbField { name, kind, need: FieldNeed::MayBeNull, about }
}

impl FieldKind {
    pub fn schema(self) -> Value {
        let text = |most: usize| json!({ "type": "string", "minLength": 1, "maxLength": most });
        match self {
            FieldKind::Text(most) => text(most),
            FieldKind::Id(prefix) => {
                json!({ "type": "string", "pattern": format!("^{prefix}[0-7][0-9a-hjkmnp-tv-z]{{25}}$") })
            }
            FieldKind::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            FieldKind::Flag => json!({ "type": "boolean" }),
            FieldKind::Names => {
                json!({ "type": "array", "minItems": 1, "maxItems": MOST_NAMES, "items": text(LONGEST_NAME) })
            }
            FieldKind::Word(words) => json!({ "enum": words }),
            FieldKind::Shape(name) => named(name),
        }
    }

    fn takes(self, value: &Value) -> bool {
        let text = |value: &Value, most: usize| {
            value.as_str().is_some_and(|text| {
                (1..=most).contains(&text.chars().count())
                    && !text.trim().is_empty()
                    && !text.chars().any(char::is_control)
            })
        };
        match self {
            FieldKind::Text(most) => text(value, most),
            // Whether it is one is known when it is read as what it names.
            FieldKind::Id(_) => value.is_string(),
            FieldKind::Number(least, most) => value.as_i64().is_some_and(|number| (least..=most).contains(&number)),
            FieldKind::Flag => value.is_boolean(),
            FieldKind::Names => value.as_array().is_some_and(|all| {
                (1..=MOST_NAMES).contains(&all.len()) && all.iter().all(|one| text(one, LONGEST_NAME))
            }),
            FieldKind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            FieldKind::Shape(_) => value.is_object(),
        }
    }

    /// What a value must be, for the error to who sent another.
    pub fn wanted(self) -> String {
        match self {
            FieldKind::Text(most) => format!("a text of 1 to {most} characters, without control characters"),
            FieldKind::Id(prefix) => format!("an identifier of the form {prefix}…"),
            FieldKind::Number(least, most) => format!("a whole number from {least} to {most}"),
            FieldKind::Flag => "`true` or `false`".to_owned(),
            FieldKind::Names => format!("a list of 1 to {MOST_NAMES} names"),
            FieldKind::Word(words) => format!("one of {}", words.join(", ")),
            FieldKind::Shape(name) => format!("an object ({name} in /openapi.json)"),
        }
    }

    /// A value that was written in an address.
    pub fn parsed(self, text: String) -> Value {
        match self {
            FieldKind::Number(..) => text.parse::<i64>().map_or(Value::String(text), |number| json!(number)),
            FieldKind::Flag => match text.as_str() {
                "true" | "1" => json!(true),
                "false" | "0" => json!(false),
                _ => Value::String(text),
            },
            _ => Value::String(text),
        }
    }
}

impl VerbField {
    pub fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if self.need == FieldNeed::MayBeNull {
            schema = match self.kind {
                FieldKind::Word(words) => {
                    json!({ "enum": words.iter().map(|word| json!(word)).chain([Value::Null]).collect::<Vec<_>>() })
                }
                _ => {
                    schema["type"] = json!([schema["type"], "null"]);
                    schema
                }
            };
        }
        schema["description"] = json!(self.about);
        schema
    }

    fn check(&self, given: Option<&Value>) -> Result<(), Refusal> {
        match given {
            None | Some(Value::Null) if self.need == FieldNeed::Must => {
                let text = format!("`{}` is required: {}.", self.name, self.kind.wanted());
                Err(Refusal::about(Code::MissingParameter, self.name, text))
            }
            None => Ok(()),
            Some(Value::Null) if self.need == FieldNeed::MayBeNull => Ok(()),
            Some(value) if self.kind.takes(value) => Ok(()),
            Some(_) => Err(wrong(self.name, &self.kind.wanted())),
        }
    }
}

/// Holds what was given to the fields there are: nothing unknown, nothing missing, all as it must
/// be.
pub fn check(fields: &[&VerbField], given: &Map<String, Value>) -> Result<(), Refusal> {
    if let Some(name) = given.keys().find(|name| !fields.iter().any(|field| field.name == name.as_str())) {
        return Err(super::unknown(name));
    }
    fields.iter().try_for_each(|field| field.check(given.get(field.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_its_kind_says() {
        for (kind, value, taken) in [
            (FieldKind::Text(3), json!("abc"), true),
            (FieldKind::Text(3), json!("abcd"), false),
            (FieldKind::Text(3), json!(" "), false),
            (FieldKind::Text(3), json!("a\u{0}"), false),
            (FieldKind::Number(1, 3), json!(3), true),
            (FieldKind::Number(1, 3), json!(4), false),
            (FieldKind::Number(1, 3), json!(1.5), false),
            (FieldKind::Number(1, 3), json!("1"), false),
            (FieldKind::Flag, json!("true"), false),
            (FieldKind::Names, json!(["a"]), true),
            (FieldKind::Names, json!([]), false),
            (FieldKind::Names, json!(["a", 1]), false),
            (FieldKind::Word(&["x"]), json!("x"), true),
            (FieldKind::Word(&["x"]), json!("y"), false),
        ] {
            assert_eq!(kind.takes(&value), taken, "{value}: {}", kind.wanted());
        }
        assert_eq!(FieldKind::Number(1, 3).parsed("2".to_owned()), json!(2));
        assert_eq!(FieldKind::Flag.parsed("0".to_owned()), json!(false));
    }

    #[test]
    fn null_is_taken_where_it_says_something() {
        let (may, null) = (may("a", FieldKind::Flag, ""), may_be_null("b", FieldKind::Flag, ""));
        let given = |name: &str| Map::from_iter([(name.to_owned(), Value::Null)]);
        assert!(check(&[&may, &null], &given("b")).is_ok());
        assert_eq!(check(&[&may, &null], &given("a")).err().map(|why| why.code), Some(Code::InvalidParameter));
        assert_eq!(check(&[&may], &given("c")).err().map(|why| why.code), Some(Code::UnknownParameter));
    }
}
