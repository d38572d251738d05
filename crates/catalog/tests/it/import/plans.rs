//! What a command would do to a file: it writes what it wrote before, leaves what is somebody's own
//! alone, and stops where a person has to look.

use super::terms;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_catalog::import::{
    CatalogPlan, Glob, ListedModel, LockedFile, Margin, PlanKind, PlanRequest, StepKind, plan,
};
use tollgate_catalog::{Face, Faces};

fn model(name: &str, input: u64, output: u64) -> ListedModel {
    ListedModel {
        name: name.to_owned(),
        upstream: name.to_owned(),
        facts: toml_table("context_window = 1000"),
        list: Faces::NONE.with(Face::Input, input).with(Face::Output, output),
        unverified: Vec::new(),
        source: "https://example.com/prices".to_owned(),
        verified_at: "2026-11-16".to_owned(),
        tiers: Vec::new(),
    }
}

fn toml_table(text: &str) -> toml::Table {
    text.parse().expect("TOML")
}

struct File {
    text: String,
    locked: Option<LockedFile>,
}

impl File {
    fn new() -> File {
        File { text: String::new(), locked: None }
    }

    fn plan(&self, kind: PlanKind, listed: &[ListedModel], only: &[&str], accepted: &[&str]) -> CatalogPlan {
        let globs = |list: &[&str]| list.iter().map(|one| Glob::new(*one)).collect::<Vec<_>>();
        plan(&PlanRequest {
            kind,
            before: &self.text,
            locked: self.locked.as_ref(),
            listed,
            only: &globs(only),
            accepted: &globs(accepted),
            terms: &terms("10%"),
            taken: &BTreeSet::from(["taken".to_owned()]),
        })
        .expect("a plan")
    }

    fn carry_out(&mut self, plan: CatalogPlan) {
        assert_eq!(plan.stops, []);
        self.text = plan.text.unwrap_or_default();
        self.locked = Some(LockedFile {
            from: vec!["shipped".to_owned()],
            digest: String::new(),
            day: "2026-11-16".to_owned(),
            provider: "acme".to_owned(),
            route: "acme".to_owned(),
            margin: Margin::NONE,
            models: plan.models,
        });
    }

    fn enabled(models: &[ListedModel]) -> File {
        let mut file = File::new();
        file.carry_out(file.plan(PlanKind::Enable, models, &[], &[]));
        file
    }
}

fn steps(plan: &CatalogPlan) -> BTreeMap<&str, StepKind> {
    plan.steps.iter().map(|step| (step.model.as_str(), step.what)).collect()
}

#[test]
fn what_is_enabled_is_sold_at_list_times_margin_and_enabling_again_changes_nothing() {
    let models = [model("a", 3, 10), model("b", 2_000_000, 8_000_000), model("taken", 1, 1)];
    let mut file = File::new();
    let plan = file.plan(PlanKind::Enable, &models, &[], &[]);
    assert_eq!(steps(&plan), BTreeMap::from([("a", StepKind::Add), ("b", StepKind::Add), ("taken", StepKind::Taken)]));
    file.carry_out(plan);
    let catalog = super::super::catalog(&file.text);
    assert_eq!(super::faces(&catalog.models["a"].book.standard), "input 4, output 11", "rounded up, each by itself");
    assert_eq!(super::faces(&catalog.models["b"].book.standard), "input 2200000, output 8800000");
    assert_eq!((&*catalog.models["a"].routes[0].provider, catalog.models.len()), ("acme", 2));
    let again = file.plan(PlanKind::Enable, &models, &[], &[]);
    assert!(again.text.as_deref() == Some(&file.text) && !steps(&again).contains_key("a"), "{:?}", again.steps);
    // Should the lock be lost, what would be written the same is known again.
    file.locked = None;
    let again = file.plan(PlanKind::Enable, &models, &[], &[]);
    assert_eq!((again.text.as_deref(), again.models.len()), (Some(file.text.as_str()), 2));
}

