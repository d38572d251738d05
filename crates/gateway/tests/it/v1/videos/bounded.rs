//! A request with very many fields that nobody knows: reported by a few names and a number, stored
//! and listed small.

use crate::house::{House, Plan, error_of};
use serde_json::{Map, Value, json};

async fn create(house: &House, body: &Value) -> Value {
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(body).send().await;
    let reply = reply.expect("a reply");
    assert_eq!(reply.status(), 200);
    let text = reply.text().await.expect("text");
    assert!(text.len() < 16 << 10, "{} bytes", text.len());
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_about_unknown_fields_are_few_and_short() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    const FIELDS: usize = 20_000;
    let fields: Map<String, Value> = (0..FIELDS).map(|n| (format!("field_{n}"), json!(1))).collect();
    let mut above = fields.clone();
    above.extend([("model".to_owned(), json!("kling-v3")), ("prompt".to_owned(), json!("p"))]);
    let long = json!({ "model": "kling-v3", "prompt": "p", "x".repeat(100_000): 1 });
    let inside = json!({ "model": "kling-v3", "prompt": "p", "metadata": fields });
    for (body, expected, rest) in [(Value::Object(above), 17, FIELDS - 16), (inside, 17, FIELDS - 16), (long, 1, 0)] {
        let made = create(&house, &body).await;
        let warnings = made["warnings"].as_array().expect("warnings");
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        assert!(rest == 0 || warnings[16].to_string().contains(&format!(" {rest} more")), "{:?}", warnings[16]);
        let task = made["id"].as_str().expect("an id").parse().expect("a task");
        let stored = house.running().app.store.any_task(task).await.expect("read").expect("there");
        assert!(stored.plan.len() < 16 << 10, "{} bytes are stored", stored.plan.len());
    }
    let list = house.get("/v1/videos?limit=100").send().await.expect("a reply").text().await.expect("text");
    assert!(list.len() < 32 << 10, "{} bytes are listed", list.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_error_repeats_is_cut() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    let name = "m".repeat(1 << 20);
    let body = json!({ "model": name, "messages": [{ "role": "user", "content": "x" }] });
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/videos"] {
        let mut body = body.clone();
        (body["input"], body["max_tokens"], body["prompt"]) = (json!("x"), json!(9), json!("p"));
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await;
        let reply = reply.expect("a reply");
        assert!(reply.status().is_client_error());
        let text = reply.text().await.expect("text");
        assert!(text.len() < 16 << 10, "{path}: {} bytes", text.len());
    }
    let field = format!("metadata[{}]", "k".repeat(1 << 20));
    let form =
        reqwest::Body::from(format!("--b\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\nx\r\n--b--\r\n"));
    let request = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key);
    let reply = request.header("content-type", "multipart/form-data; boundary=b").body(form).send().await;
    let (status, error) = error_of(reply.expect("a reply")).await;
    assert!(status == 400 && error.to_string().len() < 16 << 10);
}
