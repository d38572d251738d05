//! What a record must keep to that a schema cannot say. Each rule names the path it is broken at.

use crate::bounds::MAX_INPUTS;
use crate::evaluate::{Violation, item, kind_of, member};
use crate::record::{InputKind, WorkflowInput, WorkflowRecord};
use crate::stage::WorkflowStage;
use serde_json::Value;
use std::collections::BTreeSet;

/// Slugs that would stand where our own paths stand.
const RESERVED: &[&str] = &["assets", "runs", "schema"];

/// What can be confirmed besides inputs.
pub(crate) const CONFIRMED_WORDS: &[&str] = &["cost", "privacy", "resubmit", "model_change"];

/// Every rule that a record breaks. `name` is that of its file, without the ending.
pub(crate) fn broken_rules(record: &WorkflowRecord, name: &str) -> Vec<Violation> {
    let mut broken = Broken(Vec::new());
    if record.slug != name {
        broken.add("slug", format!("must be the name of its file, {name:?}"));
    }
    if RESERVED.contains(&record.slug.as_str()) {
        broken.add("slug", format!("must not be one of {}: they are paths of ours", RESERVED.join(", ")));
    }
    if record.last_modified.parse::<jiff::civil::Date>().is_err() {
        broken.add("last_modified", "is not a day of the calendar");
    }
    broken.inputs(record);
    broken.mapping(record);
    broken.continuation(record);
    for (at, name) in record.recovery_policy.confirmation_required_for.iter().enumerate() {
        if record.input(name).is_none() && !CONFIRMED_WORDS.contains(&name.as_str()) {
            let path = item("recovery_policy.confirmation_required_for", at);
            broken.add(&path, format!("must be the id of an input or one of {}", CONFIRMED_WORDS.join(", ")));
        }
    }
    if WorkflowStage::claimed(record).is_none() {
        let reason = "does not agree with runtime_binding.status and provenance.runtime_evidence";
        broken.add("contract_status", reason);
    }
    broken.0
}

struct Broken(Vec<Violation>);

impl Broken {
    fn add(&mut self, path: &str, reason: impl Into<String>) {
        self.0.push(Violation { path: path.to_owned(), reason: reason.into() });
    }

    fn inputs(&mut self, record: &WorkflowRecord) {
        if record.inputs.len() > MAX_INPUTS {
            self.add("inputs", format!("must have at most {MAX_INPUTS} items"));
        }
        let mut ids = BTreeSet::new();
        for (at, input) in record.inputs.iter().enumerate() {
            let path = item("inputs", at);
            if !ids.insert(&input.id) {
                self.add(&member(&path, "id"), "is the id of an input before");
            }
            self.allowed_values(input, &member(&path, "allowed_values"));
            self.default(input, &member(&path, "default"));
        }
    }

    fn allowed_values(&mut self, input: &WorkflowInput, path: &str) {
        match (input.kind, input.allowed_values.is_empty()) {
            (InputKind::Enum, true) => self.add(path, "must list the values of an enum"),
            (InputKind::Asset, false) => self.add(path, "must be empty: an asset is a file"),
            _ => {}
        }
        let mut seen = BTreeSet::new();
        for (at, value) in input.allowed_values.iter().enumerate() {
            if input.kind != InputKind::Asset && !input.kind.takes(value) {
                self.add(&item(path, at), format!("must be {}, not {}", input.kind.in_words(), kind_of(value)));
            }
            if !seen.insert(value.to_string()) {
                self.add(&item(path, at), "stands in the list before");
            }
        }
    }

    fn default(&mut self, input: &WorkflowInput, path: &str) {
        let default = &input.default;
        if default.is_null() {
            return;
        }
        if input.required {
            self.add(path, "must be null: the input is required");
        } else if input.kind == InputKind::Asset {
            self.add(path, "must be null: an asset is a file");
        } else if !input.kind.takes(default) {
            self.add(path, format!("must be {}, not {}", input.kind.in_words(), kind_of(default)));
        } else if !input.allowed_values.is_empty() && !input.allowed_values.contains(default) {
            self.add(path, "must be one of allowed_values");
        }
    }

    fn mapping(&mut self, record: &WorkflowRecord) {
        let binding = &record.runtime_binding;
        for (id, field) in &binding.request_field_map {
            let path = member("runtime_binding.request_field_map", id);
            if record.input(id).is_none() {
                self.add(&path, "is not the id of an input");
            }
            if !field.as_str().is_some_and(|field| field.split('.').all(|part| !part.is_empty())) {
                self.add(&path, "must be the name of a field, in dots where it is inside another");
            }
            if field == "model" {
                self.add(&path, "must not be the model: executor_query says which it is");
            }
        }
        let fields = || binding.request_field_map.iter().filter_map(|(id, field)| Some((id, field.as_str()?)));
        for (id, field) in fields() {
            let inside =
                |other: &str| field.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if fields().any(|(other_id, other)| other_id != id && inside(other)) {
                let path = member("runtime_binding.request_field_map", id);
                self.add(&path, "is the field of another input, or inside it");
            }
        }
        for (at, input) in record.inputs.iter().enumerate().filter(|(_, input)| input.required) {
            let named = binding.known_unimplemented_fields.contains(&input.id);
            if !named && !binding.request_field_map.contains_key(&input.id) {
                let reason = "is required and neither in request_field_map nor in known_unimplemented_fields";
                self.add(&member(&item("inputs", at), "id"), reason);
            }
        }
    }

    fn continuation(&mut self, record: &WorkflowRecord) {
        let action = &record.continue_action;
        match (&action.href, action.enabled) {
            (None, true) => self.add("continue_action.href", "must lead somewhere: the action is enabled"),
            (Some(_), false) => self.add("continue_action.href", "must be null: the action is not enabled"),
            (Some(href), true) if !leads_safely(href) => {
                self.add("continue_action.href", "must be a path that begins with / or an address with https");
            }
            _ => {}
        }
    }
}

/// A path of ours or another site by https. Browsers take `//host` and `/\host` for other sites,
/// and drop control characters before they look.
fn leads_safely(href: &str) -> bool {
    let plain = !href.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\');
    let ours = href.starts_with('/') && !href.starts_with("//");
    let elsewhere = href.strip_prefix("https://").is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@')
    });
    plain && (ours || elsewhere)
}

impl InputKind {
    /// Whether a value is of this kind.
    pub(crate) fn takes(self, value: &Value) -> bool {
        match self {
            InputKind::Asset | InputKind::String => value.is_string(),
            InputKind::Enum => value.is_string() || value.is_i64(),
            InputKind::Boolean => value.is_boolean(),
            InputKind::Integer => value.is_i64(),
        }
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            InputKind::Asset => "a file",
            InputKind::String => "a text",
            InputKind::Enum => "a text or a whole number",
            InputKind::Boolean => "true or false",
            InputKind::Integer => "a whole number",
        }
    }
}
