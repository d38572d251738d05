//! What a run is to do, decided before anything is sent: its steps, one model for each, and what
//! each can cost at most. A plan is stored with its run and carries record and package along, so a
//! run ends as it began whatever becomes of the catalog.

use super::ask::{StepAsk, ask, quoted_body};
use super::saved::StepWarning;
use crate::app::App;
use crate::call::{self, Terms};
use crate::endpoints::quote;
use crate::quotes::{self, Shop};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::workflows::BoundWorkflow;
use crate::who::caller::Caller;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_catalog::form::Mistakes;
use tollgate_catalog::{Model, Money};
use tollgate_store::Attribution;
use tollgate_wire::Dropped;
use tollgate_wire::error::Code;
use tollgate_workflows::{
    ModelCandidate, OutputFrom, RunOutputs, RunSteps, StepModel, Violation, Workflow, WorkflowFiles, load_workflows,
    privacy_digest,
};

/// A picture of one dot: what a step is quoted with whose file another step makes.
pub(super) const DOT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";

/// As it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunPlan {
    pub digest: String,
    pub record: Value,
    pub package: Option<String>,
    pub inputs: BTreeMap<String, Value>,
    /// By step of the run.
    pub steps: Vec<PlannedStep>,
    /// Where its customer reaches us.
    pub host: Option<String>,
    /// The run of a fixture, for whom and why.
    pub verifies: Option<Attribution>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedStep {
    pub name: String,
    pub endpoint: String,
    /// One for the life of the run.
    pub model: Option<String>,
    #[serde(rename = "most_nano_usd")]
    pub most: Money,
    pub pricing_version: String,
    /// Fields that the model will not read, as far as that is known before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<StepWarning>,
}

impl RunPlan {
    pub fn new(
        workflow: &Workflow,
        digest: &str,
        inputs: BTreeMap<String, Value>,
        steps: Vec<PlannedStep>,
        host: Option<String>,
    ) -> RunPlan {
        let package = workflow.package.as_ref().map(|package| package.text.clone());
        let record = workflow.value.clone();
        RunPlan { digest: digest.to_owned(), record, package, inputs, steps, host, verifies: None }
    }

    /// The workflow as it was when the run began.
    pub fn workflow(&self, slug: &str) -> Option<Arc<Workflow>> {
        let named = |ending: &str, text: &str| (format!("{slug}{ending}"), text.to_owned());
        let files = WorkflowFiles {
            name: slug.to_owned(),
            record: named(".json", &self.record.to_string()),
            package: self.package.as_deref().map(|text| named("/package.toml", text)),
            ..WorkflowFiles::default()
        };
        let mistakes = Mistakes::default();
        let found = load_workflows(&[files], &mistakes);
        mistakes.result(found).ok()?.remove(slug)
    }
}

/// The steps of a run with these inputs, and what they can cost at most.
pub fn planned(
    app: &App,
    caller: &Caller,
    workflow: &Workflow,
    inputs: &BTreeMap<String, Value>,
) -> Result<Vec<PlannedStep>, Refusal> {
    let steps = RunSteps::of(workflow, inputs).map_err(wrong_input)?;
    let gives_file =
        |one: &tollgate_workflows::StepOfRun| one.step.gives.values().any(|from| *from == OutputFrom::Body);
    if app.run_files.is_none() && steps.steps.iter().any(gives_file) {
        let text = "The workflow makes files, and none are stored here; `[workflows] copy_to` says where.";
        return Err(Refusal::new(Code::WorkflowNotExecutable, text).because("no_files"));
    }
    let serving = app.serving.load_full();
    let mut outputs = RunOutputs::new();
    let mut planned = Vec::new();
    for (at, one) in steps.steps.iter().enumerate() {
        let asked = ask(&steps, at, inputs, &outputs)?;
        let desk = QuoteDesk { app, caller, serving: &serving };
        let (model, quoted) = desk.step(workflow, &one.step.model, inputs, &asked)?;
        let QuotedStep { most, pricing_version, drops } = quoted;
        let warnings = StepWarning::list(&drops);
        let (name, endpoint) = (one.name.clone(), asked.path);
        planned.push(PlannedStep { name, endpoint, model, most, pricing_version, warnings });
        let stands_for = |(name, from): (&String, &OutputFrom)| {
            let value = match from {
                OutputFrom::Body => json!(DOT),
                OutputFrom::At(_) | OutputFrom::Text => json!(longest(one.step.most_chars(name))),
            };
            (name.clone(), value)
        };
        outputs.insert(one.name.clone(), one.step.gives.iter().map(stands_for).collect());
    }
    Ok(planned)
}

/// What all steps together can cost.
pub fn sum(steps: &[PlannedStep]) -> Money {
    Money::checked_sum(steps.iter().map(|step| step.most)).unwrap_or(Money::MAX)
}

/// A text of so many characters that no tokeniser makes short.
fn longest(chars: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyz0123456789-;:,."[(state >> 33) as usize % 41])
    };
    (0..chars).map(|_| letter()).collect()
}

pub(super) fn wrong_input(Violation { path, reason }: Violation) -> Refusal {
    Refusal::about(Code::InvalidParameter, &path, format!("`{path}` {reason}."))
}

/// What a call of a step comes to at most.
struct QuotedStep {
    most: Money,
    pricing_version: String,
    drops: Dropped,
}

/// Models that are named where none will do.
const NAMED: usize = 5;

