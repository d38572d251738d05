//! Faults around embeddings: vectors that pass are cut or left, too many, or of half a list.

use super::{FUNDED, free};
use crate::house::{House, Plan, call_id};
use crate::v1::embeddings::{CATALOG, PROVIDERS};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::Ending;

async fn house(sim: &'static str) -> House {
    House::with(Plan { catalog: CATALOG, config: PROVIDERS.to_owned(), sim, ..Plan::default() }).await
}

/// Texts half of whose vectors are more than is held; the last has the marker.
fn many(marker: &str) -> Value {
    let mut texts = vec!["one two".to_owned(); 299];
    texts.push(format!("one two [[sim:{marker}]]"));
    json!({ "model": "vec", "input": texts, "dimensions": 3_072 })
}

async fn embed(house: &House, body: &Value) -> Response {
    house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

pub async fn the_provider_dies_in_mid_vectors() {
    let house = house("").await;
    let reply = embed(&house, &many("cut_midstream")).await;
    let call = call_id(&reply);
    assert_eq!(reply.status(), 200);
    assert!(reply.bytes().await.is_err(), "nobody takes half a list for a whole one");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "broken_off", 0));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED);
}

pub async fn the_client_leaves_in_mid_vectors() {
    let house = house("").await;
    let mut reply = embed(&house, &many("hang_midstream")).await;
    let call = call_id(&reply);
    assert!(reply.chunk().await.expect("a piece").is_some());
    drop(reply);
    let row = house.row(call).await;
    assert_eq!((row.ending, row.estimated), (Ending::ClientLeft, true));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
    assert!(row.charge.nano() > 0, "they were made");
}

pub async fn more_vectors_than_are_taken() {
    let house = house("reply_bytes = \"100KiB\"").await;
    let reply = embed(&house, &many("")).await;
    free(&house, reply, (502, "upstream_invalid_reply"), Some((Ending::UpstreamFault, "upstream_invalid_reply"))).await;
    assert_eq!(house.sim.received().len(), 1, "not asked for again");
}

pub async fn a_part_of_a_list_fails() {
    let house = house("").await;
    let body = json!({ "model": "vec-parts", "input": ["a", "b", "c", "d [[sim:cut_midstream]]"] });
    let reply = embed(&house, &body).await;
    assert_eq!(reply.headers()["x-should-retry"], "false");
    free(&house, reply, (502, "upstream_error"), Some((Ending::UpstreamFault, "upstream_error"))).await;
    assert_eq!(house.sim.received().len(), 2);
}

pub async fn a_part_of_a_list_stays_busy() {
    let house = house("").await;
    let body = json!({ "model": "vec-parts", "input": ["a", "b", "c", "d [[sim:error429 retry_after=0]]"] });
    let reply = embed(&house, &body).await;
    let busy = "rate_limit_exceeded";
    free(&house, reply, (429, busy), Some((Ending::UpstreamFault, busy))).await;
    assert!(house.sim.received().len() > 2, "it was asked for again");
}

/// What comes by several requests is spooled until all of it is there.
pub async fn a_later_part_of_a_list_is_refused() {
    let house = house("").await;
    let body = json!({ "model": "vec-parts", "input": ["a", "b", "c", "d [[sim:error400]]"] });
    let reply = embed(&house, &body).await;
    let call = call_id(&reply);
    assert_eq!((reply.status().as_u16(), &reply.headers()["x-should-retry"]), (400, &"false".parse().unwrap()));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 3_000));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - 3_000);
}

pub async fn no_room_for_vectors() {
    const PARTS: &str = "[model.\"parts\"]\ntype = \"embedding\"\nsupported_endpoint_types = [\"embeddings\"]\n\
        embedding = { batch = 50 }\nprice = { input = 1_000_000, output = 0 }\n\
        route = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    let config = "[storage]\ndisk_reserve = \"8000000GiB\"\n".to_owned();
    let house = House::with(Plan { catalog: PARTS, config, ..Plan::default() }).await;
    let texts: Vec<String> = (0..200).map(|at| format!("text {at}")).collect();
    let reply = embed(&house, &json!({ "model": "parts", "input": texts, "dimensions": 3_072 })).await;
    let once = reply.headers().get("x-should-retry").cloned();
    assert_eq!(once.as_ref().map(|value| value.as_bytes()), Some(&b"false"[..]), "{}", reply.status());
    free(&house, reply, (503, "storage_full"), Some((Ending::UpstreamFault, "storage_full"))).await;
    let reply = embed(&house, &json!({ "model": "parts", "input": texts, "dimensions": 8 })).await;
    assert_eq!(reply.status(), 200, "what stays in memory is served");
}
