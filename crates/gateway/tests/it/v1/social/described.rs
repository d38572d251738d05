//! How cells are described: the public catalog and the API description, for all of them.

use super::{cells, house};
use serde_json::{Value, json};
use tollgate_catalog::social::{Param, ParamKind};

async fn document(house: &crate::house::House, path: &str) -> Value {
    house.http.get(house.url(path)).send().await.expect("a reply").json().await.expect("JSON")
}

/// The schema of a parameter, made here from the limits that are checked.
fn schema(param: &Param) -> Value {
    let mut schema = json!({ "type": match param.kind { ParamKind::Text => "string", ParamKind::Integer => "integer", ParamKind::Boolean => "boolean" } });
    let mut put =
        |name: &str, value: Value| drop(schema.as_object_mut().expect("an object").insert(name.to_owned(), value));
    match param.kind {
        ParamKind::Text => {
            put("maxLength", json!(param.max_length));
            (param.min_length > 0).then(|| put("minLength", json!(param.min_length)));
            (!param.choices().is_empty()).then(|| put("enum", json!(param.choices())));
        }
        ParamKind::Integer => {
            param.min.into_iter().for_each(|min| put("minimum", json!(min)));
            param.max.into_iter().for_each(|max| put("maximum", json!(max)));
        }
        ParamKind::Boolean => {}
    }
    param.default.iter().for_each(|default| put("default", default.json()));
    param.example.iter().for_each(|example| put("examples", json!([example])));
    schema
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_description_has_every_parameter_of_every_cell() {
    let house = house("").await;
    let described = document(&house, "/openapi.json").await;
    let (mut paths, mut parameters) = (0, 0);
    for cell in cells(&house) {
        let operation = &described["paths"][cell.path()]["get"];
        let list = operation["parameters"].as_array().unwrap_or_else(|| panic!("{} is not described", cell.path()));
        assert_eq!(list.len(), cell.params.len(), "{}", cell.path());
        for (shown, param) in list.iter().zip(&cell.params) {
            let name = format!("{} {}", cell.path(), param.name);
            assert_eq!((&shown["name"], &shown["in"]), (&json!(param.name), &json!("query")), "{name}");
            // One with a default need not be sent.
            assert_eq!(shown["required"], json!(param.required && param.default.is_none()), "{name}");
            assert_eq!(shown["schema"], schema(param), "{name}");
            assert_eq!(shown["description"], json!(format!("{} / {}", param.en, param.zh)), "{name}");
            parameters += 1;
        }
        let groups: Vec<Vec<&str>> = cell
            .require_one_of
            .iter()
            .map(|group| group.iter().map(|at| cell.params[*at].name.as_str()).collect())
            .collect();
        assert_eq!(operation["x-require-one-of"], json!(groups), "{}", cell.path());
        paths += 1;
    }
    assert_eq!((paths, parameters), (101, 286));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_over_the_wire_is_that_of_the_table() {
    let house = house("").await;
    let catalog = document(&house, "/api/social/catalog").await;
    let listed = catalog["cells"].as_array().expect("cells");
    let own = cells(&house);
    assert_eq!((listed.len(), own.len()), (101, 101));
    for (shown, cell) in listed.iter().zip(&own) {
        let mut expected = cell.record(false);
        expected["health"] = Value::Null;
        assert_eq!(*shown, expected);
    }
}
