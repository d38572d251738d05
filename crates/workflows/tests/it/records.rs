//! Generated records pass; each single violation is refused at its path; so is each broken rule.

use super::generated::{Numbers, violations};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate_catalog::Money;
use tollgate_workflows::{
    Confirmation, SCHEMA_TEXT, TemplateValues, WorkflowRecord, WorkflowStage, checked_inputs, items_to_confirm,
    privacy_digest, read_record, record_schema, render, semantic_digest,
};

fn read(record: &Value) -> Result<WorkflowRecord, Vec<(String, String)>> {
    let slug = record["slug"].as_str().unwrap_or("none").to_owned();
    let found = read_record("a.json", &serde_json::to_string_pretty(record).unwrap(), &slug);
    let mistakes = |list: Vec<tollgate_catalog::Mistake>| list.into_iter().map(|one| (one.field, one.reason)).collect();
    found.read.map(|(record, _)| record).map_err(mistakes)
}

#[test]
fn five_hundred_generated_records_pass() {
    let mut numbers = Numbers(1);
    let mut stages = BTreeMap::new();
    for _ in 0..500 {
        let record = numbers.record();
        let read = read(&record).unwrap_or_else(|wrong| panic!("{wrong:?}\n{record:#}"));
        *stages.entry(WorkflowStage::claimed(&read).unwrap()).or_insert(0) += 1;
    }
    assert_eq!(stages.len(), 3, "{stages:?}");
}

#[test]
fn every_single_violation_is_refused_at_its_path() {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    let mut numbers = Numbers(2);
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..3 {
        let mut record = numbers.record();
        // All that a record can have, so that each of it can be broken.
        record["$schema"] = json!("x");
        record["canonical_url"] = json!("x");
        record["generated_by"] = json!("scripts/gen_workflows.py");
        record["runtime_binding"]["model_ids"] = json!(["demo"]);
        record["runtime_binding"]["known_unimplemented_fields"] = json!(["x"]);
        let mut count = 0;
        for violated in violations(&schema, &record) {
            if record_schema().violations(&violated.record).is_empty() {
                panic!("{} at {} passes", violated.how, violated.path);
            }
            let found = read(&violated.record).unwrap_err();
            let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
            assert!(
                paths.iter().all(|path| *path == violated.path),
                "{} at {}: {found:?}",
                violated.how,
                violated.path
            );
            *by_kind.entry(violated.how).or_default() += 1;
            count += 1;
        }
        assert!(count >= 500, "{count}");
    }
    let kinds = [
        "additionalProperties",
        "const",
        "enum",
        "minItems",
        "minLength",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ];
    assert!(by_kind.keys().copied().eq(kinds), "{by_kind:?}");
}

#[test]
fn the_example_is_a_record() {
    let text = include_str!("../example/storyline-to-clip.json");
    read_record("storyline-to-clip.json", text, "storyline-to-clip").read.unwrap();
}

fn plain() -> Value {
    let mut record = Numbers(3).record();
    record["slug"] = json!("clip");
    record["inputs"] = json!([
        input("photo", "asset", true, json!(null), json!([])),
        input("seconds", "enum", false, json!(5), json!([5, 10])),
        input("style", "string", false, json!(null), json!([])),
    ]);
    record["inputs"][1]["cost_sensitive"] = json!(true);
    record["runtime_binding"]["request_field_map"] = json!({ "photo": "image", "seconds": "seconds" });
    record["runtime_binding"]["known_unimplemented_fields"] = json!([]);
    record["runtime_binding"]["endpoint"] = json!(null);
    record["recovery_policy"]["confirmation_required_for"] = json!(["cost", "style"]);
    record["continue_action"] = json!({ "enabled": true, "href": "/next", "reason": "x" });
    WorkflowStage::Draft.write(&mut record);
    record
}

fn input(id: &str, kind: &str, required: bool, default: Value, allowed: Value) -> Value {
    json!({
        "id": id, "type": kind, "required": required, "description": "x", "evidence_status": "semantic_stable",
        "default": default, "allowed_values": allowed, "cost_sensitive": false,
    })
}

