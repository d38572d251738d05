//! Single values. Three ways to ask for each: needed (`text`), with a default (`text_or`), optional
//! (`opt_text`).

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::node::FormValue;
use super::{Form, did_you_mean, parse_duration, parse_size};
use crate::Fraction;

/// A whole-number type a field can be read as.
pub trait WholeNumber: Copy + PartialOrd + Display + TryFrom<i128> {}
impl<N: Copy + PartialOrd + Display + TryFrom<i128>> WholeNumber for N {}

fn wrong(value: &FormValue, wanted: &str) -> String {
    format!("must be {wanted}, not {}", value.kind())
}

fn text_of(value: &FormValue) -> Result<&str, String> {
    match value {
        FormValue::Text(text) | FormValue::Loose(text) => Ok(text),
        other => Err(wrong(other, "a text in quotes")),
    }
}

fn whole_of<N: WholeNumber>(value: &FormValue, range: &RangeInclusive<N>) -> Result<N, String> {
    let wanted = || format!("a whole number from {} to {}", range.start(), range.end());
    let int = match value {
        FormValue::Int(int) => *int,
        FormValue::Loose(text) => {
            text.trim().replace('_', "").parse().map_err(|_| format!("must be {}, not {text:?}", wanted()))?
        }
        other => return Err(wrong(other, &wanted())),
    };
    N::try_from(int).ok().filter(|n| range.contains(n)).ok_or_else(|| format!("must be {}, not {int}", wanted()))
}

fn flag_of(value: &FormValue) -> Result<bool, String> {
    match value {
        FormValue::Bool(flag) => Ok(*flag),
        FormValue::Loose(text) => match text.trim() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(format!("must be true or false, not {other:?}")),
        },
        other => Err(wrong(other, "true or false")),
    }
}

fn duration_of(value: &FormValue) -> Result<Duration, String> {
    match value {
        FormValue::Text(text) | FormValue::Loose(text) => parse_duration(text.trim()),
        FormValue::Int(0) => Ok(Duration::ZERO),
        FormValue::Int(int) => Err(format!("{int} needs a unit: \"{int}s\" for seconds, \"{int}ms\" for milliseconds")),
        other => Err(wrong(other, "a duration such as \"30s\"")),
    }
}

fn size_of(value: &FormValue) -> Result<u64, String> {
    match value {
        FormValue::Text(text) | FormValue::Loose(text) => parse_size(text.trim()),
        FormValue::Int(int) => u64::try_from(*int).map_err(|_| format!("must be a number of bytes, not {int}")),
        other => Err(wrong(other, "a size such as \"1MiB\"")),
    }
}

fn fraction_of(value: &FormValue) -> Result<Fraction, String> {
    let text = match value {
        FormValue::Text(text) | FormValue::Loose(text) | FormValue::Decimal(text) => text.trim().to_owned(),
        FormValue::Int(int) => int.to_string(),
        other => return Err(wrong(other, "a fraction such as \"133/100\" or \"0.8\"")),
    };
    text.parse().map_err(|bad| format!("{text:?} {bad}"))
}

fn plain_of(value: &FormValue) -> Result<String, String> {
    match value {
        FormValue::Text(text) | FormValue::Loose(text) => Ok(text.clone()),
        FormValue::Int(int) => Ok(int.to_string()),
        FormValue::Bool(flag) => Ok(flag.to_string()),
        FormValue::Decimal(text) | FormValue::Time(text) => Ok(text.clone()),
        other => Err(wrong(other, "a single value")),
    }
}

fn parsed_of<T: FromStr<Err: Display>>(value: &FormValue) -> Result<T, String> {
    let text = plain_of(value)?;
    text.trim().parse().map_err(|why| format!("{text:?} cannot be used: {why}"))
}

fn choice_of<T: Clone>(value: &FormValue, choices: &[(&str, T)]) -> Result<T, String> {
    let text = text_of(value)?;
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(choice.clone());
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let hint = did_you_mean(text, names.iter().copied());
    Err(format!("{text:?} is not one of {}{hint}", names.join(", ")))
}

fn list_of<T>(
    value: &FormValue,
    wanted: &str,
    one: impl Fn(&FormValue) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match value {
        FormValue::List(items) => items.iter().map(|item| one(&item.value)).collect(),
        // In the environment a list is written with commas.
        FormValue::Loose(text) => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| one(&FormValue::Loose(part.to_owned())))
            .collect(),
        other => Err(wrong(other, wanted)),
    }
}

