//! Drafts out of price lists that others publish: a new file of the catalog, and what has changed
//! since one was written. Nothing is fetched: the lists are texts that somebody gives.

use super::draft::{BadDraft, DraftOutcome, FROM_SHIPPED, FileChange, locked_shipped};
use super::files::CatalogFiles;
use super::{
    Glob, Import, ImportRequest, ListedModel, LockedFile, Margin, PlanKind, PlanRequest, PriceSource, SaleTerms,
    SourceKind, digest_of, facts_file, shipped,
};
use toml::Table;

/// One price list, or two of different forms.
#[derive(Clone, Debug, Default)]
pub struct PriceLists {
    lists: Vec<GivenList>,
    /// The most models that one may have.
    most: Option<usize>,
}

#[derive(Clone, Debug)]
struct GivenList {
    kind: SourceKind,
    text: String,
    /// What the list is called where something is wrong with it.
    name: String,
    /// Whose models, as the list calls the provider.
    provider: Option<String>,
}

impl PriceLists {
    /// Lists of so many models at most.
    pub fn of_at_most(models: usize) -> PriceLists {
        PriceLists { lists: Vec::new(), most: Some(models) }
    }

    pub fn add(
        &mut self,
        kind: SourceKind,
        text: String,
        name: String,
        provider: Option<String>,
    ) -> Result<(), BadDraft> {
        if self.lists.iter().any(|list| list.kind == kind) {
            return Err(BadDraft::about("second", format!("{}: a list does not verify itself", kind.name())));
        }
        self.lists.push(GivenList { kind, text, name, provider });
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    fn forms(&self) -> Vec<&'static str> {
        self.lists.iter().map(|list| list.kind.name()).collect()
    }

    fn digest(&self) -> String {
        digest_of(&self.lists.iter().map(|list| list.text.as_str()).collect::<String>())
    }

    /// A price has a source, be it the list itself.
    fn vouch(&self, found: &mut Import) {
        for model in found.listed.iter_mut().filter(|model| model.source.is_empty()) {
            model.source = self.forms().join(" and ");
        }
    }

    /// Both lists, read. The second calls the provider as the first does, unless it is said.
    fn sources(&self, provider: Option<&str>, today: &str) -> Result<(PriceSource, Option<PriceSource>), BadDraft> {
        let source = |list: &GivenList| {
            let whose = list.provider.as_deref().or(provider);
            let read = PriceSource::read(list.kind, &list.text, whose, today);
            let read = read.map_err(|bad| BadDraft::about("lists", format!("{} {bad}", list.name)))?;
            match self.most.filter(|most| read.models.len() + read.left_out.len() > *most) {
                Some(most) => Err(BadDraft::about("lists", format!("{} has more than {most} models", list.name))),
                None => Ok(read),
            }
        };
        let first = self.lists.first().ok_or_else(|| BadDraft::about("lists", "a price list is needed"))?;
        Ok((source(first)?, self.lists.get(1).map(source).transpose()?))
    }
}

/// How a file is made of price lists.
#[derive(Clone, Debug)]
pub struct ImportDraft<'a> {
    pub lists: &'a PriceLists,
    /// Whose models, as the first list calls the provider.
    pub provider: Option<&'a str>,
    pub models: &'a [Glob],
    /// Texts of `[model."GLOB"]` tables; later ones win.
    pub facts: &'a [String],
    pub prefix: &'a str,
    pub source: &'a str,
    pub margin: Margin,
    pub route: Option<&'a str>,
    /// The file of the catalog.
    pub file: &'a str,
    pub accept: &'a [Glob],
    pub today: &'a str,
}

/// What is to be brought up to the lists of today.
#[derive(Clone, Debug)]
pub struct UpdateDraft<'a> {
    /// Names of files, with or without their ending; none: all that a command wrote.
    pub files: &'a [String],
    /// For files that were imported.
    pub lists: &'a PriceLists,
    pub facts: &'a [String],
    pub prefix: &'a str,
    pub accept: &'a [Glob],
    pub today: &'a str,
}

impl CatalogFiles {
    pub fn import(&self, asked: &ImportDraft<'_>) -> Result<DraftOutcome, BadDraft> {
        let (first, second) = asked.lists.sources(asked.provider, asked.today)?;
        let mut found = ImportRequest {
            first: &first,
            second: second.as_ref(),
            only: asked.models,
            accepted: asked.accept,
            facts: &tables(asked.facts)?,
            prefix: asked.prefix,
            source: asked.source,
            today: asked.today,
        }
        .run();
        if !found.stops.is_empty() {
            return Ok(DraftOutcome::Stopped(found));
        }
        asked.lists.vouch(&mut found);
        let forms = asked.lists.forms();
        let provider = asked.provider.or(forms.first().copied()).unwrap_or_default().to_owned();
        let terms = SaleTerms {
            origin: forms.join("+"),
            route: asked.route.unwrap_or(&provider).to_owned(),
            margin: asked.margin,
        };
        let known = self.lock.files.get(asked.file);
        let plan = self.planned(
            asked.file,
            &PlanRequest {
                kind: if known.is_some() { PlanKind::Update } else { PlanKind::Enable },
                before: self.text(asked.file),
                locked: known,
                listed: &found.listed,
                only: &[],
                accepted: asked.accept,
                terms: &terms,
                taken: &self.taken(asked.file)?,
            },
        )?;
        let locked = LockedFile {
            from: forms.iter().map(ToString::to_string).collect(),
            digest: asked.lists.digest(),
            day: asked.today.to_owned(),
            provider,
            route: terms.route.clone(),
            margin: terms.margin,
            models: Default::default(),
        };
        let notes = found.in_notes();
        let change = FileChange { file: asked.file.to_owned(), plan, locked, listed: found.listed };
        self.settled(vec![change], notes).map(DraftOutcome::Draft)
    }

