//! Groups: in which order they are tried, and who may know of them.

use super::{catalog, mistakes_of};
use serde_json::{Value, json};
use tollgate_catalog::{Snapshot, View};

const GROUPS: &str = r#"
[group.partner]
multiplier = "0.8"
description = "A fifth off"
[group.reseller]
multiplier = "1/2"
public = true
"#;

fn model(name: &str, more: &str) -> String {
    format!(
        "[model.{name:?}]\n{more}\nprice = {{ input = 2_000_000, output = 8_000_000 }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]\n"
    )
}

fn shop() -> Snapshot {
    let models = [
        model("for-all", "enable_groups = ['default', 'partner', 'reseller']\nvendor_id = 7\nowner_by = 'Maker'"),
        model("partners-only", "enable_groups = ['partner']"),
        model("resellers-only", "enable_groups = ['reseller']"),
        model("known-only", "login_required = true"),
    ];
    catalog(&format!("{GROUPS}{}", models.concat()))
}

fn names(page: &Value) -> Vec<&str> {
    page["data"].as_array().expect("models").iter().filter_map(|one| one["model_name"].as_str()).collect()
}

#[test]
fn groups_are_tried_as_auto_groups_says_and_special_ones_before_default() {
    for (auto, order) in [
        ("", ["partner", "reseller", "default"]),
        ("auto_groups = ['default']", ["default", "partner", "reseller"]),
        ("auto_groups = ['reseller', 'reseller', 'default']", ["reseller", "default", "partner"]),
    ] {
        let catalog = catalog(&format!("{auto}\n{GROUPS}{}", model("m", "")));
        assert_eq!(catalog.auto_groups, order, "{auto}");
        let own = ["default".to_owned(), "gone".to_owned(), "partner".to_owned()];
        let tried: Vec<&str> = catalog.in_order(&own).collect();
        let expected: Vec<&str> = order.into_iter().filter(|group| *group != "reseller").collect();
        assert_eq!(tried, expected, "only its own, and only those there are: {auto}");
    }
}

#[test]
fn closed_groups_and_models_for_the_known_are_not_for_everybody() {
    let catalog = shop();
    let public = catalog.public_groups();
    assert_eq!(public, ["reseller", "default"]);
    let page = serde_json::to_value(catalog.record(&View::of_anybody(&public, 0))).expect("JSON");
    assert_eq!(names(&page), ["for-all", "resellers-only"]);
    assert_eq!(page["auto_groups"], json!(["reseller", "default"]));
    assert_eq!(page["group_ratio"], json!({"default": 1, "reseller": 0.5}));
    assert_eq!(page["usable_group"], json!({"default": "", "reseller": ""}));
    assert_eq!(page["vendors"], json!([{"id": 7, "name": "Maker"}]));
    assert_eq!(page["data"][0]["enable_groups"], json!(["default", "reseller"]));
    assert!(!page.to_string().contains("partner") && !page.to_string().contains("0.8"), "{page}");
}

#[test]
fn an_account_sees_what_it_can_buy_and_its_own_groups() {
    let catalog = shop();
    let page = |groups: &[&str]| {
        let view = View { groups, topped_up: false, known: true, at_ms: 0 };
        serde_json::to_value(catalog.record(&view)).expect("JSON")
    };
    let partner = page(&["partner"]);
    assert_eq!(names(&partner), ["for-all", "partners-only"]);
    assert_eq!(partner["usable_group"], json!({"partner": "A fifth off"}));
    assert_eq!(partner["group_ratio"], json!({"default": 1, "partner": 0.8, "reseller": 0.5}));
    assert_eq!(partner["data"][0]["billing_rate"], json!(0.8));
    let default = page(&["default"]);
    assert_eq!(names(&default), ["for-all", "known-only"]);
    assert!(!default.to_string().contains("partner"), "{default}");
}

#[test]
fn what_is_not_in_the_catalog_is_named_with_what_may_be_meant() {
    let catalog = shop();
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(catalog.unknown_group(&list(&["default", "partner"])), None);
    let hint = r#"no group is called "partnr"; did you mean "partner"?"#;
    assert_eq!(catalog.unknown_group(&list(&["default", "partnr"])).as_deref(), Some(hint));
    assert_eq!(catalog.unknown_model(&list(&["for-all"])), None);
    let hint = r#"no model is called "for-al"; did you mean "for-all"?"#;
    assert_eq!(catalog.unknown_model(&list(&["for-al"])).as_deref(), Some(hint));
}

#[test]
fn a_chat_model_that_names_no_format_is_offered_in_all_of_them() {
    let types = |name: &str, more: &str| {
        let catalog = catalog(&model(name, more));
        catalog.models[name].supported_endpoint_types.clone()
    };
    assert_eq!(types("m", ""), ["openai", "anthropic", "openai-response"]);
    assert_eq!(types("gemini-m", ""), ["openai", "anthropic", "openai-response", "gemini"]);
    assert_eq!(types("m", "supported_endpoint_types = ['anthropic']"), ["anthropic"]);
    assert_eq!(
        mistakes_of(&model("m", "type = 'image'")),
        r#"test.toml:1: model.m.supported_endpoint_types: is missing: a model of type "image" says which endpoints offer it"#
    );
}

#[test]
fn every_chat_model_of_the_demo_takes_every_chat_client() {
    const DEMO: &str = include_str!("../../../../catalog/demo.toml");
    for model in catalog(DEMO).models.values().filter(|model| model.kind == "llm") {
        for format in ["openai", "anthropic", "openai-response"] {
            assert!(model.supports(format), "{} takes {format}", model.name);
        }
    }
}
