//! Coding agents as they are: whole requests in the shape they send them, at strict providers of
//! every dialect. The golden files of `tollgate-wire` say what each of them becomes.

use super::client::Client;
use super::{UPSTREAMS, house};
use crate::house::{House, Plan, error_of};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_wire::Dialect;

const CLAUDE_CODE: &str = include_str!("../../../../dialects/tests/golden/requests/anthropic_claude_code.txt");
const CODEX: &str = include_str!("../../../../dialects/tests/golden/requests/responses_codex.txt");

/// The request at the head of a golden file, for a model of ours.
fn original(golden: &str, model: &str) -> Value {
    let (_, rest) = golden.split_once("=== original\n").expect("an original");
    let (text, _) = rest.split_once("=== result\n").expect("a result");
    let mut body: Value = serde_json::from_str(text).expect("JSON");
    body["model"] = json!(model);
    body
}

async fn claude_code(house: &House, model: &str) -> Response {
    let mut body = original(CLAUDE_CODE, model);
    let last = json!({ "type": "text", "text": "Go on.", "cache_control": { "type": "ephemeral" } });
    body["messages"][2]["content"].as_array_mut().expect("blocks").push(last);
    let post = Client(Dialect::Anthropic).post(house, "/v1/messages?beta=true", &body);
    post.header("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14").send().await.expect("a reply")
}

fn dropped(reply: &Response) -> String {
    reply.headers().get("x-tollgate-dropped").map_or("", |dropped| dropped.to_str().expect("text")).to_owned()
}

fn received(house: &House) -> Value {
    serde_json::from_slice(&house.sim.received().last().expect("a call").body).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_is_answered_in_every_other_dialect() {
    let house = house().await;
    // In its own every byte passes, and the simulator knows no switches of betas.
    for model in UPSTREAMS.into_iter().filter(|model| *model != "gemini-on-anthropic") {
        let reply = claude_code(&house, model).await;
        let (status, dropped) = (reply.status(), dropped(&reply));
        let text = reply.text().await.expect("text");
        assert_eq!(status, 200, "{model}: {text}");
        assert!(text.contains("event: message_stop"), "{model}: {text}");
        let dropped: Vec<&str> = dropped.split(',').collect();
        for name in ["cache_control", "context_management", "max_tokens", "anthropic-beta"] {
            assert!(dropped.contains(&name), "{model}: {name} is not named in {dropped:?}");
        }
        assert!(!received(&house).to_string().contains("cache_"), "{model}: {}", received(&house));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_is_answered_by_every_provider() {
    let house = house().await;
    let client = Client(Dialect::Responses);
    for model in UPSTREAMS {
        let reply = client.post(&house, "/v1/responses", &original(CODEX, model)).send().await.expect("a reply");
        let (status, dropped) = (reply.status(), dropped(&reply));
        let text = reply.text().await.expect("text");
        assert_eq!(status, 200, "{model}: {text}");
        assert!(text.contains("event: response.completed"), "{model}: {text}");
        assert_eq!(
            dropped.contains("tools.web_search"),
            ["gemini-on-openai", "gemini-on-gemini"].contains(&model),
            "{model}: {dropped}"
        );
    }
    // Nothing is left out of a request that says so.
    let body = original(CODEX, "gemini-on-openai");
    let strict = client.post(&house, "/v1/responses", &body).header("x-tollgate-strict", "true");
    let (status, error) = error_of(strict.send().await.expect("a reply")).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("tools.tool_search")), "{error}");
}

const TAKING: &str = r#"
[model."marked-chat"]
context_window = 100000
supported_endpoint_types = ["anthropic"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000 }
route = [{ provider = "sim", upstream_model = "sim-strict-marks" }]
chat = { cache_marks = true, web_search = true }

[model."marked-responses"]
context_window = 100000
supported_endpoint_types = ["anthropic"]
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain-marks" }]
chat = { cache_marks = true }

[model."unmarked-chat"]
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-strict" }]
"#;

/// Marks for the cache and the search of a chat provider are settings of a model.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_takes_is_said_in_the_catalog() {
    let house = House::with(Plan { catalog: TAKING, ..Plan::default() }).await;
    for model in ["marked-chat", "marked-responses"] {
        let reply = claude_code(&house, model).await;
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        let sent = received(&house);
        assert!(sent.to_string().contains("prompt_cache_breakpoint"), "{model}: {sent}");
        assert_eq!(sent["web_search_options"].is_object(), model == "marked-chat", "{sent}");
    }
    // The simulated server refuses marks as most do.
    let mark = json!([{ "type": "text", "text": "q", "prompt_cache_breakpoint": { "mode": "explicit" } }]);
    let body = json!({ "model": "unmarked-chat", "messages": [{ "role": "user", "content": mark }] });
    let reply = Client(Dialect::Chat).post(&house, "/v1/chat/completions", &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 400);
}
