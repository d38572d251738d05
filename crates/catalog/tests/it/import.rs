//! Prices of real models: what is read out of the lists of others, what stops, what is written, and
//! the models that come with the product.

mod corrupt;
mod plans;
mod shipped;
mod sources;
mod traps;

use tollgate_catalog::import::{
    Glob, Import, ImportRequest, ListedModel, Margin, PriceSource, SaleTerms, SourceKind, SourceModel,
};

const TODAY: &str = "2026-11-16";

/// One entry of a price map, as the provider "acme".
fn litellm(name: &str, fields: &str) -> PriceSource {
    let text = format!(r#"{{"{name}": {{"litellm_provider": "acme", {fields}}}}}"#);
    PriceSource::read(SourceKind::LiteLlm, &text, None, TODAY).unwrap_or_else(|bad| panic!("{bad}: {text}"))
}

fn source(kind: SourceKind, text: &str) -> PriceSource {
    PriceSource::read(kind, text, None, TODAY).unwrap_or_else(|bad| panic!("{bad}: {text}"))
}

fn only(source: &PriceSource) -> &SourceModel {
    assert_eq!(source.models.len(), 1, "{source:?}");
    &source.models[0]
}

fn imported(first: &PriceSource, second: Option<&PriceSource>, accepted: &[&str]) -> Import {
    let accepted: Vec<Glob> = accepted.iter().map(|one| Glob::new(*one)).collect();
    ImportRequest {
        first,
        second,
        only: &[],
        accepted: &accepted,
        facts: &[],
        prefix: "",
        source: "https://example.com/prices",
        today: TODAY,
    }
    .run()
}

/// The faces of a model, as `input 2000000, output 8000000`.
fn faces(list: &tollgate_catalog::Faces) -> String {
    list.iter().map(|(face, price)| format!("{} {price}", face.name())).collect::<Vec<_>>().join(", ")
}

fn terms(margin: &str) -> SaleTerms {
    let margin: Margin = margin.parse().expect("a margin");
    SaleTerms { origin: "acme".to_owned(), route: "acme".to_owned(), margin }
}

/// A catalog that sells a listed model, loaded.
fn sold(model: &ListedModel, margin: &str) -> tollgate_catalog::Snapshot {
    super::catalog(&model.page(&terms(margin)).expect("a page"))
}
