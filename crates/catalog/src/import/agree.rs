//! One list price out of one source or two: where both agree it is verified, where one is alone it
//! is marked, where they differ a person has to look.

use super::plan::ImportStop;
use super::source::{PriceSource, SourceModel};
use super::{Glob, ListedModel, ListedTier};
use crate::{Face, Faces, Money};
use toml::{Table, Value};

/// How models are taken out of price lists.
pub struct ImportRequest<'a> {
    pub first: &'a PriceSource,
    pub second: Option<&'a PriceSource>,
    pub only: &'a [Glob],
    pub accepted: &'a [Glob],
    /// Facts that price lists do not have, as `[model."GLOB"]` tables of a catalog; later ones win.
    pub facts: &'a [Table],
    /// Put in front of names, for providers that host models of others.
    pub prefix: &'a str,
    /// Where prices can be looked at; empty: where the first list says.
    pub source: &'a str,
    pub today: &'a str,
}

/// What came out of it.
#[derive(Clone, Debug, Default)]
pub struct Import {
    pub listed: Vec<ListedModel>,
    pub stops: Vec<ImportStop>,
    pub notes: Vec<String>,
    pub left_out: Vec<(String, String)>,
}

impl ImportRequest<'_> {
    pub fn run(&self) -> Import {
        let mut import = Import { left_out: self.first.left_out.clone(), ..Import::default() };
        let asked = |name: &str| self.only.is_empty() || self.only.iter().any(|glob| glob.matches(name));
        import.left_out.retain(|(name, _)| asked(name));
        for model in self.first.models.iter().filter(|model| asked(&model.name)) {
            let second =
                self.second.and_then(|second| second.model(&model.name)).filter(|second| comparable(model, second));
            self.model(model, second, &mut import);
        }
        import.listed.sort_by(|a, b| a.name.cmp(&b.name));
        import
    }

    fn model(&self, first: &SourceModel, second: Option<&SourceModel>, import: &mut Import) {
        let name = format!("{}{}", self.prefix, first.name);
        let mut stops = first.stops.clone();
        let mut list = first.list;
        let mut unverified = Vec::new();
        // Vectors have no output, and nobody means a price for it.
        let vectors =
            |face: Face| face == Face::Output && first.list.get(face) == Some(0) && first.facts.contains_key("type");
        for (face, price) in first.list.iter().filter(|(face, _)| !vectors(*face)) {
            match second.and_then(|second| second.list.get(face)) {
                Some(other) if other == price => {}
                // Noise behind the last digit, from another unit.
                Some(other) if first.rounded.contains(&face) && other.checked_add(1) == Some(price) => {
                    list.set(face, Some(other));
                }
                // The dearer of two fees: which of them holds is a matter of versions of a tool.
                Some(other) if face.is_tool() => {
                    list.set(face, Some(price.max(other)));
                    unverified.push(face);
                }
                Some(other) => {
                    stops.push(format!(
                        "has two list prices of {}: {} and {} USD",
                        face.name(),
                        usd(price),
                        usd(other)
                    ));
                    unverified.push(face);
                }
                None => unverified.push(face),
            }
        }
        let mut facts = second.map(|second| second.facts.clone()).unwrap_or_default();
        merge(&mut facts, first.facts.clone());
        if let Some(second) = second {
            limits(&mut facts, &first.facts, &second.facts);
        }
        self.more_facts(&name, &mut facts);
        fit(&mut facts, &mut list);
        unverified.retain(|face| list.has(*face));
        let wants = [("tts", "speech"), ("video", "video")];
        let kind = facts.get("type").and_then(Value::as_str).unwrap_or_default();
        let missing = wants.iter().find(|(of, key)| kind == *of && !facts.contains_key(*key));
        if let Some((_, key)) = missing {
            stops.push(format!("needs a table `{key}`, which no price list has: give it with --facts"));
        }
        let accepted = self.accepted.iter().any(|glob| glob.matches(&name));
        if !stops.is_empty() && !accepted {
            import.stops.extend(stops.into_iter().map(|reason| ImportStop { model: name.clone(), reason }));
            return;
        }
        if first.unsellable || missing.is_some() || list.is_empty() {
            import.left_out.push((name, stops.join("; ")));
            return;
        }
        import.notes.extend(first.notes.iter().map(|note| format!("{name} {note}")));
        let tiers = first.tiers.iter().map(|tier| ListedTier { list: same_faces(&list, &tier.list), ..tier.clone() });
        let page = first.source.as_deref().filter(|page| page.starts_with("https://"));
        import.listed.push(ListedModel {
            name,
            upstream: first.name.clone(),
            unverified,
            source: if self.source.is_empty() { page.unwrap_or_default() } else { self.source }.to_owned(),
            verified_at: self.today.to_owned(),
            tiers: tiers.collect(),
            list,
            facts,
        });
    }

    fn more_facts(&self, name: &str, facts: &mut Table) {
        let tables = self.facts.iter().filter_map(|file| file.get("model").and_then(Value::as_table));
        for (pattern, value) in tables.flatten() {
            if let (true, Value::Table(more)) = (Glob::new(pattern).matches(name), value) {
                merge(facts, more.clone());
            }
        }
    }
}

