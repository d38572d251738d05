//! A whole configuration: the settings, and with them the catalog and the providers, held against
//! what this build serves. All mistakes are listed at once, and nothing is taken over unless all of
//! it is right.

use crate::door::tls::TlsPair;
use crate::endpoints::served;
use crate::endpoints::workflows::bound;
use crate::sale::workflows::BoundWorkflows;
use crate::sale::{CatalogReader, CatalogText, CheckedCatalog, Serving, music, offers, pictures, recordings, speech};
use crate::settings::{
    CatalogSource, ConfigSource, Settings, catalog_files, catalog_lock, file_mistake, whole_mistake, workflow_files,
};
use crate::work::{decisions, embeddings, realtime, rerank};
use crate::world::Millis;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tollgate_catalog::form::{Form, Mistakes};
use tollgate_catalog::import::LOCK_FILE;
use tollgate_catalog::{Fraction, Mistake, Model, Snapshot};
use tollgate_upstream::{Ability, Provider};
use tollgate_wire::Dialect;

pub struct Loaded {
    pub settings: Settings,
    /// The certificate of the listening port. Read at a start and by a check; from then on it is
    /// taken anew by itself (`workers/reload.rs`).
    pub tls: Option<TlsPair>,
    pub serving: Serving,
    /// What is wrong with the folder of a catalog that is served from the database: it matters
    /// where nothing was published yet.
    pub unread: Vec<Mistake>,
}

impl Loaded {
    /// What is no mistake, but hardly meant.
    pub fn warnings(&self, now: Millis) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.tls.as_ref().is_some_and(|pair| pair.ends < now / 1_000) {
            warnings.push("the certificate in `tls_cert` has ended: clients refuse it".to_owned());
        }
        if !self.serving.offers.is_empty() && self.settings.reached_at().is_none() {
            warnings.push(
                "`public_url` is not set: webhooks about videos carry no link of ours, since the gateway listens at every address and does not know its own"
                    .to_owned(),
            );
        }
        warnings.extend(price_warnings(&self.serving.catalog, now));
        warnings.extend(self.serving.workflows.values().flat_map(|bound| bound.warnings()));
        warnings
    }
}

/// Warnings of one kind that are told one by one; of the others, how many.
const MOST_WARNINGS: usize = 20;
/// A list price that nobody has looked at for longer may have changed.
const OLD_DAYS: i64 = 90;

/// Prices below what they cost the operator, and list prices that were looked up long ago.
fn price_warnings(catalog: &Snapshot, now: Millis) -> Vec<String> {
    let mut below = Vec::new();
    let mut old = Vec::new();
    for model in catalog.models.values() {
        let groups = model.enable_groups.iter().filter_map(|name| catalog.groups.get(name));
        let multipliers: Vec<Fraction> = groups.map(|group| group.multiplier).collect();
        for (provider, faces) in model.below_cost(&multipliers, now) {
            let (name, faces) = (&model.name, faces.join(", "));
            below.push(format!("{name:?} is sold below what it costs at {provider:?}: {faces}"));
        }
        if model.list_at(now).and_then(|list| list.age_days(now)).is_some_and(|days| days > OLD_DAYS) {
            let name = &model.name;
            old.push(format!("the list price of {name:?} was verified more than {OLD_DAYS} days ago"));
        }
    }
    let mut warnings = Vec::new();
    for (mut list, rest) in [(below, "are sold below their cost"), (old, "have list prices that old")] {
        let more = list.len().saturating_sub(MOST_WARNINGS);
        list.truncate(MOST_WARNINGS);
        warnings.extend(list);
        if more > 0 {
            warnings.push(format!("{more} more models or routes {rest}"));
        }
    }
    warnings
}

impl ConfigSource {
    /// Reads everything. Nothing is taken over unless all of it is right.
    pub fn load(&self) -> Result<Loaded, Vec<Mistake>> {
        self.read(None, None)
    }

    /// The same with the catalog that is being served: what has not changed in it is not read
    /// again. A catalog that was published is given; that of the folder is read.
    pub fn load_again(&self, before: &Snapshot, given: Option<&CatalogText>) -> Result<Loaded, Vec<Mistake>> {
        self.read(Some(before), given)
    }

