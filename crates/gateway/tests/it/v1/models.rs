//! GET /v1/models and /v1/models/{id}.

use crate::house::{House, error_of};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_what_the_key_can_use() {
    let house = House::new().await;
    let body: Value = house.get("/v1/models").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(body["object"], "list");
    let names: Vec<&str> =
        body["data"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(names, ["billed-to-the-end", "no-chat", "paid-only", "plain", "sim-plain", "two-routes"]);

    let narrow = house.new_key(|key| key.models = Some(vec!["plain".to_owned()])).await;
    let reply = house.http.get(house.url("/v1/models")).bearer_auth(&narrow).send().await.expect("a reply");
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(body["data"].as_array().expect("a list").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_model_by_its_name() {
    let house = House::new().await;
    let body: Value = house.get("/v1/models/plain").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((body["id"].as_str(), body["object"].as_str()), (Some("plain"), Some("model")));
    let (status, error) = error_of(house.get("/v1/models/none").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("model_not_found")));
}
