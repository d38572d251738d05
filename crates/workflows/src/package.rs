//! The steps behind a record: `package.toml` in the folder of its slug. Steps are ordinary calls,
//! made in the order of the file.

use crate::bounds::{MAX_FILE_BYTES, MAX_OUTPUT_CHARS, MAX_STEPS};
use crate::check::OutputCheck;
use crate::evaluate::{RecordSchema, Violation};
use crate::record::{InputKind, WorkflowRecord};
use crate::template::{Place, places};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_catalog::LineInFile;
use tollgate_catalog::form::{Form, Mistakes, did_you_mean};

#[derive(Clone, Debug)]
pub struct Package {
    pub version: String,
    pub steps: Vec<PackageStep>,
    /// For each acceptance check of the record, by its number: outputs as `STEP.OUTPUT`.
    pub acceptance: Vec<Vec<OutputCheck>>,
    /// As it is written: one changed character is another package.
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct PackageStep {
    pub name: String,
    /// A path of ours, with its parts in braces.
    pub endpoint: String,
    /// What stands in those parts.
    pub path: Map<String, Value>,
    pub model: Option<StepModel>,
    /// It is made several times: as often as this input says, or so many times.
    pub each: Option<StepCount>,
    pub body: Value,
    pub gives: BTreeMap<String, OutputFrom>,
    pub checks: Vec<OutputCheck>,
    pub schemas: BTreeMap<String, RecordSchema>,
}

/// Which model a step asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepModel {
    Named(String),
    /// The one that an input names.
    Input(String),
    /// The one that the record's query finds.
    Query,
}

/// How often a step is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCount {
    Times(usize),
    /// As often as an input of whole numbers says.
    Input(String),
}

/// Where an output is in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFrom {
    /// A JSON Pointer.
    At(String),
    /// The answer itself, as a file.
    Body,
    /// The answer itself, as a text.
    Text,
}

impl Package {
    /// Reads a package that belongs to a record.
    pub(crate) fn read(file: &str, text: &str, record: &WorkflowRecord, mistakes: &Mistakes) -> Option<Package> {
        if text.len() > MAX_FILE_BYTES {
            let place = LineInFile::line(&Arc::from(file), 1);
            mistakes.add(&place, "", format!("is larger than {MAX_FILE_BYTES} bytes"));
            return None;
        }
        let mut form = Form::parse(file, text, mistakes);
        let version = form.text("version");
        let mut steps: Vec<PackageStep> = Vec::new();
        let tables = form.tables("step");
        if tables.is_empty() || tables.len() > MAX_STEPS {
            form.mistake("step", format!("there must be 1 to {MAX_STEPS} of them, not {}", tables.len()));
        }
        for table in tables {
            let step = read_step(table, record, &steps);
            steps.push(step);
        }
        let acceptance = acceptance(&mut form, record, &steps);
        form.finish();
        Some(Package { version, steps, acceptance, text: text.to_owned() })
    }

    pub fn step(&self, name: &str) -> Option<&PackageStep> {
        self.steps.iter().find(|step| step.name == name)
    }
}

fn read_step(mut form: Form<'_>, record: &WorkflowRecord, before: &[PackageStep]) -> PackageStep {
    let name = form.text("name");
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
        form.mistake("name", "must be of small letters, digits and _");
    }
    if before.iter().any(|step| step.name == name) {
        form.mistake("name", "is the name of a step before");
    }
    let endpoint = form.text("endpoint");
    let parts: Vec<&str> = endpoint.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
    if !endpoint.is_empty() && !endpoint.starts_with('/') {
        form.mistake("endpoint", "must begin with /");
    }
    let path = object(&mut form, "path");
    if path.len() != parts.len() || parts.iter().any(|part| !path.contains_key(*part)) {
        form.mistake(
            "path",
            format!("must have a value for each part of the endpoint in braces: {}", parts.join(", ")),
        );
    }
    let model = model(&mut form, record);
    let each = each(&mut form, record);
    let body = Value::Object(object(&mut form, "body"));
    let around = TemplateRoom { record, before, each: each.is_some() };
    templates(&form, "path", &Value::Object(path.clone()), &around);
    templates(&form, "body", &body, &around);
    let gives = gives(&mut form);
    let schemas = schemas(&mut form, &gives);
    let words = form.opt_texts("check").unwrap_or_default();
    let mut step = PackageStep { name, endpoint, path, model, each, body, gives, checks: Vec::new(), schemas };
    step.checks =
        words.iter().filter_map(|word| checked(&form, "check", word, |about| step.has_schema(about))).collect();
    form.finish();
    step
}

