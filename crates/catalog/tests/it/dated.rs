//! Prices with a date: which are in force when, what is announced, and how those of the past are
//! folded into the others.

use super::{catalog, mistakes_of};
use serde_json::{Value, json};
use tollgate_catalog::{
    Face, PriceFacts, Quantities, Snapshot, View, diff, load, load_again, same_prices_from, tidied,
};

const DECEMBER: i64 = 1_796_083_200_000;
const JANUARY: i64 = 1_798_761_600_000;

const TEXT: &str = r#"# Models.
[group.vip]
multiplier = "0.5"

[model.a]
description = "one" # stays
price = { input = 1_000_000, output = 2_000_000 } # goes
enable_groups = ["default", "vip"]
route = [{ provider = "p", upstream_model = "a" }]

[[model.a.tier]]
name = "old"
when = [{ dim = "context_len", context_len_gt = 10 }]
multiplier = 3

# The first change.
[[model.a.change]]
from = 2026-12-01T00:00:00Z
price = { input = 3_000_000, output = 4_000_000 }

[[model.a.change.tier]]
name = "long"
when = [
  { dim = "context_len", context_len_gt = 10 },
]
multiplier = 2

[[model.a.change]]
from = 2027-01-01T00:00:00Z
price = { input = 5_000_000, output = 6_000_000 }
list = { price = { input = 7_000_000 }, source = "https://example.com" }

[model.b]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "p", upstream_model = "b" }]
"#;

fn charge(catalog: &Snapshot, model: &str, at_ms: i64, context_len: u64) -> (i64, String) {
    let used = Quantities::NONE.with(Face::Input, context_len);
    let price = catalog.models[model].price(&PriceFacts { context_len, ..PriceFacts::at(at_ms) }).expect("a price");
    (price.charge(&used).expect("a charge").nano(), price.version.clone())
}

#[test]
fn the_price_is_that_of_the_instant() {
    let catalog = catalog(TEXT);
    for (at, each) in [(0, 1_000), (DECEMBER - 1, 1_000), (DECEMBER, 3_000), (JANUARY - 1, 3_000), (JANUARY, 5_000)] {
        let (nano, version) = charge(&catalog, "a", at, 7);
        assert_eq!(nano, 7 * each, "{at}");
        assert_eq!(version, catalog.pricing_version(at), "{at}");
        assert_eq!(charge(&catalog, "b", at, 7).1, version, "one version for all models");
    }
    assert_eq!(charge(&catalog, "a", DECEMBER - 1, 11).0, 33_000, "with its own tiers");
    assert_eq!(charge(&catalog, "a", DECEMBER, 11).0, 66_000);
    assert_eq!(charge(&catalog, "a", JANUARY, 11).0, 55_000, "a change without tiers has none");
    let vip = PriceFacts { group: "vip", ..PriceFacts::at(JANUARY) };
    let vip = catalog.models["a"].price(&vip).expect("a price");
    assert_eq!(vip.charge(&Quantities::NONE.with(Face::Input, 7)).expect("a charge").nano(), 17_500);
    assert_eq!(catalog.next_change(DECEMBER - 1), Some(DECEMBER));
    assert_eq!(catalog.next_change(JANUARY), None);
    let versions = [0, DECEMBER, JANUARY].map(|at| catalog.pricing_version(at));
    assert!(versions[0] != versions[1] && versions[1] != versions[2]);
    assert!(!catalog.gives_away());
}

#[test]
fn what_is_held_covers_the_price_of_its_instant() {
    let catalog = catalog(TEXT);
    for at in [DECEMBER - 1, DECEMBER, JANUARY] {
        let facts = PriceFacts { context_len: 5, ..PriceFacts::at(at) };
        let need = Quantities::NONE.with(Face::Input, 20);
        let bound = catalog.models["a"].bound(&facts, |_| Ok(need)).expect("a bound");
        assert!(bound.amount.nano() >= charge(&catalog, "a", at, 20).0, "{at}");
    }
}