    pub fn update(&self, asked: &UpdateDraft<'_>) -> Result<DraftOutcome, BadDraft> {
        let named = |file: &str| {
            asked.files.is_empty() || asked.files.iter().any(|name| name == file || format!("{name}.toml") == file)
        };
        let files: Vec<(&String, &LockedFile)> = self.lock.files.iter().filter(|(file, _)| named(file)).collect();
        if files.is_empty() {
            let why = "no file of the catalog was written by `catalog enable` or `catalog import`";
            return Err(BadDraft::about("files", why));
        }
        let mut changes = Vec::new();
        let mut notes = Vec::new();
        for (name, known) in files {
            let listed = if known.from == [FROM_SHIPPED] {
                let file = shipped(&known.provider).map_err(|why| BadDraft::about("files", why))?;
                let fresh = file.models.iter().filter(|model| !known.models.contains_key(&model.name)).count();
                if fresh > 0 {
                    notes.push(format!(
                        "{fresh} more models of {} are shipped: `tollgate catalog enable {}`",
                        known.provider, known.provider
                    ));
                }
                (locked_shipped(&file, &terms(known), asked.today), file.models)
            } else if asked.lists.is_empty() {
                let from = known.from.join(" and ");
                notes.push(format!("{name} was imported from {from}: give the new list with --from"));
                continue;
            } else {
                let (found, locked) = imported(known, asked)?;
                if !found.stops.is_empty() {
                    return Ok(DraftOutcome::Stopped(found));
                }
                notes.extend(found.in_notes());
                (locked, found.listed)
            };
            changes.push(self.updated(name, known, listed, asked)?);
        }
        self.settled(changes, notes).map(DraftOutcome::Draft)
    }

    fn updated(
        &self,
        name: &str,
        known: &LockedFile,
        (locked, listed): (LockedFile, Vec<ListedModel>),
        asked: &UpdateDraft<'_>,
    ) -> Result<FileChange, BadDraft> {
        // What was not taken then is not sold now without being asked for.
        let only: Vec<Glob> = known.models.keys().map(Glob::new).collect();
        let plan = self.planned(
            name,
            &PlanRequest {
                kind: PlanKind::Update,
                before: self.text(name),
                locked: Some(known),
                listed: &listed,
                only: &only,
                accepted: asked.accept,
                terms: &terms(known),
                taken: &self.taken(name)?,
            },
        )?;
        Ok(FileChange { file: name.to_owned(), plan, locked, listed })
    }
}

fn tables(facts: &[String]) -> Result<Vec<Table>, BadDraft> {
    facts.iter().map(|text| facts_file(text).map_err(|why| BadDraft::about("facts", why))).collect()
}

fn terms(known: &LockedFile) -> SaleTerms {
    let origin = if known.from == [FROM_SHIPPED] { known.provider.clone() } else { known.from.join("+") };
    SaleTerms { origin, route: known.route.clone(), margin: known.margin }
}

fn imported(known: &LockedFile, asked: &UpdateDraft<'_>) -> Result<(Import, LockedFile), BadDraft> {
    if asked.lists.forms() != known.from {
        let from = known.from.join(" and ");
        return Err(BadDraft::about(
            "lists",
            format!("the file was imported from {from}: give lists of the same forms"),
        ));
    }
    let provider = Some(known.provider.as_str()).filter(|provider| !known.from.iter().any(|from| from == provider));
    let (first, second) = asked.lists.sources(provider, asked.today)?;
    let only: Vec<Glob> =
        known.models.keys().map(|name| Glob::new(name.strip_prefix(asked.prefix).unwrap_or(name))).collect();
    let mut found = ImportRequest {
        first: &first,
        second: second.as_ref(),
        only: &only,
        accepted: asked.accept,
        facts: &tables(asked.facts)?,
        prefix: asked.prefix,
        source: "",
        today: asked.today,
    }
    .run();
    asked.lists.vouch(&mut found);
    Ok((found, LockedFile { digest: asked.lists.digest(), day: asked.today.to_owned(), ..known.clone() }))
}

impl Import {
    /// What is worth knowing and stops nobody.
    pub fn in_notes(&self) -> Vec<String> {
        let left = self.left_out.iter().map(|(name, reason)| format!("left out: {name} {reason}"));
        let lone: Vec<&str> =
            self.listed.iter().filter(|model| !model.unverified.is_empty()).map(|model| model.name.as_str()).collect();
        let lone = (!lone.is_empty()).then(|| format!("not all prices are verified: {}", lone.join(", ")));
        self.notes.iter().cloned().chain(left).chain(lone).collect()
    }
}
