//! What a command would do to a file of the catalog, before it does anything: which models come,
//! change, go or stay because the operator changed them, and what stops it.

use super::lock::LockedModel;
use super::{Glob, ListedModel, LockedFile, SaleTerms};
use crate::load::pages;
use crate::{Face, Faces};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A list price that moves by more than this many percent is not taken over silently.
const LARGEST_CHANGE: u64 = 20;

/// What is wanted of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Sell what is listed; the rest of the file stays.
    Enable,
    /// Bring the file up to the list: what was sold and is no longer listed stops it.
    Update,
    /// Sell nothing of what a command wrote.
    Disable,
}

pub struct PlanRequest<'a> {
    pub kind: PlanKind,
    /// The text of the file; empty where there is none.
    pub before: &'a str,
    pub locked: Option<&'a LockedFile>,
    pub listed: &'a [ListedModel],
    /// Which models the command is about; empty: all.
    pub only: &'a [Glob],
    /// Models whose stops were seen by a person.
    pub accepted: &'a [Glob],
    pub terms: &'a SaleTerms,
    /// Names that other files of the catalog sell.
    pub taken: &'a BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub struct CatalogPlan {
    /// The file as it would be; `None` when it would have no model and nothing else.
    pub text: Option<String>,
    pub steps: Vec<PlanStep>,
    pub stops: Vec<ImportStop>,
    /// What the lock would know of each model.
    pub models: BTreeMap<String, LockedModel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    Add,
    Change,
    Remove,
    /// Changed by hand, so it stays as it is.
    Yours,
    /// Removed by hand, so it stays away.
    LeftOut,
    /// Another file sells a model of this name.
    Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanStep {
    pub model: String,
    pub what: StepKind,
    /// List prices that the vendor changed since they were taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vendor: Vec<FaceStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaceStep {
    pub face: Face,
    pub old: Option<u64>,
    pub new: Option<u64>,
}

/// Something that a person has to look at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportStop {
    pub model: String,
    pub reason: String,
}

/// Works it out. Fails where the file cannot be taken apart by models.
pub fn plan(request: &PlanRequest<'_>) -> Result<CatalogPlan, String> {
    let cut = pages::cut(request.before).ok_or("is written in a way that cannot be changed model by model")?;
    let pages: BTreeMap<&str, &str> = cut.pages.iter().map(|page| (page.model, page.text)).collect();
    let listed: BTreeMap<&str, &ListedModel> =
        request.listed.iter().map(|model| (model.name.as_str(), model)).collect();
    let mut draft = Draft { request, texts: Vec::new(), steps: Vec::new(), stops: Vec::new(), models: BTreeMap::new() };
    let known = request.locked.map(|locked| &locked.models);
    let names: BTreeSet<&str> = pages
        .keys()
        .chain(listed.keys())
        .copied()
        .chain(known.into_iter().flatten().map(|(name, _)| name.as_str()))
        .collect();
    for name in names {
        let locked = known.and_then(|known| known.get(name));
        draft.model(name, pages.get(name).copied(), locked, listed.get(name).copied());
    }
    let rest = cut.rest.trim();
    let head = if rest.is_empty() { String::new() } else { format!("{rest}\n\n") };
    let text = (!draft.texts.is_empty() || !rest.is_empty()).then(|| head + &draft.texts.join("\n"));
    Ok(CatalogPlan { text, steps: draft.steps, stops: draft.stops, models: draft.models })
}

struct Draft<'a> {
    request: &'a PlanRequest<'a>,
    texts: Vec<String>,
    steps: Vec<PlanStep>,
    stops: Vec<ImportStop>,
    models: BTreeMap<String, LockedModel>,
}

