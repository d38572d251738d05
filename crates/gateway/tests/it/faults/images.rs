//! Pictures: a client that leaves, a provider that dies, an answer that is too large or lost or
//! finds no room on our disk, a task that is never over.

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

[model."one-by-one"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true }
route = [{ provider = "gemini", upstream_model = "gemini-2.5-flash-image" }]

[model."others-one-by-one"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
route = [{ provider = "ark", upstream_model = "seedream-4" }]

[model."by-links"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { most = 4 }
route = [{ provider = "dashscope", upstream_model = "qwen-image-plus" }]
"#;

/// No disk has so much left.
const FULL: &str = "[storage]\ndisk_reserve = \"8000000GiB\"\n";

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
    let body = json!({ "model": "pictures", "prompt": "[[sim:cut kb=120 cut=fin]]", "n": 3, "stream": true });
    let reply = make(&house, &body).await;
    let (status, call) = (reply.status(), call_id(&reply));
    let text = reply.text().await.expect("a stream that says how it ends");
    // The picture that was on its way is the beginning of an event, which nobody can read.
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let finished = events.filter(|event| event["type"] == "image_generation.completed").count();
    assert_eq!((status.as_u16(), finished), (200, 1));
    assert!(text.trim_end().rsplit("event: ").next().is_some_and(|last| last.starts_with("error")), "no last word");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "broken_off"));
    assert_eq!((row.charge.nano(), row.counters.calls), (EACH, 1));
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - EACH);
}

/// It is made and paid, so it is handed over as data.
pub async fn a_picture_cannot_be_stored() {
    let house = house(Plan { config: FULL.to_owned(), ..Plan::default() }).await;
    let body = json!({ "model": "pictures", "prompt": "a cat", "response_format": "url" });
    let reply = make(&house, &body).await;
    let (status, call) = (reply.status(), call_id(&reply));
    let result: Value = reply.json().await.expect("JSON");
    let entry = &result["data"][0];
    assert!(status == 200 && entry["url"] == "" && entry["b64_json"] != "", "{status}: {result}");
    assert_eq!(result["warnings"][0]["field"], "data[0]");
    assert_eq!(house.row(call).await.charge.nano(), EACH);
}

/// Nothing is left of what found no room.
async fn nothing_is_left(house: &House, model: &str) {
    house.quiet().await;
    let app = &house.running().app;
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0), "{model}: bytes are still counted");
    assert_eq!(super::temporary(&app.spool.dir), 0, "{model}: a temporary file is left");
    let stored = std::fs::read_dir(house.dir.join("data/pictures")).map_or(0, Iterator::count);
    assert_eq!(stored, 0, "{model}: a picture is stored that nobody has a link of");
}

/// The answer was made, found no room, and is free.
async fn found_no_room(house: &House, body: &Value) {
    let reply = make(house, body).await;
    assert_eq!(reply.headers()["x-should-retry"], "false", "it was made: {body}");
    assert!(reply.headers().get("retry-after").is_none(), "{body}");
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (503, &json!("storage_full")), "{body}: {error}");
    let text = error["message"].as_str().expect("a text");
    assert!(text.contains("no room for this answer"), "nobody uploaded anything: {text}");
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.ending), (0, Ending::UpstreamFault), "{body}");
    assert_eq!(row.reason, "storage_full");
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED, "{body}");
}