/// No model reads all that the step asks with.
fn unread<'u>(unread: impl Iterator<Item = (&'u str, &'u [String])>) -> Option<Refusal> {
    let models: Vec<String> =
        unread.map(|(model, fields)| format!("`{model}` drops `{}`", fields.join("`, `"))).collect();
    let more = models.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more models do not read all of it either") } else { String::new() };
    let text = format!(
        "No model on sale to this account reads all that the workflow asks with: {}{more}.",
        models[..models.len().min(NAMED)].join(", ")
    );
    (!models.is_empty()).then(|| Refusal::new(Code::WorkflowNotExecutable, text).because("field_not_read"))
}

struct QuoteDesk<'a> {
    app: &'a App,
    caller: &'a Caller,
    serving: &'a Arc<Serving>,
}

impl QuoteDesk<'_> {
    /// The model of a step, and what the step comes to with it.
    fn step(
        &self,
        workflow: &Workflow,
        model: &Option<StepModel>,
        inputs: &BTreeMap<String, Value>,
        asked: &StepAsk,
    ) -> Result<(Option<String>, QuotedStep), Refusal> {
        let named = |name: &str| Ok((Some(name.to_owned()), self.quote(asked, Some(name))?));
        match model {
            None => Ok((None, self.quote(asked, None)?)),
            Some(StepModel::Named(name)) => named(name),
            Some(StepModel::Input(id)) => named(inputs.get(id).and_then(Value::as_str).unwrap_or_default()),
            Some(StepModel::Query) => named(&self.found(workflow, asked)?),
        }
    }

    /// The model that the record's query finds.
    fn found(&self, workflow: &Workflow, asked: &StepAsk) -> Result<String, Refusal> {
        let record = &workflow.record;
        let mut refused = None;
        let mut candidates = Vec::new();
        let models: Vec<&Arc<Model>> = self.serving.catalog.models.values().collect();
        for model in models {
            let ids = &record.runtime_binding.model_ids;
            let offered = self.caller.may_use(&model.name) && self.serving.group_of(self.caller, model).is_some();
            if !offered || !asked.serves.is_some_and(|kind| model.supports(kind)) {
                continue;
            }
            if !ids.is_empty() && !ids.contains(&model.name) {
                continue;
            }
            let (quote, drops) = match self.quote(asked, Some(&model.name)) {
                Ok(quoted) => (Some(quoted.most), quoted.drops.fields().to_vec()),
                Err(refusal) => {
                    refused.get_or_insert(refusal);
                    (None, Vec::new())
                }
            };
            candidates.push(ModelCandidate {
                name: &model.name,
                input_modalities: &model.input_modalities,
                output_modalities: &model.output_modalities,
                capabilities: &model.capabilities,
                quote,
                drops,
            });
        }
        let ids = &record.runtime_binding.model_ids;
        let found = record.executor_query.select(ids, &candidates).map(str::to_owned);
        found.ok_or_else(|| {
            let text = "No model on sale to this account can do what the workflow asks for.";
            let none = || Refusal::new(Code::WorkflowNotExecutable, text).because("no_model");
            unread(record.executor_query.unread(ids, &candidates)).or(refused).unwrap_or_else(none)
        })
    }

    /// What a call can cost at most, by which prices, and what of it would not be read.
    fn quote(&self, asked: &StepAsk, model: Option<&str>) -> Result<QuotedStep, Refusal> {
        let body = quoted_body(asked, model)?;
        let shop = Shop {
            serving: self.serving,
            caller: Some(self.caller),
            picture_links: self.app.images.has_links(),
            realtime: &self.app.settings.realtime,
        };
        let request = quote::read(&shop, &asked.path, Bytes::from(body.to_string()))?;
        let (model, group) = call::find(self.serving, self.caller, &*request)?;
        let fetcher = &self.app.conversations.fetcher;
        request.fits(fetcher, self.serving, &model)?;
        let stream_hold = self.app.settings.limits.stream_hold;
        let topped_up = self.caller.account.topped_up;
        let terms = Terms { at: self.app.world.now_ms(), group, topped_up, stream_hold };
        let (quote, reply) = quotes::quote_reply(&asked.path, terms, &model, &*request, None)?;
        let most = reply.most_nano_usd.map(Money::from_nano).ok_or_else(|| {
            let text = format!("What a call of `{}` costs has no bound; the step must limit its output.", model.name);
            Refusal::new(Code::WorkflowNotExecutable, text).because("no_bound")
        })?;
        let pricing_version = reply.calculation.pricing_version;
        let drops = request.drops(fetcher, self.serving, &model);
        Ok(QuotedStep { most: most.max(quote.amount), pricing_version, drops })
    }
}

/// A quote of a whole run, with all that is to be confirmed.
pub fn quote_json(bound: &BoundWorkflow, steps: &[PlannedStep], items: Vec<String>) -> Value {
    let (workflow, most) = (&bound.workflow, sum(steps));
    let sheet = privacy_digest(&workflow.value);
    json!({
        "object": "workflow.quote",
        "slug": workflow.record.slug,
        "steps": steps,
        "most_nano_usd": most.nano(),
        "most_usd": most.to_string(),
        "privacy": { "digest": sheet, "sheet": workflow.value["privacy_preflight"] },
        "confirm": {
            "contract": bound.digest,
            "privacy": sheet,
            "max_cost_nano_usd": most.nano(),
            "items": items,
        },
    })
}
