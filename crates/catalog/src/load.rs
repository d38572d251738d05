//! From files to a snapshot, or to the list of all mistakes in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::book::Common;
use crate::form::{Form, Mistakes, join};
use crate::social::Social;
use crate::timeline::Periods;
use crate::version::{Fingerprint, book_fingerprint, fingerprint, pricing_version};
use crate::{Book, Fraction, Group, Mistake, Model, Snapshot, Vendor};

mod changes;
mod chat;
mod conditions;
mod embedding;
mod groups;
mod image;
mod labels;
mod list;
mod models;
mod music;
pub(crate) mod pages;
mod prices;
mod social;
mod source;
mod speech;
mod transcription;
mod vendors;
mod video;

use source::CatalogFile;
pub(crate) use source::LoadedPage;

/// What models of any file may name, wherever it is written. Besides its own text, nothing else
/// makes a difference to how a model is read.
struct CatalogNames<'a> {
    groups: &'a BTreeMap<String, Group>,
    vendors: &'a BTreeMap<String, Vendor>,
}

impl CatalogNames<'_> {
    fn same(&self, before: &Snapshot) -> bool {
        before.groups.keys().eq(self.groups.keys()) && before.vendors.keys().eq(self.vendors.keys())
    }
}

/// Reads the files of a catalog (name and text of each). All or nothing: a snapshot, or every
/// mistake. Where its routes may lead is not asked.
pub fn load(files: &[(String, String)]) -> Result<Snapshot, Vec<Mistake>> {
    read(files, None, None)
}

/// The same with the providers there are: a route to another one is a mistake like the rest.
pub fn load_for(files: &[(String, String)], providers: &[&str]) -> Result<Snapshot, Vec<Mistake>> {
    read(files, Some(providers), None)
}

/// The same, when most of it has been read before: models whose text has not changed are taken over
/// from that snapshot.
pub fn load_again(files: &[(String, String)], providers: &[&str], before: &Snapshot) -> Result<Snapshot, Vec<Mistake>> {
    read(files, Some(providers), Some(before))
}

