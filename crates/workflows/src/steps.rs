//! The steps of one run: those of its package in their order, one that is made several times as
//! often as the inputs say. A record without a package is one step.

use crate::bounds::{MAX_RUN_BYTES, MAX_STEPS};
use crate::check::StepOutput;
use crate::evaluate::Violation;
use crate::package::{OutputFrom, PackageStep, StepCount, StepModel};
use crate::template::{RenderFault, TemplateValues, render};
use crate::workflow::Workflow;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What steps gave, by the name that a step has in its run, then by output.
pub type RunOutputs = BTreeMap<String, BTreeMap<String, Value>>;

pub struct RunSteps {
    pub steps: Vec<StepOfRun>,
}

pub struct StepOfRun {
    /// The name in the run: that of the package's step, with its number where there are several.
    pub name: String,
    pub step: PackageStep,
    pub number: Option<usize>,
}

impl RunSteps {
    /// The steps of a run with these inputs, or why there can be none.
    pub fn of(workflow: &Workflow, inputs: &BTreeMap<String, Value>) -> Result<RunSteps, Violation> {
        let single = single_step(workflow);
        let written = workflow.package.as_ref().map_or(std::slice::from_ref(&single), |package| &package.steps);
        let mut steps = Vec::new();
        for step in written {
            let times = match &step.each {
                None => None,
                Some(StepCount::Times(times)) => Some(*times),
                Some(StepCount::Input(id)) => inputs.get(id).and_then(Value::as_u64).map(|n| n as usize).or(Some(0)),
            };
            match times {
                None => steps.push(StepOfRun { name: step.name.clone(), step: step.clone(), number: None }),
                Some(times) => steps.extend((1..=times.min(MAX_STEPS + 1)).map(|number| StepOfRun {
                    name: format!("{}_{number}", step.name),
                    step: step.clone(),
                    number: Some(number),
                })),
            }
        }
        if steps.is_empty() || steps.len() > MAX_STEPS {
            let reason = format!("come to {} steps; a run has 1 to {MAX_STEPS}", steps.len());
            return Err(Violation { path: "inputs".to_owned(), reason });
        }
        Ok(RunSteps { steps })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.name.as_str())
    }

    /// Path values and body of a step, with what the steps before gave.
    pub fn rendered(
        &self,
        at: usize,
        inputs: &BTreeMap<String, Value>,
        outputs: &RunOutputs,
    ) -> Result<(Map<String, Value>, Value), RenderFault> {
        let one = &self.steps[at];
        let mut values = TemplateValues { inputs: inputs.clone(), number: one.number, ..TemplateValues::default() };
        for before in &self.steps[..at] {
            let Some(given) = outputs.get(&before.name) else { continue };
            let slots = values.steps.entry(before.step.name.clone()).or_default();
            for (name, value) in given {
                match before.number {
                    // Of a step that is made as often: the same time; elsewhere all of them.
                    None => drop(slots.insert(name.clone(), value.clone())),
                    Some(number) if one.number == Some(number) => drop(slots.insert(name.clone(), value.clone())),
                    Some(_) if one.number.is_some() => {}
                    Some(_) => {
                        let list = slots.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                        if let Value::Array(list) = list {
                            list.push(value.clone());
                        }
                    }
                }
            }
        }
        let path = match render(&Value::Object(one.step.path.clone()), &values)? {
            Value::Object(path) => path,
            _ => Map::new(),
        };
        Ok((path, render(&one.step.body, &values)?))
    }
}

impl StepOfRun {
    /// Whether what it gave passes its checks; why not, without repeating what was said.
    pub fn passes(&self, outputs: &BTreeMap<String, StepOutput>) -> Result<(), String> {
        for (name, output) in outputs {
            let most = self.step.most_chars(name);
            if let StepOutput::Json(Value::String(text)) = output
                && text.chars().count() > most
            {
                return Err(format!("{name} has more than {most} characters"));
            }
        }
        for check in &self.step.checks {
            check.holds(outputs.get(&check.about), self.step.schemas.get(&check.about))?;
        }
        Ok(())
    }
}

