//! The price lists of others: their kinds, and a model as one of them describes it.

use super::clause::Clause;
use super::digits::Digits;
use super::json::PriceNode;
use super::{ListedTier, genai, litellm, models_dev, new_api, openrouter};
use crate::{Face, Faces};
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// The form of a price list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    LiteLlm,
    ModelsDev,
    OpenRouter,
    GenaiPrices,
    NewApi,
}

impl SourceKind {
    pub const ALL: [(&'static str, SourceKind); 5] = [
        ("litellm", SourceKind::LiteLlm),
        ("models.dev", SourceKind::ModelsDev),
        ("openrouter", SourceKind::OpenRouter),
        ("genai-prices", SourceKind::GenaiPrices),
        ("new-api", SourceKind::NewApi),
    ];

    pub fn name(self) -> &'static str {
        SourceKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for SourceKind {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceKind, String> {
        let known = SourceKind::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<&str> = SourceKind::ALL.iter().map(|(name, _)| *name).collect();
            format!("{text:?} is no form of a price list: {}", names.join(", "))
        })
    }
}

/// What is read out of a price list.
#[derive(Clone, Debug, Default)]
pub struct PriceSource {
    pub models: Vec<SourceModel>,
    /// Entries that are no model on sale, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A model as one source describes it.
#[derive(Clone, Debug, Default)]
pub struct SourceModel {
    pub name: String,
    pub facts: Table,
    pub list: Faces,
    /// Faces whose price has more digits than a micro-USD and was rounded up.
    pub rounded: Vec<Face>,
    pub tiers: Vec<ListedTier>,
    /// Where the source looked.
    pub source: Option<String>,
    /// Worth knowing, and no reason to stop.
    pub notes: Vec<String>,
    /// What a person has to look at first.
    pub stops: Vec<String>,
    /// It cannot be sold as the source describes it, whoever accepts what.
    pub unsellable: bool,
    /// Other names under which the source has it.
    pub(super) also: Option<Clause>,
}

/// Why a price list cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSource {
    pub kind: SourceKind,
    pub reason: String,
}

impl fmt::Display for BadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is no price list of the form {}: {}", self.kind.name(), self.reason)
    }
}

impl std::error::Error for BadSource {}

impl PriceSource {
    /// Reads a price list; `today` decides which dated prices are in force and what has ended.
    pub fn read(kind: SourceKind, text: &str, provider: Option<&str>, today: &str) -> Result<PriceSource, BadSource> {
        let bad = |reason: String| BadSource { kind, reason };
        let whole = PriceNode::parse(text).map_err(bad)?;
        let mut source = match kind {
            SourceKind::LiteLlm => litellm::read(&whole, provider, today),
            SourceKind::ModelsDev => models_dev::read(&whole, provider),
            SourceKind::OpenRouter => openrouter::read(&whole),
            SourceKind::GenaiPrices => genai::read(&whole, provider, today),
            SourceKind::NewApi => new_api::read(&whole),
        }
        .map_err(bad)?;
        if source.models.is_empty() {
            let whose = provider.map(|provider| format!(" of {provider}")).unwrap_or_default();
            return Err(bad(format!("it has no model{whose} with a price")));
        }
        source.only_once();
        Ok(source)
    }

    /// Names that stand twice, with and without their provider in front: the same prices are one
    /// model, others are a question.
    fn only_once(&mut self) {
        let mut once: Vec<SourceModel> = Vec::with_capacity(self.models.len());
        let mut places = std::collections::HashMap::new();
        for model in std::mem::take(&mut self.models) {
            match places.get(&model.name) {
                None => {
                    places.insert(model.name.clone(), once.len());
                    once.push(model);
                }
                Some(at) if once[*at].list == model.list => {}
                Some(at) => once[*at].stops.push("stands twice, with different prices".to_owned()),
            }
        }
        self.models = once;
    }

    /// The model of this name, or the one that answers to it.
    pub fn model(&self, name: &str) -> Option<&SourceModel> {
        let same = self.models.iter().find(|model| model.name == name);
        same.or_else(|| self.models.iter().find(|model| model.also.as_ref().is_some_and(|also| also.matches(name))))
    }
}