fn object(form: &mut Form<'_>, key: &str) -> Map<String, Value> {
    match form.opt_json(key) {
        Some(Value::Object(members)) => members,
        Some(_) => {
            form.mistake(key, "must be a table");
            Map::new()
        }
        None => Map::new(),
    }
}

fn model(form: &mut Form<'_>, record: &WorkflowRecord) -> Option<StepModel> {
    let written = form.opt_json("model")?;
    let one = written.as_object().filter(|members| members.len() == 1);
    let found = match (&written, one) {
        (Value::String(name), _) if !name.is_empty() => Some(StepModel::Named(name.clone())),
        (_, Some(members)) => match (members.get("input").and_then(Value::as_str), members.get("query")) {
            (Some(id), None) => Some(StepModel::Input(id.to_owned())),
            (None, Some(Value::Bool(true))) => Some(StepModel::Query),
            _ => None,
        },
        _ => None,
    };
    match &found {
        None => form.mistake("model", "must be a name, { input = \"ID\" } or { query = true }"),
        Some(StepModel::Input(id)) if record.input(id).is_none() => {
            let hint = did_you_mean(id, record.inputs.iter().map(|input| &*input.id));
            form.mistake("model", format!("{id:?} is not the id of an input{hint}"));
        }
        Some(_) => {}
    }
    found
}

fn each(form: &mut Form<'_>, record: &WorkflowRecord) -> Option<StepCount> {
    let written = form.opt_json("each")?;
    let most = MAX_STEPS as u64;
    let wrong = format!("must be 1 to {most}, or {{ input = \"ID\" }} of an integer with allowed_values in that range");
    let found = match (&written, written.get("input").and_then(Value::as_str)) {
        (Value::Number(times), _) => {
            let times = times.as_u64().filter(|times| (1..=most).contains(times));
            times.and_then(|times| usize::try_from(times).ok()).map(StepCount::Times)
        }
        (_, Some(id)) => {
            // What is bought as often as somebody says has a bound.
            let within = |value: &Value| value.as_u64().is_some_and(|times| (1..=most).contains(&times));
            let input = record.input(id).filter(|input| !input.allowed_values.is_empty());
            let fits =
                input.is_some_and(|input| input.kind == InputKind::Integer && input.allowed_values.iter().all(within));
            fits.then(|| StepCount::Input(id.to_owned()))
        }
        _ => None,
    };
    if found.is_none() {
        form.mistake("each", wrong);
    }
    found
}

/// What the places of a template may lead to.
struct TemplateRoom<'r> {
    record: &'r WorkflowRecord,
    before: &'r [PackageStep],
    /// The step is made several times.
    each: bool,
}

/// Every place in a template leads to an input, or to what a step before gives.
fn templates(form: &Form<'_>, key: &str, template: &Value, around: &TemplateRoom<'_>) {
    let TemplateRoom { record, before, each } = around;
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    places(template, key, &mut found, &mut wrong);
    for Violation { path, reason } in wrong {
        form.mistake(key, format!("at {path}: {reason}"));
    }
    for (path, place) in found {
        let reason = match place {
            Place::Input(id) if record.input(id).is_none() => {
                let hint = did_you_mean(id, record.inputs.iter().map(|input| &*input.id));
                format!("{id:?} is not the id of an input{hint}")
            }
            Place::Output(step, output) => match before.iter().find(|earlier| earlier.name == step) {
                None => format!("there is no step {step:?} before this one"),
                Some(earlier) if !earlier.gives.contains_key(output) => format!("step {step:?} gives no {output:?}"),
                Some(_) => continue,
            },
            Place::Number if !each => "only a step with each has a number".to_owned(),
            Place::Input(_) | Place::Number => continue,
        };
        form.mistake(key, format!("at {path}: {reason}"));
    }
}