/// What comes by several requests is spooled until all of it is there.
pub async fn no_room_for_several_pictures() {
    let house = house(Plan { config: FULL.to_owned(), ..Plan::default() }).await;
    // A request that found no room was answered; one that was refused says less.
    for model in ["one-by-one", "others-one-by-one"] {
        for scenario in ["ok", "turns of=ok,limited", "turns of=limited,ok"] {
            let prompt = format!("{model} [[sim:{scenario} kb=900]]");
            let body = json!({ "model": model, "prompt": prompt, "n": 2, "response_format": "b64_json" });
            found_no_room(&house, &body).await;
        }
        nothing_is_left(&house, model).await;
    }
    // Google's own clients read it in their own words; a prediction has no place for a link.
    for model in ["one-by-one", "others-one-by-one", "by-links"] {
        let prediction = json!({ "instances": [{ "prompt": "[[sim:kb=900]]" }], "parameters": { "sampleCount": 2 } });
        let path = format!("/v1beta/models/{model}:predict");
        let request = house.http.post(house.url(&path)).bearer_auth(&house.key).json(&prediction);
        let reply = request.send().await.expect("a reply");
        assert_eq!((reply.status().as_u16(), &reply.headers()["x-should-retry"]), (503, &"false".parse().unwrap()));
        let row = house.row(call_id(&reply)).await;
        assert_eq!((row.charge.nano(), row.reason.as_str()), (0, "storage_full"), "{model}");
        let error = reply.json::<Value>().await.expect("JSON")["error"].clone();
        assert_eq!((&error["code"], &error["status"]), (&json!(503), &json!("UNAVAILABLE")), "{model}: {error}");
        nothing_is_left(&house, model).await;
    }
    assert_eq!(house.available().await, FUNDED);
    // What stays in memory is served, and so is the link of what cannot be fetched.
    for (model, kilobytes, key) in [("one-by-one", 1, "b64_json"), ("by-links", 900, "url")] {
        let prompt = format!("[[sim:kb={kilobytes}]]");
        let body = json!({ "model": model, "prompt": prompt, "n": 2, "response_format": "b64_json" });
        let reply = make(&house, &body).await;
        let call = call_id(&reply);
        let result: Value = reply.json().await.expect("JSON");
        let filled = |at: usize| result["data"][at][key].as_str().is_some_and(|text| !text.is_empty());
        assert!(filled(0) && filled(1), "{model}: {result}");
        assert_eq!(house.row(call).await.charge.nano(), 2 * EACH);
    }
}

/// A picture that is wanted by a link of ours lies on our disk until all of it is there; one that
/// is not stored then is made base64, which may find no room either.
pub async fn no_room_for_a_picture_by_link() {
    let full = house(Plan { config: FULL.to_owned(), ..Plan::default() }).await;
    for (model, n, kilobytes) in
        [("pictures", 1, 2_000), ("pictures", 1, 900), ("one-by-one", 2, 900), ("one-by-one", 2, 450)]
    {
        let prompt = format!("[[sim:kb={kilobytes}]]");
        let body = json!({ "model": model, "prompt": prompt, "n": n, "response_format": "url" });
        found_no_room(&full, &body).await;
        nothing_is_left(&full, model).await;
    }
    let body = json!({ "model": "pictures", "prompt": "a cat", "response_format": "url" });
    assert_eq!(make(&full, &body).await.status(), 200, "what stays in memory is served");
    // There is room for one of two in the store, and for no base64 in the spool: one is shown and
    // paid. The other waits for room first.
    let config = "[limits]\nupload_bytes = \"1MiB\"\nspool_bytes = \"2MiB\"\n[images]\naccount_bytes = \"500KiB\"\n";
    let small = house(Plan { config: config.to_owned(), ..Plan::default() }).await;
    let body = json!({ "model": "pictures", "prompt": "[[sim:kb=400]]", "n": 2, "response_format": "url" });
    let reply = make(&small, &body).await;
    let call = call_id(&reply);
    let result: Value = reply.json().await.expect("JSON");
    assert_eq!(result["data"].as_array().map(Vec::len), Some(1), "{result}");
    assert!(result["data"][0]["url"].as_str().is_some_and(|url| url.contains("/v1/images/files/")), "{result}");
    assert_eq!(result["metadata"], json!({ "success_count": "1", "failed_count": "1" }));
    assert!(result.get("warnings").is_none(), "nothing is in `b64_json`: {result}");
    assert_eq!(small.row(call).await.charge.nano(), EACH);
    // And for neither of two more.
    let reply = make(&small, &body).await;
    assert_eq!((reply.status().as_u16(), &reply.headers()["x-should-retry"]), (429, &"false".parse().unwrap()));
    let row = small.row(call_id(&reply)).await;
    assert_eq!((row.charge.nano(), row.ending, row.reason.as_str()), (0, Ending::UpstreamFault, "rate_limit_exceeded"));
    small.quiet().await;
    assert_eq!((small.available().await, small.running().app.spool.budget.used()), (FUNDED - EACH, 0));
}