#[test]
fn what_comes_is_announced_and_what_came_is_not() {
    let catalog = catalog(TEXT);
    let shown = |at_ms: i64| {
        let view = View { at_ms, ..View::default() };
        serde_json::to_value(catalog.record(&view)).expect("JSON")
    };
    let first = shown(0);
    let announced = first["announced"].as_array().expect("announced");
    assert_eq!(announced.len(), 2);
    assert_eq!(announced[0]["model_name"], "a");
    assert_eq!(announced[0]["from"], "2026-12-01T00:00:00Z");
    assert_eq!(announced[0]["old"]["standard"], json!({ "input": 1_000_000, "output": 2_000_000 }));
    assert_eq!(announced[1]["old"]["standard"], announced[0]["new"]["standard"]);
    assert_eq!(announced[0]["new"]["tiers"][0]["tier"], "long");
    let own = &first["data"][0]["announced"];
    assert_eq!((&own[1]["from"], &own[1]["new"]), (&announced[1]["from"], &announced[1]["new"]));
    assert!(first["data"][1].get("announced").is_none(), "b stays as it is");
    assert_eq!(shown(DECEMBER)["announced"].as_array().map(Vec::len), Some(1));
    let last = shown(JANUARY);
    assert!(last.get("announced").is_none() && last["data"][0].get("announced").is_none());
    assert_eq!(last["data"][0]["model_ratio"].to_string(), "2.5");
    assert_eq!(last["data"][0]["vendor_list"]["verdict"], "below_list");
    assert!(first["data"][0].get("vendor_list").is_none(), "the list price is that of the change");
}

#[test]
fn wrong_changes_are_named_by_line_and_field() {
    let base = "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n";
    let change = |lines: &str| mistakes_of(&format!("{base}[[model.m.change]]\n{lines}\n"));
    let price = "price = { input = 1, output = 1 }";
    for (kind, lines, named) in [
        ("no instant", price.to_owned(), "test.toml:4: model.m.change[0].from: is missing"),
        (
            "a day",
            format!("from = 2027-01-01\n{price}"),
            "test.toml:5: model.m.change[0].from: \"2027-01-01\" is not an instant",
        ),
        ("no offset", format!("from = 2027-01-01T00:00:00\n{price}"), "test.toml:5: model.m.change[0].from:"),
        ("a slip of the pen", format!("from = 0027-01-01T00:00:00Z\n{price}"), "test.toml:5: model.m.change[0].from:"),
        ("no price", "from = 2027-01-01T00:00:00Z".to_owned(), "test.toml:4: model.m.change[0].price: is missing"),
        (
            "half a price",
            "from = 2027-01-01T00:00:00Z\nprice = { input = 1 }".to_owned(),
            "test.toml:6: model.m.change[0].price.output:",
        ),
        (
            "another key",
            format!("from = 2027-01-01T00:00:00Z\n{price}\nroute = []"),
            "test.toml:7: model.m.change[0].route: is not a known key",
        ),
        (
            "another order",
            format!("from = 2027-01-01T00:00:00Z\n{price}\n[[model.m.change]]\nfrom = 2027-01-01T00:00:00Z\n{price}"),
            "test.toml:8: model.m.change[1].from: is not after the change before it",
        ),
    ] {
        let mistakes = change(&lines);
        assert!(mistakes.lines().any(|line| line.starts_with(named)), "{kind}: {named} is not among\n{mistakes}");
    }
    let many: String =
        (0..51).map(|at| format!("[[model.m.change]]\nfrom = 2027-01-01T00:00:{at:02}Z\n{price}\n")).collect();
    assert!(mistakes_of(&format!("{base}{many}")).contains("more than 50 entries"));
}

/// Instants over all models are bounded too: each has a version of all prices.
#[test]
fn instants_have_a_bound() {
    let model = |name: usize| {
        let change = |at: usize| {
            let at = name * 50 + at;
            format!(
                "[[model.m{name}.change]]\nfrom = 2027-01-01T00:{:02}:{:02}Z\nprice = {{ input = 1, output = 1 }}\n",
                at / 60,
                at % 60
            )
        };
        let changes: String = (0..50).map(change).collect();
        format!(
            "[model.m{name}]\nprice = {{ input = 1, output = 1 }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]\n{changes}"
        )
    };
    let models = |count: usize| (0..count).map(model).collect::<String>();
    assert_eq!(mistakes_of(&models(8)), "no mistake");
    assert!(mistakes_of(&models(9)).contains("more than 400 different instants"));
}

