//! What embeddings cost: quote, hold, report, own count, repeated calls.

use super::{asked, cost, embed, house, post};
use crate::house::{call_id, error_of};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_is_the_hold_and_no_call_costs_more() {
    let house = house().await;
    let body = asked("vec", json!(["The quick brown fox jumps over the lazy dog.", "東京の天気", "x9 x8 x7"]));
    let quote = async |endpoint: &str, body: &Value| -> Value {
        let reply = post(&house, &format!("/v1/quote?endpoint={endpoint}"), body).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
        reply.json().await.expect("JSON")
    };
    let quoted = quote("/v1/embeddings", &body).await;
    assert_eq!((&quoted["kind"], &quoted["model"]), (&json!("upper_bound"), &json!("vec")));
    let reply = embed(&house, &body).await;
    let row = house.row(call_id(&reply)).await;
    assert_eq!(quoted["hold_nano_usd"].as_i64(), Some(row.hold.nano()));
    assert!(row.charge <= row.hold && row.charge.nano() == 13_000, "{row:?}");
    let exact: Value =
        post(&house, "/v1/quote?endpoint=/v1/embeddings&input=13", &body).await.json().await.expect("JSON");
    assert_eq!((exact["kind"].as_str(), exact["total_nano_usd"].as_i64()), (Some("exact"), Some(13_000)));
    let batch = json!({ "requests": [{ "content": { "parts": [{ "text": "one two" }] } }] });
    for base in ["/v1beta", "/v1"] {
        let endpoint = format!("{base}/models/vec:batchEmbedContents");
        let quoted = quote(&endpoint, &batch).await;
        let row = house.row(call_id(&post(&house, &endpoint, &batch).await)).await;
        assert_eq!(quoted["hold_nano_usd"].as_i64(), Some(row.hold.nano()), "{endpoint}");
        assert_eq!(row.endpoint, format!("{base}/models/{{model}}:batchEmbedContents"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_counts_where_it_can_be_true() {
    let house = house().await;
    for (marker, estimated) in [
        ("", false),
        ("no_usage", true),
        ("wrong_usage kind=negative", true),
        ("wrong_usage kind=huge", true),
        ("wrong_usage kind=strings", true),
        ("wrong_usage kind=null", true),
    ] {
        let text =
            if marker.is_empty() { "one two three".to_owned() } else { format!("one two three [[sim:{marker}]]") };
        let reply = embed(&house, &asked("vec", text.clone())).await;
        assert_eq!(reply.status(), 200, "{marker}");
        let call = call_id(&reply);
        let shown: Value = reply.json().await.expect("JSON");
        let (tokens, charge, counted) = cost(&house, call).await;
        assert_eq!((charge, counted), (i64::try_from(tokens).expect("few") * 1_000, estimated), "{marker}");
        let expected = if estimated { crate::house::counted(&text) } else { 3 };
        assert_eq!(tokens, expected, "{marker}");
        if marker == "no_usage" || marker.ends_with("null") {
            assert_eq!(shown["usage"]["prompt_tokens"], json!(tokens), "a client insists on a report");
        }
    }
}

/// Gemini tells no tokens. That is its way and no reason to pause it.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_never_reports_is_counted_and_not_paused() {
    let house = house().await;
    for _ in 0..30 {
        let reply = embed(&house, &asked("vec-gemini", "one two")).await;
        assert_eq!(reply.status(), 200);
        let (tokens, charge, estimated) = cost(&house, call_id(&reply)).await;
        assert_eq!((tokens, charge, estimated), (2, 2_000, true));
    }
    // One that reports, and does not, is another thing.
    let mut refused = 0;
    for _ in 0..30 {
        refused += u32::from(embed(&house, &asked("vec", "one [[sim:no_usage]]")).await.status() == 503);
    }
    assert!(refused > 0, "paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_is_the_same_reply_and_one_charge() {
    let house = house().await;
    let ask = |key: &'static str, text: &'static str| {
        let request = house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key);
        request.header("idempotency-key", key).json(&asked("vec", text)).send()
    };
    let first = ask("k", "one two").await.expect("a reply");
    let call = call_id(&first);
    let first = first.text().await.expect("text");
    house.quiet().await;
    let again = ask("k", "one two").await.expect("a reply");
    assert_eq!((&again.headers()["idempotency-replayed"], call_id(&again)), (&"true".parse().expect("a value"), call));
    assert_eq!(again.text().await.expect("text"), first);
    assert_eq!(ask("k", "three").await.expect("a reply").status(), 409);
    assert_eq!(house.sim.received().len(), 1);
    assert_eq!(house.available().await, 10_000_000_000 - 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_by_the_call_is_one_call_however_many_texts() {
    let house = house().await;
    let reply = embed(&house, &asked("vec-calls", json!(["a", "b", "c"]))).await;
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.charge.nano(), row.hold.nano(), row.counters.calls), (2_500_000, 2_500_000, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_served_is_refused_by_name_before_anything_is_held() {
    let house = house().await;
    let many: Vec<&str> = vec!["x"; 21];
    let long = "word ".repeat(50_000);
    for (body, param, code) in [
        (asked("vec", ""), "input", "invalid_parameter"),
        (asked("vec", json!([])), "input", "invalid_parameter"),
        (asked("vec", json!(["a", ""])), "input[1]", "invalid_parameter"),
        (asked("vec", json!([{ "image": "https://example.com/a.png" }])), "input[0]", "invalid_parameter"),
        (asked("vec-parts", json!(many)), "input", "invalid_parameter"),
        (asked("vec", json!(["a", long])), "input[1]", "context_length_exceeded"),
        (json!({ "model": "vec" }), "input", "missing_parameter"),
        (json!({ "input": "a" }), "model", "missing_parameter"),
        (json!({ "model": "vec", "input": "a", "encoding_format": "hex" }), "encoding_format", "invalid_parameter"),
        (json!({ "model": "vec", "input": "a", "dimensions": -1 }), "dimensions", "invalid_parameter"),
        (asked("plain", "a"), "model", "unsupported_value"),
        (asked("nobody", "a"), "model", "model_not_found"),
    ] {
        let (status, error) = error_of(embed(&house, &body).await).await;
        let expected = if code == "model_not_found" { 404 } else { 400 };
        assert_eq!((status, &error["param"], &error["code"]), (expected, &json!(param), &json!(code)), "{error}");
    }
    let chat = json!({ "model": "vec", "messages": [{ "role": "user", "content": "x" }] });
    let (status, error) = error_of(house.post(&chat).send().await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (400, &json!("unsupported_value")), "nor is it a model that talks");
    let (status, error) = error_of(
        post(&house, "/v1beta/models/vec:embedContent", &json!({ "content": { "parts": [{ "inlineData": {} }] } }))
            .await,
    )
    .await;
    assert_eq!((status, &error["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}
