//! What a request names and by which name the error calls it: items that we list ourselves,
//! places in its own input, what runs in no background.

use super::socket::{Socket, ask, last};
use super::{MODELS, create, get, house, id, next, refused, times};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_in_the_background() {
    let house = house().await;
    for model in MODELS {
        let body = json!({ "model": model, "input": "x", "background": true });
        let refusal = refused(&house, Method::POST, "/v1/responses", Some(&body)).await;
        assert_eq!(
            (refusal.0, refusal.1.as_str(), refusal.2.as_str()),
            (400, "unsupported_value", "background"),
            "{model}"
        );
    }
    let mut message = ask("x", None);
    message["background"] = json!(true);
    assert_eq!(last(&Socket::open(&house).await.turn(message).await)["error"]["param"], "background");
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (0, 0), "nothing was held or sent");
    create(&house, json!({ "model": MODELS[2], "input": "x", "background": false })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_any_list_can_be_named() {
    let house = house().await;
    let (_, other) = house.stranger("1").await;
    let reference = |id: &Value| json!({ "type": "item_reference", "id": id });
    for model in MODELS {
        let input = json!([{ "role": "user", "content": "apples" },
            { "type": "message", "id": "msg_own", "role": "user", "content": "plums" }, { "role": "user", "content": "[[sim:tokens=3]]" }]);
        let first = create(&house, json!({ "model": model, "input": input })).await;
        let listed = get(&house, &format!("/v1/responses/{}/input_items?order=asc", id(&first))).await;
        // By the id that was made for it, and by its own; alone, and in what is continued.
        let both = json!([reference(&listed["data"][0]["id"]), reference(&listed["data"][1]["id"]), { "role": "user", "content": "go" }]);
        create(&house, json!({ "model": model, "input": both })).await;
        assert_eq!((times(&house, "apples"), times(&house, "plums"), times(&house, "go")), (1, 1, 1), "{model}");
        create(&house, json!({ "model": model, "input": both, "previous_response_id": id(&first) })).await;
        assert_eq!((times(&house, "apples"), times(&house, "plums")), (2, 2), "{model}: once said, once named");

        let body = json!({ "items": [{ "role": "user", "content": "figs" }] });
        let made: Value =
            super::send(&house, Method::POST, "/v1/conversations", Some(&body)).await.json().await.expect("JSON");
        let say = |input: Value| json!({ "model": model, "input": input, "conversation": id(&made) });
        create(&house, say(json!("dates [[sim:tokens=2]]"))).await;
        let listed = get(&house, &format!("/v1/conversations/{}/items?order=asc", id(&made))).await;
        let items = listed["data"].as_array().expect("items");
        let all: Vec<Value> = items.iter().map(|item| reference(&item["id"])).collect();
        let mut again = all.clone();
        again.push(json!({ "role": "user", "content": "go" }));
        create(&house, say(json!(again))).await;
        let said = (times(&house, "figs"), times(&house, "dates"), times(&house, "the gate"));
        assert_eq!(said, (2, 2, 2), "{model}: each once said, once named");
        // What was said in a call is found without its conversation too.
        create(&house, json!({ "model": model, "input": [all[1], all[2], { "role": "user", "content": "go" }] })).await;
        assert_eq!((times(&house, "figs"), times(&house, "dates"), times(&house, "the gate")), (0, 1, 1), "{model}");
        // And so is what was only put into one, from another conversation as well.
        let body = json!({ "items": [] });
        let another: Value =
            super::send(&house, Method::POST, "/v1/conversations", Some(&body)).await.json().await.expect("JSON");
        let go = json!([all[0], { "role": "user", "content": "go" }]);
        create(&house, json!({ "model": model, "input": go })).await;
        assert_eq!((times(&house, "figs"), times(&house, "dates")), (1, 0), "{model}");
        create(&house, json!({ "model": model, "input": go, "conversation": id(&another) })).await;
        assert_eq!((times(&house, "figs"), times(&house, "dates")), (1, 0), "{model}");
        let body = json!({ "model": model, "input": go });
        let reply = house.http.post(house.url("/v1/responses")).bearer_auth(&other).json(&body).send().await;
        assert_eq!(reply.expect("a reply").status(), 404, "{model}: another account's is unknown");
    }
    let unknown = json!({ "model": MODELS[0], "input": [reference(&json!("msg_0_in0"))] });
    assert_eq!(refused(&house, Method::POST, "/v1/responses", Some(&unknown)).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_is_named_by_the_place_where_it_was_made() {
    let house = house().await;
    for model in MODELS {
        let first = create(&house, json!({ "model": model, "input": "apples" })).await;
        let second = create(&house, next(&first, model, "pears")).await;
        let mut body = next(&second, model, "");
        body["input"] = json!([{ "role": "user", "content": "plums" }, { "role": "nobody", "content": "figs" }]);
        for stream in [false, true] {
            body["stream"] = json!(stream);
            let reply = super::send(&house, Method::POST, "/v1/responses", Some(&body)).await;
            let (status, error) = crate::house::error_of(reply).await;
            assert_eq!(status, 400, "{model}: {error}");
            let param = error["param"].as_str().unwrap_or_default();
            assert!(param.starts_with("input[1]"), "{model}: of two items it is the second: {error}");
            assert!(!error["message"].as_str().unwrap_or_default().contains("input[5]"), "{model}: {error}");
        }
    }
}
