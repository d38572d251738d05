//! From files to workflows, or to every mistake in them. All or nothing, as the catalog they lie
//! with.

use crate::bounds::MAX_WORKFLOWS;
use crate::check::OutputCheck;
use crate::evaluate::{Violation, item, member, record_schema};
use crate::inputs::checked_fixture;
use crate::package::Package;
use crate::places::PlacedJson;
use crate::record::WorkflowRecord;
use crate::rules::broken_rules;
use crate::stage::WorkflowStage;
use crate::steps::SINGLE_OUTPUT;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_catalog::form::Mistakes;
use tollgate_catalog::{LineInFile, Mistake};

/// The files of one workflow: each with its name for people and its text.
#[derive(Clone, Debug, Default)]
pub struct WorkflowFiles {
    /// The name of the record's file, without the ending.
    pub name: String,
    pub record: (String, String),
    pub package: Option<(String, String)>,
    pub fixture: Option<(String, String)>,
    /// What else lies in its folder: assets of the fixture.
    pub assets: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Workflow {
    pub record: WorkflowRecord,
    /// The record as it is written.
    pub value: Value,
    pub package: Option<Package>,
    /// The inputs of the fixture.
    pub fixture: Option<Map<String, Value>>,
    /// The checks of each acceptance check: the package's, or those that stand with the fixture of
    /// a record without one.
    pub acceptance: Vec<Vec<OutputCheck>>,
    /// What the file claims to be.
    pub claimed: WorkflowStage,
    /// The record's file.
    pub file: String,
}

/// A record that was read: what it is, or what is wrong with it.
#[derive(Debug)]
pub struct RecordRead {
    /// Whether it is a record by the schema, whatever the rules beyond it say.
    pub by_schema: bool,
    pub read: Result<(WorkflowRecord, Value), Vec<Mistake>>,
}

/// Reads a record by itself: JSON, schema, then the rules beyond it.
pub fn read_record(file: &str, text: &str, name: &str) -> RecordRead {
    let file: Arc<str> = Arc::from(file);
    let placed = match PlacedJson::read(text) {
        Ok(placed) => placed,
        Err((line, Violation { path, reason })) => {
            let mistake = LineInFile::line(&file, line).mistake(&path, reason);
            return RecordRead { by_schema: false, read: Err(vec![mistake]) };
        }
    };
    let mistakes = |violations: Vec<Violation>| {
        let mistake = |one: Violation| LineInFile::line(&file, placed.line(&one.path)).mistake(&one.path, one.reason);
        Err(violations.into_iter().map(mistake).collect())
    };
    let violations = record_schema().violations(&placed.value);
    if !violations.is_empty() {
        return RecordRead { by_schema: false, read: mistakes(violations) };
    }
    let record = match WorkflowRecord::deserialize(&placed.value) {
        Ok(record) => record,
        // Whole numbers written as decimals pass the schema and the types alike; this is for what
        // we did not think of.
        Err(error) => {
            let violation = Violation { path: String::new(), reason: error.to_string() };
            return RecordRead { by_schema: true, read: mistakes(vec![violation]) };
        }
    };
    let broken = broken_rules(&record, name);
    let read = if broken.is_empty() { Ok((record, placed.value)) } else { mistakes(broken) };
    RecordRead { by_schema: true, read }
}

/// Reads all workflows of a catalog. What is wrong goes to the mistakes; what is returned then is
/// not to be used.
pub fn load_workflows(files: &[WorkflowFiles], mistakes: &Mistakes) -> BTreeMap<String, Arc<Workflow>> {
    let mut all: BTreeMap<String, Arc<Workflow>> = BTreeMap::new();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for (at, one) in files.iter().enumerate() {
        let place = LineInFile::line(&Arc::from(&*one.record.0), 1);
        if at == MAX_WORKFLOWS {
            mistakes.add(&place, "", format!("there are more than {MAX_WORKFLOWS} workflows"));
            break;
        }
        let Some(workflow) = one.read(mistakes) else { continue };
        if let Some(first) = ids.insert(workflow.record.workflow_id.clone(), one.record.0.clone()) {
            mistakes.add(&place, "workflow_id", format!("is that of {first} too"));
        }
        all.insert(workflow.record.slug.clone(), Arc::new(workflow));
    }
    all
}

/// The inputs of a fixture, and the checks that stand with them.
type FixtureRead = (Map<String, Value>, Vec<Vec<OutputCheck>>);

impl WorkflowFiles {
    fn read(&self, mistakes: &Mistakes) -> Option<Workflow> {
        let (file, text) = &self.record;
        let (record, value) = match read_record(file, text, &self.name).read {
            Ok(read) => read,
            Err(list) => {
                list.into_iter().for_each(|mistake| mistakes.push(mistake));
                return None;
            }
        };
        let package = self.package.as_ref().and_then(|(file, text)| Package::read(file, text, &record, mistakes));
        let runs = format!("/v1/workflows/{}/runs", record.slug);
        let runs_steps = record.runtime_binding.endpoint.as_ref() == Some(&runs);
        let reason = match (&self.package, runs_steps) {
            (Some(_), false) if record.runtime_binding.endpoint.is_some() => {
                Some(format!("must be {runs}: there is a package"))
            }
            (None, true) => Some(format!("needs the steps in {}/package.toml", self.name)),
            _ => None,
        };
        if let Some(reason) = reason {
            mistakes.add(&LineInFile::line(&Arc::from(&**file), 1), "runtime_binding.endpoint", reason);
        }
        let fixture = self.fixture.as_ref().and_then(|(file, text)| self.fixture(file, text, &record, mistakes));
        let (fixture, own) = fixture.map_or((None, Vec::new()), |(inputs, own)| (Some(inputs), own));
        let acceptance = package.as_ref().map_or(own, |package| package.acceptance.clone());
        let claimed = WorkflowStage::claimed(&record)?;
        Some(Workflow { record, value, package, fixture, acceptance, claimed, file: file.clone() })
    }