impl Draft<'_> {
    fn model(&mut self, name: &str, page: Option<&str>, locked: Option<&LockedModel>, listed: Option<&ListedModel>) {
        let asked = self.request.only.is_empty() || self.request.only.iter().any(|glob| glob.matches(name));
        let disable = self.request.kind == PlanKind::Disable;
        let listed = listed.filter(|_| asked && !disable);
        // A page that would be written just so is ours too, should the lock have been lost.
        let written = |page: &str| {
            let again = listed.and_then(|listed| listed.page(self.request.terms));
            locked.is_some_and(|locked| locked.wrote(page))
                || again.is_some_and(|again| again.trim_end() == page.trim_end())
        };
        let ours = page.is_some_and(|page| written(page) && !by_hand(page));
        match (page, listed) {
            (Some(page), Some(listed)) if ours => self.renew(page, locked, listed),
            (Some(page), _) if !ours => {
                let vendor = listed.map_or_else(Vec::new, |listed| changes(locked.map(|old| &old.list), &listed.list));
                if asked {
                    self.step(name, StepKind::Yours, vendor);
                }
                self.leave(name, page, locked);
            }
            (Some(page), _) => {
                let stays = match self.request.kind {
                    _ if !asked => true,
                    PlanKind::Disable => false,
                    PlanKind::Enable => true,
                    PlanKind::Update => self.stop(name, "is no longer in the source".to_owned()),
                };
                if stays {
                    self.leave(name, page, locked);
                } else {
                    self.step(name, StepKind::Remove, Vec::new());
                }
            }
            (None, Some(listed)) if self.request.taken.contains(name) => {
                self.step(&listed.name, StepKind::Taken, Vec::new());
            }
            (None, Some(_)) if locked.is_some() && self.request.kind == PlanKind::Update => {
                self.step(name, StepKind::LeftOut, Vec::new());
                self.models.extend(locked.map(|locked| (name.to_owned(), locked.clone())));
            }
            (None, Some(listed)) => self.write(listed, StepKind::Add, Vec::new()),
            (None, None) => {}
        }
    }

    /// A page that a command wrote and nobody changed.
    fn renew(&mut self, page: &str, locked: Option<&LockedModel>, listed: &ListedModel) {
        let vendor = changes(locked.map(|old| &old.list), &listed.list);
        if let Some(large) = vendor.iter().find(|change| is_large(change)) {
            let reason = format!("the list price of {} {}", large.face.name(), in_words(large));
            if self.stop(&listed.name, reason) {
                return self.leave(&listed.name, page, locked);
            }
        }
        match listed.page(self.request.terms) {
            Some(text) if text.trim_end() == page.trim_end() => {
                self.leave(&listed.name, page, Some(&LockedModel::of(page, listed.list)));
            }
            _ => self.write(listed, StepKind::Change, vendor),
        }
    }

    fn write(&mut self, listed: &ListedModel, what: StepKind, vendor: Vec<FaceStep>) {
        match listed.page(self.request.terms) {
            Some(page) => {
                self.models.insert(listed.name.clone(), LockedModel::of(&page, listed.list));
                self.texts.push(page);
                self.step(&listed.name, what, vendor);
            }
            None => self.stops.push(ImportStop {
                model: listed.name.clone(),
                reason: "would have a price above a million dollars".to_owned(),
            }),
        }
    }

    fn leave(&mut self, name: &str, page: &str, locked: Option<&LockedModel>) {
        self.texts.push(format!("{}\n", page.trim_end()));
        self.models.extend(locked.map(|locked| (name.to_owned(), locked.clone())));
    }

    fn step(&mut self, model: &str, what: StepKind, vendor: Vec<FaceStep>) {
        self.steps.push(PlanStep { model: model.to_owned(), what, vendor });
    }

    /// Whether it stops here; it does not where a person has accepted it.
    fn stop(&mut self, model: &str, reason: String) -> bool {
        let accepted = self.request.accepted.iter().any(|glob| glob.matches(model));
        if !accepted {
            self.stops.push(ImportStop { model: model.to_owned(), reason });
        }
        !accepted
    }
}

/// A model whose prices an operator typed is his.
fn by_hand(page: &str) -> bool {
    let table: Result<toml::Table, _> = page.parse();
    let models = table.ok().and_then(|whole| whole.get("model")?.as_table().cloned());
    let origin = models.and_then(|models| models.values().next()?.get("origin")?.as_str().map(str::to_owned));
    origin.as_deref() == Some("hand")
}

fn changes(old: Option<&Faces>, new: &Faces) -> Vec<FaceStep> {
    let Some(old) = old else { return Vec::new() };
    let differs = |face: &Face| old.get(*face) != new.get(*face);
    let step = |face: Face| FaceStep { face, old: old.get(face), new: new.get(face) };
    Face::ALL.into_iter().filter(differs).map(step).collect()
}

/// A price that moves by more than a fifth, or becomes zero. One that appears or goes is as large.
fn is_large(change: &FaceStep) -> bool {
    match (change.old, change.new) {
        (Some(old), Some(new)) => {
            u128::from(old.abs_diff(new)) * 100 > u128::from(old) * u128::from(LARGEST_CHANGE) || new == 0
        }
        (None, None) => false,
        _ => true,
    }
}

fn in_words(change: &FaceStep) -> String {
    let usd = |micro: u64| crate::Money::from_nano(i64::try_from(micro).unwrap_or(i64::MAX).saturating_mul(1_000));
    match (change.old, change.new) {
        (Some(old), Some(new)) => format!("changes from {} to {} USD", usd(old), usd(new)),
        (Some(old), None) => format!("was {} USD and is gone", usd(old)),
        (None, Some(new)) => format!("is new: {} USD", usd(new)),
        (None, None) => "is the same".to_owned(),
    }
}

impl std::fmt::Display for FaceStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.face.name(), in_words(self))
    }
}
