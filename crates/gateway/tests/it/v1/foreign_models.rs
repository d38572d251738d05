//! Every kind of model at every paid endpoint that is not its own: refused with 400 before anything
//! is held or sent.

use crate::house::{House, Plan};
use crate::v1::transcriptions::{KIND, form, wav};
use crate::v1::{decisions, rerank};
use serde_json::{Value, json};
use std::sync::LazyLock;

static CATALOG: LazyLock<String> = LazyLock::new(|| {
    [include_str!("../../../../../tests/catalog/media.toml"), rerank::CATALOG, decisions::CATALOG].concat()
});

/// A model of each kind, and the word for what it answers.
const MODELS: [(&str, &str); 8] = [
    ("plain", "chat"),
    ("vectors", "embeddings"),
    ("pictures", "images"),
    ("ears", "transcriptions"),
    ("voice", "speech"),
    ("songs", "music"),
    ("rank", "rerank"),
    ("judge-openai", "decisions"),
];

/// Paid endpoints, whose they are, and what is asked there.
fn asked(model: &str) -> Vec<(String, &'static str, Value)> {
    let messages = json!([{ "role": "user", "content": "a cat" }]);
    let content = json!({ "parts": [{ "text": "a cat" }] });
    let on = |verb: &str| format!("/v1beta/models/{model}:{verb}");
    let question = json!({ "type": "predicate", "instructions": "?" });
    vec![
        ("/v1/chat/completions".to_owned(), "chat", json!({ "model": model, "messages": messages })),
        ("/v1/messages".to_owned(), "chat", json!({ "model": model, "messages": messages, "max_tokens": 5 })),
        ("/v1/responses".to_owned(), "chat", json!({ "model": model, "input": "a cat" })),
        (on("generateContent"), "gemini", json!({ "contents": [content] })),
        (on("streamGenerateContent"), "gemini", json!({ "contents": [content] })),
        (on("embedContent"), "embeddings", json!({ "content": content })),
        (on("predict"), "images", json!({ "instances": [{ "prompt": "a cat" }] })),
        ("/v1/embeddings".to_owned(), "embeddings", json!({ "model": model, "input": "a cat" })),
        ("/v1/rerank".to_owned(), "rerank", json!({ "model": model, "query": "a", "documents": ["a"] })),
        ("/v1/images/generations".to_owned(), "images", json!({ "model": model, "prompt": "a cat" })),
        (
            "/v1/images/edits".to_owned(),
            "",
            json!({ "model": model, "prompt": "a", "image": "https://a.example/1.png" }),
        ),
        ("/v1/audio/speech".to_owned(), "speech", json!({ "model": model, "input": "a", "voice": "v" })),
        ("/v1/music/generations".to_owned(), "music", json!({ "model": model, "prompt": "a", "instrumental": true })),
        ("/v1/decisions".to_owned(), "decisions", json!({ "model": model, "input": "a", "questions": [question] })),
        ("/v1/videos".to_owned(), "videos", json!({ "model": model, "prompt": "a cat" })),
    ]
}

/// MM5: a model of pictures that was asked by chat billed millions of text tokens, without a
/// picture.
#[tokio::test(flavor = "multi_thread")]
async fn every_model_is_refused_at_every_endpoint_that_is_not_its_own() {
    let config = format!("{}{}", decisions::PROVIDERS, crate::v1::embeddings::PROVIDERS);
    let house = House::with(Plan { catalog: &CATALOG, config, ..Plan::default() }).await;
    let mut refused = 0;
    for (model, own) in MODELS {
        for (path, whose, body) in asked(model).into_iter().filter(|(_, whose, _)| *whose != own) {
            let reply = house.http.post(house.url(&path)).bearer_auth(&house.key).json(&body).send().await;
            let reply = reply.expect("a reply");
            assert_eq!(
                reply.status(),
                400,
                "{model} at {path}, of {whose}: {}",
                reply.text().await.unwrap_or_default()
            );
            refused += 1;
        }
        if own != "transcriptions" {
            let body = form(&[("model", model), ("file", "")], "a.wav", &wav(500));
            let request = house.http.post(house.url("/v1/audio/transcriptions")).bearer_auth(&house.key);
            let reply = request.header("content-type", KIND).body(body).send().await.expect("a reply");
            assert_eq!(reply.status(), 400, "{model} at transcriptions: {}", reply.text().await.unwrap_or_default());
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}
