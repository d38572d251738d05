//! A catalog file being read: page by page where it can be cut into pages, as a whole where it
//! cannot. Pages that a snapshot has read before are not read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::pages::{self, ModelPage};
use super::{CatalogNames, models};
use crate::form::{Form, Mistakes};
use crate::version::Fingerprint;
use crate::{Group, LineInFile, Model, Snapshot};

/// What a snapshot remembers of the page a model was read from.
#[derive(Clone, Debug)]
pub(crate) struct LoadedPage {
    digest: [u8; 32],
    /// Lines of the file before it.
    line: usize,
    /// Its prices, as the version of the price set knows them.
    pub(super) prices: Option<Fingerprint>,
}

pub(super) struct CatalogFile<'t, 'm> {
    file: Arc<str>,
    pages: Vec<Entry<'t, 'm>>,
    mistakes: &'m Mistakes,
}

struct Entry<'t, 'm> {
    page: ModelPage<'t>,
    digest: [u8; 32],
    /// `None`: read before.
    form: Option<Form<'m>>,
}

impl<'t, 'm> CatalogFile<'t, 'm> {
    /// The file's pages, and a form with the rest of it (or all of it).
    pub(super) fn open(
        name: &str,
        text: &'t str,
        before: Option<&Snapshot>,
        mistakes: &'m Mistakes,
    ) -> (CatalogFile<'t, 'm>, Form<'m>) {
        let file: Arc<str> = Arc::from(name);
        match CatalogFile::in_pages(&file, text, before, mistakes) {
            Some(cut) => cut,
            None => (CatalogFile { file, pages: Vec::new(), mistakes }, Form::parse(name, text, mistakes)),
        }
    }

    /// `None` where a part is not TOML by itself: then the whole is asked what is wrong.
    fn in_pages(
        file: &Arc<str>,
        text: &'t str,
        before: Option<&Snapshot>,
        mistakes: &'m Mistakes,
    ) -> Option<(CatalogFile<'t, 'm>, Form<'m>)> {
        let cut = pages::cut(text)?;
        let rest = Form::parse_page(file, &cut.rest, 0, mistakes)?;
        let mut pages = Vec::with_capacity(cut.pages.len());
        for page in cut.pages {
            let digest: [u8; 32] = Sha256::digest(page.text).into();
            let known =
                before.and_then(|before| before.loaded.get(page.model)).is_some_and(|loaded| loaded.digest == digest);
            let form = if known { None } else { Some(Form::parse_page(file, page.text, page.line, mistakes)?) };
            pages.push(Entry { page, digest, form });
        }
        Some((CatalogFile { file: Arc::clone(file), pages, mistakes }, rest))
    }

    /// The models of its pages: name, place, what to remember of the page, and the model itself
    /// when it is asked for.
    pub(super) fn models(self) -> impl Iterator<Item = PendingPage<'t, 'm>> {
        let (file, mistakes) = (self.file, self.mistakes);
        self.pages.into_iter().map(move |entry| PendingPage { file: Arc::clone(&file), entry, mistakes })
    }
}

/// A page that has not been made a model yet.
pub(super) struct PendingPage<'t, 'm> {
    file: Arc<str>,
    entry: Entry<'t, 'm>,
    mistakes: &'m Mistakes,
}

impl<'t> PendingPage<'t, '_> {
    pub(super) fn name(&self) -> &'t str {
        self.entry.page.model
    }

    /// The line of its header.
    pub(super) fn place(&self) -> LineInFile {
        LineInFile::line(&self.file, self.entry.page.line + 1)
    }

    /// What the next reading may rely on. The prices are those of before if the groups are.
    pub(super) fn loaded(&self, groups: &BTreeMap<String, Group>, before: Option<&Snapshot>) -> LoadedPage {
        let Entry { page, digest, form } = &self.entry;
        let same = before.filter(|before| form.is_none() && before.groups == *groups);
        let prices = same.and_then(|before| before.loaded.get(page.model)?.prices);
        LoadedPage { digest: *digest, line: page.line, prices }
    }

    /// The model, taken over from before or read. `None` cannot happen with a page that was cut
    /// out.
    pub(super) fn model(self, names: &CatalogNames<'_>, before: Option<&Snapshot>) -> Option<Model> {
        let Entry { page, form, .. } = self.entry;
        if let (None, Some(before)) = (&form, before)
            && let Some(model) = before.moved(page.model, &self.file, page.line)
        {
            return Some(model);
        }
        let mut form = form.or_else(|| Form::parse_page(&self.file, page.text, page.line, self.mistakes))?;
        let model = form.named("model").into_iter().map(|(name, table)| models::read(&name, table, names)).last();
        form.finish();
        model
    }
}

impl Snapshot {
    /// The model as it would be read from a page with the same text at another place.
    fn moved(&self, name: &str, file: &Arc<str>, line: usize) -> Option<Model> {
        let from = self.loaded.get(name)?.line;
        let mut model = Model::clone(self.models.get(name)?);
        model.place = model.place.moved(file, from, line);
        if let Some(video) = &mut model.video {
            video.place = video.place.moved(file, from, line);
        }
        if let Some(speech) = &mut model.speech {
            speech.place = speech.place.moved(file, from, line);
        }
        if let Some(music) = &mut model.music {
            music.place = music.place.moved(file, from, line);
        }
        for route in &mut model.routes {
            route.place = route.place.moved(file, from, line);
        }
        Some(model)
    }
}