#[test]
fn changes_of_the_past_are_folded_and_nothing_else_differs() {
    let file = |text: &str| [("test.toml".to_owned(), text.to_owned())];
    let before = catalog(TEXT);
    assert_eq!(tidied(TEXT, &before, DECEMBER - 1), Ok(None), "nothing has passed");
    for (now, count) in [(DECEMBER, 1), (JANUARY, 2)] {
        let tidy = tidied(TEXT, &before, now).expect("it can be folded").expect("something passed");
        assert_eq!(tidy.folded, [("a".to_owned(), count)]);
        let after =
            load(&file(&tidy.text)).unwrap_or_else(|mistakes| panic!("{}\n{}", super::lines(&mistakes), tidy.text));
        assert!(same_prices_from(&before, &after, now), "{}", tidy.text);
        assert_eq!(after.pricing_version(0), before.pricing_version(now), "it holds from the beginning");
        for stays in ["# Models.", "description = \"one\" # stays", "enable_groups", "[model.b]"] {
            assert!(tidy.text.contains(stays), "{stays}: {}", tidy.text);
        }
        assert!(!tidy.text.contains("# goes") && !tidy.text.contains("\"old\""), "{}", tidy.text);
        assert_eq!(tidied(&tidy.text, &after, now), Ok(None), "once is enough");
        let again = load_again(&file(&tidy.text), &["p"], &before).expect("read again");
        assert_eq!(again.pricing_version(now), before.pricing_version(now));
    }
    let short = "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n\
                 [[model.\"m\".change]]\nfrom = 2026-12-01T00:00:00Z\nprice = { input = 2, output = 2 }\n";
    let folded = tidied(short, &catalog(short), DECEMBER).expect("it can be folded").expect("something passed");
    assert!(folded.text.ends_with("price = { input = 2, output = 2 }\n"), "{}", folded.text);
    let inline = "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n\
                  change = [{ from = 2026-12-01T00:00:00Z, price = { input = 2, output = 2 } }]\n";
    let refused = tidied(inline, &catalog(inline), DECEMBER);
    assert!(refused.is_err_and(|why| why.contains("fold them by hand")));
    let scattered = format!(
        "{inline}[model.n]\nprice = {{ input = 1, output = 1 }}\n[model.m.list]\nsource = 'x'\nprice = {{ input = 1 }}\n[[model.n.route]]\nprovider = 'p'\nupstream_model = 'm'\n"
    );
    assert!(tidied(&scattered, &catalog(&scattered), DECEMBER).is_err_and(|why| why.contains("by hand")));
    assert!(!same_prices_from(&before, &catalog(&TEXT.replace("5_000_000", "6_000_000")), JANUARY));
}

#[test]
fn timelines_are_compared() {
    let old = catalog(TEXT);
    assert!(diff(&old, &catalog(TEXT)).is_empty());
    let dearer = catalog(&TEXT.replace("input = 5_000_000", "input = 5_500_000"));
    let changes: Vec<String> = diff(&old, &dearer).iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["from 2027-01-01T00:00:00Z: input: 5 -> 5.5 USD per million tokens (+10 %)"]);
    let sooner = catalog(&TEXT.replace("2027-01-01T00:00:00Z", "2026-12-24T00:00:00Z"));
    let changes = diff(&old, &sooner);
    let shown: Vec<Value> = changes.iter().map(|change| json!([change.from, change.what, change.face])).collect();
    assert_eq!(shown.first(), Some(&json!(["2026-12-24T00:00:00Z", "price", "input"])), "{shown:?}");
    assert_eq!(shown.last(), Some(&json!(["2027-01-01T00:00:00Z", "same_again", null])), "{shown:?}");
    // A change that changes nothing is none.
    let same =
        TEXT.replace("input = 5_000_000, output = 6_000_000 }\nlist", "input = 3_000_000, output = 4_000_000 }\nlist");
    let (one, two) = (catalog(&same), catalog(&same.replace("2027-01-01", "2027-02-01")));
    assert_eq!(diff(&one, &two).len(), 2, "the tier of December ends with it");
}
