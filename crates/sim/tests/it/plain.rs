//! Well-behaved replies: text, streams, tools, reasoning, limits, and the rule for counting.

use serde_json::{Value, json};
use tollgate_sim::{Sim, SimSettings};

use crate::it::client::{End, ask, get, post, read, request, sim, streamed};

#[tokio::test]
async fn counts_words() {
    let sim = sim().await;
    let body = json!({"model": "gpt-any", "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "three more words"}, {"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]});
    let reply = post(&sim, &body).await.json();
    assert_eq!(reply["usage"]["prompt_tokens"], 5);
    assert_eq!(reply["usage"]["completion_tokens"], 12);
    assert_eq!(reply["usage"]["total_tokens"], 17);
    let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text, "the gate opens for every coin and counts each one with care");
    assert_eq!(reply["model"], "gpt-any");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply["object"], "chat.completion");
}

#[tokio::test]
async fn streams_what_it_says_plainly() {
    let sim = sim().await;
    let answer = post(&sim, &streamed("sim-plain", "hello there")).await;
    assert_eq!(answer.end, End::Whole);
    assert!(answer.head.contains("content-type: text/event-stream"));
    let (events, chunks) = (answer.events(), answer.parsed());
    assert_eq!(events.last().unwrap(), "[DONE]");
    assert_eq!(answer.chunks.len(), events.len(), "each event is an HTTP chunk of its own");
    assert_eq!(answer.said(), "the gate opens for every coin and counts each one with care");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let (usage, earlier) = chunks.split_last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!((&usage["usage"]["prompt_tokens"], &usage["usage"]["completion_tokens"]), (&json!(2), &json!(12)));
    assert!(earlier.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    assert_eq!(earlier.last().unwrap()["choices"][0]["finish_reason"], "stop");
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
}

#[tokio::test]
async fn usage_only_when_asked() {
    let sim = sim().await;
    let mut body = ask("sim-plain", "hi");
    body["stream"] = json!(true);
    let answer = post(&sim, &body).await;
    assert!(answer.parsed().iter().all(|chunk| chunk.get("usage").is_none() && chunk["choices"] != json!([])));
}

#[tokio::test]
async fn options_set_length_and_pieces() {
    let sim = sim().await;
    let answer = post(&sim, &streamed("sim-plain", "[[sim:tokens=40 chunks=4 prompt=1000 size=10]]")).await;
    let chunks = answer.parsed();
    assert_eq!(chunks.len(), 1 + 4 + 1 + 1);
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 40);
    assert_eq!(chunks.last().unwrap()["usage"]["prompt_tokens"], 1000);
    assert_eq!(answer.said().len(), 40 * 11 - 1);
    let reply = post(&sim, &ask("sim-plain-5", "[[sim:reply_model=other]]")).await.json();
    assert_eq!((&reply["usage"]["completion_tokens"], &reply["model"]), (&json!(5), &json!("other")));
}

#[tokio::test]
async fn honours_limits_and_choices() {
    let sim = sim().await;
    let mut body = ask("sim-plain", "hi");
    body["max_tokens"] = json!(4);
    body["n"] = json!(3);
    let reply = post(&sim, &body).await.json();
    assert_eq!(reply["usage"]["completion_tokens"], 12);
    assert_eq!(reply["choices"].as_array().unwrap().len(), 3);
    assert_eq!(reply["choices"][2]["finish_reason"], "length");
    body["model"] = json!("sim-ignore_max_tokens");
    assert_eq!(post(&sim, &body).await.json()["usage"]["completion_tokens"], 36);
    body["stream"] = json!(true);
    body["model"] = json!("sim-plain");
    let chunks = post(&sim, &body).await.parsed();
    assert_eq!(chunks.len(), 3 * (1 + 4 + 1));
}

#[tokio::test]
async fn tools_then_text() {
    let sim = sim().await;
    let mut body = streamed("sim-tools", "weather?");
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    body["tools"] = json!([{"type": "function", "function": {"name": "look", "parameters": schema}}]);
    let chunks = post(&sim, &body).await.parsed();
    for place in 0..2 {
        let calls = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]);
        let calls: Vec<_> = calls.filter(|call| call["index"] == place).collect();
        assert!(calls.len() > 3, "arguments come in fragments");
        assert_eq!((&calls[0]["function"]["name"], &calls[0]["type"]), (&json!("look"), &json!("function")));
        assert!(calls[1..].iter().all(|call| call.get("id").is_none()));
        let arguments: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
        assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"city": "Paris", "days": 7}));
    }
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 4);
    body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_sim_0"}]}),
        json!({"role": "tool", "tool_call_id": "call_sim_0", "content": "sunny"}),
    ]);
    assert!(post(&sim, &body).await.said().starts_with("the gate"));
    let whole = post(&sim, &ask("sim-tools-1", "x")).await.json();
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["tool_calls"].as_array().unwrap().len(), 1);
    assert!(message["content"].is_null());
}

