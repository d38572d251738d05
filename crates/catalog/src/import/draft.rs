//! What `enable`, `disable`, `tidy`, `import` and `update` would do to a catalog, worked out in
//! memory: the command line writes it into the folder or publishes it, and operators get it over
//! HTTP to look at and publish.

use super::files::{CatalogEdits, CatalogFiles};
use super::plan::CatalogPlan;
use super::{
    Glob, Import, ImportLock, ImportStop, LOCK_FILE, ListedModel, LockedFile, Margin, PlanKind, PlanRequest, PlanStep,
    SaleTerms, ShippedFile, VENDORS_FILE, plan, shipped, vendors_for,
};
use crate::{Mistake, PriceChange, diff, load, same_prices_from, tidied};
use std::collections::BTreeSet;

/// What the lock calls the models that come with the product.
pub(super) const FROM_SHIPPED: &str = "shipped";

/// What a command would do.
#[derive(Clone, Debug, Default)]
pub struct CatalogDraft {
    pub edits: CatalogEdits,
    pub lock: ImportLock,
    pub steps: Vec<PlanStep>,
    /// Where there are some, nothing may be written before a person has looked at them.
    pub stops: Vec<ImportStop>,
    pub notes: Vec<String>,
    /// What customers pay differently.
    pub changes: Vec<PriceChange>,
    /// Models whose price changes of the past were folded, how many, and in which file.
    pub folded: Vec<(String, usize, String)>,
}

impl CatalogDraft {
    /// The edits with the lock as one of the files, where it is another one.
    pub fn with_lock(&self, before: &CatalogFiles) -> CatalogEdits {
        let mut edits = self.edits.clone();
        if self.lock != before.lock {
            edits.push((LOCK_FILE.to_owned(), self.lock.text()));
        }
        edits
    }
}

/// What came of price lists.
#[derive(Clone, Debug)]
pub enum DraftOutcome {
    Draft(CatalogDraft),
    /// The lists themselves have to be looked at: nothing was planned.
    Stopped(Import),
}

/// Why there is no draft.
#[derive(Clone, Debug)]
pub enum BadDraft {
    /// Something that was asked for, by its name.
    Wrong { field: &'static str, reason: String },
    /// The catalog as it is, or as it would be.
    Mistakes(Vec<Mistake>),
}

impl BadDraft {
    pub(super) fn about(field: &'static str, reason: impl Into<String>) -> BadDraft {
        BadDraft::Wrong { field, reason: reason.into() }
    }
}

impl From<Vec<Mistake>> for BadDraft {
    fn from(mistakes: Vec<Mistake>) -> BadDraft {
        BadDraft::Mistakes(mistakes)
    }
}

/// Which shipped models are to be sold, and how.
#[derive(Clone, Debug)]
pub struct EnableDraft<'a> {
    /// Whose models.
    pub provider: &'a str,
    pub models: &'a [Glob],
    /// The provider of the configuration that serves them, where it has another name.
    pub route: Option<&'a str>,
    pub margin: Margin,
    pub accept: &'a [Glob],
    /// The providers of the configuration.
    pub providers: &'a [String],
    pub today: &'a str,
}

/// One file that a command would change.
pub(super) struct FileChange {
    pub file: String,
    pub plan: CatalogPlan,
    /// What the lock says of it afterwards, but for the models.
    pub locked: LockedFile,
    pub listed: Vec<ListedModel>,
}

impl CatalogFiles {
    /// Sells shipped models: list price times margin.
    pub fn enable(&self, asked: &EnableDraft<'_>) -> Result<CatalogDraft, BadDraft> {
        let file = shipped(asked.provider).map_err(|why| BadDraft::about("provider", why))?;
        let route = asked.route.unwrap_or(asked.provider);
        if !asked.providers.iter().any(|name| name == route) {
            let why = format!("has no [provider.{route}]: `tollgate provider add {route}` writes it");
            return Err(BadDraft::about("route", why));
        }
        let unknown = |glob: &&Glob| !file.models.iter().any(|model| glob.matches(&model.name));
        if let Some(none) = asked.models.iter().find(unknown) {
            let why = format!("{none}: no shipped model of {} is called so", asked.provider);
            return Err(BadDraft::about("models", why));
        }
        let name = format!("{}.toml", asked.provider);
        let terms = SaleTerms { origin: asked.provider.to_owned(), route: route.to_owned(), margin: asked.margin };
        let plan = self.planned(
            &name,
            &PlanRequest {
                kind: PlanKind::Enable,
                before: self.text(&name),
                locked: self.lock.files.get(&name),
                listed: &file.models,
                only: asked.models,
                accepted: asked.accept,
                terms: &terms,
                taken: &self.taken(&name)?,
            },
        )?;
        let notes = unverified(&file, &plan);
        let locked = locked_shipped(&file, &terms, asked.today);
        let sold = |model: &ListedModel| plan.models.contains_key(&model.name);
        let listed = file.models.into_iter().filter(sold).collect();
        self.settled(vec![FileChange { file: name, plan, locked, listed }], notes)
    }

