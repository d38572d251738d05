//! The price version changes exactly when a price changes.

use proptest::prelude::*;
use tollgate_catalog::{Face, PriceFacts, Snapshot, load};

use super::catalog;
use super::random::{Extra, GROUPS, LIMITS, PATHS, Priced, Shop, Style, VALUES, When, shop};

const BASE: &str = r#"
[group.partner]
multiplier = "4/5"
[model.a]
description = "first"
enable_groups = ["default", "partner"]
price = { input = 3_000_000, output = 15_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.a.tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 1000 }, { dim = "request_attr", path = "x", equals = "y" }]
multiplier = 2
[model.b]
price = { input = 1, output = 2 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;

fn version(text: &str) -> String {
    catalog(text).pricing_version(0).to_owned()
}

fn changed(from: &str, to: &str) -> bool {
    assert!(BASE.contains(from), "{from}");
    version(BASE) != version(&BASE.replacen(from, to, 1))
}

#[test]
fn it_is_sixteen_hex_digits_and_stays_the_same() {
    assert_eq!(version(BASE).len(), 16);
    assert!(version(BASE).bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(version(BASE), version(BASE));
}

#[test]
fn it_changes_when_a_price_changes() {
    assert!(changed("3_000_000", "3_000_001"));
    assert!(changed("input = 1,", "input = 0,"));
    assert!(changed("4/5", "3/5"));
    assert!(changed("1000", "1001"));
    assert!(changed("multiplier = 2", "multiplier = 3"));
    assert!(changed("equals = \"y\"", "equals = \"z\""));
    assert!(changed("[model.b]", "[model.c]"));
    assert!(changed("output = 2 }", "output = 2, cache_read = 0 }"));
    assert!(changed("output = 2 }", "output = 2 }\npaid = { input = 1, output = 1 }"));
    assert!(changed("[\"default\", \"partner\"]", "[\"default\"]"));
}

#[test]
fn it_does_not_change_with_anything_else() {
    assert!(!changed("first", "second"));
    assert!(!changed("upstream_model = \"m\"", "upstream_model = \"other\""));
    assert!(!changed("4/5", "0.80"));
    assert!(!changed("3_000_000", "3000000"));
    assert!(!changed("[\"default\", \"partner\"]", "[\"partner\", \"default\"]"));
    // Written out or not, the effective price is the same.
    assert!(!changed("output = 2 }", "output = 2, cache_read = 1 }"));
    assert!(!changed("output = 2 }", "output = 2 }\npaid = { input = 1, output = 2 }"));
    assert!(!changed(
        "{ dim = \"context_len\", context_len_gt = 1000 }, { dim = \"request_attr\", path = \"x\", equals = \"y\" }",
        "{ dim = \"request_attr\", path = \"x\", equals = \"y\" }, { dim = \"context_len\", context_len_gt = 1000 }",
    ));
    // A group nobody sells to changes no price.
    assert_eq!(version(BASE), version(&format!("{BASE}\n[group.idle]\nmultiplier = 9")));
    assert_eq!(version(BASE), version(&format!("# a comment\n{BASE}")));
}

#[test]
fn it_does_not_depend_on_files_or_their_order() {
    let (start, b) = BASE.split_at(BASE.find("[model.b]").expect("model b"));
    let (group, a) = start.split_at(start.find("[model.a]").expect("model a"));
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let one = load(&[file("1", b), file("2", a), file("3", group)]).expect("a catalog");
    assert_eq!(one.pricing_version(0), version(BASE));
}

/// Every price of a catalog over a grid of facts, each face times its multiplier as a fraction.
fn prices(catalog: &Snapshot) -> Vec<String> {
    let mut all = Vec::new();
    let lengths = LIMITS.into_iter().flat_map(|limit| [limit, limit + 1]);
    let values = || [None, Some(VALUES[0]), Some(VALUES[1])];
    // A week in steps of five hours: over all weekdays and hours in the end.
    let times = (0..34).map(|step| 1_750_000_000_000 + step * 5 * 3_600_000);
    for (context_len, at_ms) in lengths.flat_map(|length| times.clone().map(move |at| (length, at))) {
        for (first, second) in values().into_iter().flat_map(|first| values().map(|second| (first, second))) {
            let attr = |path: &str| if path == PATHS[0] { first } else { second }.map(str::to_owned);
            for (group, topped_up) in GROUPS.into_iter().flat_map(|group| [(group, false), (group, true)]) {
                let facts = PriceFacts { at_ms, context_len, context_max: context_len, attr: &attr, topped_up, group };
                for (name, model) in &catalog.models {
                    let Ok(price) = model.price(&facts) else { continue };
                    let (n, d) = (u128::from(price.multiplier.numerator()), u128::from(price.multiplier.denominator()));
                    let faces: Vec<u128> = Face::ALL
                        .iter()
                        .map(|face| price.faces.get(*face).map_or(1, |micro| u128::from(micro) * n * 1_000_000_007 / d))
                        .collect();
                    all.push(format!("{name} {} {faces:?}", price.unit.name()));
                }
            }
        }
    }
    all
}

/// Something changed in a shop; whether a price did is for the grid to say, unless it must have.
fn change(shop: &mut Shop, what: usize, which: usize) -> bool {
    let count = shop.models.len();
    let model = &mut shop.models[which % count];
    let price = &mut model.standard[0];
    let tier = model.tiers.first_mut();
    match (what, tier) {
        (0, _) => *price = if *price == 0 { 1 } else { *price - 1 },
        (1, _) => *model.standard.last_mut().expect("a face") ^= 1,
        (2, _) => shop.groups[0].0 += 200,
        (3, _) => model.sold_to[which % 2] ^= true,
        (4, _) => {
            let twin = model.clone();
            shop.models.push(twin);
        }
        (5, Some(Extra { price: Priced::Times(n, _), .. })) => *n += 200,
        (6, Some(Extra { price: Priced::Faces(prices), .. })) => prices[0] ^= 1,
        (7, Some(Extra { when, .. })) => match &mut when[0] {
            When::Over(limit) => *limit = (*limit + 1) % LIMITS.len(),
            When::Is(_, value) => *value ^= 1,
            When::Clock(_, _, hours) => *hours ^= 0x00ff_ffff,
        },
        (8, Some(_)) => drop(model.tiers.remove(0)),
        (9, Some(_)) => model.tiers.reverse(),
        _ => {
            let price = Priced::Faces(model.standard.iter().map(|micro| micro ^ 1).collect());
            model.tiers.insert(0, Extra { when: vec![When::Is(0, 0)], price });
        }
    }
    // A model's base price may be hidden behind tiers, its tiers behind others; who can buy what
    // cannot.
    matches!(what, 3 | 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_a_catalog_is_written_down_its_version_is_the_same(shop in shop(), backwards in any::<bool>(), wordy in any::<bool>()) {
        let plain = version(&shop.text(Style::default()));
        prop_assert_eq!(plain, version(&shop.text(Style { backwards, wordy })));
    }

    #[test]
    fn a_changed_price_changes_the_version(before in shop(), what in 0..11_usize, which in any::<usize>()) {
        let mut after = before.clone();
        let must = change(&mut after, what, which);
        let (before, after) = (catalog(&before.text(Style::default())), catalog(&after.text(Style::default())));
        let same_version = before.pricing_version(0) == after.pricing_version(0);
        if must {
            prop_assert!(!same_version);
        }
        if same_version {
            prop_assert_eq!(prices(&before), prices(&after), "one version, two prices");
        }
    }
}

#[test]
fn it_is_a_version_of_effective_prices_not_of_how_they_are_put() {
    // A tier written as a price or as a multiplier.
    assert!(!changed("multiplier = 2\n", "price = { input = 6_000_000, output = 30_000_000 }\n"));
    // Its name.
    assert!(!changed("name = \"long\"", "name = \"lengthy\""));
    // A tier at the base price, or one that an earlier tier hides, changes nothing.
    let tier =
        |when: &str, price: &str| format!("[[model.a.tier]]\nname = \"more\"\nwhen = [{when}]\n{price}\n[model.b]");
    let base = "multiplier = 1";
    let other = "multiplier = 7";
    let seen = "{ dim = \"request_attr\", path = \"z\", equals = \"y\" }";
    let hidden = "{ dim = \"request_attr\", path = \"x\", equals = \"y\" }, { dim = \"context_len\", context_len_gt = 1000 }, { dim = \"wall_clock\", timezone = \"UTC\", hours = [1] }";
    assert!(!changed("[model.b]", &tier(seen, base)));
    assert!(changed("[model.b]", &tier(seen, other)));
    assert!(!changed("[model.b]", &tier(hidden, other)));
    // Every hour is the same as no word about hours.
    let clock =
        |hours: &str| tier(&format!("{{ dim = \"wall_clock\", timezone = \"UTC\", weekdays = [1]{hours} }}"), other);
    let all: Vec<String> = (0..24).map(|hour| hour.to_string()).collect();
    let with = |text: String| version(&BASE.replacen("[model.b]", &text, 1));
    assert_eq!(with(clock("")), with(clock(&format!(", hours = [{}]", all.join(", ")))));
    assert_ne!(with(clock("")), with(clock(", hours = [1]")));
    // And every day the same as no word about days.
    let clock = |days: &str| tier(&format!("{{ dim = \"wall_clock\", timezone = \"UTC\", hours = [1]{days} }}"), other);
    assert_eq!(with(clock("")), with(clock(", weekdays = [1, 2, 3, 4, 5, 6, 7]")));
    assert_ne!(with(clock("")), with(clock(", weekdays = [1]")));
}

#[test]
fn it_is_the_same_in_every_release() {
    // It is stored with every call: a change of how it is made would look like a change of every
    // price.
    let odd = "[group.partner]\nmultiplier = '4/5'\n[model.a]\nenable_groups = ['default', 'partner']\nprice = { input = 127, output = 128, cache_read = 3_000_000 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n[[model.a.tier]]\nname = 'long'\nwhen = [{ dim = 'context_len', context_len_gt = 9 }]\nmultiplier = '7/3'\n";
    let vast = "[group.partner]\nmultiplier = '999999937/21'\n[model.a]\nenable_groups = ['partner']\nprice = { input = 30_000_000_000, output = 7 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n";
    assert_eq!(
        [version(BASE), version(odd), version(vast)],
        ["9d3b353664741cc8", "2a04aec1a9949b81", "2cb9f2e676da408e"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_changes_the_version_is_said_by_the_diff_and_nothing_else(before in shop(), what in 0..11_usize, which in any::<usize>(), wordy in any::<bool>()) {
        let mut after = before.clone();
        change(&mut after, what, which);
        let (before, after) = (catalog(&before.text(Style::default())), catalog(&after.text(Style { backwards: wordy, wordy: false })));
        let changes = tollgate_catalog::diff(&before, &after);
        prop_assert_eq!(changes.is_empty(), before.pricing_version(0) == after.pricing_version(0), "{:?}", changes);
        for change in &changes {
            prop_assert!(!change.to_string().is_empty());
        }
    }
}
