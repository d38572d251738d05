//! From files to a snapshot, or to the list of all mistakes in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::form::{Form, Mistakes};
use crate::social::Social;
use crate::{Fraction, Group, Mistake, Model, Snapshot, version};

mod conditions;
mod groups;
mod list;
mod models;
mod prices;
mod social;

/// Reads the files of a catalog (name and text of each). All or nothing: a snapshot, or every mistake. Where its routes
/// may lead is not asked.
pub fn load(files: &[(String, String)]) -> Result<Snapshot, Vec<Mistake>> {
    read(files, None)
}

/// The same with the providers there are: a route to another one is a mistake like the rest.
pub fn load_for(files: &[(String, String)], providers: &[&str]) -> Result<Snapshot, Vec<Mistake>> {
    read(files, Some(providers))
}

fn read(files: &[(String, String)], providers: Option<&[&str]>) -> Result<Snapshot, Vec<Mistake>> {
    let mistakes = Mistakes::default();
    let mut forms: Vec<Form<'_>> = files.iter().map(|(name, text)| Form::parse(name, text, &mistakes)).collect();

    // Groups first: models of any file may name a group of any other.
    let (groups, auto_groups) = groups::read(&mut forms, &mistakes);
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    for form in &mut forms {
        for (name, table) in form.named("model") {
            if let Some(first) = models.get(&name) {
                table.mistake_here(format!("is already defined in {}", first.place));
                table.ignore_rest();
                continue;
            }
            let model = models::read(&name, table, &groups);
            models.insert(name, model);
        }
    }
    let mut platforms = social::read(&mut forms, &groups);
    for form in forms {
        form.finish();
    }
    let cells = platforms.iter().flat_map(|platform| &platform.cells).map(|cell| &*cell.model);
    for route in models.values().chain(cells).flat_map(|model| &model.routes) {
        if let Some(mistake) = providers.and_then(|known| route.unknown_provider(known)) {
            mistakes.push(mistake);
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes.into_list());
    }

    let cells = platforms.iter().flat_map(|platform| &platform.cells).map(|cell| &*cell.model);
    let version = version::pricing_version(models.values().chain(cells), &groups);
    for model in models.values_mut() {
        build_prices(model, &version, &groups, &mistakes);
    }
    for cell in platforms.iter_mut().flat_map(|platform| &mut platform.cells) {
        let model = Arc::make_mut(&mut Arc::make_mut(cell).model);
        build_prices(model, &version, &groups, &mistakes);
    }
    let social = Social::new(platforms);
    let models: BTreeMap<String, Arc<Model>> =
        models.into_iter().map(|(name, model)| (name, Arc::new(model))).collect();
    // Calls find cells like models; lists of models do not show them.
    let cells = social.cells().map(|cell| &cell.model);
    let by_name = models.values().chain(cells).map(|model| (model.name.clone(), Arc::clone(model))).collect();
    mistakes.result(Snapshot { models, social, pricing_version: version, groups, auto_groups, by_name })
}

fn build_prices(model: &mut Model, version: &str, groups: &BTreeMap<String, Group>, mistakes: &Mistakes) {
    let sold: Vec<(&str, Fraction)> =
        model.enable_groups.iter().filter_map(|name| Some((name.as_str(), groups.get(name)?.multiplier))).collect();
    if model.book.build(&model.name, model.billing_unit, version, &sold).is_none() {
        mistakes.add(
            &model.place,
            &crate::form::join("model", &model.name),
            "a group's multiplier times a tier's does not fit into nine digits",
        );
    }
}
