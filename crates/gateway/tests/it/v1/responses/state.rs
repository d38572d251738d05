//! `previous_response_id` over every kind of provider: what is sent, what is not, what is refused.

use super::{MODELS, create, house, id, last_sent, next, refused, send, times};
use crate::engine::Engine;
use crate::house::{House, Plan, error_of, events, second};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const NOT_FOUND: (u16, &str, &str) = (400, "previous_response_not_found", "previous_response_id");

async fn continuing(house: &House, body: &Value) -> (u16, String, String) {
    refused(house, Method::POST, "/v1/responses", Some(body)).await
}

fn is_not_found(refusal: &(u16, String, String)) -> bool {
    (refusal.0, refusal.1.as_str(), refusal.2.as_str()) == NOT_FOUND
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_continued_whatever_the_provider_speaks() {
    let house = house().await;
    for model in MODELS {
        let first = json!({ "model": model, "instructions": "be a pirate", "input": "apples [[sim:tokens=3]]" });
        let first = create(&house, first).await;
        assert_eq!(times(&house, "pirate"), 1);
        let second = create(&house, next(&first, model, "pears [[sim:tokens=2]]")).await;
        assert_eq!(
            (times(&house, "apples"), times(&house, "the gate opens"), times(&house, "pears")),
            (1, 1, 1),
            "{model}"
        );
        assert_eq!(
            second["previous_response_id"], first["id"],
            "{model}: shown, though the provider got nothing of it"
        );
        assert_eq!(times(&house, "pirate"), 0, "instructions are not inherited");
        assert_eq!(times(&house, "previous_response_id"), 0, "the provider gets nothing of state");
        let third = create(&house, next(&second, model, "plums")).await;
        let sent = last_sent(&house);
        let places: Vec<_> =
            ["apples", "the gate opens", "pears", "plums"].iter().map(|said| sent.find(said)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{model}: {sent}");
        // A tree: the first can be continued again, without what was said on the other branch.
        create(&house, next(&first, model, "cherries")).await;
        assert_eq!((times(&house, "apples"), times(&house, "pears"), times(&house, "cherries")), (1, 0, 1));
        assert_ne!(id(&third), id(&second));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_what_it_continues() {
    let house = house().await;
    for model in MODELS {
        let first = create(&house, json!({ "model": model, "input": "apples [[sim:tokens=3]]" })).await;
        let mut body = next(&first, model, "pears [[sim:tokens=2]]");
        body["stream"] = json!(true);
        let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
        let shown: Vec<Value> = events(&text)
            .iter()
            .filter(|event| event["response"].is_object())
            .map(|event| event["response"]["previous_response_id"].clone())
            .collect();
        assert!(shown.len() >= 2 && shown.iter().all(|id| *id == first["id"]), "{model}: {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_stored_before_its_last_event() {
    let house = house().await;
    for model in MODELS {
        let body = json!({ "model": model, "input": "apples [[sim:tokens=3]]", "stream": true });
        let mut reply = send(&house, Method::POST, "/v1/responses", Some(&body)).await;
        let mut text = String::new();
        while let Some(piece) = reply.chunk().await.expect("a piece") {
            text.push_str(std::str::from_utf8(&piece).expect("text"));
            if text.contains("response.completed") && text.ends_with("\n\n") {
                break;
            }
        }
        let completed = events(&text).pop().expect("events")["response"].clone();
        assert_eq!(completed["status"], "completed");
        // At once, while the stream is not even read to its end.
        let stored = super::get(&house, &format!("/v1/responses/{}", id(&completed))).await;
        assert_eq!(stored, completed, "{model}");
        let second = create(&house, next(&completed, model, "pears")).await;
        assert_eq!(times(&house, "apples"), 1);
        let stored = super::get(&house, &format!("/v1/responses/{}", id(&second))).await;
        assert_eq!(stored["previous_response_id"], completed["id"], "{model}");
        drop(reply);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_stored_or_not_yours_is_not_found() {
    let house = house().await;
    let model = MODELS[0];
    let unstored = create(&house, json!({ "model": model, "input": "x", "store": false })).await;
    assert_eq!(unstored["store"], false);
    let refusal = send(&house, Method::POST, "/v1/responses", Some(&next(&unstored, model, "y"))).await;
    assert_eq!(refusal.headers()["retry-after"], "10");
    assert!(is_not_found(&continuing(&house, &next(&unstored, model, "y")).await));
    let stored = create(&house, json!({ "model": model, "input": "x" })).await;
    let (_, other) = house.stranger("1").await;
    let path = format!("/v1/responses/{}", id(&stored));
    for request in [
        house.http.post(house.url("/v1/responses")).json(&next(&stored, model, "y")),
        house.http.get(house.url(&path)),
        house.http.get(house.url(&format!("{path}/input_items"))),
        house.http.delete(house.url(&path)),
    ] {
        let (status, error) = error_of(request.bearer_auth(&other).send().await.expect("a reply")).await;
        assert!(status == 404 || error["code"] == NOT_FOUND.1, "another's is not found: {status} {error}");
    }
    let second = create(&house, next(&stored, model, "y")).await;
    send(&house, Method::DELETE, &format!("/v1/responses/{}", id(&stored)), None).await;
    assert!(is_not_found(&continuing(&house, &next(&stored, model, "z")).await));
    assert!(is_not_found(&continuing(&house, &next(&second, model, "z")).await), "it continues what was deleted");
    let mut both = next(&second, model, "x");
    both["conversation"] = json!("conv_1");
    assert_eq!(continuing(&house, &both).await.2, "conversation");
    let number = json!({ "model": model, "input": "x", "previous_response_id": 7 });
    assert_eq!(continuing(&house, &number).await.2, "previous_response_id");
    let stateless = json!({ "model": "strict-one", "input": "x", "previous_response_id": id(&second) });
    assert_eq!(continuing(&house, &stateless).await.1, "unsupported_value", "whether it is known or not");
    let alone = create(&house, json!({ "model": model, "input": "x" })).await;
    let refusal = continuing(&house, &next(&alone, "strict-one", "x")).await;
    assert_eq!((refusal.0, refusal.1.as_str(), refusal.2.as_str()), (400, "unsupported_value", "previous_response_id"));
}

/// So much later, and the key book has noticed.
async fn later(house: &House, ms: i64) {
    house.clock.pass(ms);
    for _ in 0..200 {
        if house.get("/v1/balance").send().await.expect("a reply").status() == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the key is not known any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_lives_thirty_days_or_as_long_as_what_continues_it() {
    let day = 86_400_000;
    let house = house().await;
    let model = MODELS[0];
    let first = create(&house, json!({ "model": model, "input": "apples" })).await;
    let alone = create(&house, json!({ "model": model, "input": "pears" })).await;
    later(&house, 20 * day).await;
    let second = create(&house, next(&first, model, "plums")).await;
    later(&house, 31 * day).await;
    assert!(is_not_found(&continuing(&house, &next(&alone, model, "x")).await));
    create(&house, next(&second, model, "x")).await;
    assert_eq!(times(&house, "apples"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_thoughts_are_stored_for_the_provider_that_made_them() {
    let house = house().await;
    for model in &MODELS[1..] {
        let tools = json!([{ "type": "function", "name": "look", "strict": false, "parameters": {
            "type": "object", "properties": { "city": { "type": "string" } } } }]);
        let ask = |input: Value, previous: Option<&str>| {
            json!({ "model": model, "input": input, "tools": tools, "previous_response_id": previous,
                    "max_output_tokens": 900, "reasoning": { "effort": "low", "summary": "auto" } })
        };
        let first = create(&house, ask(json!("weather? [[sim:reasoning_tools calls=2]]"), None)).await;
        let output = first["output"].as_array().expect("items");
        assert_eq!(output[0]["type"], "reasoning", "{model}: {first}");
        let calls: Vec<_> = output.iter().filter(|item| item["type"] == "function_call").collect();
        assert_eq!(calls.len(), 2);
        let results: Vec<_> = calls
            .iter()
            .map(|call| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "sunny" }))
            .collect();
        // The simulator is as strict as the provider: without its own seal on the right part it
        // would refuse this.
        let second = create(&house, ask(json!(results), Some(id(&first)))).await;
        assert_eq!(second["status"], "completed", "{model}: {second}");
        let orphan = json!([{ "type": "function_call_output", "call_id": "call_nobody", "output": "x" }]);
        let refusal = continuing(&house, &ask(orphan, Some(id(&second)))).await;
        assert_eq!(refusal.0, 400, "{model}: a result without a call");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_can_be_named() {
    let house = house().await;
    let model = MODELS[1];
    let first = create(&house, json!({ "model": model, "input": "apples [[sim:tokens=3]]" })).await;
    let item = &first["output"][0]["id"];
    let input = json!([{ "role": "user", "content": "before" }, { "type": "item_reference", "id": item },
                       { "role": "user", "content": "after" }]);
    let second = create(&house, json!({ "model": model, "input": input })).await;
    assert_eq!((times(&house, "apples"), times(&house, "the gate opens")), (0, 1));
    create(&house, next(&second, model, "more")).await;
    assert_eq!((times(&house, "before"), times(&house, "the gate opens")), (1, 2), "once named, once answered");
    let unknown = json!({ "model": model, "input": [{ "type": "item_reference", "id": "msg_nobody" }] });
    assert_eq!(continuing(&house, &unknown).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_one_response() {
    let house = house().await;
    let body = json!({ "model": MODELS[0], "input": "once" });
    let ask = || {
        house.http.post(house.url("/v1/responses")).bearer_auth(&house.key).header("idempotency-key", "k").json(&body)
    };
    let first: Value = ask().send().await.expect("a reply").json().await.expect("JSON");
    house.quiet().await;
    let again: Value = ask().send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(first, again);
    assert_eq!(house.sim.received().len(), 1);
    create(&house, next(&again, MODELS[0], "more")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_broke_off_is_not_stored() {
    let house = house().await;
    let body = json!({ "model": MODELS[0], "input": "[[sim:cut_midstream after=2]]", "stream": true });
    let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
    let failed = events(&text).pop().expect("events")["response"].clone();
    assert_eq!(failed["status"], "failed", "{text}");
    assert!(is_not_found(&continuing(&house, &next(&failed, MODELS[0], "x")).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_finds_what_another_has_stored() {
    let [_, engine] = Engine::both().await;
    let plan = Plan { database: engine.url.clone(), catalog: crate::dialects::CATALOG, ..Plan::default() };
    let house = House::with(plan).await;
    let other = second(&house).await;
    let there = |path: &str| format!("http://{}{path}", other.address);
    for model in MODELS {
        let body = json!({ "model": model, "input": "apples [[sim:tokens=3]]", "stream": true });
        let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
        let first = events(&text).pop().expect("events")["response"].clone();
        // At once, at the other door.
        let ask = house.http.post(there("/v1/responses")).bearer_auth(&house.key);
        let reply = ask.json(&next(&first, model, "pears")).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{model}");
        let second: Value = reply.json().await.expect("JSON");
        assert_eq!((times(&house, "apples"), times(&house, "the gate opens")), (1, 1), "{model}");
        let third = create(&house, next(&second, model, "plums")).await;
        assert_eq!((times(&house, "apples"), times(&house, "pears"), times(&house, "plums")), (1, 1, 1), "{model}");
        let read = house.http.get(there(&format!("/v1/responses/{}", id(&third)))).bearer_auth(&house.key);
        assert_eq!(read.send().await.expect("a reply").json::<Value>().await.expect("JSON"), third);
        let gone = house.http.delete(there(&format!("/v1/responses/{}", id(&first)))).bearer_auth(&house.key);
        assert_eq!(gone.send().await.expect("a reply").status(), 200);
        assert!(is_not_found(&continuing(&house, &next(&third, model, "x")).await), "{model}: erased for all");
    }
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_when_it_ended() {
    let house = house().await;
    let models = [MODELS[0], MODELS[1], MODELS[3]];
    for (model, stream) in models.into_iter().flat_map(|model| [(model, false), (model, true)]) {
        let body = json!({ "model": model, "input": "[[sim:tokens=4 think_ms=1200 delay_ms=300]]", "stream": stream });
        let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
        let response = match stream {
            true => events(&text).pop().expect("events")["response"].clone(),
            false => serde_json::from_str(&text).expect("JSON"),
        };
        let at = |name: &str| response[name].as_u64().expect("a time");
        assert!(at("completed_at") > at("created_at"), "{model}, streamed: {stream}: {response}");
    }
}
