//! Every kind of model at every paid endpoint that is not its own: refused with 400 before anything
//! is held or sent, in the dialect of the endpoint, with the endpoint where the model is asked.

use crate::house::{House, Plan};
use crate::v1::transcriptions::{KIND, form, wav};
use crate::v1::{decisions, rerank};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::sync::LazyLock;
use tollgate_gateway::endpoints::row::Row;
use tollgate_gateway::endpoints::{Access, rows};
use tollgate_wire::error::ErrorFormat;

const TALKS: &str = r#"
[model."talks"]
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]

[model."gemini-talks"]
supported_endpoint_types = ["gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
"#;

static CATALOG: LazyLock<String> = LazyLock::new(|| {
    [include_str!("../../../../../tests/catalog/media.toml"), rerank::CATALOG, decisions::CATALOG, TALKS].concat()
});

/// A model of each kind, what it offers, and where it is asked.
const MODELS: [(&str, &str, &str); 12] = [
    ("plain", "openai", "POST /v1/chat/completions"),
    ("no-chat", "anthropic", "POST /v1/messages"),
    ("gemini-talks", "gemini", "POST /v1beta/models/{model}:generateContent"),
    ("talks", "realtime", "GET /v1/realtime"),
    ("vectors", "embeddings", "POST /v1/embeddings"),
    ("pictures", "image-generation", "POST /v1/images/generations"),
    ("ears", "audio-transcription", "POST /v1/audio/transcriptions"),
    ("voice", "audio-speech", "POST /v1/audio/speech"),
    ("songs", "music-generation", "POST /v1/music/generations"),
    ("rank", "jina-rerank", "POST /v1/rerank"),
    ("judge-openai", "system-one", "POST /v1/systemone"),
    ("sora-2", "openai-video", "POST /v1/videos"),
];

/// What is asked at a path.
enum Asked {
    Body(Value),
    /// A recording, as a form.
    Recording,
    /// The model stands in the query of a socket.
    Socket,
    /// The path has no model, or one that comes later: in the first frame, with the finished video.
    Nothing,
}

/// The endpoint type that a path needs, and what is asked there.
fn asked(path: &str, model: &str) -> (&'static str, Asked) {
    let messages = json!([{ "role": "user", "content": "a cat" }]);
    let content = json!({ "parts": [{ "text": "a cat" }] });
    let verb = path.rsplit_once(':').map_or("", |(_, verb)| verb);
    let (kind, body) = match (path, verb) {
        ("/v1/chat/completions", _) => ("openai", json!({ "model": model, "messages": messages })),
        ("/v1/messages", _) => ("anthropic", json!({ "model": model, "messages": messages, "max_tokens": 5 })),
        ("/v1/responses" | "/v1/responses/compact", _) => {
            ("openai-response", json!({ "model": model, "input": "a cat" }))
        }
        (_, "generateContent" | "streamGenerateContent") => ("gemini", json!({ "contents": [content] })),
        (_, "embedContent") => ("embeddings", json!({ "content": content })),
        (_, "batchEmbedContents") => ("embeddings", json!({ "requests": [{ "content": content }] })),
        (_, "predict") => ("image-generation", json!({ "instances": [{ "prompt": "a cat" }] })),
        ("/v1/embeddings", _) => ("embeddings", json!({ "model": model, "input": "a cat" })),
        ("/v1/rerank" | "/v2/rerank", _) => {
            ("jina-rerank", json!({ "model": model, "query": "a", "documents": ["a"] }))
        }
        ("/v1/systemone", _) => {
            let question = json!({ "q": { "type": "noul", "instructions": "?" } });
            ("system-one", json!({ "model": model, "state": "a", "questions": question }))
        }
        ("/v1/decisions", _) => {
            let question = json!({ "type": "predicate", "instructions": "?" });
            ("system-one", json!({ "model": model, "input": "a", "questions": [question] }))
        }
        ("/v1/images/generations", _) => ("image-generation", json!({ "model": model, "prompt": "a cat" })),
        ("/v1/images/edits", _) => {
            ("image-generation", json!({ "model": model, "prompt": "a", "image": "https://a.example/1.png" }))
        }
        ("/v1/audio/speech", _) => ("audio-speech", json!({ "model": model, "input": "a", "voice": "v" })),
        ("/v1/music/generations", _) => {
            ("music-generation", json!({ "model": model, "prompt": "a", "instrumental": true }))
        }
        ("/v1/videos" | "/v1/video/generations", _) => ("openai-video", json!({ "model": model, "prompt": "a cat" })),
        ("/v1/audio/transcriptions" | "/v1/audio/translations", _) => return ("audio-transcription", Asked::Recording),
        ("/v1/realtime", _) => return ("realtime", Asked::Socket),
        _ => return ("", Asked::Nothing),
    };
    (kind, Asked::Body(body))
}

/// The request, and the path as it is asked.
fn request(house: &House, row: &Row, model: &str, asked: &Asked) -> Option<(RequestBuilder, String)> {
    let path = row.path.replace("{model}", model);
    let post = |path: &str| house.http.post(house.url(path)).bearer_auth(&house.key);
    let request = match asked {
        Asked::Nothing => return None,
        Asked::Body(body) => post(&path).json(body),
        Asked::Recording => {
            let body = form(&[("model", model), ("file", "")], "a.wav", &wav(500));
            post(&path).header("content-type", KIND).body(body)
        }
        Asked::Socket => {
            let socket = house.get(&format!("{path}?model={model}")).header("connection", "upgrade");
            let socket = socket.header("upgrade", "websocket").header("sec-websocket-version", "13");
            socket.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        }
    };
    Some((request, path))
}

/// Code, field and message, wherever a dialect has them.
fn said(dialect: ErrorFormat, body: &Value) -> (Option<&str>, Option<&str>, &str) {
    let error = &body["error"];
    let message = error["message"].as_str().unwrap_or_default();
    match dialect {
        ErrorFormat::OpenAi => (error["code"].as_str(), error["param"].as_str(), message),
        // It has no place for the field but the message.
        ErrorFormat::Anthropic => {
            let field = message.strip_prefix("`model`: ").filter(|_| body["type"] == "error").map(|_| "model");
            (error["code"].as_str(), field, message)
        }
        ErrorFormat::Gemini => {
            let field = &error["details"][1]["fieldViolations"][0]["field"];
            (error["details"][0]["reason"].as_str(), field.as_str(), message)
        }
    }
}

/// MM5: a model of pictures that was asked by chat billed millions of text tokens, without a
/// picture.
#[tokio::test(flavor = "multi_thread")]
async fn every_model_is_refused_at_every_endpoint_that_is_not_its_own() {
    let config = format!("{}{}", decisions::PROVIDERS, crate::v1::embeddings::PROVIDERS);
    let house = House::with(Plan { catalog: &CATALOG, config, videos: true, ..Plan::default() }).await;
    let before = house.available().await;
    let (mut refused, mut unasked) = (0, Vec::new());
    for row in rows().iter().filter(|row| row.access == Access::Paid) {
        // The same path over a WebSocket names its model in the first frame.
        let own_socket = row.method == "GET" && row.path != "/v1/realtime";
        for (model, own, at) in MODELS {
            let (kind, asked) = asked(row.path, model);
            let Some((request, path)) = request(&house, row, model, &asked).filter(|_| !own_socket) else {
                unasked.push(row.path);
                break;
            };
            if kind == own {
                continue;
            }
            let reply = request.send().await.expect("a reply");
            let status = reply.status().as_u16();
            let body: Value = reply.json().await.unwrap_or_else(|_| panic!("{model} at {path}: no error in JSON"));
            let dialect = row.errors.dialect();
            let (code, field, message) = said(dialect, &body);
            assert_eq!(
                (status, code, field),
                (400, Some("unsupported_value"), Some("model")),
                "{model} at {path}: {body}"
            );
            assert!(message.contains(at) && message.contains(model), "{model} at {path}: {message}");
            if let Asked::Body(body) = &asked {
                let quote = house.http.post(house.url(&format!("/v1/quote?endpoint={path}"))).bearer_auth(&house.key);
                let quote: Value = quote.json(body).send().await.expect("a reply").json().await.expect("JSON");
                let (code, field, quoted) = said(ErrorFormat::OpenAi, &quote);
                assert_eq!((code, field), (Some("unsupported_value"), Some("model")), "{model} at {path}: {quote}");
                assert!(message.ends_with(quoted), "a quote says the same: {message} {quoted}");
            }
            refused += 1;
        }
    }
    assert!(refused > 250, "{refused}");
    unasked.retain(|path| !path.starts_with("/ws/"));
    let others = ["/v1/responses", "/v1/social/{platform}/{capability}", "/v1/videos/{id}/remix", "/mcp"];
    assert_eq!(unasked, others, "a paid endpoint that is not in the table");
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
    assert_eq!(house.available().await, before, "all of it is free");
}
