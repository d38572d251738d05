//! Follows the catalog that was published: every replica looks each second which one is on sale,
//! and takes it over as it takes over a changed file. What lies in the folder at the first start is
//! the first version.
//!
//! A process that dies between the row and the switch serves what the row says when it is there
//! again: nothing else says what is on sale.

use super::reload::{mistake, reload};
use crate::app::App;
use crate::cannot_start::CannotStart;
use crate::sale::CatalogText;
use crate::settings::{CatalogSource, ConfigSource};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Mistake;
use tollgate_store::{Attribution, NewCatalogVersion, Store, StoreError};

/// So late another replica sells what was published here.
const LOOK: Duration = Duration::from_secs(1);
/// A version that cannot be served here, for want of a provider, is tried again after this.
const AGAIN: Duration = Duration::from_secs(10);

/// The catalog that was published last; nothing was.
pub async fn published(store: &Store) -> Result<Option<CatalogText>, StoreError> {
    let Some((version, hash)) = store.catalog_head().await? else { return Ok(None) };
    let text = store.catalog_text(&hash).await?;
    let text = text.and_then(|text| CatalogText::stored(&text, version)).filter(|text| text.hash == hash);
    text.map(Some).ok_or_else(|| StoreError::Broken(format!("the text of catalog version {version} is damaged")))
}

/// Before the first call: what the folder has becomes the first version where there is none, and
/// what is on sale is served.
pub async fn begin(app: &App, source: &ConfigSource, unread: Vec<Mistake>) -> Result<(), CannotStart> {
    if app.settings.catalog_source == CatalogSource::File {
        return Ok(());
    }
    if app.store.catalog_head().await?.is_none() {
        if !unread.is_empty() {
            return Err(CannotStart::Catalog(listed(&unread)));
        }
        let serving = app.serving.load_full();
        let new = NewCatalogVersion {
            hash: serving.text.hash.clone(),
            files: serving.text.to_json().to_string(),
            pricing_version: serving.catalog.pricing_version(app.world.now_ms()).to_owned(),
            models: i64::try_from(serving.catalog.models.len()).unwrap_or(i64::MAX),
            rolled_back_to: None,
        };
        // Of several replicas one is the first; the others serve what it published.
        let done = Attribution::by("start", "the files of the catalog folder, at the first start");
        app.store.publish_catalog(new, None, done).await?;
    }
    reload(app, source).await.map_err(|mistakes| CannotStart::Catalog(listed(&mistakes)))
}

fn listed(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Looks until the stop.
pub async fn run(app: Arc<App>, source: ConfigSource) {
    loop {
        let wait = match look(&app, &source).await {
            Ok(()) => LOOK,
            Err(mistakes) => {
                let first = mistakes.first().cloned().unwrap_or_else(|| mistake(String::new()));
                tracing::error!(mistakes = mistakes.len(), %first, "what was published cannot be served here");
                AGAIN
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = app.publishing.rung() => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
    }
}

async fn look(app: &App, source: &ConfigSource) -> Result<(), Vec<Mistake>> {
    let head = match app.store.catalog_head().await {
        Ok(head) => head,
        Err(error) => {
            tracing::warn!(%error, "which catalog is on sale could not be read; the next look does");
            return Ok(());
        }
    };
    let served = app.serving.load().text.version;
    match head {
        Some((version, _)) if served != Some(version) => reload(app, source).await,
        _ => Ok(()),
    }
}