    fn read(&self, before: Option<&Snapshot>, given: Option<&CatalogText>) -> Result<Loaded, Vec<Mistake>> {
        let mistakes = Mistakes::default();
        let name = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|error| vec![file_mistake(&name, &error)])?;
        let mut form = Form::parse_with(&name, &text, &self.overrides(), &mistakes);
        let settings = self.settings(&mut form);
        let tls = settings
            .tls
            .as_ref()
            .filter(|_| before.is_none())
            .and_then(|files| TlsPair::read(files).map_err(|bad| form.mistake(bad.field, bad.reason)).ok());
        let providers = self.providers(&mut form);
        form.finish();
        let names: Vec<&str> = providers.keys().map(String::as_str).collect();
        let workflows = workflows(&settings.catalog_dir, &mistakes);
        let own = Mistakes::default();
        let text = match given {
            Some(text) => Some(Arc::new(text.clone())),
            None => folder_text(&settings.catalog_dir, &own),
        };
        let files = text.as_deref().map(|text| named(&settings.catalog_dir, text, given.is_none()));
        let mut catalog = files.and_then(|files| catalog(&files, &names, before, &own));
        let mut offers = catalog.as_ref().map(|catalog| {
            right_kinds(catalog, &providers, &own);
            pictures::check(catalog, &providers, &own);
            speech::check(catalog, &providers, &own);
            music::check(catalog, &providers, &own);
            recordings::check(catalog, &providers, &own);
            offers::read(catalog, &providers, &own)
        });
        // Where the catalog comes from the database, the folder need not be right.
        let aside = given.is_none() && settings.catalog_source == CatalogSource::Database;
        let mut unread = own.into_list();
        if aside && !unread.is_empty() {
            (catalog, offers) = (tollgate_catalog::load_for(&[], &names).ok(), None);
        } else {
            unread.drain(..).for_each(|mistake| mistakes.push(mistake));
        }
        let providers =
            providers.into_iter().filter_map(|(name, provider)| Some((name, Arc::new(provider?)))).collect();
        let offers = offers.unwrap_or_default();
        let text = text.unwrap_or_default();
        let served = served().map(|(kind, row)| (kind, row.method.as_str(), row.path)).collect();
        let serving = catalog.map(|catalog| Serving { catalog, providers, offers, workflows, served, text });
        let loaded = serving.map(|serving| Loaded { settings, tls, serving, unread });
        match (mistakes.result(()), loaded) {
            (Ok(()), Some(loaded)) => Ok(loaded),
            (Err(list), _) => Err(list),
            (Ok(()), None) => Err(vec![whole_mistake(&name, "could not be read")]),
        }
    }
}

impl CatalogReader for ConfigSource {
    fn read_candidate(
        &self,
        text: &CatalogText,
        before: &Serving,
        now: Millis,
    ) -> Result<CheckedCatalog, Vec<Mistake>> {
        // What is served goes on whatever the lock says; what is published begins with a good one.
        text.to_draft().map_err(|bad| vec![whole_mistake(LOCK_FILE, &bad.to_string())])?;
        let loaded = self.load_again(&before.catalog, Some(text))?;
        let warnings = price_warnings(&loaded.serving.catalog, now);
        Ok(CheckedCatalog { serving: loaded.serving, warnings })
    }
}

/// The files that lie in the folder.
fn folder_text(dir: &Path, mistakes: &Mistakes) -> Option<Arc<CatalogText>> {
    match catalog_files(dir) {
        Ok(files) => Some(Arc::new(CatalogText::of_folder(dir, &files, catalog_lock(dir)))),
        Err(error) => {
            mistakes.push(file_mistake(&dir.display().to_string(), &error));
            None
        }
    }
}

/// The files as mistakes name them: those of the folder by where they lie.
fn named<'a>(dir: &Path, text: &'a CatalogText, lies_there: bool) -> Cow<'a, [(String, String)]> {
    let files = text.catalog();
    if !lies_there {
        return files;
    }
    let placed = |(name, text): &(String, String)| (dir.join(name).display().to_string(), text.clone());
    Cow::Owned(files.iter().map(placed).collect())
}

fn catalog(
    files: &[(String, String)],
    providers: &[&str],
    before: Option<&Snapshot>,
    mistakes: &Mistakes,
) -> Option<Snapshot> {
    let catalog = match before {
        Some(before) => tollgate_catalog::load_again(files, providers, before),
        None => tollgate_catalog::load_for(files, providers),
    };
    catalog.map_err(|list| list.into_iter().for_each(|one| mistakes.push(one))).ok()
}

/// The workflows that lie with the catalog.
fn workflows(catalog_dir: &Path, mistakes: &Mistakes) -> BoundWorkflows {
    let (files, unread) = workflow_files(catalog_dir);
    unread.into_iter().for_each(|mistake| mistakes.push(mistake));
    let all = tollgate_workflows::load_workflows(&files, mistakes);
    all.into_iter().map(|(slug, workflow)| (slug, Arc::new(bound(workflow)))).collect()
}

/// What a provider has to be able to do for a model of an endpoint type that is no conversation.
const NEEDED: &[(&str, Ability)] = &[
    (pictures::ENDPOINT_TYPE, Ability::Image),
    (embeddings::ENDPOINT_TYPE, Ability::Embeddings),
    (rerank::ENDPOINT_TYPE, Ability::Rerank),
    (decisions::ENDPOINT_TYPE, Ability::Decisions),
    (realtime::ENDPOINT_TYPE, Ability::Realtime),
];

/// Every route leads to a provider that can do what is routed to it. Videos are held to their
/// variants besides (`sale/offers.rs`).
fn right_kinds(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) {
    let chats = |model: &&Arc<Model>| Dialect::ALL.iter().any(|dialect| model.supports(dialect.word()));
    let models = catalog.models.values().filter(chats).map(|model| (model, Ability::Chat));
    let cells = catalog.social.cells().map(|cell| (&cell.model, Ability::Social));
    let others = NEEDED.iter().flat_map(|(endpoint_type, ability)| {
        let offered = catalog.models.values().filter(|model| model.supports(endpoint_type));
        offered.map(|model| (model, *ability))
    });
    for (model, ability) in models.chain(cells).chain(others) {
        for route in &model.routes {
            let Some(Some(provider)) = providers.get(&route.provider) else { continue };
            if let Some(reason) = provider.lacks(ability) {
                mistakes.push(route.place.mistake("route.provider", reason));
            }
        }
    }
}
