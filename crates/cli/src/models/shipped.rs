//! `catalog list`, `enable` and `disable`: the models that come with the product.

use super::desk::{FileChange, Mode, carry_out, globs, margin, providers, settle, today};
use super::folder::Folder;
use crate::args::EnableArgs;
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Face;
use tollgate_catalog::import::{
    CatalogPlan, ListedModel, LockedFile, PlanKind, PlanRequest, SaleTerms, ShippedFile, plan, shipped, shipped_names,
};

/// What the lock calls the models that come with the product.
pub const FROM: &str = "shipped";

pub fn list(provider: Option<&str>, models: &[String], stale_after: u32, out: &Output) -> Result<ExitCode, String> {
    let now = real::now_ms();
    let stale = |model: &ListedModel| is_stale(&model.verified_at, now, stale_after);
    let Some(provider) = provider else {
        let files = shipped_names().map(shipped).collect::<Result<Vec<_>, _>>()?;
        let row = |file: &ShippedFile| {
            let stale = file.models.iter().filter(|model| stale(model)).count();
            json!({
                "provider": file.provider, "models": file.models.len(), "verified_at": file.verified_at,
                "stale": stale, "source": file.source,
            })
        };
        let rows: Vec<Value> = files.iter().map(row).collect();
        out.table(&json!({ "data": rows }), &rows, &["provider", "models", "verified_at", "stale", "source"]);
        return Ok(ExitCode::SUCCESS);
    };
    let (file, only) = (shipped(provider)?, globs(models));
    let usd =
        |micro: u64| tollgate_catalog::Money::from_nano(i64::try_from(micro).unwrap_or(i64::MAX) * 1_000).to_string();
    let asked = file.models.iter().filter(|model| only.is_empty() || only.iter().any(|glob| glob.matches(&model.name)));
    let rows: Vec<Value> = asked
        .map(|model| {
            let price = |face: Face| model.list.get(face).map(usd);
            let other = model.list.iter().find(|(face, _)| matches!(face, Face::PerCall | Face::VideoSecond));
            let unverified: Vec<&str> = model.unverified.iter().map(|face| face.name()).collect();
            json!({
                "model": model.name, "context": model.facts.get("context_window").and_then(|one| one.as_integer()),
                "input_usd": price(Face::Input).or_else(|| other.map(|(_, micro)| usd(micro))), "output_usd": price(Face::Output),
                "cache_read_usd": price(Face::CacheRead), "unverified": unverified, "list": model.list,
                "verified_at": model.verified_at, "stale": stale(model),
            })
        })
        .collect();
    let columns =
        ["model", "context", "input_usd", "output_usd", "cache_read_usd", "unverified", "verified_at", "stale"];
    out.table(&json!({ "provider": file.provider, "source": file.source, "data": rows }), &rows, &columns);
    Ok(ExitCode::SUCCESS)
}

