//! Usage that is missing, wrong, doubled or in an unexpected place.

use serde_json::{Value, json};

use crate::it::client::{ask, post, sim, streamed};

async fn stream_usages(model: &str) -> Vec<Value> {
    let sim = sim().await;
    let chunks = post(&sim, &streamed(model, "two words")).await.parsed();
    chunks.iter().map(|chunk| chunk["usage"].clone()).filter(|usage| !usage.is_null()).collect()
}

#[tokio::test]
async fn missing() {
    let sim = sim().await;
    assert!(post(&sim, &ask("sim-no_usage", "x")).await.json().get("usage").is_none());
    let chunks = post(&sim, &streamed("sim-no_usage", "x")).await.parsed();
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[tokio::test]
async fn wrong() {
    for (kind, prompt) in [
        ("negative", json!(-5)),
        ("huge", json!(u64::MAX)),
        ("cached_over", json!(2)),
        ("strings", json!("12")),
        ("float", json!(12.5)),
        ("null", Value::Null),
        ("partial", Value::Null),
    ] {
        let usages = stream_usages(&format!("sim-wrong_usage-{kind}")).await;
        assert_eq!((usages.len(), &usages[0]["prompt_tokens"]), (1, &prompt), "{kind}");
        let sim = sim().await;
        let reply = post(&sim, &ask("sim-wrong_usage", &format!("[[sim:kind={kind}]] b"))).await.json();
        assert_eq!(reply["usage"]["prompt_tokens"], prompt, "{kind}");
    }
}

#[tokio::test]
async fn doubled() {
    let counts = |usages: &[Value]| usages.iter().map(|usage| usage["completion_tokens"].as_u64()).collect::<Vec<_>>();
    assert_eq!(counts(&stream_usages("sim-zero_usage_last").await), [Some(12), Some(0)]);
    assert_eq!(counts(&stream_usages("sim-two_usages").await), [Some(6), Some(12)]);
}

#[tokio::test]
async fn beside_choices() {
    let sim = sim().await;
    let mut body = ask("sim-usage_on_content_chunk", "x");
    body["stream"] = json!(true);
    let chunks = post(&sim, &body).await.parsed();
    let last = chunks.last().unwrap();
    assert_eq!(last["usage"]["completion_tokens"], 12);
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
}
