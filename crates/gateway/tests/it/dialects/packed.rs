//! Case 102, the provider's half: an answer that is compressed although that was not asked for is a
//! fault of its provider.

use super::client::{Client, code_of};
use crate::house::{House, Plan, call_id, error_of};
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::post;
use http::{HeaderMap, header};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tollgate_store::Ending;
use tollgate_wire::Dialect;

const CATALOG: &str = r#"
[model."gemini-packed"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "packed", upstream_model = "sim-plain" }]

[model."gemini-packed-first"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "packed", upstream_model = "sim-plain", priority = 1 },
  { provider = "sim", upstream_model = "sim-plain", priority = 2 },
]
"#;

/// A provider that answers with what it says is gzip, and remembers what it was asked to do.
pub async fn provider(status: u16) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    let answer = async move |headers: HeaderMap| {
        let wanted = headers[header::ACCEPT_ENCODING].to_str().expect("text").to_owned();
        seen.lock().expect("a lock").push(wanted);
        let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03not really".to_vec();
        let status = http::StatusCode::from_u16(status).expect("a status");
        (status, [(header::CONTENT_ENCODING, "gzip"), (header::CONTENT_TYPE, "application/json")], packed)
            .into_response()
    };
    let app = Router::new().route("/v1/chat/completions", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    serve(listener, app);
    (url, asked)
}

#[expect(clippy::disallowed_methods, reason = "a server of the test's own, gone with it")]
pub fn serve(listener: tokio::net::TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

pub async fn house(url: &str) -> House {
    let config = format!("[provider.packed]\nkind = \"openai\"\nbase_url = \"{url}\"\n");
    House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_answer_is_a_fault_and_another_route_is_tried() {
    let (url, asked) = provider(200).await;
    let house = house(&url).await;
    for client in Client::all() {
        for stream in [false, true] {
            let reply = client.ask(&house, "gemini-packed", "hello", stream).await;
            let call = call_id(&reply);
            let (status, error) = error_of(reply).await;
            assert_eq!((status, code_of(&error)), (502, "upstream_invalid_reply"), "{client:?}: {error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains("compressed")), "{error}");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::UpstreamFault, 0, 1));

            let reply = client.ask(&house, "gemini-packed-first", "say [[sim:tokens=3]]", stream).await;
            let call = call_id(&reply);
            assert_eq!(reply.status(), 200, "{client:?}");
            let _ = reply.text().await;
            let row = house.row(call).await;
            assert_eq!((row.attempts, row.provider.as_deref()), (2, Some("sim")), "{client:?}");
        }
    }
    let asked = asked.lock().expect("a lock");
    assert!(asked.len() == 16 && asked.iter().all(|wanted| wanted == "identity"), "{asked:?}");
}

/// Of an error only the status can be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_error_is_judged_by_its_status() {
    let (url, _) = provider(429).await;
    let house = house(&url).await;
    let body: Value = Client(Dialect::Chat).body("gemini-packed", "hello", false);
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (429, &json!("rate_limit_exceeded")), "{error}");
    assert!(!error.to_string().contains("not really"), "{error}");
}
