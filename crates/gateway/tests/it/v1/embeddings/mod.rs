//! POST /v1/embeddings, and the same on Gemini's paths.

mod faults;
mod forms;
mod money;

use crate::house::{House, Plan};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::CallId;

/// A token costs 1,000 nano-USD.
pub const CATALOG: &str = r#"
[model."vec"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
context_window = 8192
max_input_tokens = 300000
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."vec-gemini"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]

[model."vec-dashscope"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "dashscope", upstream_model = "sim-plain" }]

[model."vec-cohere"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-cohere", upstream_model = "sim-plain" }]

[model."vec-jina"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-jina", upstream_model = "sim-plain" }]

[model."vec-two"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [
  { provider = "nobody", upstream_model = "sim-plain", priority = 0 },
  { provider = "sim", upstream_model = "sim-plain", priority = 1 },
]

[model."vec-parts"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
embedding = { most_inputs = 20, batch = 3, floats_only = true }
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."vec-calls"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
billing_unit = "per_call"
price = { per_call = 2_500 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// Providers that no other test needs.
pub const PROVIDERS: &str = "[provider.sim-cohere]\nkind = \"cohere\"\nbase_url = \"{host}/cohere\"\n\
    [provider.sim-jina]\nkind = \"jina\"\nbase_url = \"{host}/jina/v1\"\n";

pub async fn house() -> House {
    House::with(Plan { catalog: CATALOG, config: PROVIDERS.to_owned(), ..Plan::default() }).await
}

async fn post(house: &House, path: &str, body: &Value) -> Response {
    house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

async fn embed(house: &House, body: &Value) -> Response {
    post(house, "/v1/embeddings", body).await
}

fn asked(model: &str, input: impl Into<Value>) -> Value {
    json!({ "model": model, "input": input.into() })
}

/// The vectors of a reply in any form, in the order of their texts, in thousandths.
fn vectors(reply: &Value) -> Vec<Vec<i64>> {
    let entries = reply["data"].as_array().or(reply["embeddings"].as_array()).cloned();
    let entries = entries.unwrap_or_else(|| vec![reply["embedding"].clone()]);
    let thousandths = |number: f64| (number * 1_000.0).round() as i64;
    let of = |entry: &Value| -> Vec<i64> {
        let vector = if entry["embedding"].is_null() { &entry["values"] } else { &entry["embedding"] };
        match vector {
            Value::String(text) => {
                let bytes = BASE64_STANDARD.decode(text).expect("base64");
                bytes.as_chunks::<4>().0.iter().map(|four| thousandths(f64::from(f32::from_le_bytes(*four)))).collect()
            }
            list => list
                .as_array()
                .expect("numbers")
                .iter()
                .map(|one| thousandths(one.as_f64().expect("a number")))
                .collect(),
        }
    };
    let mut all: Vec<(u64, Vec<i64>)> =
        entries.iter().enumerate().map(|(at, one)| (one["index"].as_u64().unwrap_or(at as u64), of(one))).collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, vector)| vector).collect()
}

/// Tokens, charge, and whether they were counted here.
async fn cost(house: &House, call: CallId) -> (u64, i64, bool) {
    let row = house.row(call).await;
    assert!(row.hold >= row.charge, "{row:?}");
    (row.counters.input, row.charge.nano(), row.estimated)
}
