//! Conversations: made, read, used by a response, changed, erased.

use super::{MODELS, create, get, house, id, refused, send, times};
use crate::house::{House, events};
use reqwest::Method;
use serde_json::{Value, json};

async fn post(house: &House, path: &str, body: Value) -> Value {
    let reply = send(house, Method::POST, path, Some(&body)).await;
    let status = reply.status();
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(status, 200, "{body}");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_takes_what_is_said() {
    let house = house().await;
    for model in MODELS {
        let items = json!([{ "type": "message", "role": "user", "content": "apples" }]);
        let made = post(&house, "/v1/conversations", json!({ "items": items, "metadata": { "topic": "fruit" } })).await;
        assert_eq!((&made["object"], &made["metadata"]["topic"]), (&json!("conversation"), &json!("fruit")));
        let path = format!("/v1/conversations/{}", id(&made));
        let say =
            |text: &str, conversation: Value| json!({ "model": model, "input": text, "conversation": conversation });
        let first = create(&house, say("pears [[sim:tokens=2]]", json!(id(&made)))).await;
        assert_eq!(first["conversation"], json!({ "id": id(&made) }), "{model}: shown, whoever the provider is");
        assert_eq!(get(&house, &format!("/v1/responses/{}", id(&first))).await, first);
        assert_eq!((times(&house, "apples"), times(&house, "pears")), (1, 1), "{model}");
        create(&house, say("plums", json!({ "id": id(&made) }))).await;
        assert_eq!((times(&house, "apples"), times(&house, "the gate"), times(&house, "plums")), (1, 1, 1), "{model}");
        let listed = get(&house, &format!("{path}/items?order=asc")).await;
        let roles: Vec<_> = listed["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|item| item["role"].as_str().expect("a role"))
            .collect();
        assert_eq!(roles, ["user", "user", "assistant", "user", "assistant"], "{model}");
        let first = listed["data"][0].clone();
        assert_eq!(get(&house, &format!("{path}/items/{}", id(&first))).await, first);
        assert_eq!(id(&post(&house, &path, json!({ "metadata": {} })).await), id(&made));
        let gone: Value = send(&house, Method::DELETE, &format!("{path}/items/{}", id(&first)), None)
            .await
            .json()
            .await
            .expect("JSON");
        assert_eq!(id(&gone), id(&made), "the conversation comes back");
        let mut figs = say("figs", json!({ "id": id(&made) }));
        figs["stream"] = json!(true);
        let text = send(&house, Method::POST, "/v1/responses", Some(&figs)).await.text().await.expect("text");
        let responses = events(&text).into_iter().filter(|event| event["response"].is_object());
        assert!(
            responses.map(|event| event["response"]["conversation"]["id"].clone()).all(|named| named == id(&made)),
            "{text}"
        );
        assert_eq!(times(&house, "apples"), 0, "an erased item is not sent");
        let gone: Value = send(&house, Method::DELETE, &path, None).await.json().await.expect("JSON");
        assert_eq!(gone["object"], "conversation.deleted");
        let refusal = refused(&house, Method::POST, "/v1/responses", Some(&say("x", json!(id(&made))))).await;
        assert_eq!((refusal.0, refusal.2.as_str()), (404, "conversation"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_belongs_to_one_account_and_has_limits() {
    let house = house().await;
    let made = post(&house, "/v1/conversations", json!({})).await;
    let path = format!("/v1/conversations/{}", id(&made));
    let added = post(&house, &format!("{path}/items"), json!({ "items": [{ "role": "user", "content": "x" }] })).await;
    assert_eq!(added["data"][0]["type"], "message");
    let (_, other) = house.stranger("1").await;
    let item = id(&added["data"][0]);
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::GET, format!("{path}/items")),
        (Method::GET, format!("{path}/items/{item}")),
        (Method::DELETE, format!("{path}/items/{item}")),
        (Method::DELETE, path.clone()),
    ] {
        let reply = house.http.request(method, house.url(&path)).bearer_auth(&other).send().await.expect("a reply");
        assert_eq!(reply.status(), 404, "{path}");
    }
    let continued = json!({ "model": MODELS[0], "input": "x", "conversation": id(&made) });
    let reply = house.http.post(house.url("/v1/responses")).bearer_auth(&other).json(&continued).send().await;
    assert_eq!(reply.expect("a reply").status(), 404);
    assert_eq!(id(&get(&house, &path).await), id(&made), "it is still its owner's");
    let item = json!({ "role": "user", "content": "x" });
    for (body, param) in [
        (json!({ "items": vec![item.clone(); 21] }), "items"),
        (json!({ "items": "x" }), "items"),
        (json!({ "metadata": { "a": 1 } }), "metadata"),
    ] {
        let refusal = refused(&house, Method::POST, "/v1/conversations", Some(&body)).await;
        assert_eq!((refusal.0, refusal.2.as_str()), (400, param));
    }
    assert_eq!(refused(&house, Method::POST, &format!("{path}/items"), Some(&json!({}))).await.2, "items");
    // An id stands for one item.
    let named = |id: &str| json!({ "id": id, "role": "user", "content": "x" });
    for (items, at) in [(json!([named("b"), named("b")]), 1), (json!([named("c"), named(id(&added["data"][0]))]), 1)] {
        let refusal = refused(&house, Method::POST, &format!("{path}/items"), Some(&json!({ "items": items }))).await;
        assert_eq!((refusal.0, refusal.2), (400, format!("items[{at}].id")));
    }
    assert_eq!(
        get(&house, &format!("{path}/items")).await["data"].as_array().map(Vec::len),
        Some(1),
        "nothing was added"
    );
}

/// Both begin before either has ended, so neither knows of the other's items.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_overlap_in_a_conversation_lose_nothing() {
    let house = house().await;
    let made = post(&house, "/v1/conversations", json!({})).await;
    let say = |text: &str| {
        let input = json!([{ "type": "message", "id": "msg_own", "role": "user", "content": text }]);
        json!({ "model": MODELS[2], "input": input, "conversation": id(&made) })
    };
    // The first is answered when the second has been, by a provider with another path.
    house.sim.shut("/v1/chat/completions");
    let (mut slow, quick) = (say("apples [[sim:tokens=2]]"), say("pears [[sim:tokens=2]]"));
    slow["model"] = MODELS[0].into();
    let second = async {
        while house.sim.received().is_empty() {
            tokio::task::yield_now().await;
        }
        let quick = create(&house, quick).await;
        house.sim.open();
        quick
    };
    tokio::join!(create(&house, slow), second);
    let listed = get(&house, &format!("/v1/conversations/{}/items?order=asc", id(&made))).await;
    let items = listed["data"].as_array().expect("a list");
    let said = listed["data"].to_string();
    let ids: std::collections::HashSet<&str> = items.iter().map(id).collect();
    assert_eq!((items.len(), ids.len()), (4, 4), "{said}");
    assert!(said.contains("apples") && said.contains("pears"), "{said}");
    // Each is found under the id by which it is listed.
    for item in items {
        let path = format!("/v1/conversations/{}/items/{}", id(&made), id(item));
        assert_eq!(get(&house, &path).await, *item);
    }
    create(&house, json!({ "model": MODELS[2], "input": "figs", "conversation": id(&made) })).await;
    assert_eq!((times(&house, "apples"), times(&house, "pears")), (1, 1));
}