/// Whether a day such as 2026-01-15 is longer ago than this; what is no day is stale.
fn is_stale(day: &str, now_ms: i64, most_days: u32) -> bool {
    let begins = || {
        let day: jiff::civil::Date = day.parse().ok()?;
        Some(day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
    };
    begins().is_none_or(|at| (now_ms - at).div_euclid(86_400_000) > i64::from(most_days))
}

pub fn enable(config: &Path, asked: &EnableArgs, out: &Output) -> Result<ExitCode, String> {
    let (folder, change, notes) = planned(config, asked)?;
    let mode = Mode { apply: !asked.dry_run, how: "call it without --dry-run", config: Some(config) };
    settle(&folder, vec![change], &mode, &notes, out)
}

/// For who reports it himself: how many models are sold.
pub fn enable_quietly(config: &Path, asked: &EnableArgs) -> Result<usize, String> {
    let (folder, change, _) = planned(config, asked)?;
    let sold = change.plan.models.len();
    let mode = Mode { apply: true, how: "", config: Some(config) };
    carry_out(&folder, &[change], &mode).map(|_| sold)
}

fn planned(config: &Path, asked: &EnableArgs) -> Result<(Folder, FileChange, Vec<String>), String> {
    let file = shipped(&asked.provider)?;
    let route = asked.route.as_deref().unwrap_or(&asked.provider);
    if !providers(config)?.iter().any(|name| name == route) {
        return Err(format!(
            "{} has no [provider.{route}]: `tollgate provider add {route}` writes it",
            config.display()
        ));
    }
    let only = globs(&asked.models);
    if let Some(none) = only.iter().find(|glob| !file.models.iter().any(|model| glob.matches(&model.name))) {
        return Err(format!("--model {none}: no shipped model of {} is called so", asked.provider));
    }
    let folder = folder(config)?;
    let name = format!("{}.toml", asked.provider);
    let terms = SaleTerms { origin: asked.provider.clone(), route: route.to_owned(), margin: margin(&asked.margin)? };
    let taken = folder.taken(&name)?;
    let plan = plan(&PlanRequest {
        kind: PlanKind::Enable,
        before: folder.text(&name),
        locked: folder.lock.files.get(&name),
        listed: &file.models,
        only: &only,
        accepted: &globs(&asked.accept),
        terms: &terms,
        taken: &taken,
    })
    .map_err(|why| format!("{} {why}", folder.path(&name).display()))?;
    let notes = unverified(&file, &plan);
    let locked = locked(&file, &terms);
    let sold = |model: &ListedModel| plan.models.contains_key(&model.name);
    let listed = file.models.into_iter().filter(sold).collect();
    Ok((folder, FileChange { file: name, plan, locked, listed }, notes))
}

pub fn disable(
    config: &Path,
    provider: &str,
    models: &[String],
    dry_run: bool,
    out: &Output,
) -> Result<ExitCode, String> {
    let folder = folder(config)?;
    let name = format!("{provider}.toml");
    let Some(locked) = folder.lock.files.get(&name) else {
        return Err(format!("nothing of {provider} was enabled in {}", folder.path("").display()));
    };
    let terms = SaleTerms { origin: provider.to_owned(), route: locked.route.clone(), margin: locked.margin };
    let plan = plan(&PlanRequest {
        kind: PlanKind::Disable,
        before: folder.text(&name),
        locked: Some(locked),
        listed: &[],
        only: &globs(models),
        accepted: &[],
        terms: &terms,
        taken: &BTreeSet::new(),
    })
    .map_err(|why| format!("{} {why}", folder.path(&name).display()))?;
    let locked = locked.clone();
    let mode = Mode { apply: !dry_run, how: "call it without --dry-run", config: Some(config) };
    settle(&folder, vec![FileChange { file: name, plan, locked, listed: Vec::new() }], &mode, &[], out)
}

pub fn folder(config: &Path) -> Result<Folder, String> {
    Folder::open(&settings(config).map_err(|error| format!("{error:#}"))?.catalog_dir)
}

/// What the lock says of a file that sells shipped models.
pub fn locked(file: &ShippedFile, terms: &SaleTerms) -> LockedFile {
    LockedFile {
        from: vec![FROM.to_owned()],
        digest: file.digest.clone(),
        day: today(),
        provider: file.provider.clone(),
        route: terms.route.clone(),
        margin: terms.margin,
        models: Default::default(),
    }
}

/// Prices that only one source knows are worth a look before they are charged.
fn unverified(file: &ShippedFile, plan: &CatalogPlan) -> Vec<String> {
    let written = |name: &String| plan.steps.iter().any(|step| step.model == *name);
    let models = file.models.iter().filter(|model| written(&model.name));
    let main: Vec<&str> = models
        .filter(|model| model.list.iter().next().is_some_and(|(face, _)| model.unverified.contains(&face)))
        .map(|model| model.name.as_str())
        .collect();
    if main.is_empty() {
        return Vec::new();
    }
    vec![format!("one source alone knows the list prices of {}: compare them with {}", main.join(", "), file.source)]
}

#[cfg(test)]
mod tests {
    use super::is_stale;

    #[test]
    fn a_price_is_stale_after_so_many_days() {
        let noon = 1_794_916_800_000; // 2026-11-17 12:00 UTC
        for (day, most, stale) in [
            ("2026-11-17", 0, false),
            ("2026-11-16", 0, true),
            ("2026-08-19", 90, false),
            ("2026-08-18", 90, true),
            ("2027-01-01", 90, false),
            ("once", 90, true),
        ] {
            assert_eq!(is_stale(day, noon, most), stale, "{day}");
        }
    }
}