impl SourceModel {
    pub(super) fn named(name: &str) -> SourceModel {
        SourceModel { name: name.to_owned(), ..SourceModel::default() }
    }

    /// A price on a face: the number times ten to a power is micro-USD.
    pub(super) fn price(&mut self, face: Face, number: &PriceNode, power: i32) {
        let micro = micro(face.name(), number, power, &mut self.notes, &mut self.stops);
        if let Some(micro) = micro {
            self.list.set(face, Some(micro));
        }
        if number.digits().and_then(|digits| digits.scaled(power)).is_some_and(|(_, exact)| !exact) {
            self.rounded.push(face);
        }
    }

    pub(super) fn fact(&mut self, key: &str, value: impl Into<Value>) {
        self.facts.insert(key.to_owned(), value.into());
    }

    pub(super) fn count(&mut self, key: &str, number: Option<u64>) {
        if let Some(number) = number.and_then(|number| i64::try_from(number).ok()).filter(|number| *number > 0) {
            self.fact(key, number);
        }
    }

    pub(super) fn texts(&mut self, key: &str, words: &[&str]) {
        if !words.is_empty() {
            self.fact(key, words.iter().map(|word| Value::from(*word)).collect::<Vec<_>>());
        }
    }

    /// A price that nothing here can express: the model cannot be sold by this list alone.
    pub(super) fn cannot(&mut self, reason: impl Into<String>) {
        self.stops.push(reason.into());
        self.unsellable = true;
    }

    /// What must be so before a model billed by tokens is sold; zero is looked at by a person.
    pub(super) fn check_tokens(&mut self, needs_output: bool) {
        match self.list.get(Face::Input) {
            None => self.cannot("has no price of input"),
            Some(0) => self.stops.push("has an input price of zero".to_owned()),
            Some(_) => {}
        }
        match self.list.get(Face::Output) {
            None if needs_output => self.cannot("has no price of output"),
            None => self.list.set(Face::Output, Some(0)),
            Some(0) if needs_output => self.stops.push("has an output price of zero".to_owned()),
            Some(_) => {}
        }
        let free: Vec<Face> =
            self.list.iter().filter(|(face, price)| *price == 0 && is_extra(*face)).map(|(face, _)| face).collect();
        for face in free {
            // Unknown, or given away: the ordinary price is charged instead.
            self.list.set(face, None);
            self.notes.push(format!("{} at zero is left out: such tokens cost what others do", face.name()));
        }
    }
}

fn is_extra(face: Face) -> bool {
    !matches!(face, Face::Input | Face::Output | Face::PerCall | Face::VideoSecond)
}

/// Whole micro-USD; rounded up where the source has more digits, and said.
pub(super) fn micro(
    what: &str,
    number: &PriceNode,
    power: i32,
    notes: &mut Vec<String>,
    stops: &mut Vec<String>,
) -> Option<u64> {
    match number.digits().and_then(|digits: Digits| digits.scaled(power)) {
        Some((micro, exact)) => {
            if !exact {
                notes.push(format!("{what} is rounded up to a whole micro-USD"));
            }
            Some(micro)
        }
        None => {
            stops.push(format!("the price of {what} cannot be read"));
            None
        }
    }
}

/// `[{ dim = "context_len", context_len_gt = N }]`
pub(super) fn over(tokens: u64) -> Table {
    let mut table = Table::new();
    table.insert("dim".to_owned(), "context_len".into());
    table.insert("context_len_gt".to_owned(), i64::try_from(tokens).unwrap_or(i64::MAX).into());
    table
}

pub(super) fn attribute(path: &str, equals: &str) -> Table {
    let entries = [("dim", "request_attr"), ("path", path), ("equals", equals)];
    entries.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
}

/// Whole hours of the day in UTC.
pub(super) fn utc_hours(hours: &[u8]) -> Table {
    let mut table = Table::new();
    table.insert("dim".to_owned(), "wall_clock".into());
    table.insert("timezone".to_owned(), "UTC".into());
    table.insert("hours".to_owned(), hours.iter().map(|hour| Value::from(i64::from(*hour))).collect::<Vec<_>>().into());
    table
}

pub(super) fn when(conditions: Vec<Table>) -> Value {
    Value::Array(conditions.into_iter().map(Value::Table).collect())
}