#[test]
fn every_rule_beyond_the_schema_is_refused_at_its_path() {
    read(&plain()).unwrap();
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/slug", json!("runs"), "slug"),
        ("/slug", json!("assets"), "slug"),
        ("/slug", json!("schema"), "slug"),
        ("/last_modified", json!("2026-02-30"), "last_modified"),
        ("/last_modified", json!("2026-13-01"), "last_modified"),
        ("/inputs/1/allowed_values", json!([]), "inputs[1].allowed_values"),
        ("/inputs/1/allowed_values", json!([5, 5, 10]), "inputs[1].allowed_values[1]"),
        ("/inputs/1/allowed_values", json!([5, true]), "inputs[1].allowed_values[1]"),
        ("/inputs/0/allowed_values", json!(["a"]), "inputs[0].allowed_values"),
        ("/inputs/2/allowed_values", json!([1]), "inputs[2].allowed_values[0]"),
        ("/inputs/1/default", json!(7), "inputs[1].default"),
        ("/inputs/1/default", json!(true), "inputs[1].default"),
        ("/inputs/0/default", json!("asset_1"), "inputs[0].default"),
        ("/inputs/2/default", json!(1), "inputs[2].default"),
        (
            "/runtime_binding/request_field_map",
            json!({ "photo": "a", "none": "b" }),
            "runtime_binding.request_field_map.none",
        ),
        ("/runtime_binding/request_field_map", json!({ "photo": 1 }), "runtime_binding.request_field_map.photo"),
        ("/runtime_binding/request_field_map", json!({ "photo": "model" }), "runtime_binding.request_field_map.photo"),
        ("/runtime_binding/request_field_map", json!({ "photo": "a..b" }), "runtime_binding.request_field_map.photo"),
        (
            "/runtime_binding/request_field_map",
            json!({ "photo": "a", "style": "a.b" }),
            "runtime_binding.request_field_map.style",
        ),
        ("/runtime_binding/request_field_map", json!({}), "inputs[0].id"),
        (
            "/recovery_policy/confirmation_required_for",
            json!(["cost", "moon"]),
            "recovery_policy.confirmation_required_for[1]",
        ),
        ("/continue_action/href", json!(null), "continue_action.href"),
        ("/continue_action/enabled", json!(false), "continue_action.href"),
        ("/contract_status", json!("verified"), "contract_status"),
        ("/provenance/runtime_evidence", json!("verified"), "contract_status"),
        ("/runtime_binding/status", json!("contract_only_not_executable"), "contract_status"),
    ];
    for (pointer, value, path) in cases {
        let mut record = plain();
        *record.pointer_mut(pointer).unwrap() = value.clone();
        let found = read(&record).unwrap_err();
        assert_eq!(found.iter().map(|(path, _)| &**path).collect::<Vec<_>>(), [path], "{pointer} {value}: {found:?}");
    }
    let mut twice = plain();
    twice["inputs"].as_array_mut().unwrap().push(input("style", "string", false, json!(null), json!([])));
    assert_eq!(read(&twice).unwrap_err(), [("inputs[3].id".to_owned(), "is the id of an input before".to_owned())]);
    let mut many = plain();
    many["inputs"] = (0..65).map(|at| input(&format!("i{at}"), "string", false, json!(null), json!([]))).collect();
    many["runtime_binding"]["request_field_map"] = json!({});
    many["recovery_policy"]["confirmation_required_for"] = json!(["cost"]);
    assert_eq!(read(&many).unwrap_err()[0].0, "inputs");
    let misnamed = read_record("b.json", &plain().to_string(), "b").read.unwrap_err();
    assert_eq!(misnamed[0].to_string(), "b.json:1: slug: must be the name of its file, \"b\"");
}

#[test]
fn an_address_that_a_browser_takes_elsewhere_is_refused() {
    for href in [
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "http://example.com",
        "https://",
        "https:///x",
        "https://a@b/",
        "/a b",
        "/a\tb",
        "\u{1}/x",
        "",
        "x",
        "HTTPS://example.com",
        " /x",
    ] {
        let mut record = plain();
        record["continue_action"]["href"] = json!(href);
        assert_eq!(read(&record).unwrap_err()[0].0, "continue_action.href", "{href:?}");
    }
}

#[test]
fn the_line_of_a_mistake_is_the_line_of_the_value() {
    let mut record = plain();
    record["discovery"]["locales"] = json!(["en", "EN"]);
    let text = serde_json::to_string_pretty(&record).unwrap();
    let line = 1 + text.lines().position(|line| line.trim() == "\"EN\"").unwrap();
    let found = read_record("clip.json", &text, "clip").read.unwrap_err();
    assert_eq!(
        found[0].to_string(),
        format!("clip.json:{line}: discovery.locales[1]: must match ^[a-z]{{2}}(?:-[a-z]{{2}})?$")
    );
}

#[test]
fn inputs_are_held_to_their_record() {
    let record = read(&plain()).unwrap();
    let given = |value: Value| value.as_object().unwrap().clone();
    let inputs = checked_inputs(&record, &given(json!({ "photo": "asset_7Qx", "style": null }))).unwrap();
    assert_eq!(json!(inputs), json!({ "photo": "asset_7Qx", "seconds": 5, "style": null }));
    checked_inputs(&record, &given(json!({ "photo": "https://example.com/a.png", "seconds": 10 }))).unwrap();
    for (wrong, path) in [
        (json!({}), "inputs.photo"),
        (json!({ "photo": "asset_1", "seconds": 7 }), "inputs.seconds"),
        (json!({ "photo": "asset_1", "seconds": true }), "inputs.seconds"),
        (json!({ "photo": "asset_1", "style": 1 }), "inputs.style"),
        (json!({ "photo": "asset_1", "style": "x".repeat(100_001) }), "inputs.style"),
        (json!({ "photo": "asset_1", "moon": 1 }), "inputs.moon"),
        (json!({ "photo": "asset_" }), "inputs.photo"),
        (json!({ "photo": "asset_../../etc" }), "inputs.photo"),
        (json!({ "photo": "file:///etc/passwd" }), "inputs.photo"),
        (json!({ "photo": "http://example.com/a" }), "inputs.photo"),
        (json!({ "photo": "https://a b" }), "inputs.photo"),
    ] {
        let found = checked_inputs(&record, &given(wrong.clone())).unwrap_err();
        assert_eq!(found.iter().map(|one| &*one.path).collect::<Vec<_>>(), [path], "{wrong}");
    }
}

