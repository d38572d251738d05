//! Pictures: a client that leaves, a provider that dies, an answer that is too large or lost, a
//! task that is never over.

use super::FUNDED;
use crate::house::{House, Plan, call_id, error_of};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::Ending;

const EACH: i64 = 40_000_000;
const CATALOG: &str = r#"
[model."pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { most = 4, base64_only = true, streams = true }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]

[model."tasks"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { api = "tasks" }
route = [{ provider = "dashscope", upstream_model = "wan2.5-t2i" }]
"#;

async fn house(plan: Plan) -> House {
    House::with(Plan { catalog: CATALOG, ..plan }).await
}

async fn make(house: &House, body: &Value) -> Response {
    let request = house.http.post(house.url("/v1/images/generations")).bearer_auth(&house.key).json(body);
    request.send().await.expect("a reply")
}

/// It failed for free, and is not to be sent again.
async fn failed(house: &House, reply: Response, status: u16) {
    assert_eq!(reply.headers()["x-should-retry"], "false");
    let call = call_id(&reply);
    assert_eq!(error_of(reply).await.0, status);
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.ending), (0, Ending::UpstreamFault));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED);
}

pub async fn the_client_leaves_in_mid_picture() {
    let house = house(Plan::default()).await;
    let mut reply = make(&house, &json!({ "model": "pictures", "prompt": "[[sim:kb=4000]]", "n": 2 })).await;
    let call = call_id(&reply);
    assert!(reply.chunk().await.expect("a piece").is_some());
    drop(reply);
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.ending), (2 * EACH, Ending::ClientLeft));
    assert_eq!(house.available().await, FUNDED - 2 * EACH);
}

pub async fn the_provider_dies_in_mid_picture() {
    let house = house(Plan::default()).await;
    let reply = make(&house, &json!({ "model": "pictures", "prompt": "[[sim:cut kb=20]]" })).await;
    failed(&house, reply, 502).await;
}

pub async fn an_answer_with_pictures_is_too_large() {
    let house = house(Plan { sim: "reply_bytes = \"1MiB\"", ..Plan::default() }).await;
    let reply = make(&house, &json!({ "model": "pictures", "prompt": "[[sim:kb=900]]" })).await;
    failed(&house, reply, 502).await;
}

pub async fn an_answer_with_pictures_is_lost() {
    let house = house(Plan::default()).await;
    let reply = make(&house, &json!({ "model": "pictures", "prompt": "[[sim:lost]]" })).await;
    failed(&house, reply, 502).await;
    assert_eq!(house.sim.received().len(), 1);
}

pub async fn a_task_of_pictures_is_never_over() {
    let house = house(Plan { patience: "300ms", ..Plan::default() }).await;
    let reply = make(&house, &json!({ "model": "tasks", "prompt": "[[sim:poll_broken]]" })).await;
    failed(&house, reply, 504).await;
}

/// What was finished before is paid, and the stream says that it is not whole.
pub async fn a_stream_of_pictures_breaks() {
    let house = house(Plan::default()).await;
    let body = json!({ "model": "pictures", "prompt": "[[sim:cut kb=120]]", "n": 3, "stream": true });
    let reply = make(&house, &body).await;
    let (status, call) = (reply.status(), call_id(&reply));
    let text = reply.text().await.expect("a stream that says how it ends");
    assert_eq!((status.as_u16(), text.matches("event: image_generation.completed").count()), (200, 1));
    assert!(text.trim_end().rsplit("event: ").next().is_some_and(|last| last.starts_with("error")), "no last word");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "broken_off"));
    assert_eq!((row.charge.nano(), row.counters.calls), (EACH, 1));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - EACH);
}

/// It is made and paid, so it is handed over as data.
pub async fn a_picture_cannot_be_stored() {
    let config = "[storage]\ndisk_reserve = \"8000000GiB\"\n".to_owned();
    let house = house(Plan { config, ..Plan::default() }).await;
    let body = json!({ "model": "pictures", "prompt": "a cat", "response_format": "url" });
    let reply = make(&house, &body).await;
    let (status, call) = (reply.status(), call_id(&reply));
    let result: Value = reply.json().await.expect("JSON");
    let entry = &result["data"][0];
    assert!(status == 200 && entry["url"] == "" && entry["b64_json"] != "", "{status}: {result}");
    assert_eq!(result["warnings"][0]["field"], "data");
    assert_eq!(house.row(call).await.charge.nano(), EACH);
}
