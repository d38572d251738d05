//! What a route costs the operator: written, or taken from the vendor's list, or unknown.

use super::{catalog, mistakes_of};
use tollgate_catalog::{Face, Fraction, Model, Quantities};

const TEXT: &str = r#"
[model.m]
price = { input = 3_000_000, output = 6_000_000, "tool:web_search" = 20_000 }
list = { price = { input = 2_000_000, output = 5_000_000 }, source = "x", currency = "CNY", usd_rate = "1/2", verified_at = 2026-01-01 }
[[model.m.route]]
provider = "own"
upstream_model = "m"
cost = { input = 4_000_000, output = 1_000_000, "tool:web_search" = 10_000 }
tier_cost.long = { input = 5_000_000, output = 2_000_000 }
[[model.m.route]]
provider = "listed"
upstream_model = "m"
[[model.m.tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 10 }]
price = { input = 6_000_000, output = 7_000_000, "tool:web_search" = 20_000 }
[[model.m.tier]]
name = "urgent"
when = [{ dim = "request_attr", path = "service_tier", equals = "priority" }]
multiplier = 2
[[model.m.change]]
from = 2027-01-01T00:00:00Z
price = { input = 3_000_000, output = 6_000_000 }
list = { price = { input = 8_000_000, output = 8_000_000 }, source = "x" }
[model.unlisted]
price = { input = 1, output = 1 }
route = [{ provider = "p", upstream_model = "u" }]
"#;

const JANUARY: i64 = 1_798_761_600_000;

fn cost(model: &Model, provider: &str, tier: Option<&str>, at_ms: i64, used: Quantities) -> Option<i64> {
    let price = model.cost_price(provider, "m", tier, at_ms)?;
    price.charge(&used).ok().map(|money| money.nano())
}

#[test]
fn a_route_costs_what_it_says_and_otherwise_what_the_vendor_asks() {
    let catalog = catalog(TEXT);
    let model = &catalog.models["m"];
    let used = Quantities::NONE.with(Face::Input, 1_000).with(Face::Output, 10);
    assert_eq!(cost(model, "own", None, 0, used), Some(4_000_000 + 10_000));
    assert_eq!(cost(model, "listed", None, 0, used), Some((2_000_000 + 50_000) / 2), "at the rate of its currency");
    assert_eq!(cost(model, "own", Some("long"), 0, used), Some(5_000_000 + 20_000));
    assert_eq!(cost(model, "listed", Some("long"), 0, used), None, "the list has no price of that tier");
    assert_eq!(cost(model, "own", Some("urgent"), 0, used), Some(8_020_000), "a multiple is one of the cost too");
    assert_eq!(cost(model, "listed", Some("urgent"), 0, used), Some(2_050_000));
    assert_eq!(cost(model, "listed", None, JANUARY, used), Some(8_080_000), "the list of its time");
    assert_eq!(cost(model, "own", None, JANUARY, used), Some(4_010_000), "the route has its own");
    assert_eq!(cost(model, "gone", None, 0, used), None, "a route that is not there any more");
    let searched = used.with(Face::WebSearch, 2);
    assert_eq!(cost(model, "own", None, 0, searched), Some(4_030_000 - 20_000 + 20_000_000));
    assert_eq!(cost(model, "listed", None, 0, searched), None, "unknown is not nothing");
    assert!(catalog.models["unlisted"].cost_price("p", "u", None, 0).is_none());
}

#[test]
fn what_is_sold_below_its_cost_is_found() {
    let catalog = catalog(TEXT);
    let model = &catalog.models["m"];
    let whole = [Fraction::ONE];
    assert_eq!(model.below_cost(&whole, 0), [("own", vec!["input"])]);
    let fifth: Fraction = "0.2".parse().expect("a fraction");
    let cheap = [Fraction::ONE, fifth];
    let cheap = model.below_cost(&cheap, 0);
    assert_eq!(
        cheap,
        [("own", vec!["input", "tool:web_search"]), ("listed", vec!["input", "output"])],
        "to some group"
    );
    assert_eq!(model.below_cost(&whole, JANUARY), [("own", vec!["input"]), ("listed", vec!["input", "output"])]);
    assert!(catalog.models["unlisted"].below_cost(&whole, 0).is_empty());
    let list = model.list_at(0).expect("a list");
    assert_eq!((list.age_days(JANUARY), model.list_at(JANUARY).expect("a list").age_days(JANUARY)), (Some(365), None));
}

#[test]
fn wrong_costs_are_named_by_line_and_field() {
    let route = |lines: &str| {
        mistakes_of(&format!(
            "[model.m]\nprice = {{ input = 1, output = 1 }}\n[[model.m.route]]\nprovider = 'p'\nupstream_model = 'm'\n{lines}\n"
        ))
    };
    for (lines, named) in [
        ("cost = { input = -1 }", "test.toml:6: model.m.route[0].cost.input:"),
        ("cost = { inptu = 1 }", "test.toml:6: model.m.route[0].cost.inptu: is not a known key"),
        ("cost = { per_call = 1 }", "test.toml:6: model.m.route[0].cost.per_call: is not sold by this model"),
        ("cost = {}", "test.toml:6: model.m.route[0].cost: is empty"),
        ("tier_cost.long = { input = 1 }", "test.toml:6: model.m.route[0].tier_cost: needs `cost` beside it"),
    ] {
        let mistakes = route(lines);
        assert!(mistakes.lines().any(|line| line.starts_with(named)), "{named} is not among\n{mistakes}");
    }
}