    /// `{"inputs": {…}}`; an asset is the name of a file beside it. Without a package also
    /// `"acceptance"`, a list of checks for each acceptance check of the record.
    fn fixture(&self, file: &str, text: &str, record: &WorkflowRecord, mistakes: &Mistakes) -> Option<FixtureRead> {
        let name: Arc<str> = Arc::from(file);
        let add =
            |line: usize, one: Violation| mistakes.push(LineInFile::line(&name, line).mistake(&one.path, one.reason));
        let placed = PlacedJson::read(text).map_err(|(line, violation)| add(line, violation)).ok()?;
        let mut wrong = Vec::new();
        let known = |key: &str| key == "inputs" || (key == "acceptance" && self.package.is_none());
        for other in placed.value.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| !known(key)) {
            wrong.push(Violation { path: member("", other), reason: "is not a field of a fixture".to_owned() });
        }
        let Some(inputs) = placed.value.get("inputs").and_then(Value::as_object) else {
            add(1, Violation { path: "inputs".to_owned(), reason: "must be an object".to_owned() });
            return None;
        };
        wrong.extend(checked_fixture(record, inputs, &self.assets));
        let given = placed.value.get("acceptance").filter(|_| self.package.is_none());
        let acceptance = given.map_or_else(Vec::new, |given| checks(record, given, &mut wrong));
        wrong.into_iter().for_each(|one| add(placed.line(&one.path), one));
        Some((inputs.clone(), acceptance))
    }
}

/// The checks of a record without a package: what its one call gave is `call.result`.
fn checks(record: &WorkflowRecord, given: &Value, wrong: &mut Vec<Violation>) -> Vec<Vec<OutputCheck>> {
    let mut add = |path: String, reason: String| wrong.push(Violation { path, reason });
    let lists = given.as_array().map(Vec::as_slice).unwrap_or_default();
    if lists.len() != record.acceptance_checks.len() {
        let many = record.acceptance_checks.len();
        add("acceptance".to_owned(), format!("must be {many} lists, one for each acceptance check of the record"));
    }
    let mut all = Vec::new();
    for (at, list) in lists.iter().enumerate() {
        let place = item("acceptance", at);
        let words = list.as_array().map(Vec::as_slice).unwrap_or_default();
        if words.is_empty() {
            add(place.clone(), "must be a list of checks such as nonempty:call.result".to_owned());
        }
        let mut own = Vec::new();
        for (number, word) in words.iter().enumerate() {
            match OutputCheck::read(word.as_str().unwrap_or_default()) {
                Ok(check) if check.about == SINGLE_OUTPUT && !check.by_schema() => own.push(check),
                Ok(_) => add(item(&place, number), format!("must be about {SINGLE_OUTPUT}, and has no schema")),
                Err(reason) => add(item(&place, number), reason),
            }
        }
        all.push(own);
    }
    all
}
