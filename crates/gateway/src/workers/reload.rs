//! Takes over a changed configuration without a restart: on SIGHUP and when a watched file changes.
//! All or nothing: a broken file leaves the old snapshot serving, raises `tollgate_catalog_stale`,
//! and says every mistake in the log. The secrets that sign links and webhooks are taken over with
//! it. The certificate of the listening port is taken over by itself: it and the catalog have
//! nothing to do with each other, and a mistake in one keeps the other from nothing.

use super::follow;
use crate::app::App;
use crate::door::tls::TlsDoor;
use crate::sale::groups;
use crate::secrets::SecretLines;
use crate::settings::{CatalogSource, ConfigSource, catalog_paths, workflow_paths};
use notify::{RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tollgate_catalog::Mistake;

/// Editors write a file in several steps; the last one counts.
const SETTLE: Duration = Duration::from_millis(200);

/// Files are looked at this often in any case: not every file system tells of changes, and the
/// folder of the secrets is not watched.
const LOOK: Duration = Duration::from_secs(10);

/// Reads what has changed and, if all of it is right, serves it from the next call on. Reading a
/// large catalog and giving back the old one take a while; both happen on threads that serve no
/// calls.
pub async fn reload(app: &App, source: &ConfigSource) -> Result<(), Vec<Mistake>> {
    let _one = app.reloading.lock().await;
    let (source, secrets_file) = (source.clone(), app.settings.secrets_file.clone());
    let given = match app.settings.catalog_source {
        CatalogSource::File => None,
        CatalogSource::Database => follow::published(&app.store).await.map_err(|error| {
            app.metrics.catalog_stale.set(1);
            tracing::error!(%error, "what was published could not be read; the old catalog stays");
            vec![mistake(error.to_string())]
        })?,
    };
    let before = app.serving.load_full();
    let reading = move || {
        let secrets = SecretLines::open(&secrets_file).map_err(|error| vec![mistake(error.to_string())]);
        match (source.load_again(&before.catalog, given.as_ref()), secrets) {
            (Ok(loaded), Ok(secrets)) => Ok((loaded, secrets)),
            (Err(mistakes), Ok(_)) | (Ok(_), Err(mistakes)) => Err(mistakes),
            (Err(mistakes), Err(more)) => Err([mistakes, more].concat()),
        }
    };
    let read = tokio::task::spawn_blocking(reading).await;
    match read.unwrap_or_else(|error| Err(vec![mistake(error.to_string())])) {
        Ok((loaded, secrets)) => {
            if let Err(error) = app.store.note_signing_secrets(secrets.names()).await {
                tracing::warn!(%error, "the names of the secrets could not be noted; the next start does");
            }
            app.secrets.take_over(secrets);
            app.metrics.catalog_stale.set(0);
            app.metrics.catalog_loads.inc();
            tracing::info!(
                models = loaded.serving.catalog.models.len(),
                pricing_version = loaded.serving.catalog.pricing_version(app.world.now_ms()),
                published = loaded.serving.text.version,
                "configuration taken over"
            );
            if let Err(error) = app.routes.switches.read(&app.store, &app.metrics).await {
                tracing::warn!(%error, "what is paused could not be read; the next round does");
            }
            let old = app.serving.swap(Arc::new(loaded.serving));
            let _ = tokio::task::spawn_blocking(move || drop(old)).await;
            if let Err(error) = app.workflows.look(&app.store, &app.serving.load_full(), app.world.now_ms()).await {
                tracing::warn!(%error, "how far workflows are could not be read; the next round does");
            }
            groups::look(&app.store, &app.serving.load(), &app.metrics).await;
            Ok(())
        }
        Err(mistakes) => {
            app.metrics.catalog_stale.set(1);
            for mistake in &mistakes {
                tracing::error!(%mistake, "the configuration is wrong; the old one stays");
            }
            Err(mistakes)
        }
    }
}

/// Reads the files of the listening port's certificate again and, if they are right, serves them
/// from the next connection on.
pub async fn reload_certificate(app: &App, tls: &TlsDoor) {
    match tls.reload().await {
        Ok(pair) if pair.ends < app.world.now_ms() / 1_000 => {
            tracing::error!(ended = pair.ends, "the certificate in tls_cert has ended: clients refuse it");
        }
        Ok(pair) => tracing::info!(ends = pair.ends, "certificate taken over"),
        Err(bad) => tracing::error!(%bad, "the certificate is wrong; the old one stays"),
    }
}

pub(super) fn mistake(reason: String) -> Mistake {
    Mistake { file: String::new(), line: 0, field: String::new(), reason }
}

/// Watches files and signals until the stop. What the files are at this moment counts as read: a
/// change that comes before the watching begins is a change all the same.
pub fn watch(app: Arc<App>, source: ConfigSource, tls: Option<Arc<TlsDoor>>) -> impl Future<Output = ()> + Send {
    let seen = fingerprint(&source, &app);
    let seen_tls = tls.as_deref().map(certificate_stamps);
    watch_from(app, source, tls, seen, seen_tls)
}

async fn watch_from(
    app: Arc<App>,
    source: ConfigSource,
    tls: Option<Arc<TlsDoor>>,
    mut seen: Vec<Stamp>,
    mut seen_tls: Option<[Stamp; 2]>,
) {
    let (tell, mut changed) = mpsc::channel(1);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // Full means that a reload is due already.
            let _ = tell.try_send(());
        }
    });
    let mut watcher = watcher.map_err(|error| tracing::warn!(%error, "files are not watched; use SIGHUP")).ok();
    if let Some(watcher) = watcher.as_mut() {
        let certificate = tls.iter().flat_map(|tls| [folder(&tls.files.cert), folder(&tls.files.key)]);
        let folders = [folder(&source.file)].into_iter().chain(certificate);
        let folders = folders.map(|dir| (dir, RecursiveMode::NonRecursive));
        for (path, mode) in folders.chain([(&*app.settings.catalog_dir, RecursiveMode::Recursive)]) {
            if let Err(error) = watcher.watch(path, mode) {
                tracing::warn!(%error, path = %path.display(), "not watched; use SIGHUP");
            }
        }
    }
    let Ok(mut hangup) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) else { return };
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            Some(()) = changed.recv() => false,
            () = tokio::time::sleep(LOOK) => false,
            () = app.shutdown.stopping.cancelled() => return,
        };
        tokio::time::sleep(SETTLE).await;
        while changed.try_recv().is_ok() {}
        // The data directory may lie beside the file: only a change of what we read counts.
        let now = fingerprint(&source, &app);
        if asked || now != seen {
            seen = now;
            let _ = reload(&app, &source).await;
        }
        if let Some(tls) = &tls {
            let now = Some(certificate_stamps(tls));
            if asked || now != seen_tls {
                seen_tls = now;
                reload_certificate(&app, tls).await;
            }
        }
    }
}

/// The directory of a file, because editors replace files instead of writing into them.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a changed file is known by.
type Stamp = (PathBuf, Option<SystemTime>, u64);

fn certificate_stamps(tls: &TlsDoor) -> [Stamp; 2] {
    [tls.files.cert.clone(), tls.files.key.clone()].map(stamp)
}

fn stamp(path: PathBuf) -> Stamp {
    let meta = std::fs::metadata(&path).ok();
    let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
    (path, changed, meta.map_or(0, |meta| meta.len()))
}

fn fingerprint(source: &ConfigSource, app: &App) -> Vec<Stamp> {
    let mut files = vec![source.file.clone(), app.settings.secrets_file.clone()];
    files.extend(catalog_paths(&app.settings.catalog_dir).unwrap_or_default());
    files.extend(workflow_paths(&app.settings.catalog_dir));
    files.sort();
    files.into_iter().map(stamp).collect()
}
