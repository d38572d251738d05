//! The check of a call's parameters against its cell: pure, before anything is charged or sent.
//!
//! The first problem is reported, in this order over all parameters: unknown, repeated, missing
//! (required, then groups), type, length, range. An empty value counts as not given.

use std::fmt::Write as _;

use super::{Cell, ParamValue};

/// What is wrong with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Unknown,
    Repeated,
    Missing,
    /// No member of an at-least-one-of group.
    NoneOfGroup,
    Type,
    TooLong,
    TooShort,
    Range,
    NotAllowed,
}

impl Wrong {
    /// The word for programs, beside the code of the error.
    pub const fn reason(self) -> &'static str {
        match self {
            Wrong::Unknown => "unknown",
            Wrong::Repeated => "repeated",
            Wrong::Missing => "missing",
            Wrong::NoneOfGroup => "none_of_group",
            Wrong::Type => "wrong_type",
            Wrong::TooLong => "too_long",
            Wrong::TooShort => "too_short",
            Wrong::Range => "out_of_range",
            Wrong::NotAllowed => "not_allowed",
        }
    }
}

/// A refused call: which parameter, what is wrong, and a sentence that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    pub param: String,
    pub wrong: Wrong,
    pub message: String,
}

/// The parameters of a call, checked: one entry for each of the cell's, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    values: Vec<Option<ParamValue>>,
}

impl Checked {
    /// What is sent, in the cell's order: given values and defaults.
    pub fn pairs<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = (&'a str, &'a ParamValue)> {
        cell.params.iter().zip(&self.values).filter_map(|(param, value)| Some((param.name.as_str(), value.as_ref()?)))
    }

    pub fn get(&self, cell: &Cell, name: &str) -> Option<&ParamValue> {
        let at = cell.params.iter().position(|param| param.name == name)?;
        self.values[at].as_ref()
    }
}

impl Cell {
    /// Checks the pairs of a query string as they came, decoded.
    pub fn check<N: AsRef<str>, V: AsRef<str>>(&self, given: &[(N, V)]) -> Result<Checked, BadParameter> {
        let found = self.sort(given)?;
        self.nothing_missing(&found)?;
        let mut typed: Vec<Option<ParamValue>> = Vec::with_capacity(self.params.len());
        for (param, text) in self.params.iter().zip(&found) {
            let value = match text {
                Some(text) => Some(param.typed(text).map_err(|wrong| self.bad(&param.name, wrong))?),
                None => param.default.clone(),
            };
            typed.push(value);
        }
        let given = || self.params.iter().zip(&found).enumerate().filter(|(_, (_, text))| text.is_some());
        for (at, (param, _)) in given() {
            if let Some(value) = &typed[at] {
                param.length(value).map_err(|wrong| self.bad(&param.name, wrong))?;
            }
        }
        for (at, (param, _)) in given() {
            if let Some(value) = typed[at].take() {
                typed[at] = Some(param.range(value).map_err(|wrong| self.bad(&param.name, wrong))?);
            }
        }
        Ok(Checked { values: typed })
    }

    /// The text of each parameter; an empty one counts as not given, but not as absent from the
    /// query.
    fn sort<'g, N: AsRef<str>, V: AsRef<str>>(
        &self,
        given: &'g [(N, V)],
    ) -> Result<Vec<Option<&'g str>>, BadParameter> {
        let mut found: Vec<Option<&str>> = vec![None; self.params.len()];
        let mut repeated = None;
        for (name, value) in given {
            let name = name.as_ref();
            let at = self.params.iter().position(|param| param.name == name);
            let at = at.ok_or_else(|| self.bad(name, Wrong::Unknown))?;
            if found[at].is_some() {
                repeated = repeated.or(Some(at));
            }
            found[at] = Some(self.params[at].trimmed(value.as_ref()));
        }
        if let Some(at) = repeated {
            return Err(self.bad(&self.params[at].name, Wrong::Repeated));
        }
        Ok(found.into_iter().map(|text| text.filter(|text| !text.is_empty())).collect())
    }

    fn nothing_missing(&self, found: &[Option<&str>]) -> Result<(), BadParameter> {
        for (param, text) in self.params.iter().zip(found) {
            if param.required && text.is_none() && param.default.is_none() {
                return Err(self.bad(&param.name, Wrong::Missing));
            }
        }
        for group in &self.require_one_of {
            if group.iter().all(|at| found[*at].is_none()) {
                return Err(self.bad(&self.params[group[0]].name, Wrong::NoneOfGroup));
            }
        }
        Ok(())
    }

    #[cold]
    fn bad(&self, name: &str, wrong: Wrong) -> BadParameter {
        // A name of the caller's own is quoted, so it is cut short.
        let name: String = name.chars().take(64).collect();
        let message = self.message(&name, wrong);
        BadParameter { param: name, wrong, message }
    }

    fn message(&self, name: &str, wrong: Wrong) -> String {
        let here = format!("{} of {}", self.capability.name(), self.platform);
        let Some(param) = self.param(name) else {
            let hint = crate::form::did_you_mean(name, self.params.iter().map(|param| param.name.as_str()));
            let end = if hint.is_empty() { "." } else { "" };
            let names: Vec<&str> = self.params.iter().take(16).map(|param| param.name.as_str()).collect();
            let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            return format!("`{name}` is not a parameter of {here}{hint}{end} It takes: {takes}.");
        };
        match wrong {
            Wrong::Unknown => format!("`{name}` is not a parameter of {here}."),
            Wrong::Repeated => format!("`{name}` was given more than once."),
            Wrong::Missing => format!("`{name}` is required by {here}."),
            Wrong::NoneOfGroup => self.group_message(name, &here),
            Wrong::Type => match param.kind.name() {
                "integer" => format!("`{name}` is a whole number: digits, with a minus where it is negative."),
                _ => format!("`{name}` is true, false, 1 or 0."),
            },
            Wrong::TooLong => format!("`{name}` has at most {} characters.", param.max_length),
            Wrong::TooShort => format!("`{name}` has at least {} characters.", param.min_length),
            Wrong::Range => match (param.min, param.max) {
                (Some(min), Some(max)) => format!("`{name}` is a number from {min} to {max}."),
                (Some(min), None) => format!("`{name}` is at least {min}."),
                (None, max) => format!("`{name}` is at most {}.", max.unwrap_or(i64::MAX)),
            },
            Wrong::NotAllowed => format!("`{name}` is one of: {}.", param.choices().join(", ")),
        }
    }

    fn group_message(&self, name: &str, here: &str) -> String {
        let first = self.params.iter().position(|param| param.name == name);
        let group = self.require_one_of.iter().find(|group| group.first().copied() == first);
        let mut text = format!("At least one of these is required by {here}:");
        for (at, member) in group.into_iter().flatten().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma} `{}`", self.params[*member].name);
        }
        text.push('.');
        text
    }
}
