//! Pictures: POST /v1/images/generations, POST /v1/images/edits, and Imagen's `:predict`.

mod checks;
mod edits;
mod faults;
mod generations;
mod kept;
mod letters;
mod makers;
mod own_links;
mod predict;
mod prices;
mod repeated;
mod slow;
mod streams;

use crate::house::{House, Plan, call_id};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::UsageRow;

/// Nano-USD of one picture at the base price.
const EACH: i64 = 40_000_000;

/// One model for each maker, all at the same base price.
const CATALOG: &str = r#"
[model."pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[model."pictures".image]
most = 4
default_size = "1024x1024"
default_quality = "medium"
qualities = ["low", "medium", "high"]
base64_only = true
streams = true
partial_images = true
edit_images = 16
masks = true
[[model."pictures".tier]]
name = "large"
when = [{ dim = "request_attr", path = "resolution", equals = "4K" }]
price = { per_call = 250_000 }
[[model."pictures".tier]]
name = "high"
when = [{ dim = "request_attr", path = "quality", equals = "high" }]
price = { per_call = 160_000 }

[model."tiered-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, default_quality = "medium", default_size = "1024x1024" }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[[model."tiered-pictures".tier]]
name = "high"
when = [{ dim = "request_attr", path = "quality", equals = "high" }]
price = { per_call = 160_000 }
[[model."tiered-pictures".tier]]
name = "wide"
when = [{ dim = "request_attr", path = "size", equals = "1536x1024" }]
price = { per_call = 60_000 }
[[model."tiered-pictures".tier]]
name = "moving"
when = [{ dim = "request_attr", path = "output_format", equals = "gif" }]
price = { per_call = 90_000 }

[model."minimax-tiered"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { default_quality = "medium", prompt_characters = 1_500 }
route = [{ provider = "minimax", upstream_model = "image-01" }]
[[model."minimax-tiered".tier]]
name = "high"
when = [{ dim = "request_attr", path = "quality", equals = "high" }]
price = { per_call = 160_000 }

[model."old-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
route = [{ provider = "sim", upstream_model = "sim-image-old" }]

[model."two-ways"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, edit_images = 16, masks = true }
route = [
  { provider = "nobody", upstream_model = "sim-image-new", priority = 0 },
  { provider = "sim", upstream_model = "sim-image-new", priority = 1 },
]

[model."sized-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, default_size = "1024x1024", sizes = ["1024x1024", "1536x1024", "2048x2048"] }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[[model."sized-pictures".tier]]
name = "wide"
when = [{ dim = "request_attr", path = "size", equals = "1536x1024" }]
price = { per_call = 60_000 }

[model."edited-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, edit_images = 3 }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[[model."edited-pictures".tier]]
name = "three"
when = [{ dim = "request_attr", path = "images", equals = 3 }]
price = { per_call = 90_000 }
[[model."edited-pictures".tier]]
name = "edit"
when = [{ dim = "request_attr", path = "edit", equals = "true" }]
price = { per_call = 70_000 }

[model."unlike-routes"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { prompt_characters = 1_500 }
route = [
  { provider = "minimax", upstream_model = "image-01", priority = 0 },
  { provider = "ark", upstream_model = "seedream-4", priority = 1 },
]

[model."minimax-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { edit_images = 1, most = 9, prompt_characters = 1_500 }
route = [{ provider = "minimax", upstream_model = "image-01" }]

[model."ark-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { edit_images = 10 }
route = [{ provider = "ark", upstream_model = "seedream-4" }]

[model."qwen-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { edit_images = 3, most = 4 }
route = [{ provider = "dashscope", upstream_model = "qwen-image-plus" }]

[model."wan-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { api = "tasks", edit_images = 3, most = 4 }
route = [{ provider = "dashscope", upstream_model = "wan2.5-t2i" }]

[model."kling-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { edit_images = 1, most = 9 }
route = [{ provider = "kling", upstream_model = "kling-v2-1" }]

[model."google-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { edit_images = 3, base64_only = true }
route = [{ provider = "gemini", upstream_model = "gemini-2.5-flash-image" }]

[model."imagen-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { api = "imagen", base64_only = true, most = 4 }
route = [{ provider = "gemini", upstream_model = "imagen-4" }]
"#;

/// Every model but those that are there for their routes, with whether it takes several at once.
const MAKERS: [&str; 9] = [
    "pictures",
    "old-pictures",
    "minimax-pictures",
    "ark-pictures",
    "qwen-pictures",
    "wan-pictures",
    "kling-pictures",
    "google-pictures",
    "imagen-pictures",
];

async fn house() -> House {
    house_with(Plan::default()).await
}

async fn house_with(plan: Plan) -> House {
    House::with(Plan { catalog: CATALOG, ..plan }).await
}

fn asked(model: &str, prompt: &str, more: &Value) -> Value {
    let mut body = json!({ "model": model, "prompt": prompt });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn post(house: &House, path: &str, body: &Value) -> reqwest::RequestBuilder {
    house.http.post(house.url(path)).bearer_auth(&house.key).json(body)
}

/// Asks for new pictures.
async fn make(house: &House, model: &str, prompt: &str, more: Value) -> Response {
    let body = asked(model, prompt, &more);
    post(house, "/v1/images/generations", &body).send().await.expect("a reply")
}

/// A result with its row.
async fn made(house: &House, model: &str, prompt: &str, more: Value) -> (Value, UsageRow) {
    let reply = make(house, model, prompt, more).await;
    let (status, call) = (reply.status(), call_id(&reply));
    let text = reply.text().await.expect("a body");
    assert_eq!(status, 200, "{model} {prompt}: {text}");
    let result = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (result, house.row(call).await)
}

/// How many pictures a result has that open.
fn pictures(result: &Value) -> usize {
    let entries = result["data"].as_array().expect("a list");
    for entry in entries {
        for key in ["url", "b64_json", "revised_prompt"] {
            assert!(entry[key].is_string(), "{key} is always there: {entry}");
        }
        let bytes = BASE64_STANDARD.decode(entry["b64_json"].as_str().unwrap_or_default()).expect("base64");
        assert!(bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8"), "a picture");
    }
    entries.len()
}

/// Nothing was charged, and the row says so.
async fn free(house: &House, reply: Response) -> (u16, Value) {
    let call = call_id(&reply);
    let refused = crate::house::error_of(reply).await;
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.counters.calls), (0, 0), "{row:?}");
    refused
}
