//! The table of paths walked with real objects: whatever is paid is paid once for one
//! Idempotency-Key, and whatever belongs to an account is not there for another.

use super::transcriptions::{KIND, form, wav};
use super::{decisions, embeddings, rerank};
use crate::dialects::CATALOG;
use crate::house::{House, Plan, call_id};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tollgate_catalog::social::SHIPPED;
use tollgate_gateway::endpoints::{Access, rows};

const SPEECH: &str = include_str!("../../../../../catalog/speech.toml");
const IMAGES: &str = include_str!("../../../../../catalog/images.toml");
const RECORDINGS: &str = include_str!("../../../../../catalog/transcription.toml");
static MODELS: LazyLock<String> = LazyLock::new(|| {
    let read = [SPEECH, IMAGES, RECORDINGS, embeddings::CATALOG, rerank::CATALOG, decisions::CATALOG].join("\n");
    format!("{CATALOG}\n{read}\n{}", SHIPPED.map(|(_, text)| text).join("\n"))
});
const MODEL: &str = "gemini-on-openai";
const SAID: &str = "a secret of mine [[sim:tokens=2]]";

async fn house() -> House {
    let config = [embeddings::PROVIDERS, decisions::PROVIDERS].concat();
    House::with(Plan { catalog: &MODELS, config, videos: true, usd: "1000", ..Plan::default() }).await
}

/// What is sent to a path that takes a body.
fn body(path: &str) -> Value {
    let messages = json!([{ "role": "user", "content": SAID }]);
    match path {
        "/v1/chat/completions" => json!({ "model": MODEL, "messages": messages }),
        "/v1/messages" => json!({ "model": MODEL, "max_tokens": 50, "messages": messages }),
        "/v1/embeddings" => json!({ "model": "vec", "input": SAID }),
        "/v1/rerank" | "/v2/rerank" => json!({ "model": "rank", "query": SAID, "documents": ["a", "b"] }),
        "/v1/systemone" => {
            json!({ "model": "judge-one", "state": "a secret of mine", "questions": { "a": { "type": "noul", "instructions": "?" } } })
        }
        "/v1/decisions" => {
            json!({ "model": "judge-one", "input": "a secret of mine", "questions": [{ "type": "predicate", "instructions": "?" }] })
        }
        path if path.ends_with(":embedContent") => json!({ "content": { "parts": [{ "text": SAID }] } }),
        path if path.ends_with(":batchEmbedContents") => {
            json!({ "requests": [{ "content": { "parts": [{ "text": SAID }] } }] })
        }
        path if path.ends_with(":predict") => json!({ "instances": [{ "prompt": "a secret of mine" }] }),
        "/v1/responses" | "/v1/responses/compact" => json!({ "model": MODEL, "input": SAID }),
        "/v1/videos" | "/v1/video/generations" => json!({ "model": "sora-2", "prompt": "a secret of mine" }),
        "/v1/images/generations" => json!({ "model": "demo-image", "prompt": "a secret of mine" }),
        "/v1/images/edits" => {
            json!({ "model": "demo-image", "prompt": "a secret of mine", "image": "https://media.example/1.png" })
        }
        "/v1/videos/{id}/remix" => json!({ "prompt": "once more" }),
        "/v1/audio/speech" => json!({ "model": "demo-speech", "input": "a secret of mine" }),
        "/v1/music/generations" => json!({ "model": "music-2.0", "prompt": "a secret of mine" }),
        "/mcp" => json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "social-bilibili-user", "arguments": { "uid": "7" } },
        }),
        "/v1/conversations" => json!({ "items": [{ "type": "message", "role": "user", "content": SAID }] }),
        "/v1/conversations/{id}" => json!({ "metadata": {} }),
        "/v1/conversations/{id}/items" => {
            json!({ "items": [{ "type": "message", "role": "user", "content": "more" }] })
        }
        _ => json!({ "contents": [{ "role": "user", "parts": [{ "text": SAID }] }] }),
    }
}

/// A form with a second of silence.
fn recording() -> Vec<u8> {
    form(&[("model", "demo-whisper"), ("file", "")], "a.wav", &wav(1_000))
}

fn send(house: &House, method: &str, path: &str, key: &str, body: Option<&Value>) -> RequestBuilder {
    let method: Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(key);
    body.into_iter().fold(request, |request, body| request.json(body))
}