fn read(
    files: &[(String, String)],
    providers: Option<&[&str]>,
    before: Option<&Snapshot>,
) -> Result<Snapshot, Vec<Mistake>> {
    let mistakes = Mistakes::default();
    let (sources, mut forms): (Vec<CatalogFile<'_, '_>>, Vec<Form<'_>>) =
        files.iter().map(|(name, text)| CatalogFile::open(name, text, before, &mistakes)).unzip();

    // Groups first: models of any file may name a group of any other.
    let (groups, auto_groups) = groups::read(&mut forms, &mistakes);
    let vendors = vendors::read(&mut forms);
    let names = CatalogNames { groups: &groups, vendors: &vendors };
    let before = before.filter(|before| names.same(before));
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut loaded = HashMap::new();
    for (form, source) in forms.iter_mut().zip(sources) {
        for (name, table) in form.named("model") {
            if let Some(first) = models.get(&name) {
                table.mistake_here(format!("is already defined in {}", first.place));
                table.ignore_rest();
                continue;
            }
            let model = models::read(&name, table, &names);
            models.insert(name, model);
        }
        for page in source.models() {
            let name = page.name().to_owned();
            if let Some(first) = models.get(&name) {
                mistakes.add(&page.place(), &join("model", &name), format!("is already defined in {}", first.place));
                continue;
            }
            let remember = page.loaded(&groups, before);
            if let Some(model) = page.model(&names, before) {
                loaded.insert(name.clone(), remember);
                models.insert(name, model);
            }
        }
    }
    let mut platforms = social::read(&mut forms, &groups);
    for form in forms {
        form.finish();
    }
    let cells = platforms.iter().flat_map(|platform| &platform.cells).map(|cell| &*cell.model);
    let of_models = models.values().map(|model| (join("model", &model.name), model));
    for (table, model) in of_models.chain(cells.map(|cell| (join("social", &cell.name), cell))) {
        for route in &model.routes {
            if let Some(mistake) = providers.and_then(|known| route.unknown_provider(&table, known)) {
                mistakes.push(mistake);
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes.into_list());
    }

    let cells = platforms.iter().flat_map(|platform| &platform.cells).map(|cell| &*cell.model);
    let periods = periods(models.values().chain(cells), &groups, &mut loaded);
    if periods.later.len() > MOST_INSTANTS {
        let reason = format!(
            "prices change at more than {MOST_INSTANTS} different instants; `tollgate catalog tidy` folds those of the past"
        );
        let changed = models.values().rev().find(|model| !model.changes.is_empty());
        changed.into_iter().for_each(|model| mistakes.add(&model.place, &join("model", &model.name), reason.clone()));
    }
    let periods = Arc::new(periods);
    for model in models.values_mut() {
        open_book(model, &periods, &groups, &mistakes);
    }
    for cell in platforms.iter_mut().flat_map(|platform| &mut platform.cells) {
        let model = Arc::make_mut(&mut Arc::make_mut(cell).model);
        open_book(model, &periods, &groups, &mistakes);
    }
    let social = Social::new(platforms);
    let models: BTreeMap<String, Arc<Model>> =
        models.into_iter().map(|(name, model)| (name, Arc::new(model))).collect();
    // Calls find cells like models; lists of models do not show them.
    let cells = social.cells().map(|cell| &cell.model);
    let by_name = models.values().chain(cells).map(|model| (model.name.clone(), Arc::clone(model))).collect();
    mistakes.result(Snapshot { models, social, groups, auto_groups, vendors, by_name, periods, loaded })
}

/// Instants at which any price changes. Each has a version of all prices.
const MOST_INSTANTS: usize = 400;

/// The versions of all prices over time; prices of pages that were taken over are known.
fn periods<'a>(
    models: impl Iterator<Item = &'a Model>,
    groups: &BTreeMap<String, Group>,
    loaded: &mut HashMap<String, LoadedPage>,
) -> Periods {
    let models: Vec<&'a Model> = models.collect();
    let print = |model: &'a Model| {
        let prices = match loaded.get_mut(&model.name) {
            Some(loaded) => *loaded.prices.get_or_insert_with(|| fingerprint(model, groups)),
            None => fingerprint(model, groups),
        };
        (model.name.as_str(), prices)
    };
    let mut prints: BTreeMap<&str, Fingerprint> = models.iter().copied().map(print).collect();
    let first = pricing_version(&prints).into();
    let mut changes: Vec<(i64, &'a Model, &'a Book)> = Vec::new();
    for model in models.iter().filter(|model| !model.changes.is_empty()) {
        changes.extend(model.changes.iter().map(|change| (change.from_ms, *model, &change.book)));
    }
    changes.sort_by_key(|(from, ..)| *from);
    let mut later: Vec<(i64, Arc<str>)> = Vec::new();
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        for (_, model, book) in at {
            prints.insert(&model.name, book_fingerprint(model, book, groups));
        }
        let from = at.first().map_or(0, |(from, ..)| *from);
        later.push((from, pricing_version(&prints).into()));
        if later.len() > MOST_INSTANTS {
            break;
        }
    }
    Periods { first, later }
}

fn open_book(model: &mut Model, periods: &Arc<Periods>, groups: &BTreeMap<String, Group>, mistakes: &Mistakes) {
    let sold: Vec<(&str, Fraction)> =
        model.enable_groups.iter().filter_map(|name| Some((name.as_str(), groups.get(name)?.multiplier))).collect();
    let common =
        Common { model: Arc::from(model.name.as_str()), unit: model.billing_unit, periods: Arc::clone(periods) };
    let changes = model.changes.iter_mut().map(|change| &mut change.book);
    if std::iter::once(&mut model.book).chain(changes).any(|book| book.open(common.clone(), &sold).is_none()) {
        mistakes.add(
            &model.place,
            &join("model", &model.name),
            "a group's multiplier times a tier's does not fit into nine digits",
        );
    }
}