impl Form<'_> {
    fn need<T>(
        &mut self,
        key: &str,
        wanted: &str,
        stand_in: T,
        read: impl FnOnce(&FormValue) -> Result<T, String>,
    ) -> T {
        match self.read(key, read) {
            Some(found) => found.unwrap_or(stand_in),
            None => {
                self.missing(key, wanted);
                stand_in
            }
        }
    }

    fn may<T>(&mut self, key: &str, read: impl FnOnce(&FormValue) -> Result<T, String>) -> Option<T> {
        self.read(key, read).flatten()
    }

    /// A text that is not empty.
    pub fn text(&mut self, key: &str) -> String {
        self.need(key, "a text", String::new(), |value| match text_of(value)?.trim() {
            "" => Err("must not be empty".to_owned()),
            _ => Ok(text_of(value)?.to_owned()),
        })
    }

    pub fn text_or(&mut self, key: &str, default: &str) -> String {
        self.opt_text(key).unwrap_or_else(|| default.to_owned())
    }

    pub fn opt_text(&mut self, key: &str) -> Option<String> {
        self.may(key, |value| text_of(value).map(str::to_owned))
    }

    /// Any single value as text: a text, a number, true or false.
    pub fn plain(&mut self, key: &str) -> String {
        self.need(key, "a value", String::new(), plain_of)
    }

    /// A whole number within a range of any integer type.
    pub fn int<N: WholeNumber>(&mut self, key: &str, range: RangeInclusive<N>) -> N {
        self.need(key, "a whole number", *range.start(), |value| whole_of(value, &range))
    }

    pub fn int_or<N: WholeNumber>(&mut self, key: &str, default: N, range: RangeInclusive<N>) -> N {
        self.opt_int(key, range).unwrap_or(default)
    }

    pub fn opt_int<N: WholeNumber>(&mut self, key: &str, range: RangeInclusive<N>) -> Option<N> {
        self.may(key, |value| whole_of(value, &range))
    }

    pub fn flag(&mut self, key: &str) -> bool {
        self.need(key, "true or false", false, flag_of)
    }

    pub fn flag_or(&mut self, key: &str, default: bool) -> bool {
        self.opt_flag(key).unwrap_or(default)
    }

    pub fn opt_flag(&mut self, key: &str) -> Option<bool> {
        self.may(key, flag_of)
    }

    /// A time span such as "30s"; "0" where no time at all makes sense.
    pub fn duration(&mut self, key: &str) -> Duration {
        self.need(key, "a duration such as \"30s\"", Duration::ZERO, duration_of)
    }

    pub fn duration_or(&mut self, key: &str, default: Duration) -> Duration {
        self.opt_duration(key).unwrap_or(default)
    }

    pub fn opt_duration(&mut self, key: &str) -> Option<Duration> {
        self.may(key, duration_of)
    }

    /// A number of bytes, such as "1MiB" or 512.
    pub fn size(&mut self, key: &str) -> u64 {
        self.need(key, "a size such as \"1MiB\"", 0, size_of)
    }

    pub fn size_or(&mut self, key: &str, default: u64) -> u64 {
        self.opt_size(key).unwrap_or(default)
    }

    pub fn opt_size(&mut self, key: &str) -> Option<u64> {
        self.may(key, size_of)
    }

    /// An exact multiplier: "133/100", "0.8", 0.8 or 5.
    pub fn fraction(&mut self, key: &str) -> Fraction {
        self.need(key, "a fraction such as \"133/100\"", Fraction::ONE, fraction_of)
    }

    pub fn fraction_or(&mut self, key: &str, default: Fraction) -> Fraction {
        self.opt_fraction(key).unwrap_or(default)
    }

    pub fn opt_fraction(&mut self, key: &str) -> Option<Fraction> {
        self.may(key, fraction_of)
    }

    /// Anything with its own reader, such as an address; `None` means that a mistake was recorded.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.need(key, "a value", None, |value| parsed_of(value).map(Some))
    }

    pub fn parsed_or<T: FromStr<Err: Display>>(&mut self, key: &str, default: T) -> T {
        self.opt_parsed(key).unwrap_or(default)
    }

    pub fn opt_parsed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.may(key, parsed_of)
    }

    /// One of a few words; `None` means that a mistake was recorded.
    pub fn choice<T: Clone>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let wanted = format!("one of {}", names.join(", "));
        self.need(key, &wanted, None, |value| choice_of(value, choices).map(Some))
    }

    pub fn choice_or<T: Clone>(&mut self, key: &str, default: T, choices: &[(&str, T)]) -> T {
        self.may(key, |value| choice_of(value, choices)).unwrap_or(default)
    }

    /// A list of texts; empty when left out.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.opt_texts(key).unwrap_or_default()
    }

    pub fn opt_texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.may(key, |value| list_of(value, "a list of texts", |item| text_of(item).map(str::to_owned)))
    }

    /// A list of lists of texts; empty when left out.
    pub fn text_lists(&mut self, key: &str) -> Vec<Vec<String>> {
        let texts = |item: &FormValue| list_of(item, "a list of texts", |text| text_of(text).map(str::to_owned));
        self.may(key, |value| list_of(value, "a list of lists of texts", texts)).unwrap_or_default()
    }

    /// A list of words, each one of the known ones; empty when left out.
    pub fn words(&mut self, key: &str, known: &[&str]) -> Vec<String> {
        let choices: Vec<(&str, String)> = known.iter().map(|word| (*word, (*word).to_owned())).collect();
        self.may(key, |value| list_of(value, "a list of texts", |item| choice_of(item, &choices))).unwrap_or_default()
    }

    /// A list of values with their own reader, such as addresses; empty when left out.
    pub fn parsed_list<T: FromStr<Err: Display>>(&mut self, key: &str) -> Vec<T> {
        self.may(key, |value| list_of(value, "a list", parsed_of)).unwrap_or_default()
    }

    /// A list of whole numbers within a range; empty when left out.
    pub fn ints<N: WholeNumber>(&mut self, key: &str, range: RangeInclusive<N>) -> Vec<N> {
        self.opt_ints(key, range).unwrap_or_default()
    }

    pub fn opt_ints<N: WholeNumber>(&mut self, key: &str, range: RangeInclusive<N>) -> Option<Vec<N>> {
        self.may(key, |value| list_of(value, "a list of whole numbers", |item| whole_of(item, &range)))
    }
}
