//! The catalog that is on sale out of the database (`catalog_source = "database"`): read and
//! published through the server that runs, or in the database where none does. The folder is then
//! the first version only, so commands change this one.

use crate::keys::ask;
use crate::real;
use crate::serve::{listed, settings};
use serde_json::{Map, Value, json};
use std::path::Path;
use tollgate_catalog::Mistake;
use tollgate_catalog::import::{CatalogDraft, CatalogFiles};
use tollgate_gateway::configuration::Loaded;
use tollgate_gateway::sale::CatalogText;
use tollgate_gateway::settings::CatalogSource;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{Attribution, NewCatalogVersion};

pub struct PublishedCatalog {
    text: CatalogText,
    pub files: CatalogFiles,
}

impl PublishedCatalog {
    /// What is on sale out of the database. Nothing where the folder is: by the setting, or because
    /// nothing was published yet.
    pub async fn open(config: &Path) -> Result<Option<PublishedCatalog>, String> {
        let found = settings(config).map_err(|error| format!("{error:#}"))?;
        if found.catalog_source == CatalogSource::File {
            return Ok(None);
        }
        let shown = ask(config, AdminCommand::CatalogOnSale).await.map_err(|error| format!("{error:#}"))?;
        let Some(version) = shown["version"].as_i64() else { return Ok(None) };
        let damaged = || format!("the text of catalog version {version} is damaged");
        let text = shown["files"].as_str().and_then(|files| CatalogText::stored(files, version));
        let text = text.filter(|text| shown["hash"] == text.hash.as_str()).ok_or_else(damaged)?;
        let files = CatalogFiles::with_lock(text.files.iter().cloned()).map_err(|bad| bad.to_string())?;
        Ok(Some(PublishedCatalog { text, files }))
    }

    /// The configuration with what is on sale, as the server reads it.
    pub fn load(&self, config: &Path) -> Result<Loaded, String> {
        read(config, &self.text).map_err(|mistakes| listed(&mistakes))
    }

    /// Puts a draft on sale, if there is something new in it. The number of the new version.
    pub async fn publish(&self, config: &Path, draft: &CatalogDraft, done: Attribution) -> Result<Option<i64>, String> {
        let edits: Map<String, Value> =
            draft.with_lock(&self.files).into_iter().map(|(name, text)| (name, json!(text))).collect();
        let new = CatalogText::sent(Some(&self.text), &edits)?;
        if new.hash == self.text.hash {
            return Ok(None);
        }
        loads(config, &new)?;
        let catalog = tollgate_catalog::load(&new.catalog()).map_err(|mistakes| listed(&mistakes))?;
        let version = NewCatalogVersion {
            hash: new.hash.clone(),
            files: new.to_json().to_string(),
            pricing_version: catalog.pricing_version(real::now_ms()).to_owned(),
            models: i64::try_from(catalog.models.len()).unwrap_or(i64::MAX),
            rolled_back_to: None,
        };
        let command = AdminCommand::CatalogPublish { new: version, seen: Some(self.text.hash.clone()), done };
        let published = ask(config, command).await.map_err(|error| format!("{error:#}"))?;
        let stale =
            || "nothing was published: somebody put another catalog on sale meanwhile; call it again".to_owned();
        published["version"].as_i64().map(Some).ok_or_else(stale)
    }
}

fn read(config: &Path, text: &CatalogText) -> Result<Loaded, Vec<Mistake>> {
    real::source(config).load_again(&tollgate_catalog::load(&[])?, Some(text))
}

/// A mistake in the catalog stops it; one in the configuration is somebody else's, as is a key that
/// is not set where the command is typed.
fn loads(config: &Path, text: &CatalogText) -> Result<(), String> {
    let Err(mistakes) = read(config, text) else { return Ok(()) };
    let ours: Vec<Mistake> =
        mistakes.into_iter().filter(|mistake| text.files.iter().any(|(name, _)| *name == mistake.file)).collect();
    if ours.is_empty() {
        return Ok(());
    }
    Err(format!("nothing was published, because the catalog could not be served:\n{}", listed(&ours)))
}
