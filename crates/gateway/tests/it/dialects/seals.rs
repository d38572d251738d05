//! Case 64: a provider refuses sealed reasoning that it did not make. It is asked once more without
//! it, under one hold and for one charge; any other bad request is the caller's and is not sent
//! again.

use super::client::Client;
use super::house;
use crate::house::{call_id, error_of};
use serde_json::{Value, json};
use tollgate_store::Ending;
use tollgate_wire::Dialect;

/// A conversation with a thought that somebody else sealed, in the words of one dialect.
fn sealed_elsewhere(client: Client, model: &str, stream: bool) -> Value {
    let mut body = client.body(model, "say [[sim:tokens=4]]", stream);
    match client.0 {
        Dialect::Chat => {
            let details = json!([{ "type": "reasoning.text", "text": "Hm", "signature": "bm90IHlvdXJz", "format": "anthropic-claude-v1", "index": 0 }]);
            body["messages"] = json!([{ "role": "user", "content": "a" },
                { "role": "assistant", "content": "b", "reasoning_details": details },
                { "role": "user", "content": "say [[sim:tokens=4]]" }]);
        }
        Dialect::Anthropic => {
            body["messages"] = json!([{ "role": "user", "content": "a" },
                { "role": "assistant", "content": [{ "type": "thinking", "thinking": "Hm", "signature": "bm90IHlvdXJz" }, { "type": "text", "text": "b" }] },
                { "role": "user", "content": "say [[sim:tokens=4]]" }]);
        }
        Dialect::Responses => {
            body["store"] = json!(false);
            body["input"] = json!([{ "role": "user", "content": "a" },
                { "type": "reasoning", "summary": [], "encrypted_content": "bm90IHlvdXJz" },
                { "role": "assistant", "content": "b" }, { "role": "user", "content": "say [[sim:tokens=4]]" }]);
        }
        Dialect::Gemini => {
            body["contents"] = json!([{ "role": "user", "parts": [{ "text": "a" }] },
                { "role": "model", "parts": [{ "text": "b", "thoughtSignature": "bm90IHlvdXJz" }] },
                { "role": "user", "parts": [{ "text": "say [[sim:tokens=4]]" }] }]);
        }
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn case_64_refused_seals_are_left_out_once() {
    let house = house().await;
    for (dialect, model) in [
        (Dialect::Anthropic, "gemini-on-anthropic"),
        (Dialect::Responses, "gemini-on-openai-response"),
        (Dialect::Gemini, "gemini-on-gemini"),
        (Dialect::Chat, "gemini-on-anthropic"),
        // Details of another chat server, which a strict one does not know.
        (Dialect::Chat, "gemini-on-openai"),
    ] {
        for stream in [false, true] {
            let client = Client(dialect);
            let (seen, had) = (house.sim.received().len(), house.available().await);
            let body = sealed_elsewhere(client, model, stream);
            let reply = client.post(&house, &client.path(model, stream), &body).send().await.expect("a reply");
            assert_eq!(reply.status(), 200, "{dialect:?}: {}", reply.text().await.unwrap_or_default());
            assert_eq!(reply.headers()["x-tollgate-dropped"], "reasoning", "{dialect:?}");
            let call = call_id(&reply);
            let text = reply.text().await.expect("text");
            assert!(text.contains("gate"), "{text}");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.attempts, row.dropped.as_deref()), (Ending::Answered, 2, Some("reasoning")));
            house.quiet().await;
            assert_eq!(had - house.available().await, row.charge.nano(), "{dialect:?}: charged once");
            let asked = house.sim.received().split_off(seen);
            assert_eq!(asked.len(), 2, "{dialect:?}");
            let sent = |at: usize| String::from_utf8_lossy(&asked[at].body).contains("bm90IHlvdXJz");
            assert!(sent(0) && !sent(1), "{dialect:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_64_nothing_else_is_sent_again() {
    let house = house().await;
    let client = Client(Dialect::Anthropic);
    // Sealed reasoning is there, but it is not what the provider complains about.
    let mut body = sealed_elsewhere(client, "gemini-on-anthropic", false);
    body["messages"][1]["content"] = json!([{ "type": "text", "text": "b" }, { "type": "nonsense" }]);
    let reply = client.post(&house, "/v1/messages", &body).send().await.expect("a reply");
    let (status, _) = error_of(reply).await;
    assert_eq!((status, house.sim.received().len()), (400, 1));
    // A caller who wants nothing left out gets the provider's refusal.
    let body = sealed_elsewhere(client, "gemini-on-anthropic", false);
    let strict = client.post(&house, "/v1/messages", &body).header("x-tollgate-strict", "true");
    let (status, error) = error_of(strict.send().await.expect("a reply")).await;
    assert_eq!((status, house.sim.received().len()), (400, 2), "{error}");
    house.quiet().await;
    assert_eq!(house.available().await, 10_000_000_000, "both were free");
}
