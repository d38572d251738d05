//! The endpoints of the four dialects: keys, formats a model accepts, rules of a model, counting.

use super::client::{Client, code_of};
use super::house;
use crate::house::{call_id, error_of, events};
use serde_json::{Value, json};
use tollgate_store::Ending;
use tollgate_wire::Dialect;

/// Case 85 is shown by the headers of each stream.
#[tokio::test(flavor = "multi_thread")]
async fn every_client_is_served_by_a_provider_of_chat() {
    let house = house().await;
    for client in Client::all() {
        let reply = client.ask(&house, "gemini-on-openai", "say [[sim:tokens=6]]", false).await;
        assert_eq!(reply.status(), 200, "{client:?}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        assert!(reply.headers().contains_key("x-tollgate-charge-usd"), "{client:?}");
        let body: Value = reply.json().await.expect("JSON");
        assert_eq!(client.text(&body).split_whitespace().count(), 6, "{client:?}: {body}");
        assert_eq!(client.model(&body), "gemini-on-openai");
        assert_eq!(client.usage(&[body]), (2, 6), "{client:?}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.counters.input, row.counters.output), (Ending::Answered, 2, 6));
        assert_eq!(row.charge.nano(), 2 * 1_000 + 6 * 2_000);
        assert!(row.endpoint.contains(client.path("{model}", false).as_str()), "{}", row.endpoint);

        let reply = client.ask(&house, "gemini-on-openai", "say [[sim:tokens=6]]", true).await;
        let call = call_id(&reply);
        assert_eq!(reply.headers()["content-type"], "text/event-stream");
        assert_eq!(
            (&reply.headers()["cache-control"], &reply.headers()["x-accel-buffering"]),
            (&"no-cache".parse().expect("value"), &"no".parse().expect("value"))
        );
        let text = reply.text().await.expect("text");
        let events = events(&text);
        assert_eq!(client.streamed_text(&events).split_whitespace().count(), 6, "{client:?}: {text}");
        assert!(client.is_whole(&text, &events), "{client:?}: {text}");
        assert_eq!(client.usage(&events), (2, 6), "{client:?}: {text}");
        assert_eq!(house.row(call).await.charge.nano(), 2 * 1_000 + 6 * 2_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_streams_are_an_array_unless_events_are_asked_for() {
    let house = house().await;
    let client = Client(Dialect::Gemini);
    let body = client.body("", "say [[sim:tokens=3]]", true);
    for version in ["v1", "v1beta"] {
        let path = format!("/{version}/models/gemini-on-openai:streamGenerateContent?key={}", house.key);
        let reply = house.http.post(house.url(&path)).json(&body).send().await.expect("a reply");
        assert_eq!(
            (reply.status().as_u16(), &reply.headers()["content-type"]),
            (200, &"application/json".parse().expect("value"))
        );
        let chunks: Vec<Value> = reply.json().await.expect("one JSON array");
        assert_eq!(client.streamed_text(&chunks).split_whitespace().count(), 3);
        assert_eq!(client.usage(&chunks), (2, 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_the_model_does_not_accept_is_refused_with_those_it_does() {
    let house = house().await;
    for client in Client::all().into_iter().filter(|client| client.0 != Dialect::Chat) {
        let (status, error) = error_of(client.ask(&house, "plain", "hello", false).await).await;
        assert_eq!((status, code_of(&error)), (400, "unsupported_value"), "{client:?}");
        let text = error["message"].as_str().expect("a message");
        assert!(
            text.contains(client.0.word()) && text.contains("ask it at `POST /v1/chat/completions` (`openai`)."),
            "{text}"
        );
    }
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_has_nothing_like_is_reported_or_refused() {
    let house = house().await;
    let client = Client(Dialect::Anthropic);
    let mut body = client.body("gemini-on-openai", "say [[sim:tokens=3]]", false);
    body["top_k"] = json!(5);
    for stream in [false, true] {
        body["stream"] = json!(stream);
        let reply = client.post(&house, "/v1/messages", &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        // The provider's fingerprint is lost on the way back.
        assert_eq!(reply.headers()["x-tollgate-dropped"], "top_k,answer.system_fingerprint", "streamed: {stream}");
        let call = call_id(&reply);
        let _ = reply.text().await;
        assert_eq!(house.row(call).await.dropped.as_deref(), Some("top_k,answer.system_fingerprint"));
        let answer: Value =
            house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply").json().await.expect("JSON");
        assert_eq!(answer["dropped"], json!(["top_k", "answer.system_fingerprint"]));
    }
    let sent = house.sim.received().len();
    let strict = client.post(&house, "/v1/messages", &body).header("x-tollgate-strict", "true");
    let reply: Value = strict.send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(code_of(&reply["error"]), "unsupported_value", "{reply}");
    assert_eq!(house.sim.received().len(), sent, "nothing is sent");
}

/// A header is no field of the body, yet it asks for something: reported like one, refused like
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn a_beta_that_only_anthropic_has_is_reported_or_refused() {
    let house = house().await;
    let client = Client(Dialect::Anthropic);
    let body = client.body("gemini-on-openai", "say [[sim:tokens=3]]", false);
    let ask = || client.post(&house, "/v1/messages", &body).header("anthropic-beta", "context-1m-2025-08-07");
    let reply = ask().send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.headers()["x-tollgate-dropped"], "anthropic-beta,answer.system_fingerprint");
    let _ = reply.text().await;
    let sent = house.sim.received().len();
    let reply = ask().header("x-tollgate-strict", "true").send().await.expect("a reply");
    assert_eq!(reply.status(), 400);
    let reply: Value = reply.json().await.expect("JSON");
    assert_eq!(code_of(&reply["error"]), "unsupported_value", "{reply}");
    assert!(reply["error"]["message"].as_str().is_some_and(|text| text.contains("`anthropic-beta`")), "{reply}");
    assert_eq!(house.sim.received().len(), sent, "nothing is sent");
    // Where it has a meaning it goes along.
    let own = client.body("gemini-on-anthropic", "say [[sim:tokens=3]]", false);
    let strict = client.post(&house, "/v1/messages", &own).header("anthropic-beta", "context-1m-2025-08-07");
    let strict = strict.header("anthropic-beta", "interleaved-thinking-2025-05-14");
    let reply = strict.header("x-tollgate-strict", "true").send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let seen = house.sim.received().pop().expect("a call");
    let all: Vec<_> =
        seen.headers.iter().filter(|(name, _)| name == "anthropic-beta").map(|(_, beta)| beta.as_str()).collect();
    assert_eq!(all.join(","), "context-1m-2025-08-07,interleaved-thinking-2025-05-14", "in as many lines as it came");
    let versions = seen.headers.iter().filter(|(name, _)| name == "anthropic-version").count();
    assert_eq!(versions, 1, "the client's own version and no second one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_out_is_named_again_with_a_replay() {
    let house = house().await;
    let client = Client(Dialect::Anthropic);
    let mut body = client.body("gemini-on-openai", "say [[sim:tokens=3]]", false);
    body["top_k"] = json!(5);
    let ask = || client.post(&house, "/v1/messages", &body).header("idempotency-key", "k");
    let first = ask().send().await.expect("a reply");
    let dropped = first.headers()["x-tollgate-dropped"].clone();
    let body = first.text().await.expect("text");
    house.quiet().await;
    let again = ask().send().await.expect("a reply");
    assert_eq!(
        (&again.headers()["idempotency-replayed"], &again.headers()["x-tollgate-dropped"]),
        (&"true".parse().expect("a value"), &dropped)
    );
    assert_eq!(again.text().await.expect("text"), body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_a_model_apply_before_anything_is_held() {
    let house = house().await;
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let chat = |more: Value| {
        let mut body = Client(Dialect::Chat).body("strict-one", "say [[sim:tokens=2]]", false);
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for (more, param) in [
        (json!({ "tools": tools }), "reasoning_effort"),
        (json!({ "tools": tools, "reasoning_effort": "low" }), "reasoning_effort"),
        (json!({ "tools": tools, "reasoning_effort": "none", "tool_choice": "required" }), "tool_choice"),
        (json!({ "messages": [{ "role": "group", "content": "a" }] }), "messages[0].name"),
        // Case 15.
        (
            json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }] }),
            "messages[1]",
        ),
    ] {
        let (status, error) = error_of(house.post(&chat(more)).send().await.expect("a reply")).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(param)), "{error}");
    }
    for field in ["previous_response_id", "conversation"] {
        let mut body = Client(Dialect::Responses).body("strict-one", "a", false);
        body[field] = json!("resp_1");
        let (status, error) =
            error_of(Client(Dialect::Responses).post(&house, "/v1/responses", &body).send().await.expect("a reply"))
                .await;
        assert_eq!((status, error["param"].as_str()), (400, Some(field)), "{error}");
    }
    house.quiet().await;
    assert!(house.sim.received().is_empty());
    assert_eq!(house.available().await, 10_000_000_000);

    let asked = chat(json!({ "tools": tools, "reasoning_effort": "none", "tool_choice": "auto", "temperature": 0.5 }));
    let reply = house.post(&asked).send().await.expect("a reply");
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
        (200, &"temperature".parse().expect("value"))
    );
    let sent: Value = serde_json::from_slice(&house.sim.received()[0].body).expect("JSON");
    assert!(sent.get("temperature").is_none() && sent["tools"].is_array(), "{sent}");
    assert_eq!(sent["model"], "sim-plain");
}

/// Case 75 and rule 3 of the specification: what the provider's chat completions refuse is refused
/// in the words of every client.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_need_an_effort_are_refused_in_every_dialect() {
    let house = house().await;
    let model = "gemini-strict";
    for client in Client::all() {
        let mut body = client.body(model, "say [[sim:tokens=2]]", false);
        let (tools, effort, param) = match client.0 {
            Dialect::Chat => (
                json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]),
                ("reasoning_effort", json!("none")),
                "reasoning_effort",
            ),
            Dialect::Anthropic => (
                json!([{ "name": "f", "input_schema": { "type": "object" } }]),
                ("thinking", json!({ "type": "disabled" })),
                "thinking",
            ),
            Dialect::Responses => (
                json!([{ "type": "function", "name": "f", "parameters": { "type": "object" } }]),
                ("reasoning", json!({ "effort": "none" })),
                "reasoning.effort",
            ),
            Dialect::Gemini => (
                json!([{ "functionDeclarations": [{ "name": "f" }] }]),
                ("generationConfig", json!({ "thinkingConfig": { "thinkingBudget": 0 } })),
                "generationConfig.thinkingConfig",
            ),
        };
        body["tools"] = tools;
        let ask =
            async |body: &Value| client.post(&house, &client.path(model, false), body).send().await.expect("a reply");
        let (had, seen) = (house.available().await, house.sim.received().len());
        let refused = ask(&body).await;
        assert_eq!(refused.status(), 400, "{client:?}");
        let text = refused.text().await.expect("text");
        assert!(text.contains(param) && text.contains("takes tools only with"), "{client:?}: {text}");
        assert_eq!((house.available().await, house.sim.received().len()), (had, seen), "nothing is held or sent");
        body[effort.0] = effort.1;
        let reply = ask(&body).await;
        assert_eq!(reply.status(), 200, "{client:?}: {}", reply.text().await.unwrap_or_default());
        house.quiet().await;
    }
}

/// Case 122: whichever model the provider lets answer, the price is that of the model that was
/// asked for, and that is the one named.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_stands_in_costs_what_was_quoted() {
    let house = house().await;
    for client in Client::all() {
        for model in super::UPSTREAMS {
            let reply = client.ask(&house, model, "say [[sim:tokens=3 reply_model=stand-in]]", false).await;
            let call = call_id(&reply);
            let body: Value = reply.json().await.expect("JSON");
            assert_eq!(client.model(&body), model, "{client:?}: {body}");
            assert!(!body.to_string().contains("stand-in"), "{client:?} on {model}: {body}");
            let row = house.row(call).await;
            let asked = if model == "gemini-on-openai" { "sim-strict" } else { "sim-plain" };
            assert_eq!((row.charge.nano(), row.upstream_model.as_deref()), (3 * 1_000 + 3 * 2_000, Some(asked)));
        }
    }
}

/// Case 102, decided otherwise: a compressed body is not unpacked but refused, by the name of its
/// header, before anything is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_refused_by_name() {
    let house = house().await;
    for client in Client::all() {
        let path = client.path("gemini-on-openai", false);
        let body = client.body("gemini-on-openai", "hello", false);
        let reply = client.post(&house, &path, &body).header("content-encoding", "gzip").send().await.expect("a reply");
        assert_eq!(reply.status(), 415, "{client:?}");
        let text = reply.text().await.expect("text");
        assert!(text.contains("compressed"), "{client:?}: {text}");
    }
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_counted_free_of_charge() {
    let house = house().await;
    let claude = Client(Dialect::Anthropic);
    let mut body = claude.body("gemini-on-openai", "How many tokens are these?", false);
    body.as_object_mut().expect("an object").remove("max_tokens");
    let reply = claude.post(&house, "/v1/messages/count_tokens", &body).send().await.expect("a reply");
    let counted: Value = reply.json().await.expect("JSON");
    assert!(counted["input_tokens"].as_u64().is_some_and(|tokens| (6..40).contains(&tokens)), "{counted}");
    let gemini = Client(Dialect::Gemini);
    let body = gemini.body("", "How many tokens are these?", false);
    for (version, body) in [("v1beta", body.clone()), ("v1", json!({ "generateContentRequest": body }))] {
        let path = format!("/{version}/models/gemini-on-openai:countTokens");
        let counted: Value =
            gemini.post(&house, &path, &body).send().await.expect("a reply").json().await.expect("JSON");
        assert!(counted["totalTokens"].as_u64().is_some_and(|tokens| (6..40).contains(&tokens)), "{counted}");
    }
    let (status, error) =
        error_of(gemini.post(&house, "/v1beta/models/plain:countTokens", &body).send().await.expect("a reply")).await;
    assert_eq!((status, code_of(&error)), (400, "unsupported_value"));
    assert!(house.sim.received().is_empty());
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_models_has_the_shape_of_the_sdk_that_asks() {
    let house = house().await;
    let get = |path: &str| house.http.get(house.url(path));
    let json = async |request: reqwest::RequestBuilder| -> Value {
        request.send().await.expect("a reply").json().await.expect("JSON")
    };
    let openai = json(house.get("/v1/models")).await;
    assert_eq!(openai["object"], "list");
    let claude = json(get("/v1/models").bearer_auth(&house.key).header("anthropic-version", "2026-10-21")).await;
    assert_eq!(claude["has_more"], false);
    assert!(
        claude["data"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|one| one["id"] == "gemini-on-openai" && one["type"] == "model")
    );
    assert!(
        !claude["data"].as_array().expect("a list").iter().any(|one| one["id"] == "plain"),
        "it cannot be asked so"
    );
    for gemini in [
        json(get("/v1/models").header("x-goog-api-key", &house.key)).await,
        json(get(&format!("/v1beta/models?key={}", house.key))).await,
        json(house.get("/v1beta/models")).await,
    ] {
        let names: Vec<&str> =
            gemini["models"].as_array().expect("models").iter().filter_map(|one| one["name"].as_str()).collect();
        assert!(names.contains(&"models/gemini-on-gemini") && !names.contains(&"models/plain"), "{names:?}");
    }
    let one = json(house.get("/v1beta/models/gemini-on-openai")).await;
    assert_eq!((&one["name"], &one["inputTokenLimit"]), (&json!("models/gemini-on-openai"), &json!(100_000)));
    let none = json(get("/v1beta/models/none").header("x-goog-api-key", &house.key)).await;
    assert_eq!((&none["error"]["code"], &none["error"]["status"]), (&json!(404), &json!("NOT_FOUND")));
}
