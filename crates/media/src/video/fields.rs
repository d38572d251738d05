//! What `metadata` may hold, as data: each family lists its fields with their kinds, and one
//! function fits what was sent to that list. Forms carry text only, so text that spells the right
//! kind is taken there; JSON must have the kind.
//!
//! A field nobody knows is not sent to a provider: it could change what the provider bills. It is
//! reported in a warning.

use super::{VideoRefusal, Warning, Warnings};
use serde_json::{Map, Value};
use tollgate_wire::error::Code;

/// The names an object may have.
pub(crate) type FieldNames = &'static [(&'static str, VideoFieldKind)];

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VideoFieldKind {
    Text,
    Flag,
    /// A whole number between two bounds.
    Whole(i64, i64),
    /// Any number between two whole bounds.
    Number(i64, i64),
    /// A whole number between two bounds that the provider wants as text.
    Digits(i64, i64),
    OneOf(&'static [&'static str]),
    /// At most so many of one kind.
    Each(usize, &'static VideoFieldKind),
    Object(FieldNames),
    /// Never served; the text says why.
    Refused(&'static str),
    /// Not sent on; the text says why.
    Dropped(&'static str),
}

/// One walk over what was sent.
pub(crate) struct Fit<'a> {
    /// The values come from a form.
    pub loose: bool,
    pub warnings: &'a mut Warnings,
}

impl Fit<'_> {
    /// What is known of an object, each value of its kind. Nulls and empty texts count as absent:
    /// clients send them for fields left out.
    pub fn object(
        &mut self,
        sent: &Map<String, Value>,
        shape: FieldNames,
        path: &str,
    ) -> Result<Map<String, Value>, VideoRefusal> {
        let mut out = Map::new();
        for (name, value) in sent.iter().filter(|(_, value)| !is_empty(value)) {
            let path = format!("{path}.{name}");
            match shape.iter().find(|(known, _)| known == name).map(|(_, kind)| kind) {
                Some(VideoFieldKind::Refused(why)) => return Err(VideoRefusal::unsupported(&path, *why)),
                Some(VideoFieldKind::Dropped(why)) => self.warnings.push(Warning::new(path, *why)),
                Some(kind) => {
                    out.insert(name.clone(), self.value(value, kind, &path)?);
                }
                None => {
                    self.warnings.push(Warning::new(path, "This model does not know this field; it was not sent on."))
                }
            }
        }
        Ok(out)
    }

    fn value(&mut self, value: &Value, kind: &VideoFieldKind, path: &str) -> Result<Value, VideoRefusal> {
        match kind {
            VideoFieldKind::Text => match value {
                Value::String(text) if !text.trim().is_empty() => Ok(value.clone()),
                _ => Err(wrong(path, "must be text")),
            },
            VideoFieldKind::Flag => {
                self.flag(value).map(Value::Bool).ok_or_else(|| wrong(path, "must be true or false"))
            }
            VideoFieldKind::Whole(least, most) => {
                let number = self.whole(value).filter(|number| (least..=most).contains(&number));
                number.map(Value::from).ok_or_else(|| whole_between(path, *least, *most))
            }
            VideoFieldKind::Digits(least, most) => {
                let number = whole_or_digits(value).filter(|number| (least..=most).contains(&number));
                let number = number.ok_or_else(|| whole_between(path, *least, *most))?;
                Ok(Value::String(number.to_string()))
            }
            VideoFieldKind::Number(least, most) => self
                .number(value, *least, *most)
                .ok_or_else(|| wrong(path, &format!("must be a number from {least} to {most}"))),
            VideoFieldKind::OneOf(allowed) => match value {
                Value::String(text) if allowed.contains(&text.as_str()) => Ok(value.clone()),
                _ => Err(wrong(path, &format!("must be one of {}", allowed.join(", ")))),
            },
            VideoFieldKind::Each(most, kind) => self.each(value, *most, kind, path),
            VideoFieldKind::Object(shape) => match value {
                Value::Object(sent) => self.object(sent, shape, path).map(Value::Object),
                _ => Err(wrong(path, "must be an object")),
            },
            VideoFieldKind::Refused(why) | VideoFieldKind::Dropped(why) => Err(VideoRefusal::unsupported(path, *why)),
        }
    }

    fn each(&mut self, value: &Value, most: usize, kind: &VideoFieldKind, path: &str) -> Result<Value, VideoRefusal> {
        let Value::Array(sent) = value else {
            return Err(wrong(path, "must be an array"));
        };
        if sent.len() > most {
            return Err(wrong(path, &format!("has {} entries; at most {most} are accepted", sent.len())));
        }
        let fitted = sent.iter().enumerate().map(|(at, one)| self.value(one, kind, &format!("{path}[{at}]")));
        fitted.collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    fn flag(&self, value: &Value) -> Option<bool> {
        match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if self.loose => match text.as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn whole(&self, value: &Value) -> Option<i64> {
        if value.is_string() && !self.loose { None } else { whole_or_digits(value) }
    }

    fn number(&self, value: &Value, least: i64, most: i64) -> Option<Value> {
        let number = match value {
            Value::Number(number) => number.clone(),
            Value::String(text) if self.loose => serde_json::from_str(text).ok()?,
            _ => return None,
        };
        #[expect(clippy::cast_precision_loss, reason = "the bounds are small whole numbers")]
        let fits = number.as_f64().is_some_and(|float| least as f64 <= float && float <= most as f64);
        fits.then_some(Value::Number(number))
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// A whole number, or text that spells one in plain digits.
pub(crate) fn whole_or_digits(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if plain { text.parse().ok() } else { None }
        }
        _ => None,
    }
}

fn whole_between(path: &str, least: i64, most: i64) -> VideoRefusal {
    wrong(path, &format!("must be a whole number from {least} to {most}"))
}

fn wrong(path: &str, must: &str) -> VideoRefusal {
    VideoRefusal::new(Code::InvalidParameter, path, format!("`{path}` {must}."))
}