#[tokio::test]
async fn reasoning_and_cache_counts() {
    let sim = sim().await;
    let reply = post(&sim, &ask("sim-reasoning-30", "x")).await.json();
    assert_eq!(reply["usage"]["completion_tokens"], 42);
    assert_eq!(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], 30);
    assert!(reply["choices"][0]["message"]["reasoning_content"].as_str().unwrap().starts_with("the gate"));
    let chunks = post(&sim, &streamed("sim-reasoning", "x")).await.parsed();
    let thoughts = chunks.iter().filter(|chunk| chunk["choices"][0]["delta"]["reasoning_content"].is_string());
    assert_eq!(thoughts.count(), 7);
    let reply = post(&sim, &ask("sim-cached-60", "[[sim:prompt=100 written=20]]")).await.json();
    let details = &reply["usage"]["prompt_tokens_details"];
    assert_eq!((&details["cached_tokens"], &details["cache_write_tokens"]), (&json!(60), &json!(20)));
    assert_eq!(reply["usage"]["prompt_tokens"], 100);
}

#[tokio::test]
async fn empty_same_id_and_models() {
    let sim = sim().await;
    let reply = post(&sim, &ask("sim-empty", "x")).await.json();
    assert_eq!(
        (&reply["choices"][0]["message"]["content"], &reply["usage"]["completion_tokens"]),
        (&json!(""), &json!(0))
    );
    let first = post(&sim, &ask("sim-same_id", "x")).await.bytes();
    assert_eq!(first, post(&sim, &ask("sim-same_id", "x")).await.bytes());
    let models = get(&sim, "/v1/models").await.json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "sim-cut_midstream"));
}

#[tokio::test]
async fn refuses_as_a_strict_provider() {
    let sim = sim().await;
    for (body, param) in [
        (json!({"messages": [{"role": "user", "content": "x"}]}), "model"),
        (json!({"model": "m"}), "messages"),
        (json!({"model": "m", "messages": []}), "messages"),
        (json!({"model": "m", "messages": [{"content": "x"}]}), "messages[0].role"),
        (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 0}), "max_tokens"),
        (json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream_options": {}}), "stream_options"),
        (ask("sim-plain", "[[sim:nonsense]]"), "messages"),
        (json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}), "messages[0]"),
        (json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}), "messages"),
    ] {
        let answer = post(&sim, &body).await;
        assert_eq!((answer.status(), answer.json()["error"]["param"].as_str()), (400, Some(param)));
    }
    assert_eq!(post(&sim, &ask("sim-nonsense", "x")).await.status(), 404);
    let mut body = ask("sim-strict", "x");
    assert_eq!(post(&sim, &body).await.status(), 200);
    body["enable_thinking"] = json!(true);
    assert_eq!(post(&sim, &body).await.json()["error"]["param"], "enable_thinking");
    assert!(sim.received().iter().filter(|received| received.accepted).count() == 1);
}

#[tokio::test]
async fn records_and_keys() {
    let sim =
        Sim::start(SimSettings { require_key: Some("k".into()), keep: 2, ..SimSettings::default() }).await.unwrap();
    for text in ["one", "two", "three words here"] {
        assert_eq!(post(&sim, &ask("sim-plain", text)).await.status(), 200);
    }
    let received = sim.received();
    assert_eq!((received.len(), received[1].id, received[1].prompt_tokens), (2, 3, 3));
    assert!(received[1].finished && received[1].accepted && received[1].authorization_is("Bearer k"));
    assert_eq!(received[1].json()["messages"][0]["content"], "three words here");
    assert_eq!((received[1].header("Host"), received[1].header("authorization")), (Some("sim"), None));
    assert!(!format!("{received:?}").contains("three words"));
    let counts = sim.counts();
    assert_eq!((counts.received, counts.finished, counts.dropped), (3, 3, 1));
    let listed = get(&sim, "/_sim/received?since=2").await.json();
    assert_eq!(listed["received"].as_array().unwrap().len(), 1);
    assert_eq!(listed["received"][0]["body"]["model"], "sim-plain");
    assert_eq!(get(&sim, "/_sim/count").await.json()["accepted"], 3);
    read(request(&sim, "DELETE", "/_sim/received", "").await).await;
    assert_eq!((sim.received().len(), sim.counts().received), (0, 0));
    let locked = Sim::start(SimSettings { require_key: Some("z".into()), ..SimSettings::default() }).await.unwrap();
    assert_eq!(post(&locked, &ask("sim-plain", "x")).await.status(), 401);
    assert!(!locked.received()[0].accepted);
}

#[tokio::test]
async fn fast_paths() {
    let sim = sim().await;
    assert_eq!(post(&sim, &ask("sim-fast", "x")).await.json()["usage"]["total_tokens"], 15);
    let answer = post(&sim, &streamed("sim-faststream-250", "x")).await;
    assert_eq!(answer.events().len(), 250 + 3);
    assert_eq!(answer.events().last().unwrap(), "[DONE]");
    assert_eq!(sim.counts().received, 0);
    post(&sim, &ask("sim-plain", "\"model\":\"sim-fast\"")).await;
    assert_eq!(sim.counts().received, 1, "a prompt cannot choose the fast path");
}
