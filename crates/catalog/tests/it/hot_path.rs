//! Pricing a call without tiers is a pointer clone of a price built when the catalog was loaded.

use std::sync::Arc;

use super::catalog;
use tollgate_catalog::{BillingUnit, Face, Faces, Price, PriceFacts, Quantities};

const CATALOG: &str = r#"
[group.partner]
multiplier = "4/5"
[model.m]
enable_groups = ["default", "partner"]
price = { input = 3_000_000, output = 15_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;

#[test]
fn the_same_price_is_shared_by_all_calls() {
    let catalog = catalog(CATALOG);
    let model = catalog.model("m").expect("the model");
    let one = model.price(&PriceFacts::at(0)).expect("a price");
    let other = model.price(&PriceFacts { context_len: 9, ..PriceFacts::at(1) }).expect("a price");
    let bound = model.dearest(&PriceFacts::at(2)).expect("a price");
    let paid = model.price(&PriceFacts { topped_up: true, ..PriceFacts::at(0) }).expect("a price");
    assert!(Arc::ptr_eq(&one, &other) && Arc::ptr_eq(&one, &bound));
    assert!(Arc::ptr_eq(&one, &paid), "no paid price: the same");
    let partner = model.price(&PriceFacts { group: "partner", ..PriceFacts::at(0) }).expect("a price");
    assert_ne!(one.id(), partner.id());
    assert_eq!(model.group_for(["vip", "partner", "default"]), Some("partner"));
    assert_eq!(model.group_for(["vip"]), None);
}

#[test]
fn a_price_survives_being_written_down() {
    let catalog = catalog(CATALOG);
    let price = catalog.models["m"].price(&PriceFacts { group: "partner", ..PriceFacts::at(0) }).expect("a price");
    let text = serde_json::to_string(&*price).expect("JSON");
    let back: Price = serde_json::from_str(&text).expect("a price");
    assert_eq!(back, *price);
    assert_eq!(back.id(), price.id());
    assert!(text.contains(r#""multiplier":"4/5""#), "{text}");
    let forged: Price = serde_json::from_str(&text.replace("3000000", "3000001")).expect("a price");
    assert_ne!(forged.id(), price.id(), "the id is computed from the content");
}

/// Ids stand in ledgers for ever: computed here by hand, over model, version, tier, group, flags,
/// multiplier and faces, and nothing about the unit where the faces tell it. Where they do not, the
/// unit makes another price.
#[test]
fn prices_of_before_units_were_written_keep_their_id() {
    let read = |unit: &str| -> Price {
        let text = format!(
            r#"{{"model":"m","version":"v1","tier":null,"group":"default","paid":false{unit},
                "faces":{{"input":3000000,"output":15000000}},"multiplier":"1"}}"#
        );
        serde_json::from_str(&text).expect("a price")
    };
    let hex = |price: &Price| price.id().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let before = read("");
    assert_eq!(hex(&before), "c85218cc9af5dd35b3b8f7530ed40445");
    assert_ne!(read(r#","unit":"characters""#).id(), before.id(), "the unit is part of what was agreed");
    for (faces, unit) in [
        (r#"{"input":1,"output":1}"#, BillingUnit::Tokens),
        (r#"{"input":1,"video_second":1}"#, BillingUnit::PerSecond),
        (r#"{"per_call":1}"#, BillingUnit::PerCall),
    ] {
        let text = format!(
            r#"{{"model":"m","version":"v1","tier":null,"group":"default","paid":false,"faces":{faces},"multiplier":"1"}}"#
        );
        assert_eq!(serde_json::from_str::<Price>(&text).expect("a price").unit, unit, "{faces}");
    }
}

#[test]
fn quantities_are_written_and_read_by_their_names() {
    let used = Quantities::NONE.with(Face::Input, 7).with(Face::AudioOutput, 9);
    let text = serde_json::to_string(&used).expect("JSON");
    assert_eq!(text, r#"{"input":7,"audio_output":9}"#);
    assert_eq!(serde_json::from_str::<Quantities>(&text).expect("quantities"), used);
    assert!(serde_json::from_str::<Quantities>(r#"{"inputs":7}"#).is_err());
    assert!(!used.is_empty() && Quantities::NONE.is_empty());
    assert!(Faces::NONE.is_empty() && !Faces::NONE.with(Face::Input, 0).is_empty(), "a price of nothing is a price");
}
