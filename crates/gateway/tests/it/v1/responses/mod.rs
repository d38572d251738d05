//! `/v1/responses` and what it keeps: continuing, reading, erasing, conversations, compaction, the
//! WebSocket.

mod conversations;
mod named;
mod open_responses;
mod quotas;
mod same_dialect;
mod socket;
mod state;
mod stored;

use crate::dialects::CATALOG;
use crate::house::{House, Plan, error_of};
use reqwest::Method;
use serde_json::{Value, json};

/// Models whose providers speak each of the dialects.
const MODELS: [&str; 4] = ["gemini-on-openai", "gemini-on-anthropic", "gemini-on-openai-response", "gemini-on-gemini"];

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

async fn send(house: &House, method: Method, path: &str, body: Option<&Value>) -> reqwest::Response {
    let mut request = house.http.request(method, house.url(path)).bearer_auth(&house.key);
    if let Some(body) = body {
        request = request.json(body);
    }
    request.send().await.expect("a reply")
}

/// A response that is created, whole.
async fn create(house: &House, body: Value) -> Value {
    let reply = send(house, Method::POST, "/v1/responses", Some(&body)).await;
    let status = reply.status();
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(status, 200, "{body}");
    body
}

/// Status, code and param of a refusal.
async fn refused(house: &House, method: Method, path: &str, body: Option<&Value>) -> (u16, String, String) {
    let (status, error) = error_of(send(house, method, path, body).await).await;
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("param"))
}

async fn get(house: &House, path: &str) -> Value {
    let reply = send(house, Method::GET, path, None).await;
    assert_eq!(reply.status(), 200);
    reply.json().await.expect("JSON")
}

/// What the provider was sent last, as text.
fn last_sent(house: &House) -> String {
    String::from_utf8(house.sim.received().last().expect("a call").body.to_vec()).expect("text")
}

/// How often something was said in it.
fn times(house: &House, said: &str) -> usize {
    last_sent(house).matches(said).count()
}

fn id(response: &Value) -> &str {
    response["id"].as_str().expect("an id")
}

fn next(response: &Value, model: &str, text: &str) -> Value {
    json!({ "model": model, "input": text, "previous_response_id": id(response) })
}