    /// Takes back what `enable` wrote; what was changed by hand stays.
    pub fn disable(&self, provider: &str, models: &[Glob]) -> Result<CatalogDraft, BadDraft> {
        let name = format!("{provider}.toml");
        let Some(locked) = self.lock.files.get(&name) else {
            let place = self.place("");
            let place = if place.is_empty() { place } else { format!(" in {place}") };
            return Err(BadDraft::about("provider", format!("nothing of {provider} was enabled{place}")));
        };
        let terms = SaleTerms { origin: provider.to_owned(), route: locked.route.clone(), margin: locked.margin };
        let plan = self.planned(
            &name,
            &PlanRequest {
                kind: PlanKind::Disable,
                before: self.text(&name),
                locked: Some(locked),
                listed: &[],
                only: models,
                accepted: &[],
                terms: &terms,
                taken: &BTreeSet::new(),
            },
        )?;
        let change = FileChange { file: name, plan, locked: locked.clone(), listed: Vec::new() };
        self.settled(vec![change], Vec::new())
    }

    /// Folds price changes of the past into the prices of their models. Nothing that is sold or
    /// shown differs afterwards.
    pub fn tidy(&self, now_ms: i64) -> Result<CatalogDraft, BadDraft> {
        let before = self.loaded()?;
        let mut draft = CatalogDraft { lock: self.lock.clone(), ..CatalogDraft::default() };
        for (name, text) in self.files() {
            let place = self.place(name);
            let tidied =
                tidied(text, &before, now_ms).map_err(|why| BadDraft::about("action", format!("{place}: {why}")))?;
            let Some(tidied) = tidied else { continue };
            draft.folded.extend(tidied.folded.into_iter().map(|(model, count)| (model, count, place.clone())));
            draft.edits.push((name.to_owned(), Some(tidied.text)));
        }
        let after = load(&self.after(&draft.edits))?;
        if !same_prices_from(&before, &after, now_ms) {
            let why = "the prices would not be the same afterwards: fold the changes by hand";
            return Err(BadDraft::about("action", why));
        }
        Ok(draft)
    }

    pub(super) fn planned(&self, name: &str, request: &PlanRequest<'_>) -> Result<CatalogPlan, BadDraft> {
        plan(request).map_err(|why| BadDraft::about("file", format!("{} {why}", self.place(name))))
    }

    /// The plans of files put together, held against the whole catalog.
    pub(super) fn settled(&self, changes: Vec<FileChange>, notes: Vec<String>) -> Result<CatalogDraft, BadDraft> {
        let mut draft = CatalogDraft { lock: self.lock.clone(), notes, ..CatalogDraft::default() };
        for change in &changes {
            let same = change.plan.text.as_deref().unwrap_or("") == self.text(&change.file);
            if !same {
                draft.edits.push((change.file.clone(), change.plan.text.clone()));
            }
            note(&mut draft.lock, change, same);
        }
        let written: Vec<&ListedModel> = changes.iter().flat_map(|change| &change.listed).collect();
        if let Some(vendors) = vendors_for(&self.after(&draft.edits), self.text(VENDORS_FILE), &written) {
            draft.edits.push((VENDORS_FILE.to_owned(), Some(vendors)));
        }
        let after = load(&self.after(&draft.edits))?;
        draft.changes = self.loaded().map(|before| diff(&before, &after)).unwrap_or_default();
        for change in changes {
            draft.steps.extend(change.plan.steps);
            draft.stops.extend(change.plan.stops);
        }
        Ok(draft)
    }
}

fn note(lock: &mut ImportLock, change: &FileChange, same: bool) {
    if change.plan.text.is_none() || change.plan.models.is_empty() {
        lock.files.remove(&change.file);
        return;
    }
    let models = change.plan.models.clone();
    let mut locked = LockedFile { models, ..change.locked.clone() };
    // A look that changes nothing leaves the day as it was.
    if let Some(before) = lock.files.get(&change.file).filter(|before| same && before.models == locked.models) {
        locked.day.clone_from(&before.day);
    }
    lock.files.insert(change.file.clone(), locked);
}

/// What the lock says of a file that sells shipped models.
pub(super) fn locked_shipped(file: &ShippedFile, terms: &SaleTerms, today: &str) -> LockedFile {
    LockedFile {
        from: vec![FROM_SHIPPED.to_owned()],
        digest: file.digest.clone(),
        day: today.to_owned(),
        provider: file.provider.clone(),
        route: terms.route.clone(),
        margin: terms.margin,
        models: Default::default(),
    }
}

/// Prices that only one source knows are worth a look before they are charged.
fn unverified(file: &ShippedFile, plan: &CatalogPlan) -> Vec<String> {
    let written = |name: &String| plan.steps.iter().any(|step| step.model == *name);
    let models = file.models.iter().filter(|model| written(&model.name));
    let main: Vec<&str> = models
        .filter(|model| model.list.iter().next().is_some_and(|(face, _)| model.unverified.contains(&face)))
        .map(|model| model.name.as_str())
        .collect();
    if main.is_empty() {
        return Vec::new();
    }
    vec![format!("one source alone knows the list prices of {}: compare them with {}", main.join(", "), file.source)]
}