#[test]
fn what_an_operator_typed_is_never_touched() {
    let models = [model("a", 1_000_000, 2_000_000), model("b", 1_000_000, 2_000_000), model("c", 1_000_000, 2_000_000)];
    let mut file = File::enabled(&models);
    // A price, a word of one's own, a model of one's own, and one that was removed.
    file.text = file.text.replacen("input = 1_100_000", "input = 5_000_000", 1);
    let b = file.text.find("[model.\"b\"]").expect("b");
    let c = file.text.find("[model.\"c\"]").expect("c");
    file.text.replace_range(b..c, "");
    file.text.push_str("\n[model.\"mine\"]\nprice = { input = 7, output = 7 }\nroute = [{ provider = \"acme\", upstream_model = \"x\" }]\n");
    let newer = [model("a", 1_100_000, 2_000_000), model("b", 1_000_000, 2_000_000), model("c", 1_100_000, 2_000_000)];
    let plan = file.plan(PlanKind::Update, &newer, &[], &[]);
    let expected =
        [("a", StepKind::Yours), ("b", StepKind::LeftOut), ("c", StepKind::Change), ("mine", StepKind::Yours)];
    assert_eq!(steps(&plan), BTreeMap::from(expected));
    let vendor: Vec<String> = plan.steps[0].vendor.iter().map(ToString::to_string).collect();
    assert_eq!(vendor, ["input changes from 1 to 1.1 USD"], "what the vendor changed is said all the same");
    let catalog = super::super::catalog(plan.text.as_deref().expect("a file"));
    let input = |name: &str| catalog.models[name].book.standard.get(Face::Input);
    assert_eq!((input("a"), input("c"), input("mine")), (Some(5_000_000), Some(1_210_000), Some(7)));
    // `origin = "hand"` says it without any other change.
    let mut file = File::enabled(&models);
    file.text = file.text.replacen("origin = \"acme\"", "origin = \"hand\"", 1);
    assert_eq!(steps(&file.plan(PlanKind::Update, &newer, &["a"], &[]))["a"], StepKind::Yours);
}

#[test]
fn a_large_change_stops_until_it_is_accepted() {
    let before = 1_000_000;
    let file = File::enabled(&[model("a", before, 2_000_000)]);
    for (input, output, stop) in [
        (1_200_000, 2_000_000, None),
        (800_000, 2_000_000, None),
        (1_200_001, 2_000_000, Some("the list price of input changes from 1 to 1.200001 USD")),
        (799_999, 2_000_000, Some("the list price of input changes from 1 to 0.799999 USD")),
        (before, 0, Some("the list price of output changes from 2 to 0 USD")),
    ] {
        let newer = [model("a", input, output)];
        let plan = file.plan(PlanKind::Update, &newer, &[], &[]);
        assert_eq!(plan.stops.first().map(|stop| stop.reason.as_str()), stop, "{input} {output}");
        assert!(file.plan(PlanKind::Update, &newer, &[], &["a"]).stops.is_empty());
    }
    // A face that comes or goes is as large, and so is a model that goes.
    let mut more = model("a", before, 2_000_000);
    more.list.set(Face::CacheRead, Some(1));
    assert_eq!(file.plan(PlanKind::Update, &[more], &[], &[]).stops.len(), 1);
    let plan = file.plan(PlanKind::Update, &[], &[], &[]);
    assert_eq!(plan.stops[0].reason, "is no longer in the source");
    assert_eq!(steps(&file.plan(PlanKind::Update, &[], &[], &["a"])), BTreeMap::from([("a", StepKind::Remove)]));
}

#[test]
fn disabling_takes_back_what_was_written_and_leaves_the_rest() {
    let models = [model("a", 1_000_000, 2_000_000), model("b", 1_000_000, 2_000_000)];
    let file = File::enabled(&models);
    let plan = file.plan(PlanKind::Disable, &[], &[], &[]);
    assert_eq!((plan.text, plan.models.len()), (None, 0));
    let plan = file.plan(PlanKind::Disable, &[], &["b"], &[]);
    assert!(plan.text.is_some_and(|text| text.contains("\"a\"") && !text.contains("\"b\"")));
    let mut changed = File::enabled(&models);
    changed.text = changed.text.replacen("input = 1_100_000", "input = 5_000_000", 1);
    let plan = changed.plan(PlanKind::Disable, &[], &[], &[]);
    assert_eq!(steps(&plan), BTreeMap::from([("a", StepKind::Yours), ("b", StepKind::Remove)]));
}

#[test]
fn a_file_that_cannot_be_taken_apart_is_left_alone() {
    let text = "model.\"a\" = { price = { input = 1, output = 1 } }\n[model.b.price]\ninput = 1\n";
    let file = File { text: text.to_owned(), locked: None };
    let refused = plan(&PlanRequest {
        kind: PlanKind::Enable,
        before: &file.text,
        locked: None,
        listed: &[model("c", 1, 1)],
        only: &[],
        accepted: &[],
        terms: &terms("0%"),
        taken: &BTreeSet::new(),
    });
    assert!(refused.is_err());
}
