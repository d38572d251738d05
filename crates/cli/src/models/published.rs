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
use tollgate_gateway::settings::{CatalogSource, Settings};
use tollgate_gateway::start::place;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{Attribution, NewCatalogVersion, peek_catalog};

pub struct PublishedCatalog {
    text: CatalogText,
    pub files: CatalogFiles,
    pub version: i64,
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
        let word = |name: &str| shown[name].as_str().map(str::to_owned);
        PublishedCatalog::of(version, word("files"), &word("hash").unwrap_or_default()).map(Some)
    }

    /// The same without a store or a server: nothing is made or migrated for it.
    pub async fn peek(settings: &Settings) -> Result<Option<PublishedCatalog>, String> {
        if settings.catalog_source == CatalogSource::File {
            return Ok(None);
        }
        let found = peek_catalog(&place(settings)).await.map_err(|error| error.to_string())?;
        found.map(|on_sale| PublishedCatalog::of(on_sale.version, on_sale.files, &on_sale.hash)).transpose()
    }

    fn of(version: i64, files: Option<String>, hash: &str) -> Result<PublishedCatalog, String> {
        let damaged = || format!("the text of catalog version {version} is damaged");
        let text = files.and_then(|files| CatalogText::stored(&files, version));
        let text = text.filter(|text| text.hash == hash).ok_or_else(damaged)?;
        let files = CatalogFiles::with_lock(text.files.iter().cloned()).map_err(|bad| bad.to_string())?;
        Ok(PublishedCatalog { text, files, version })
    }

    /// What the server would say to it.
    pub fn check(&self, config: &Path) -> Result<Loaded, Vec<Mistake>> {
        read(config, &self.text)
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
