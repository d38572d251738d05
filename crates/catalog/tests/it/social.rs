//! Social data: the shipped cells against the specification's own text, and the check of
//! parameters.

mod checks;
mod mistakes;
mod notation;
mod records;
mod specification;

use std::sync::LazyLock;
use tollgate_catalog::social::SHIPPED;
use tollgate_catalog::{Snapshot, load};

/// The cells that come with the product.
pub fn shipped() -> &'static Snapshot {
    static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
        let files: Vec<(String, String)> =
            SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        load(&files).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)))
    });
    &SNAPSHOT
}

#[test]
fn every_file_of_the_folder_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/social");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names, SHIPPED.map(|(name, _)| name));
    shipped();
}

#[test]
fn cells_are_sold_like_models_but_not_listed_as_models() {
    let catalog = shipped();
    assert!(catalog.models.is_empty());
    assert_eq!(catalog.social.cells().count(), 101);
    assert_eq!(catalog.providers(), ["tikhub"]);
    for cell in catalog.social.cells() {
        let model = catalog.model(&cell.model.name).expect("found by name");
        assert!(model.requires_topup && model.supports("social") && !model.supports("openai"));
        assert_eq!(model.routes.len(), cell.routes.len());
        assert!(cell.price().expect("a price").nano() >= 2 * 1_000 * cell.cost() as i64, "{}", cell.model.name);
    }
}

#[test]
fn a_price_of_a_cell_is_part_of_the_price_version() {
    let file =
        |text: &str| load(&[("a.toml".to_owned(), text.to_owned())]).expect("a catalog").pricing_version(0).to_owned();
    let text = SHIPPED[0].1;
    assert_ne!(file(text), file(&text.replacen("per_call = 2_000", "per_call = 2_001", 1)));
    assert_eq!(file(text), file(&text.replacen("max_length = 200", "max_length = 201", 1)));
}

#[test]
fn other_spellings_of_a_platform_lead_to_the_same_cell() {
    let social = &shipped().social;
    for (alias, key) in
        [("xhs", "xiaohongshu"), ("rednote", "xiaohongshu"), ("x", "twitter"), ("wechat_mp", "wechat-mp")]
    {
        let cell = social.cell(alias, "user").expect("a cell");
        assert_eq!(cell.platform, key);
        assert_eq!(cell.path(), format!("/v1/social/{key}/user"));
    }
}

#[test]
fn the_page_of_the_documentation_is_written_from_the_table() {
    let page = include_str!("../../../../docs/social-cells.md");
    let written = shipped().social.page();
    let differs = page.lines().zip(written.lines()).find(|(theirs, ours)| theirs != ours);
    assert!(
        page == written,
        "docs/social-cells.md is not of this table; its head says how it is written again: {differs:?}"
    );
    assert_eq!(written.matches("\n### ").count(), 101);
}
