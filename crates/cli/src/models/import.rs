//! `catalog import`: a catalog file out of price lists that others publish. Nothing is fetched: the
//! files are the operator's.

use super::desk::{FileChange, Mode, globs, margin, settle, today};
use super::folder::Folder;
use super::shipped::folder;
use crate::args::ImportArgs;
use crate::show::Output;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate_catalog::import::{
    Import, ImportRequest, LockedFile, PlanKind, PlanRequest, PriceSource, SaleTerms, SourceKind, digest_of,
    facts_file, plan,
};

/// Far larger than any price list.
const MOST_BYTES: u64 = 256 << 20;

pub fn import(config: &Path, asked: &ImportArgs, out: &Output) -> Result<ExitCode, String> {
    let lists = Lists::read(&asked.from, &asked.second)?;
    let only = globs(&asked.models);
    let facts = texts(&asked.facts)?.iter().map(|text| facts_file(text)).collect::<Result<Vec<_>, String>>()?;
    let taken = Taken { provider: asked.provider.as_deref(), second_provider: asked.second_provider.as_deref() };
    let (first, second) = lists.sources(&taken)?;
    let today = today();
    let mut found = ImportRequest {
        first: &first,
        second: second.as_ref(),
        only: &only,
        accepted: &globs(&asked.accept),
        facts: &facts,
        prefix: &asked.prefix,
        source: &asked.source,
        today: &today,
    }
    .run();
    if !found.stops.is_empty() {
        return Ok(stopped(&found, out));
    }
    lists.vouch(&mut found);
    let provider = asked.provider.clone().unwrap_or_else(|| lists.kinds[0].name().to_owned());
    let terms = SaleTerms {
        origin: lists.names().join("+"),
        route: asked.route.clone().unwrap_or_else(|| provider.clone()),
        margin: margin(&asked.margin)?,
    };
    let dir = asked.out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = asked.out.file_name().and_then(|name| name.to_str()).ok_or("--out needs the name of a file")?.to_owned();
    let folder = Folder::open(dir)?;
    let known = folder.lock.files.get(&name);
    let plan = plan(&PlanRequest {
        kind: if known.is_some() { PlanKind::Update } else { PlanKind::Enable },
        before: folder.text(&name),
        locked: known,
        listed: &found.listed,
        only: &[],
        accepted: &globs(&asked.accept),
        terms: &terms,
        taken: &folder.taken(&name)?,
    })
    .map_err(|why| format!("{} {why}", asked.out.display()))?;
    let locked = LockedFile {
        from: lists.names().iter().map(ToString::to_string).collect(),
        digest: lists.digest(),
        day: today,
        provider,
        route: terms.route.clone(),
        margin: terms.margin,
        models: Default::default(),
    };
    let notes = notes(&found);
    let mode = Mode { apply: asked.apply, how: "--apply writes it", config: belongs(config, dir) };
    settle(&folder, vec![FileChange { file: name, plan, locked, listed: found.listed }], &mode, &notes, out)
}

/// The configuration, if the folder is its catalog.
fn belongs<'a>(config: &'a Path, dir: &Path) -> Option<&'a Path> {
    let own = folder(config).ok()?.path("");
    (own.canonicalize().ok()? == dir.canonicalize().ok()?).then_some(config)
}

/// The files of a command with their forms.
pub struct Lists {
    kinds: Vec<SourceKind>,
    texts: Vec<String>,
    names: Vec<String>,
}

/// Whose models, as each list calls them.
pub struct Taken<'a> {
    pub provider: Option<&'a str>,
    pub second_provider: Option<&'a str>,
}

impl Lists {
    pub fn read(from: &[String], second: &[String]) -> Result<Lists, String> {
        let mut lists = Lists { kinds: Vec::new(), texts: Vec::new(), names: Vec::new() };
        for pair in [from, second].into_iter().filter(|pair| !pair.is_empty()) {
            let [kind, file] = pair else { return Err("a price list is given as KIND FILE".to_owned()) };
            let kind: SourceKind = kind.parse()?;
            if lists.kinds.contains(&kind) {
                return Err(format!("--second {}: a list does not verify itself", kind.name()));
            }
            lists.kinds.push(kind);
            lists.texts.push(read(Path::new(file))?);
            lists.names.push(file.clone());
        }
        Ok(lists)
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name()).collect()
    }

    /// A price has a source, be it the list itself.
    pub fn vouch(&self, found: &mut Import) {
        for model in found.listed.iter_mut().filter(|model| model.source.is_empty()) {
            model.source = self.names().join(" and ");
        }
    }

    pub fn digest(&self) -> String {
        digest_of(&self.texts.concat())
    }

    pub fn sources(&self, taken: &Taken<'_>) -> Result<(PriceSource, Option<PriceSource>), String> {
        let today = today();
        let source = |at: usize, provider: Option<&str>| {
            PriceSource::read(self.kinds[at], &self.texts[at], provider, &today)
                .map_err(|bad| format!("{} {bad}", self.names[at]))
        };
        let first = source(0, taken.provider)?;
        let second = (self.kinds.len() > 1).then(|| source(1, taken.second_provider.or(taken.provider))).transpose()?;
        Ok((first, second))
    }
}

/// The texts of files of facts.
pub fn texts(paths: &[PathBuf]) -> Result<Vec<String>, String> {
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<String, String> {
    let trouble = |error: std::io::Error| format!("{}: {error}", path.display());
    if std::fs::metadata(path).map_err(trouble)?.len() > MOST_BYTES {
        return Err(format!("{}: is larger than any price list", path.display()));
    }
    std::fs::read_to_string(path).map_err(trouble)
}

/// What has to be looked at before anything is planned.
pub fn stopped(found: &Import, out: &Output) -> ExitCode {
    out.say(&serde_json::json!({ "done": false, "stops": found.stops, "left_out": found.left_out }), || {
        let stops =
            found.stops.iter().map(|stop| format!("stop: {} {} (--accept {})\n", stop.model, stop.reason, stop.model));
        stops.collect::<String>() + "nothing was changed: look at the stops"
    });
    ExitCode::from(1)
}

pub fn notes(found: &Import) -> Vec<String> {
    let left = found.left_out.iter().map(|(name, reason)| format!("left out: {name} {reason}"));
    let lone: Vec<&str> =
        found.listed.iter().filter(|model| !model.unverified.is_empty()).map(|model| model.name.as_str()).collect();
    let lone = (!lone.is_empty()).then(|| format!("not all prices are verified: {}", lone.join(", ")));
    found.notes.iter().cloned().chain(left).chain(lone).collect()
}
