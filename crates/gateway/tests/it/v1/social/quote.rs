//! A quote of a social call is what the call costs, for every cell.

use super::{ask, cells, house, plain};
use crate::house::{call_id, error_of};
use serde_json::{Map, Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn every_cell_costs_what_was_quoted() {
    let house = house("").await;
    let mut charged = 0;
    for cell in cells(&house) {
        let params = plain(&cell);
        let body: Map<String, Value> = params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let url = house.url(&format!("/v1/quote?endpoint={}", cell.path()));
        let reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        let quoted: Value = reply.json().await.expect("JSON");
        assert_eq!((&quoted["kind"], &quoted["depends_on"]), (&json!("exact"), &json!([])), "{quoted}");
        assert_eq!(quoted["would_be_refused"], Value::Null);
        let reply = ask(&house, &cell, &params).await;
        assert_eq!(reply.status(), 200, "{}", cell.model.name);
        let row = house.row(call_id(&reply)).await;
        assert_eq!(quoted["total_nano_usd"], row.charge.nano(), "{}", cell.model.name);
        assert_eq!(quoted["hold_nano_usd"], row.hold.nano(), "{}", cell.model.name);
        charged += 1;
    }
    assert_eq!(charged, 101);
    for (path, body, code) in [
        ("/v1/social/nowhere/search", json!({}), "social_endpoint_not_found"),
        ("/v1/social/tiktok", json!({}), "invalid_parameter"),
        (&*cells(&house)[0].path(), json!({ "no_such_parameter": 1 }), "unknown_parameter"),
    ] {
        let url = house.url(&format!("/v1/quote?endpoint={path}"));
        let reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        assert_eq!(error_of(reply).await.1["code"], code, "{path}");
    }
}