#[test]
fn a_body_has_each_input_in_its_field_and_nothing_else() {
    let mut value = plain();
    value["runtime_binding"]["request_field_map"] =
        json!({ "photo": "metadata.first.image", "seconds": "metadata.seconds", "style": "prompt" });
    let record = read(&value).unwrap();
    let hostile = "\"}, \"model\": \"dear\"";
    for (given, body) in [
        (json!({ "photo": "asset_1" }), json!({ "metadata": { "first": { "image": "asset_1" }, "seconds": 5 } })),
        (
            json!({ "photo": "asset_1", "seconds": 10, "style": hostile }),
            json!({ "metadata": { "first": { "image": "asset_1" }, "seconds": 10 }, "prompt": hostile }),
        ),
    ] {
        let inputs = checked_inputs(&record, given.as_object().unwrap()).unwrap();
        let values = TemplateValues { inputs, ..TemplateValues::default() };
        assert_eq!(render(&record.mapped_body(), &values).unwrap(), body);
    }
}

#[test]
fn what_costs_more_must_be_confirmed_by_name() {
    let value = plain();
    let record = read(&value).unwrap();
    let given = |seconds: u64| {
        let given = json!({ "photo": "asset_1", "seconds": seconds });
        checked_inputs(&record, given.as_object().unwrap()).unwrap()
    };
    let items = |seconds| items_to_confirm(&record, &given(seconds)).into_iter().collect::<Vec<_>>();
    assert_eq!(items(5), ["style"], "as it is by default, and what the policy names");
    assert_eq!(items(10), ["seconds", "style"]);
    let sheet = privacy_digest(&value);
    let mut confirmed = Confirmation::default();
    assert_eq!(confirmed.lacks(&record, &sheet, &given(10)), ["privacy", "cost", "seconds", "style"]);
    confirmed.max_cost = Some(Money::from_nano(1));
    confirmed.items = ["seconds".to_owned(), "style".to_owned()].into();
    confirmed.privacy = Some("of another sheet".to_owned());
    assert_eq!(confirmed.lacks(&record, &sheet, &given(10)), ["privacy"]);
    confirmed.privacy = Some(sheet.clone());
    assert!(confirmed.lacks(&record, &sheet, &given(10)).is_empty());
    let mut changed = value;
    changed["privacy_preflight"]["retention"] = json!("forever");
    assert_ne!(privacy_digest(&changed), sheet);
}

#[test]
fn the_digest_changes_with_what_a_run_depends_on_and_with_nothing_else() {
    let record = plain();
    let operation = json!({ "operationId": "x", "requestBody": {} });
    let digest = semantic_digest(&record, Some("version = '1'"), &operation);
    assert!(digest.len() == 64 && digest == semantic_digest(&record, Some("version = '1'"), &operation));
    for pointer in
        ["/title", "/summary", "/last_modified", "/discovery/sitemap", "/contract_status", "/runtime_binding/status"]
    {
        let mut changed = record.clone();
        *changed.pointer_mut(pointer).unwrap() = json!("another");
        assert_eq!(semantic_digest(&changed, Some("version = '1'"), &operation), digest, "{pointer}");
    }
    for pointer in [
        "/inputs/0/description",
        "/inputs/1/default",
        "/executor_query/selection_policy",
        "/recovery_policy/confirmation_required_for",
        "/privacy_preflight/retention",
        "/runtime_binding/request_field_map/photo",
        "/runtime_binding/endpoint",
    ] {
        let mut changed = record.clone();
        *changed.pointer_mut(pointer).unwrap() = json!("another");
        assert_ne!(semantic_digest(&changed, Some("version = '1'"), &operation), digest, "{pointer}");
    }
    assert_ne!(semantic_digest(&record, Some("version = '1' "), &operation), digest, "one character of the package");
    assert_ne!(semantic_digest(&record, None, &operation), digest);
    assert_ne!(semantic_digest(&record, Some("version = '1'"), &json!({ "operationId": "y" })), digest);
}

#[test]
fn a_stage_is_written_into_all_three_fields() {
    for stage in [WorkflowStage::Draft, WorkflowStage::Locked, WorkflowStage::Verified] {
        let mut record = plain();
        stage.write(&mut record);
        assert_eq!(WorkflowStage::claimed(&read(&record).unwrap()), Some(stage));
        assert_eq!(WorkflowStage::from_word(stage.word()), Some(stage));
        assert_eq!(record["contract_status"], stage.contract_status());
    }
    assert_eq!(WorkflowStage::from_word("moon"), None);
}

pub fn sample() -> Value {
    plain()
}
