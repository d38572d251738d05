//! A catalog that is read again, with what a snapshot already knows, is the same as one that is
//! read for the first time: the same prices, places and mistakes, whatever changed in between.

use proptest::prelude::*;
use tollgate_catalog::{Snapshot, View, load_again, load_for};

use super::lines;
use super::random::{Shop, Style, shop};

type Files = Vec<(String, String)>;

/// Everything that can be seen of a catalog.
fn seen(result: Result<Snapshot, Vec<tollgate_catalog::Mistake>>) -> String {
    match result {
        Err(mistakes) => lines(&mistakes),
        Ok(catalog) => {
            let record = serde_json::to_string(&catalog.record(&View::default())).expect("JSON");
            let place = |model: &tollgate_catalog::Model| {
                let routes: Vec<String> = model.routes.iter().map(|route| route.place.to_string()).collect();
                format!("{} {} {}", model.name, model.place, routes.join(" "))
            };
            let places: Vec<String> = catalog.models.values().map(|model| place(model)).collect();
            let prices: Vec<String> = catalog
                .models
                .values()
                .map(|model| format!("{:?}", model.price(&tollgate_catalog::PriceFacts::at(0)).map(|price| price.id())))
                .collect();
            format!("{record}\n{}\n{}", places.join("\n"), prices.join("\n"))
        }
    }
}

fn check(before: &Files, after: &Files) {
    let providers = ["p", "q", "sim"];
    let known = load_for(before, &providers).unwrap_or_else(|mistakes| panic!("{}", lines(&mistakes)));
    assert_eq!(seen(load_again(after, &providers, &known)), seen(load_for(after, &providers)));
}

fn files(shop: &Shop, name: &str, head: &str, style: Style) -> Files {
    vec![(name.to_owned(), format!("{head}{}", shop.text(style)))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_catalog_that_is_read_again_is_the_same_as_one_read_afresh(
        before in shop(),
        after in shop(),
        mixed in any::<bool>(),
        backwards in any::<bool>(),
        head in "(# moved\n){0,3}",
        name in "[ab]",
    ) {
        let mut after = after;
        if mixed {
            // Some models as they were, some new.
            after.models.truncate(1);
            after.models.splice(0..0, before.models.iter().cloned());
            after.groups = before.groups;
        }
        let style = Style { backwards, wordy: false };
        check(&files(&before, "a", "", Style::default()), &files(&after, &name, &head, style));
    }
}

const MODEL: &str =
    "[model.m]\nprice = { input = 1, output = 1 }\n[[model.m.route]]\nprovider = 'p'\nupstream_model = 'm'\n";

fn one(text: &str) -> Files {
    vec![("a.toml".to_owned(), text.to_owned())]
}

#[test]
fn mistakes_are_the_same_when_most_of_a_catalog_is_known() {
    let other = MODEL.replace("model.m", "model.n");
    let good = format!("{MODEL}{other}");
    for after in [
        // a mistake in a new model, in a changed one, in the rest, in the syntax
        format!("{good}[model.x]\nprice = {{ input = -1, output = 1 }}\n"),
        good.replacen("output = 1", "output = -1", 1),
        format!("colour = 1\n{good}"),
        format!("{good}[model.y\n"),
        format!("{good}x = = 1\n"),
        // a model twice in one file
        format!("{good}{MODEL}"),
        // a group that a known model does not need, and one that is gone
        format!("{good}[group.g]\nmultiplier = 2\n"),
        // a route to a provider that is no longer there
        good.replacen("'p'", "'gone'", 1),
        // a model in two places
        format!("{MODEL}{other}[model.m.list]\nsource = 's'\nprice = {{ input = 1 }}\n"),
    ] {
        check(&one(&good), &one(&after));
        check(&one(&good), &vec![("a.toml".to_owned(), good.clone()), ("b.toml".to_owned(), after)]);
    }
}

#[test]
fn a_group_that_is_gone_is_missed_by_a_model_that_has_not_changed() {
    let model = MODEL.replacen("price", "enable_groups = ['g']\nprice", 1);
    let before = format!("[group.g]\nmultiplier = 2\n{model}");
    check(&one(&before), &one(&model));
    check(&one(&before), &one(&before.replace("= 2", "= 3")));
}
