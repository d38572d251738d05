//! `serve` and `check`.

use crate::models::PublishedCatalog;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tollgate_catalog::Mistake;
use tollgate_gateway::configuration::Loaded;
use tollgate_gateway::provider_trial;
use tollgate_gateway::settings::{CatalogSource, DEFAULT_FILE};
use tollgate_gateway::start::{Running, start};
use tollgate_store::Recovered;

pub async fn serve(config: &Path, new_secrets: bool) -> anyhow::Result<()> {
    real::logs();
    let source = real::source(config);
    let mut loaded = source.load().map_err(|mistakes| anyhow::anyhow!(listed(&mistakes)))?;
    loaded.settings.new_secrets = new_secrets;
    let mut stopped = std::pin::pin!(stop_signal()?);
    let running = tokio::select! {
        started = start(loaded, Some(source.clone()), real::world()) => started?,
        () = &mut stopped => return Ok(()),
    };
    provider_trial::offer(&running, source, real::world());
    let Recovered { settled, voided, dropped } = running.recovered;
    tracing::info!(address = %running.address, "recovered.settled" = settled, "recovered.voided" = voided, "recovered.dropped" = dropped, "serving");
    crate::people::first_operator(&running.app).await?;
    stopped.await;
    stop(running).await;
    Ok(())
}

pub async fn stop(running: Running) {
    tracing::info!("stopping: open calls may finish");
    running.stop().await;
    tracing::info!("stopped: every call is closed and committed");
}

/// Takes the signals that end a process, from now on: whoever sees it ready may stop it at once.
pub fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut int = signal(SignalKind::interrupt()).context("Ctrl-C cannot be handled")?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

pub async fn check(config: &Path, print_default: bool, out: &Output) -> ExitCode {
    if print_default {
        crate::show::print(DEFAULT_FILE);
        return ExitCode::SUCCESS;
    }
    match checked(config).await {
        Ok((loaded, version)) => {
            let now = real::now_ms();
            let (catalog, warnings) = (&loaded.serving.catalog, loaded.warnings(now));
            let counts = [catalog.models.len(), loaded.serving.providers.len()];
            let prices = catalog.pricing_version(now);
            let source = match version {
                Some(_) => CatalogSource::Database,
                None => CatalogSource::File,
            };
            let json = serde_json::json!({
                "ok": true, "models": counts[0], "providers": counts[1], "pricing_version": prices, "warnings": warnings,
                "catalog": { "source": source.word(), "version": version },
            });
            out.say(&json, || {
                let which = match version {
                    Some(version) => format!("version {version} of the catalog, which is on sale out of the database"),
                    None if loaded.settings.catalog_source == CatalogSource::Database => {
                        format!("{}: nothing is published yet, and it would be the first", catalog_folder(&loaded))
                    }
                    None => catalog_folder(&loaded),
                };
                let [models, providers] = counts;
                let passed = format!(
                    "{}: no mistakes ({models} models, {providers} providers, prices {prices}; checked {which})",
                    config.display()
                );
                let warned = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
                passed + &warned.collect::<String>()
            });
            ExitCode::SUCCESS
        }
        Err(mistakes) => {
            out.say(&serde_json::json!({ "ok": false, "mistakes": mistakes }), || listed(&mistakes));
            ExitCode::FAILURE
        }
    }
}

fn catalog_folder(loaded: &Loaded) -> String {
    format!("the catalog in {}", loaded.settings.catalog_dir.display())
}

/// The configuration with the catalog that is served: what is published, by its version, or what
/// lies in the folder.
async fn checked(config: &Path) -> Result<(Loaded, Option<i64>), Vec<Mistake>> {
    let source = real::source(config);
    // Where the settings are wrong nobody knows where a database is: all mistakes are named.
    let published = match source.load_settings() {
        Ok(settings) => PublishedCatalog::peek(&settings).await.map_err(|why| {
            let reason = format!("the catalog that is on sale out of it cannot be read: {why}");
            vec![Mistake { file: config.display().to_string(), line: 0, field: "database".to_owned(), reason }]
        })?,
        Err(_) => None,
    };
    if let Some(published) = published {
        return published.check(config).map(|loaded| (loaded, Some(published.version)));
    }
    let loaded = source.load()?;
    // Nothing was published yet: the folder is what a start would put on sale.
    match loaded.unread.is_empty() {
        true => Ok((loaded, None)),
        false => Err(loaded.unread),
    }
}

pub fn listed(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let count = lines.len();
    format!("{}\n{count} {}", lines.join("\n"), if count == 1 { "mistake" } else { "mistakes" })
}

/// The settings of a configuration, for commands that only need to find the store.
pub fn settings(config: &Path) -> anyhow::Result<tollgate_gateway::settings::Settings> {
    match real::source(config).load_settings() {
        Ok(settings) => Ok(settings),
        Err(mistakes) => bail!("{}", listed(&mistakes)),
    }
}
