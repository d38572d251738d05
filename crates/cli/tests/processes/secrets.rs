//! Logs at their most talkative hold no key, no provider secret and no word of a prompt or an
//! answer.

use crate::house::{House, PROVIDER_SECRET, Plan, chat, streamed};
use crate::postgres::Server;
use serde_json::json;

const PROMPT: &str = "prompt-canary-77b1";
const STRANGER: &str = "sk-stranger-canary-0a61";
/// What the simulator says, in its last words.
const ANSWER: &str = "with care";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    keeps_secrets(Plan { log: "trace", ..Plan::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("secrets").await;
    keeps_secrets(Plan { log: "trace", database: &database, ..Plan::default() }).await;
}

async fn keeps_secrets(plan: Plan<'_>) {
    let mut house = House::new(plan).await;
    let say = |marker: &str| format!("[[sim:{marker}]] {PROMPT}");
    for marker in ["plain", "tools", "error500", "error400", "error401", "garbage", "no_usage"] {
        house.ask(0, &chat("plain", &say(marker))).await.bytes().await.expect("a body");
    }
    for marker in ["plain", "error_midstream", "cut_midstream", "huge_line"] {
        let _ = house.ask(0, &streamed("plain", &say(marker))).await.bytes().await;
    }
    let left = house.ask(0, &streamed("plain", &say("tokens=40 delay_ms=50"))).await;
    drop(left);
    let stored = house.post(0, &chat("plain", &say("plain"))).header("idempotency-key", PROMPT).send().await;
    assert_eq!(stored.expect("a reply").status(), 200);
    let mistakes = [
        house.post_as(STRANGER, 0, &chat("plain", PROMPT)),
        house.post(0, &json!({ "model": PROMPT, "messages": [] })),
        house.post(0, &json!({ "model": "plain", "messages": PROMPT })),
        house.post(0, &json!({})).body(format!("{{\"model\": \"plain\", {PROMPT}")),
    ];
    for request in mistakes {
        let status = request.send().await.expect("a reply").status();
        assert!(status.is_client_error(), "{status}");
    }
    let other = reqwest::Client::builder().http2_prior_knowledge().build().expect("a client");
    let url = format!("{}/v1/chat/completions", house.gates[0].url());
    let reply = other.post(url).bearer_auth(&house.key).json(&chat("plain", PROMPT)).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), reply.version()), (200, reqwest::Version::HTTP_2));
    assert!(house.received().await.iter().all(|one| one["has_authorization"] == true), "the provider got the secret");
    house.quiet().await;
    let process = house.gates[0].process.as_mut().expect("running");
    process.terminate();
    assert!(process.wait().await.success());

    let log = house.gates[0].logged();
    assert!(log.contains("\"TRACE\"") && log.contains("call_"), "the log says something");
    let bearer = format!("Bearer {}", &house.key[..10]);
    for secret in [house.key.as_str(), &bearer, PROVIDER_SECRET, PROMPT, STRANGER, ANSWER] {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret:?} is in the log: {}", line.unwrap_or_default());
    }
    // Nor as bytes written out as numbers.
    let numbers = |text: &str| text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    for secret in [house.key.as_str(), PROVIDER_SECRET, PROMPT] {
        assert!(!log.contains(&numbers(secret)) && !log.contains(&hex(secret)), "{secret:?} is in the log as bytes");
    }
}
