//! A price list that was damaged on its way must not reach the catalog: it is refused, or stops, or
//! says the same as before.

use super::{imported, source};
use std::collections::BTreeSet;
use tollgate_catalog::import::{
    CatalogPlan, ListedModel, LockedFile, Margin, PlanKind, PlanRequest, PriceSource, SaleTerms, SourceKind, plan,
};

fn list(kind: SourceKind) -> String {
    let names = ["ant", "bee", "cat"];
    let records: Vec<String> = match kind {
        SourceKind::LiteLlm => names.iter().map(|name| format!(r#""acme/{name}": {{"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 200000, "max_output_tokens": 8192, "input_cost_per_token": 1.5e-06, "output_cost_per_token": 6.5e-06}}"#)).collect(),
        _ => names.iter().map(|name| format!(r#"{{"id": "{name}", "match": {{"equals": "{name}"}}, "prices": {{"input_mtok": 1.5, "output_mtok": 6.5}}}}"#)).collect(),
    };
    match kind {
        SourceKind::LiteLlm => format!("{{{}}}", records.join(", ")),
        _ => format!(r#"[{{"id": "acme", "models": [{}]}}]"#, records.join(", ")),
    }
}

struct File<'a> {
    locked: Option<&'a LockedFile>,
    text: &'a str,
    terms: &'a SaleTerms,
    taken: &'a BTreeSet<String>,
}

impl File<'_> {
    fn updated(&self, listed: &[ListedModel]) -> CatalogPlan {
        plan(&PlanRequest {
            kind: PlanKind::Update,
            before: self.text,
            locked: self.locked,
            listed,
            only: &[],
            accepted: &[],
            terms: self.terms,
            taken: self.taken,
        })
        .expect("a plan")
    }
}

/// Every byte range of three lengths, overwritten in four ways: with both lists compared, and with
/// what was taken before at hand, no other price gets through.
#[test]
fn no_damage_to_a_list_changes_a_price_unseen() {
    let (whole, second) = (list(SourceKind::LiteLlm), source(SourceKind::GenaiPrices, &list(SourceKind::GenaiPrices)));
    let before = imported(&source(SourceKind::LiteLlm, &whole), Some(&second), &[]).listed;
    let (terms, taken) = (super::terms("10%"), BTreeSet::new());
    let file = |locked, text| File { locked, text, terms: &terms, taken: &taken };
    let first = file(None, "").updated(&before);
    let text = first.text.expect("a catalog");
    let locked = LockedFile {
        from: Vec::new(),
        digest: String::new(),
        day: "2026-11-16".to_owned(),
        provider: "acme".to_owned(),
        route: "acme".to_owned(),
        margin: Margin::NONE,
        models: first.models,
    };
    let (mut refused, mut stopped, mut same) = (0, 0, 0);
    for length in [1, 7, 40] {
        for at in 0..whole.len() - length {
            for filler in ["0", "9", " ", "}"] {
                let mut damaged = whole.clone();
                damaged.replace_range(at..at + length, &filler.repeat(length));
                let Ok(read) = PriceSource::read(SourceKind::LiteLlm, &damaged, Some("acme"), super::TODAY) else {
                    refused += 1;
                    continue;
                };
                let found = imported(&read, Some(&second), &[]);
                let plan = file(Some(&locked), &text).updated(&found.listed);
                if !found.stops.is_empty() || !plan.stops.is_empty() {
                    stopped += 1;
                    continue;
                }
                same += 1;
                let (old, new) =
                    (super::super::catalog(&text), super::super::catalog(plan.text.as_deref().expect("a file")));
                for (name, model) in &old.models {
                    assert_eq!(
                        new.models[name].book.standard, model.book.standard,
                        "{length} bytes at {at}: {filler:?}"
                    );
                }
            }
        }
    }
    assert!(refused > 100 && stopped > 100 && same > 100, "{refused} refused, {stopped} stopped, {same} the same");
    for end in 0..whole.len() - 1 {
        assert!(
            PriceSource::read(SourceKind::LiteLlm, &whole[..end], Some("acme"), super::TODAY).is_err(),
            "cut at {end}"
        );
    }
}
