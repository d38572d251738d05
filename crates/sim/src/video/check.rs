//! Strict reading of JSON bodies: what is not documented is refused, with the place and the reason.

use serde_json::Value;

/// What a value must be.
#[derive(Clone, Copy)]
pub(super) enum Is {
    Text,
    /// At most so many characters.
    Short(usize),
    Link,
    Bool,
    Int(i64, i64),
    Num(f64, f64),
    OneOf(&'static [&'static str]),
    /// Text that spells a whole number.
    IntText(i64, i64),
    List(usize, usize, &'static Is),
    Obj(&'static [(&'static str, Is, Need)]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Must,
    May,
}

pub(super) use Need::{May, Must};

/// The first thing that is wrong, as `(place, reason)`.
pub(super) fn check(value: &Value, is: &Is, place: &str) -> Result<(), (String, String)> {
    let wrong = |why: &str| Err((place.to_string(), why.to_string()));
    match is {
        Is::Text => {
            if value.is_string() {
                Ok(())
            } else {
                wrong("must be a string")
            }
        }
        Is::Short(most) => match value.as_str() {
            Some(text) if text.chars().count() <= *most => Ok(()),
            Some(_) => wrong("is too long"),
            None => wrong("must be a string"),
        },
        Is::Link => match value.as_str() {
            Some(text) if !text.is_empty() => Ok(()),
            _ => wrong("must be a link"),
        },
        Is::Bool => {
            if value.is_boolean() {
                Ok(())
            } else {
                wrong("must be a boolean")
            }
        }
        Is::Int(least, most) => match value.as_i64() {
            Some(number) if (*least..=*most).contains(&number) => Ok(()),
            Some(_) => wrong("is out of range"),
            None => wrong("must be an integer"),
        },
        Is::Num(least, most) => match value.as_f64() {
            Some(number) if *least <= number && number <= *most => Ok(()),
            _ => wrong("must be a number in range"),
        },
        Is::OneOf(words) => match value.as_str() {
            Some(text) if words.contains(&text) => Ok(()),
            _ => wrong("is not one of the accepted values"),
        },
        Is::IntText(least, most) => match value.as_str().map(str::parse::<i64>) {
            Some(Ok(number)) if (*least..=*most).contains(&number) => Ok(()),
            _ => wrong("must be a string with a whole number in range"),
        },
        Is::List(least, most, each) => {
            let Some(list) = value.as_array() else { return wrong("must be an array") };
            if list.len() < *least || list.len() > *most {
                return wrong("has the wrong number of entries");
            }
            list.iter().enumerate().try_for_each(|(at, one)| check(one, each, &format!("{place}[{at}]")))
        }
        Is::Obj(fields) => object(value, fields, place),
    }
}

fn object(value: &Value, fields: &[(&str, Is, Need)], place: &str) -> Result<(), (String, String)> {
    let inner = |name: &str| if place.is_empty() { name.to_string() } else { format!("{place}.{name}") };
    let Some(map) = value.as_object() else { return Err((place.to_string(), "must be an object".to_string())) };
    if let Some((name, _, _)) = fields.iter().find(|(name, _, need)| *need == Must && !map.contains_key(*name)) {
        return Err((inner(name), "is required".to_string()));
    }
    for (name, value) in map {
        match fields.iter().find(|(known, _, _)| known == name) {
            Some((_, is, _)) => check(value, is, &inner(name))?,
            None => return Err((inner(name), "is not a known parameter".to_string())),
        }
    }
    Ok(())
}
