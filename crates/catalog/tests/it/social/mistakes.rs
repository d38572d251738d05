//! What people read when a cell is written wrongly.

use super::super::mistakes_of;
use tollgate_catalog::load;

const CELL: &str = r#"
[social.demo]
name_en = "Demo"
provider = "p"
[social.demo.search]
price = { per_call = 2_000 }
require_one_of = [["a", "b"]]
[[social.demo.search.route]]
path = "/demo/search"
cost = 1_000
[social.demo.search.answer]
items = ["/list"]
[social.demo.search.paging]
next = { a = "/cursor" }
more = "!/end"
[[social.demo.search.param]]
name = "a"
type = "string"
max_length = 9
en = "A."
[[social.demo.search.param]]
name = "b"
type = "integer"
min = 1
en = "B."
"#;

#[test]
fn the_example_is_right_and_each_change_of_it_is_wrong() {
    assert_eq!(mistakes_of(CELL), "no mistake");
    for (from, to, mistake) in [
        (
            "[social.demo.search]",
            "[social.demo.serch]",
            "social.demo.serch: is not a known key; did you mean \"search\"?",
        ),
        ("name_en = \"Demo\"", "", "test.toml:2: social.demo.name_en: is missing: a text is needed"),
        ("provider = \"p\"", "", "route[0].provider: is missing: name a provider here or for the whole platform"),
        ("price = { per_call = 2_000 }", "", "search.price: is missing: a model without a price cannot be sold"),
        ("per_call = 2_000", "input = 2_000", "price.per_call: is missing"),
        (
            "per_call = 2_000",
            "per_call = 999",
            "test.toml:6: social.demo.search.price: is below the cost of a route, 1000: say below_cost = true if that is meant",
        ),
        ("[[\"a\", \"b\"]]", "[[\"a\", \"c\"]]", "require_one_of: no parameter is called \"c\""),
        (
            "[[\"a\", \"b\"]]",
            "[[\"a\"]]",
            "require_one_of: a group has at least two names; one alone is required = true",
        ),
        ("[[\"a\", \"b\"]]", "[\"a\"]", "require_one_of: must be a list of texts, not a text"),
        ("path = \"/demo/search\"", "path = \"demo?x\"", "must begin with / and have no ?, # or blank"),
        ("cost = 1_000", "", "route[0].cost: is missing: a whole number is needed"),
        (
            "[[social.demo.search.route]]\npath = \"/demo/search\"\ncost = 1_000",
            "",
            "search.route: is missing: a cell needs at least one [[…route]]",
        ),
        ("items = [\"/list\"]", "items = [\"list\"]", "answer.items: must be places in the answer"),
        ("items = [\"/list\"]", "ok = [{ at = \"/s\" }]", "answer.ok[0].is: is missing: the values that mean success"),
        ("a = \"/cursor\"", "z = \"/cursor\"", "paging.next.z: is not a parameter of this cell"),
        ("a = \"/cursor\"", "a = \"cursor\"", "paging.next.a: must be a place such as \"/cursor\""),
        ("more = \"!/end\"", "more = \"end\"", "paging.more: must be a place such as"),
        ("max_length = 9", "", "param[0].max_length: is missing: a text needs a limit"),
        ("max_length = 9", "max_length = 9\nmin = 1", "param[0].min: is for parameters of type integer"),
        ("max_length = 9", "max_length = 9\nmin_length = 10", "param[0].min_length: is above max_length"),
        ("max_length = 9", "max_length = 9\nallowed_strict = true", "needs a list of allowed values"),
        ("min = 1", "min = 1\nmax = 0", "param[1].min: is above max"),
        ("min = 1", "default = \"x\"", "param[1].default: must be a whole number"),
        ("min = 1", "text_keys = [\"x\"]", "param[1].text_keys: is for parameters of type string"),
        ("name = \"b\"", "name = \"a\"", "param[1].name: \"a\" is already a parameter of this cell"),
        ("type = \"integer\"", "type = \"int\"", "param[1].type: \"int\" is not one of string, integer, boolean"),
        (
            "[social.demo.search]",
            "[social.demo.search]\nnever_send = [\"a\"]",
            "never_send: \"a\" is a parameter of this cell",
        ),
    ] {
        assert!(CELL.contains(from), "{from}");
        let said = mistakes_of(&CELL.replacen(from, to, 1));
        assert!(said.contains(mistake), "{from} → {to}\nwanted {mistake}\ngot    {said}");
    }
    assert_eq!(mistakes_of(&CELL.replace("per_call = 2_000 }", "per_call = 999 }\nbelow_cost = true")), "no mistake");
    assert!(mistakes_of(&CELL.replace("demo", "Demo")).contains("a platform key has lowercase letters"));
}

#[test]
fn a_platform_is_defined_once_over_all_files() {
    let files = [
        ("a.toml".to_owned(), CELL.to_owned()),
        (
            "b.toml".to_owned(),
            CELL.replace("social.demo", "social.other").replace("name_en", "aliases = [\"demo\"]\nname_en"),
        ),
    ];
    let mistakes = load(&files).expect_err("twice the same key");
    assert_eq!(mistakes[0].to_string(), "b.toml:2: social.other: \"demo\" is already defined in a.toml:2");
}