impl Workflow {
    /// The first acceptance check that the outputs of a run do not pass. Of a step that was made
    /// several times each must.
    pub fn unaccepted(
        &self,
        steps: &RunSteps,
        outputs: &BTreeMap<String, BTreeMap<String, StepOutput>>,
    ) -> Option<String> {
        for (at, sentence) in self.record.acceptance_checks.iter().enumerate() {
            let checks = self.acceptance.get(at).map(Vec::as_slice).unwrap_or_default();
            if checks.is_empty() {
                return Some(format!("{sentence:?}: nothing checks it; \"acceptance\" in fixture.json can"));
            }
            for check in checks {
                let (step, output) = check.about.split_once('.')?;
                for one in steps.steps.iter().filter(|one| one.step.name == step) {
                    let given = outputs.get(&one.name).and_then(|given| given.get(output));
                    if let Err(why) = check.holds(given, one.step.schemas.get(output)) {
                        return Some(format!("{sentence:?}: {why}"));
                    }
                }
            }
        }
        None
    }
}

/// Whether all outputs of a run are small enough to be stored with it.
pub fn outputs_fit(outputs: &RunOutputs) -> bool {
    let bytes = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
    outputs.values().flat_map(BTreeMap::values).map(bytes).sum::<usize>() <= MAX_RUN_BYTES
}

/// What the one call of a record without a package gave, as checks name it.
pub(crate) const SINGLE_OUTPUT: &str = "call.result";

/// The endpoint that answers with a file and nothing else.
const SPEECH: &str = "/v1/audio/speech";

/// A record without a package: its endpoint is called once, with the mapped inputs.
fn single_step(workflow: &Workflow) -> PackageStep {
    let endpoint = workflow.record.runtime_binding.endpoint.clone().unwrap_or_default();
    let result = if endpoint == SPEECH { OutputFrom::Body } else { OutputFrom::At(String::new()) };
    PackageStep {
        name: "call".to_owned(),
        endpoint,
        path: Map::new(),
        model: Some(StepModel::Query),
        each: None,
        body: workflow.record.mapped_body(),
        gives: [("result".to_owned(), result)].into(),
        checks: Vec::new(),
        schemas: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(name: &str, each: Option<StepCount>, body: Value) -> PackageStep {
        PackageStep {
            name: name.to_owned(),
            endpoint: "/v1/x".to_owned(),
            path: Map::new(),
            model: None,
            each,
            body,
            gives: [("out".to_owned(), OutputFrom::Text)].into(),
            checks: Vec::new(),
            schemas: BTreeMap::new(),
        }
    }

    #[test]
    fn steps_that_are_made_several_times_see_their_own_number_and_the_others_see_all() {
        let shots = step("shots", Some(StepCount::Times(2)), json!("shot {{each.number}}"));
        let clips = step("clips", Some(StepCount::Times(2)), json!("clip of {{steps.shots.out}}"));
        let whole = step("whole", None, json!("{{steps.clips.out}}"));
        let numbered = |step: &PackageStep, number| StepOfRun {
            name: format!("{}_{number}", step.name),
            step: step.clone(),
            number: Some(number),
        };
        let mut steps: Vec<StepOfRun> =
            [&shots, &clips].iter().flat_map(|s| [numbered(s, 1), numbered(s, 2)]).collect();
        steps.push(StepOfRun { name: "whole".to_owned(), step: whole, number: None });
        let steps = RunSteps { steps };
        let given = |text: &str| BTreeMap::from([("out".to_owned(), json!(text))]);
        let outputs: RunOutputs = [("shots_1", "a"), ("shots_2", "b"), ("clips_1", "c"), ("clips_2", "d")]
            .map(|(name, text)| (name.to_owned(), given(text)))
            .into();
        let body = |at| steps.rendered(at, &BTreeMap::new(), &outputs).unwrap().1;
        assert_eq!(body(1), json!("shot 2"));
        assert_eq!((body(2), body(3)), (json!("clip of a"), json!("clip of b")));
        assert_eq!(body(4), json!(["c", "d"]));
    }
}