fn gives(form: &mut Form<'_>) -> BTreeMap<String, OutputFrom> {
    let mut gives = BTreeMap::new();
    for (name, at) in object(form, "gives") {
        match at.as_str() {
            Some("body") => gives.insert(name, OutputFrom::Body),
            Some("text") => gives.insert(name, OutputFrom::Text),
            Some(pointer) if pointer.starts_with('/') => gives.insert(name, OutputFrom::At(pointer.to_owned())),
            _ => {
                form.mistake(
                    "gives",
                    format!("{name:?} must be \"body\", \"text\" or a pointer such as \"/data/0/url\""),
                );
                None
            }
        };
    }
    if gives.is_empty() {
        form.mistake("gives", "must name at least one output");
    }
    gives
}

fn schemas(form: &mut Form<'_>, gives: &BTreeMap<String, OutputFrom>) -> BTreeMap<String, RecordSchema> {
    let mut schemas = BTreeMap::new();
    for (name, schema) in object(form, "schema") {
        if !gives.contains_key(&name) {
            form.mistake("schema", format!("this step gives no {name:?}"));
        }
        match RecordSchema::of(schema) {
            Ok(schema) => {
                schemas.insert(name, schema);
            }
            Err(unknown) => {
                for Violation { path, reason } in unknown {
                    form.mistake("schema", format!("at {name}.{path}: {reason}"));
                }
            }
        }
    }
    schemas
}

/// One check. `schema_of` says of an output whether its step has a schema for it, and nothing where
/// there is no such output.
fn checked(form: &Form<'_>, key: &str, word: &str, schema_of: impl Fn(&str) -> Option<bool>) -> Option<OutputCheck> {
    let check = OutputCheck::read(word).map_err(|reason| form.mistake(key, reason)).ok()?;
    match schema_of(&check.about) {
        None => form.mistake(key, format!("{word:?}: there is no output {:?}", check.about)),
        Some(false) if check.by_schema() => form.mistake(key, format!("{word:?}: its step has no schema for it")),
        Some(_) => {}
    }
    Some(check)
}

fn acceptance(form: &mut Form<'_>, record: &WorkflowRecord, steps: &[PackageStep]) -> Vec<Vec<OutputCheck>> {
    let lists = form.text_lists("acceptance");
    let (wanted, found) = (record.acceptance_checks.len(), lists.len());
    if wanted != found {
        let reason = format!("must have one list for each of the record's {wanted} acceptance checks, not {found}");
        form.mistake("acceptance", reason);
    }
    let schema_of = |about: &str| {
        let (step, output) = about.split_once('.')?;
        steps.iter().find(|one| one.name == step)?.has_schema(output)
    };
    let read = |list: Vec<String>| {
        if list.is_empty() {
            form.mistake("acceptance", "a check that checks nothing is always passed");
        }
        list.iter().filter_map(|word| checked(form, "acceptance", word, schema_of)).collect()
    };
    lists.into_iter().map(read).collect()
}

impl PackageStep {
    /// The most characters that an output may have: what its check says, or what every step after
    /// it is quoted for.
    pub fn most_chars(&self, output: &str) -> usize {
        let said = self.checks.iter().filter(|check| check.about == output).find_map(OutputCheck::most_chars);
        said.and_then(|most| usize::try_from(most).ok()).unwrap_or(MAX_OUTPUT_CHARS).min(MAX_OUTPUT_CHARS)
    }

    /// Whether it has a schema for an output; nothing where it gives no such output.
    fn has_schema(&self, output: &str) -> Option<bool> {
        self.gives.contains_key(output).then(|| self.schemas.contains_key(output))
    }
}