/// Prices in the same unit, of a model that the second list can sell too.
fn comparable(first: &SourceModel, second: &SourceModel) -> bool {
    !second.unsellable && first.facts.get("billing_unit") == second.facts.get("billing_unit")
}

/// A file of facts, read.
pub fn facts_file(text: &str) -> Result<Table, String> {
    text.parse().map_err(|error: toml::de::Error| error.to_string())
}

/// Tables are merged, anything else is replaced.
fn merge(facts: &mut Table, more: Table) {
    for (key, value) in more {
        match (facts.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(more)) => merge(own, more),
            (_, value) => {
                facts.insert(key, value);
            }
        }
    }
}

/// A list that counts context and input apart knows better than one that has a single figure.
fn limits(facts: &mut Table, first: &Table, second: &Table) {
    let number = |table: &Table, key: &str| table.get(key).and_then(Value::as_integer);
    let context = [first, second].into_iter().filter_map(|table| number(table, "context_window")).max();
    if let (Some(context), Some(input)) = (context, number(first, "context_window"))
        && second.contains_key("max_output_tokens")
        && input < context
    {
        facts.insert("context_window".to_owned(), context.into());
        facts.insert("max_input_tokens".to_owned(), input.into());
    }
}

/// Limits and faces that fit each other, as the catalog demands.
fn fit(facts: &mut Table, list: &mut Faces) {
    if let Some(context) = facts.get("context_window").and_then(Value::as_integer) {
        for key in ["max_input_tokens", "max_output_tokens"] {
            if facts.get(key).and_then(Value::as_integer).is_some_and(|most| most > context) {
                facts.insert(key.to_owned(), context.into());
            }
        }
    }
    for (key, word, face) in [
        ("input_modalities", "audio", Face::AudioInput),
        ("output_modalities", "audio", Face::AudioOutput),
        ("output_modalities", "image", Face::ImageOutput),
    ] {
        let by_tokens = !facts.contains_key("billing_unit");
        let Some(Value::Array(words)) = facts.get_mut(key) else { continue };
        if by_tokens && !list.has(face) {
            words.retain(|one| one.as_str() != Some(word));
        }
    }
}

/// A tier prices what the base prices.
fn same_faces(base: &Faces, tier: &Faces) -> Faces {
    let mut list = Faces::NONE;
    for (face, price) in base.iter() {
        list.set(face, tier.get(face).or(Some(price)));
    }
    list
}

fn usd(micro: u64) -> Money {
    Money::from_nano(i64::try_from(micro).unwrap_or(i64::MAX).saturating_mul(1_000))
}
