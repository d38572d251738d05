//! The public catalog's line of a cell against the files as anybody reads them, not as the loader
//! does.

use super::shipped;
use serde_json::{Value, json};
use tollgate_catalog::social::SHIPPED;

/// The cells of all files, as TOML.
fn written() -> Vec<(String, String, toml::Table)> {
    let mut cells = Vec::new();
    for (name, text) in SHIPPED {
        let file: toml::Table = text.parse().expect(name);
        for (platform, table) in file["social"].as_table().expect("platforms") {
            for (capability, cell) in table.as_table().expect("a platform") {
                if let Some(cell) = cell.as_table() {
                    cells.push((platform.clone(), capability.clone(), cell.clone()));
                }
            }
        }
    }
    cells
}

fn json_of(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Boolean(flag) => json!(flag),
        other => panic!("{other} is no value of a parameter"),
    }
}

#[test]
fn every_parameter_is_listed_as_it_is_written() {
    let (mut cells, mut parameters, mut defaults, mut examples, mut groups) = (0, 0, 0, 0, 0);
    for (platform, capability, table) in written() {
        let name = format!("{platform}/{capability}");
        let record = shipped().social.cell(&platform, &capability).expect("a cell").record(false);
        let listed = record["params"].as_array().expect("a list");
        let params = table.get("param").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        assert_eq!(listed.len(), params.len(), "{name}");
        for (shown, param) in listed.iter().zip(&params) {
            let text = |key: &str| param.get(key).and_then(toml::Value::as_str).unwrap_or_default();
            assert_eq!((&shown["name"], &shown["type"]), (&json!(text("name")), &json!(text("type"))), "{name}");
            let required = param.get("required").and_then(toml::Value::as_bool).unwrap_or(false);
            assert_eq!(shown["required"], json!(required), "{name} {}", text("name"));
            assert_eq!(shown.get("default"), param.get("default").map(json_of).as_ref(), "{name} {}", text("name"));
            assert_eq!(shown.get("example"), param.get("example").map(json_of).as_ref(), "{name} {}", text("name"));
            assert_eq!(shown["description"], json!(format!("{} / {}", text("en"), text("zh"))), "{name}");
            assert!(!text("en").is_empty() && !text("zh").is_empty(), "{name}: both languages");
            defaults += usize::from(shown.get("default").is_some());
            examples += usize::from(shown.get("example").is_some());
            parameters += 1;
        }
        let group = table.get("require_one_of").map(|list| {
            let names = |group: &toml::Value| group.as_array().expect("names").iter().map(json_of).collect::<Vec<_>>();
            json!(list.as_array().expect("groups").iter().map(names).collect::<Vec<_>>())
        });
        assert_eq!(record.get("require_one_of"), group.as_ref(), "{name}: absent where there is none");
        groups += usize::from(group.is_some());
        cells += 1;
    }
    assert_eq!((cells, parameters, groups), (101, 286, 11));
    assert!(defaults > 10 && examples > 10, "{defaults} defaults, {examples} examples");
}
