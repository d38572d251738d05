//! GET /openapi.json.

use crate::house::House;
use serde_json::Value;
use tollgate_gateway::endpoints::table::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn the_description_has_every_path_and_resolves() {
    let house = House::new().await;
    let reply = house.http.get(house.url("/openapi.json")).send().await.expect("a reply");
    let text = reply.text().await.expect("text");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    for (method, path, _) in PATHS {
        let operation = &document["paths"][path][method.to_ascii_lowercase()];
        assert!(operation["responses"]["200"].is_object(), "{method} {path}");
    }
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().expect("an end");
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
}
