//! The table of variants: the catalog names one per video model, and everything else follows from
//! its row.

use super::fields::{FieldNames, VideoFieldKind};
use super::plan::{Case, Draft};
use super::{VideoRefusal, hailuo, kling, kling_omni, kling_turbo, minimax, seedance, sora, veo, wan};
use std::collections::BTreeMap;

/// A provider's way of making videos: one body, one set of paths, one set of status words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    DashScope,
    Ark,
    KlingV1,
    Kling2,
    KlingOmni,
    MiniMaxV1,
    MiniMaxV2,
    Sora,
    Veo,
}

impl Api {
    /// What a body says of the length where it is left to the provider: Ark decides it, an edit
    /// keeps that of its source.
    pub fn left_length(self) -> &'static str {
        if self == Api::Ark { "-1" } else { "0" }
    }
}

/// One row: which fields count, what is on sale, and the function that builds the body.
pub(crate) struct VariantRules {
    pub name: &'static str,
    pub api: Api,
    /// Top-level fields it reads; others are reported.
    pub reads: &'static [&'static str],
    pub metadata: FieldNames,
    /// Values of effective parameters that are sold when the catalog does not say otherwise.
    pub sells: &'static [(&'static str, &'static [&'static str])],
    /// The shortest video it makes, in seconds.
    pub shortest: u32,
    pub build: fn(&mut Case<'_>) -> Result<Draft, VideoRefusal>,
}

/// A family's variant.
#[derive(Clone, Copy)]
pub struct Variant(&'static VariantRules);

const TABLE: &[&[VariantRules]] = &[
    wan::RULES,
    seedance::RULES,
    kling::RULES,
    kling_turbo::RULES,
    kling_omni::RULES,
    minimax::RULES,
    hailuo::RULES,
    sora::RULES,
    veo::RULES,
];

impl Variant {
    /// The variant the catalog calls so, for example `a-text-to-video`.
    pub fn named(name: &str) -> Option<Variant> {
        Variant::all().find(|variant| variant.name() == name)
    }

    pub fn all() -> impl Iterator<Item = Variant> {
        TABLE.iter().flat_map(|rows| rows.iter()).map(Variant)
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn api(self) -> Api {
        self.0.api
    }

    pub(crate) fn rules(self) -> &'static VariantRules {
        self.0
    }

    /// The shortest video it makes, in seconds.
    pub fn shortest(self) -> u32 {
        self.0.shortest
    }

    /// The effective parameters of which it sells some values and not others.
    pub fn parameters(self) -> impl Iterator<Item = &'static str> {
        self.0.sells.iter().map(|(name, _)| *name)
    }

    /// The resolution that a size on sale belongs to, where prices may go by either.
    pub fn resolution_of(self, size: &str) -> Option<&'static str> {
        (self.api() == Api::Sora).then(|| sora::resolution(size))
    }

    /// Whether it sends a size as it was written.
    pub fn writes_size(self) -> bool {
        matches!(self.name(), "a-text-to-video" | "e-text-to-video")
    }

    /// The values of an effective parameter it sells by itself; empty when it has no such
    /// parameter.
    pub fn sells(self, parameter: &str) -> &'static [&'static str] {
        let row = self.0.sells.iter().find(|(name, _)| *name == parameter);
        row.map_or(&[], |(_, values)| values)
    }
}

impl std::fmt::Debug for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Variant) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Variant {}

/// What the catalog says of a model on sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub variant: Variant,
    /// Values on sale by effective parameter (`resolution`, `mode`, …), where they differ from the
    /// variant's own list. A value without a price must not stand here, and one that has a price
    /// may be added.
    pub sold: BTreeMap<String, Vec<String>>,
    /// The longest video sold, where shorter than the provider's.
    pub max_seconds: Option<u32>,
    /// Where a size is sent as it was written, its tier and ratio are sent beside it: for a server
    /// that does not read sizes.
    pub tier_beside_size: bool,
}

impl Offer {
    /// The variant as it is.
    pub fn of(variant: Variant) -> Offer {
        Offer { variant, sold: BTreeMap::new(), max_seconds: None, tier_beside_size: false }
    }

    /// The value of a parameter that nobody named: the provider's own default, or the first on sale
    /// where that one is not.
    pub(crate) fn default_of(&self, parameter: &str, usual: &str) -> String {
        let first =
            self.sold.get(parameter).filter(|list| !list.iter().any(|one| one == usual)).and_then(|list| list.first());
        first.map_or_else(|| usual.to_owned(), String::clone)
    }

    /// Whether a video with these parameters is still on sale, for one that is made again as it
    /// was; `param` names the earlier one.
    pub fn sells_again(
        &self,
        effective: &[(&'static str, String)],
        seconds: Option<u32>,
        param: &str,
    ) -> Result<(), VideoRefusal> {
        for (name, value) in effective.iter().filter(|(name, _)| !self.variant.sells(name).is_empty()) {
            self.check(name, value, param)?;
        }
        match (seconds, self.max_seconds) {
            (Some(seconds), Some(most)) if seconds > most => {
                let message = format!("It is {seconds} seconds long; this model is sold with up to {most}.");
                Err(VideoRefusal::unsupported(param, message))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check(&self, parameter: &str, value: &str, param: &str) -> Result<(), VideoRefusal> {
        let own = self.variant.sells(parameter);
        let listed = self.sold.get(parameter);
        let sold = listed.map_or_else(|| own.contains(&value), |list| list.iter().any(|one| one == value));
        if sold {
            return Ok(());
        }
        let list = listed.map_or_else(|| own.join(", "), |list| list.join(", "));
        Err(VideoRefusal::unsupported(
            param,
            format!("{value} has no price for this model; `{parameter}` may be {list}."),
        ))
    }
}

/// Reasons shared by several families.
pub(crate) const OTHER_MODEL: VideoFieldKind = VideoFieldKind::Refused("The model is chosen by `model` alone.");
pub(crate) const CALLBACK: VideoFieldKind =
    VideoFieldKind::Dropped("Providers are not given addresses to call back; poll the task instead.");
pub(crate) const OWN_ID: VideoFieldKind = VideoFieldKind::Dropped("The gateway gives its own id to the provider.");
