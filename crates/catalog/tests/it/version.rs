//! The price version changes exactly when a price changes.

use super::catalog;
use tollgate_catalog::load;

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
    catalog(text).pricing_version
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
    assert_eq!(one.pricing_version, version(BASE));
}