/// A finished video.
async fn video(house: &House) -> String {
    let made: Value = send(house, "POST", "/v1/videos", &house.key, Some(&body("/v1/videos")))
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("JSON");
    house.quiet().await;
    made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_paid_post_is_paid_once_for_one_key() {
    let house = house().await;
    let source = video(&house).await;
    let (other, stranger) = house.stranger("100").await;
    let mut walked = 0;
    let paid = rows().iter().filter(|row| row.method == Method::POST && row.access == Access::Paid);
    for (number, pattern) in paid.map(|row| row.path).enumerate() {
        let model = match () {
            () if pattern.contains("mbedContent") => "vec",
            () if pattern.ends_with(":predict") => "demo-image",
            () => MODEL,
        };
        let path = pattern.replace("{model}", model).replace("{id}", &source);
        let key = format!("key {number}");
        let ask = |who: &str| {
            let request = match pattern.starts_with("/v1/audio/trans") {
                true => send(&house, "POST", &path, who, None).header("content-type", KIND).body(recording()),
                false => send(&house, "POST", &path, who, Some(&body(pattern))),
            };
            request.header("idempotency-key", &key)
        };
        let (before, rows) = (house.available().await, house.all_rows().await.len());
        let first = ask(&house.key).send().await.expect("a reply");
        assert_eq!(first.status(), 200, "{path}: {}", first.text().await.unwrap_or_default());
        assert!(!first.headers().contains_key("idempotency-replayed"), "{path}");
        let first = first.text().await.expect("a body");
        house.quiet().await;
        let (after, sent, made) = (house.available().await, house.sim.received().len(), house.sim.videos());
        assert!(after < before, "{path} is paid");
        let again = ask(&house.key).send().await.expect("a reply");
        // A stream is not stored: it is said that it was charged.
        if pattern.contains(":stream") {
            assert_eq!(again.status(), 409, "{path}");
        } else {
            assert_eq!(
                (again.status().as_u16(), &again.headers()["idempotency-replayed"]),
                (200, &"true".parse().expect("a value")),
                "{path}"
            );
            if !pattern.contains("video") {
                assert_eq!(again.text().await.expect("a body"), first, "{path}");
            }
        }
        house.quiet().await;
        assert_eq!(house.available().await, after, "{path}: charged once");
        assert_eq!(house.all_rows().await.len(), rows + 1, "{path}: one row");
        if !pattern.contains("video") {
            assert_eq!(house.sim.received().len(), sent, "{path}: sent once");
        }
        assert_eq!(house.sim.videos(), made, "{path}: made once");
        // Somebody else's key of the same name is another key.
        if !pattern.contains("{id}") {
            let theirs = ask(&stranger).send().await.expect("a reply");
            assert_eq!(theirs.status(), 200, "{path}");
            assert!(!theirs.headers().contains_key("idempotency-replayed"), "{path}");
            theirs.bytes().await.expect("a body");
            house.quiet().await;
            assert_eq!(house.available().await, after, "{path}: at their own cost");
        }
        walked += 1;
    }
    assert_eq!(walked, 29, "every paid POST of the table");
    let theirs = house.all_rows().await.into_values().filter(|row| row.account == other).count();
    assert_eq!(theirs, walked - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_an_account_is_not_there_for_another() {
    let house = house().await;
    let (_, stranger) = house.stranger("100").await;
    let reply = send(&house, "POST", "/v1/responses", &house.key, Some(&body("/v1/responses"))).send().await;
    let reply = reply.expect("a reply");
    let call = call_id(&reply).to_string();
    let response: Value = reply.json().await.expect("JSON");
    let made = send(&house, "POST", "/v1/conversations", &house.key, Some(&body("/v1/conversations"))).send().await;
    let conversation: Value = made.expect("a reply").json().await.expect("JSON");
    let of = |value: &Value| value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    let (response, conversation, video) = (of(&response), of(&conversation), video(&house).await);
    let items = format!("/v1/conversations/{conversation}/items");
    let listed = send(&house, "GET", &items, &house.key, None).send().await.expect("a reply");
    let item = of(&listed.json::<Value>().await.expect("JSON")["data"][0]);
    house.quiet().await;
    let mut walked = 0;
    for row in rows() {
        let (method, pattern) = (row.method.as_str(), row.path);
        let object = match pattern.split('/').nth(2) {
            Some("responses") => &response,
            Some("conversations") => &conversation,
            Some("videos" | "video") => &video,
            Some("usage") => &call,
            _ => continue,
        };
        if !matches!(row.access, Access::Key | Access::Paid) || !pattern.contains('{') {
            continue;
        }
        walked += 1;
        let path = pattern.replace("{id}", object).replace("{call_id}", object).replace("{item}", &item);
        let body = row.body.is_some().then(|| body(pattern));
        let reply = send(&house, method, &path, &stranger, body.as_ref()).send().await.expect("a reply");
        let status = reply.status().as_u16();
        let text = reply.text().await.expect("a body");
        assert_eq!(status, 404, "{method} {path}: {text}");
        assert!(!text.contains("secret of mine"), "{method} {path}: {text}");
        if method == "GET" {
            // It is there, and nothing that the stranger did has changed that.
            let own = send(&house, method, &path, &house.key, None).send().await.expect("a reply");
            assert_eq!(own.status(), 200, "{path}");
        }
    }
    assert_eq!(walked, 18, "every path of the table with an object in it");
}
