//! POST /v1beta/models/{model}:predict: pictures in the form of Imagen, by the same call as
//! /v1/images/generations.

use super::house;
use crate::house::{House, call_id};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::Ending;

async fn post(house: &House, path: &str, body: &Value) -> Response {
    super::post(house, path, body).send().await.expect("a reply")
}

async fn predict(house: &House, model: &str, prompt: &str, parameters: Value) -> Response {
    let body = json!({ "instances": [{ "prompt": prompt }], "parameters": parameters });
    post(house, &format!("/v1beta/models/{model}:predict"), &body).await
}

async fn refused(reply: Response) -> (u16, Value) {
    let status = reply.status().as_u16();
    (status, reply.json::<Value>().await.expect("JSON")["error"].clone())
}

/// Makers of base64 and of links, of one picture at a time and of several.
const MODELS: [&str; 6] =
    ["imagen-pictures", "pictures", "google-pictures", "ark-pictures", "minimax-pictures", "qwen-pictures"];

#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_every_maker_come_as_predictions() {
    let house = house().await;
    for model in MODELS {
        let reply = predict(&house, model, "a cat", json!({ "sampleCount": 2 })).await;
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        let body: Value = reply.json().await.expect("JSON");
        let predictions = body["predictions"].as_array().expect("a list").clone();
        assert_eq!(predictions.len(), 2, "{model}");
        for one in &predictions {
            assert_eq!(one["mimeType"], "image/png", "{model}");
            assert!(one["bytesBase64Encoded"].as_str().is_some_and(|data| data.starts_with("iVBOR")), "{model}");
        }
        let row = house.row(call).await;
        assert_eq!((row.counters.calls, row.ending), (2, Ending::Answered), "{model}");
        assert_eq!((row.endpoint.as_str(), row.hold), ("/v1beta/models/{model}:predict", row.charge), "{model}");
        // The same by the other path costs the same.
        let other = post(&house, "/v1/images/generations", &json!({ "model": model, "prompt": "a cat", "n": 2 })).await;
        assert_eq!(house.row(call_id(&other)).await.charge, row.charge, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_quoted_is_held_and_what_fails_is_free() {
    let house = house().await;
    for base in ["/v1beta", "/v1"] {
        let path = format!("{base}/models/imagen-pictures:predict");
        let body = json!({ "instances": [{ "prompt": "a cat" }] });
        let quote: Value = post(&house, &format!("/v1/quote?endpoint={path}"), &body).await.json().await.expect("JSON");
        let reply = post(&house, &path, &body).await;
        let row = house.row(call_id(&reply)).await;
        // Google makes four where nobody says how many.
        assert_eq!(reply.json::<Value>().await.expect("JSON")["predictions"].as_array().map(Vec::len), Some(4));
        assert_eq!((quote["hold_nano_usd"].as_i64(), row.counters.calls), (Some(row.hold.nano()), 4));
    }
    // Fewer than were asked for: what came out is charged.
    let reply = predict(&house, "imagen-pictures", "a cat [[sim:partial fail=1]]", json!({ "sampleCount": 3 })).await;
    let row = house.row(call_id(&reply)).await;
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(body["predictions"].as_array().map(|all| all.len() as u64), Some(row.counters.calls), "{body}");
    assert!(row.counters.calls < 3 && row.charge < row.hold, "{row:?}");
    let reply = predict(&house, "imagen-pictures", "a cat [[sim:moderation]]", json!({})).await;
    let call = call_id(&reply);
    let (status, error) = refused(reply).await;
    assert_eq!((status, &error["status"]), (400, &json!("INVALID_ARGUMENT")), "{error}");
    assert_eq!(house.row(call).await.charge.nano(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_geminis_dialect_and_its_own_words() {
    let house = house().await;
    for (model, parameters, status, word) in [
        ("imagen-pictures", json!({ "sampleCount": 5 }), 400, "parameters.sampleCount"),
        ("imagen-pictures", json!({ "sampleCount": 0 }), 400, "parameters.sampleCount"),
        ("imagen-pictures", json!({ "aspectRatio": "a:b" }), 400, "parameters.aspectRatio"),
        ("imagen-pictures", json!({ "storageUri": "gs://x" }), 400, "parameters.storageUri"),
        ("nothing-such", json!({}), 404, "nothing-such"),
    ] {
        let (got, error) = refused(predict(&house, model, "a cat", parameters.clone()).await).await;
        assert_eq!((got, &error["code"]), (status, &json!(status)), "{parameters}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(word)), "{parameters}: {error}");
    }
    let empty = post(&house, "/v1beta/models/imagen-pictures:predict", &json!({ "instances": [] })).await;
    assert!(refused(empty).await.1["message"].as_str().is_some_and(|text| text.contains("instances[0].prompt")));
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_reach_whoever_knows_them_and_are_named_to_others() {
    let house = house().await;
    let parameters = json!({
        "sampleCount": 1, "aspectRatio": "16:9", "personGeneration": "allow_adult", "seed": 7,
        "outputOptions": { "mimeType": "image/png" },
    });
    let reply = predict(&house, "imagen-pictures", "a cat", parameters.clone()).await;
    assert!(reply.headers().get("x-tollgate-dropped").is_none(), "{:?}", reply.headers());
    let sent = house.sim.received().pop().expect("a request").json()["parameters"].clone();
    assert_eq!(sent, parameters);
    let more = json!({ "personGeneration": "allow_adult" });
    let reply = predict(&house, "pictures", "a cat", more).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
        (200, &"personGeneration".parse().unwrap())
    );
    let listed: Value =
        house.get("/v1beta/models/imagen-pictures").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(listed["supportedGenerationMethods"], json!(["predict"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gets_the_same_predictions_and_pays_once() {
    let house = house().await;
    let body = json!({ "instances": [{ "prompt": "a cat" }], "parameters": { "sampleCount": 1 } });
    let send = || {
        let request = house.http.post(house.url("/v1beta/models/imagen-pictures:predict")).bearer_auth(&house.key);
        request.header("idempotency-key", "one").json(&body).send()
    };
    let first = send().await.expect("a reply").bytes().await.expect("a body");
    house.quiet().await;
    let again = send().await.expect("a reply");
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.bytes().await.expect("a body"), first);
    assert_eq!(house.all_rows().await.len(), 1);
}
