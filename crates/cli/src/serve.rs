//! `serve` and `check`.

use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tollgate_catalog::Mistake;
use tollgate_gateway::provider_trial;
use tollgate_gateway::settings::DEFAULT_FILE;
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

pub fn check(config: &Path, print_default: bool, out: &Output) -> ExitCode {
    if print_default {
        crate::show::print(DEFAULT_FILE);
        return ExitCode::SUCCESS;
    }
    match real::source(config).load() {
        Ok(loaded) => {
            let now = real::now_ms();
            let (catalog, warnings) = (&loaded.serving.catalog, loaded.warnings(now));
            out.say(
                &serde_json::json!({ "ok": true, "models": catalog.models.len(), "providers": loaded.serving.providers.len(), "pricing_version": catalog.pricing_version(now), "warnings": warnings }),
                || {
                    let passed = format!("{}: no mistakes ({} models, {} providers, prices {})", config.display(), catalog.models.len(), loaded.serving.providers.len(), catalog.pricing_version(now));
                    let warned = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
                    passed + &warned.collect::<String>()
                },
            );
            ExitCode::SUCCESS
        }
        Err(mistakes) => {
            out.say(&serde_json::json!({ "ok": false, "mistakes": mistakes }), || listed(&mistakes));
            ExitCode::FAILURE
        }
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
