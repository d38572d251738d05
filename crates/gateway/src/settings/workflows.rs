//! The files of workflows: `workflows/SLUG.json` in the catalog's folder, and beside it a folder
//! `SLUG` with `package.toml`, `fixture.json` and the fixture's assets.

use std::io;
use std::path::{Path, PathBuf};
use tollgate_catalog::Mistake;
use tollgate_workflows::{MAX_FILE_BYTES, MAX_WORKFLOWS, WorkflowFiles};

use super::read::{file_mistake, whole_mistake};

/// The folder inside the catalog's.
const FOLDER: &str = "workflows";

/// Assets of one fixture.
const MAX_ASSETS: usize = 100;

/// All files of workflows, by name; and what cannot be read.
pub fn workflow_files(catalog_dir: &Path) -> (Vec<WorkflowFiles>, Vec<Mistake>) {
    let mut mistakes = Vec::new();
    let folder = catalog_dir.join(FOLDER);
    let mut paths = match listed(&folder) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), mistakes),
        Err(error) => return (Vec::new(), vec![file_mistake(&folder.display().to_string(), &error)]),
    };
    paths.sort();
    let mut read = |path: &Path| match text(path) {
        Ok(found) => found.map(|text| (path.display().to_string(), text)),
        Err(mistake) => {
            mistakes.push(mistake);
            None
        }
    };
    let mut all = Vec::new();
    let mut alone = Vec::new();
    for path in &paths {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            if !path.with_extension("json").is_file() {
                alone.push(path.clone());
            }
        // One more than allowed is read, so that whoever checks them says so.
        } else if path.extension().is_some_and(|ending| ending == "json") && all.len() <= MAX_WORKFLOWS {
            let Some(record) = read(path) else { continue };
            let beside = path.with_extension("");
            let package = read(&beside.join("package.toml"));
            let fixture = read(&beside.join("fixture.json"));
            all.push(WorkflowFiles { name, record, package, fixture, assets: assets(&beside) });
        }
    }
    for path in alone {
        let reason = "belongs to no workflow: there is no record of this name beside it";
        mistakes.push(whole_mistake(&path.display().to_string(), reason));
    }
    (all, mistakes)
}

/// Every path that a change of a workflow shows at.
pub fn workflow_paths(catalog_dir: &Path) -> Vec<PathBuf> {
    let mut paths = listed(&catalog_dir.join(FOLDER)).unwrap_or_default();
    let inside: Vec<PathBuf> = paths.iter().filter_map(|path| listed(path).ok()).flatten().collect();
    paths.extend(inside);
    paths
}

fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// A file that need not be there.
fn text(path: &Path) -> Result<Option<String>, Mistake> {
    let name = path.display().to_string();
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(file_mistake(&name, &error)),
        Ok(about) if about.len() > MAX_FILE_BYTES as u64 => {
            Err(whole_mistake(&name, &format!("is larger than {MAX_FILE_BYTES} bytes")))
        }
        Ok(_) => std::fs::read_to_string(path).map(Some).map_err(|error| file_mistake(&name, &error)),
    }
}

fn assets(folder: &Path) -> Vec<String> {
    let named = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let files = listed(folder).unwrap_or_default().into_iter().filter(|path| path.is_file());
    let ours = |name: &String| !matches!(name.as_str(), "package.toml" | "fixture.json");
    files.filter_map(named).filter(ours).take(MAX_ASSETS).collect()
}
