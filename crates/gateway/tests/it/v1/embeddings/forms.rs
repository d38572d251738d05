//! Every client at every kind of provider.

use super::{asked, cost, embed, house, post, vectors};
use crate::house::{call_id, error_of};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn within_one_format_the_bytes_pass() {
    let house = house().await;
    let mut body = asked("vec", json!(["one two", "three"]));
    body["user"] = json!("somebody");
    body["dimensions"] = json!(4);
    for format in ["float", "base64"] {
        body["encoding_format"] = json!(format);
        house.sim.clear();
        let reply = embed(&house, &body).await;
        assert_eq!(reply.status(), 200);
        assert_eq!(reply.headers()["x-tollgate-charge-usd"], "0.000003");
        assert_eq!(reply.headers()["content-type"], "application/json");
        let call = call_id(&reply);
        let reply: Value = reply.json().await.expect("JSON");
        assert_eq!((&reply["object"], &reply["model"]), (&json!("list"), &json!("vec")));
        assert_eq!(reply["usage"], json!({ "prompt_tokens": 3, "total_tokens": 3 }));
        assert_eq!((reply["data"][1]["index"].as_u64(), vectors(&reply)[0].len()), (Some(1), 4));
        assert_eq!(reply["data"][0]["embedding"].is_string(), format == "base64");
        let sent = &house.sim.received()[0];
        let mut expected = body.clone();
        expected["model"] = json!("sim-plain");
        assert_eq!(sent.json(), expected, "but for the model's name every byte is the client's");
        assert_eq!(sent.header("x-client-request-id"), Some(call.to_string().as_str()));
        assert_eq!(cost(&house, call).await, (3, 3_000, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_gets_the_same_vectors_of_every_provider() {
    let house = house().await;
    let texts = ["the gate opens", "für jede Münze", "東京"];
    let direct: Value = embed(&house, &asked("vec", json!(texts))).await.json().await.expect("JSON");
    let expected = vectors(&direct);
    for model in ["vec", "vec-gemini", "vec-dashscope", "vec-cohere", "vec-jina", "vec-two", "vec-parts"] {
        for format in ["float", "base64"] {
            let mut body = asked(model, json!(texts));
            body["encoding_format"] = json!(format);
            let reply = embed(&house, &body).await;
            assert_eq!(reply.status(), 200, "{model} {format}: {}", reply.text().await.unwrap_or_default());
            let call = call_id(&reply);
            let reply: Value = reply.json().await.expect("JSON");
            assert_eq!(vectors(&reply), expected, "{model} {format}");
            assert_eq!(reply["model"], json!(model));
            assert_eq!(reply["data"][0]["embedding"].is_string(), format == "base64", "{model}");
            let (tokens, _, estimated) = cost(&house, call).await;
            assert_eq!(reply["usage"]["prompt_tokens"], json!(tokens), "{model}");
            assert_eq!((tokens == 7, estimated), (model != "vec-gemini", model == "vec-gemini"), "{model}: {tokens}");
        }
        let content = |text: &str| json!({ "content": { "parts": [{ "text": text }] } });
        for base in ["/v1beta", "/v1"] {
            let batch = json!({ "requests": texts.map(content) });
            let reply = post(&house, &format!("{base}/models/{model}:batchEmbedContents"), &batch).await;
            assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
            assert_eq!(vectors(&reply.json().await.expect("JSON")), expected, "{model} {base}");
            let reply = post(&house, &format!("{base}/models/{model}:embedContent"), &content(texts[1])).await;
            assert_eq!(vectors(&reply.json().await.expect("JSON")), [expected[1].clone()], "{model} {base}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_list_than_a_provider_takes_is_sent_in_parts() {
    let house = house().await;
    let texts: Vec<String> = (0..20).map(|at| format!("text number {at}")).collect();
    let direct: Value = embed(&house, &asked("vec", json!(texts))).await.json().await.expect("JSON");
    for (model, parts) in [("vec-dashscope", 2), ("vec-parts", 7)] {
        house.sim.clear();
        let reply = embed(&house, &asked(model, json!(texts))).await;
        assert_eq!(reply.status(), 200, "{model}");
        let call = call_id(&reply);
        let reply: Value = reply.json().await.expect("JSON");
        assert_eq!(vectors(&reply), vectors(&direct), "{model}: the order is preserved");
        assert_eq!(reply["data"][19]["index"], json!(19));
        assert_eq!(house.sim.received().len(), parts, "{model}");
        assert_eq!(cost(&house, call).await, (60, 60_000, false), "one hold, one charge");
    }
    house.sim.clear();
    let mut broken = texts.clone();
    broken[5] = "[[sim:error500]]".to_owned();
    let reply = embed(&house, &asked("vec-parts", json!(broken))).await;
    let (call, once) = (call_id(&reply), reply.headers().get("x-should-retry").cloned());
    assert_eq!((reply.status().as_u16(), once.expect("a word")), (502, "false".parse().expect("a value")));
    assert_eq!(house.sim.received().len(), 2, "nothing more is asked for");
    assert_eq!(house.row(call).await.charge.nano(), 0, "nothing is to be had of half a list");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_one_maker_go_to_no_other() {
    let house = house().await;
    for input in [json!([1, 2, 3]), json!([[1, 2], [3]])] {
        let reply = embed(&house, &asked("vec", input.clone())).await;
        assert_eq!(reply.status(), 200);
        let call = call_id(&reply);
        assert_eq!(cost(&house, call).await, (3, 3_000, false));
        let sent = house.sim.received().len();
        for model in ["vec-gemini", "vec-cohere"] {
            let (status, error) = error_of(embed(&house, &asked(model, input.clone())).await).await;
            assert_eq!((status, &error["param"], &error["code"]), (400, &json!("input"), &json!("unsupported_value")));
        }
        assert_eq!(house.sim.received().len(), sent, "nothing was sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_place_in_the_providers_format_is_reported() {
    let house = house().await;
    let body = json!({ "content": { "parts": [{ "text": "a" }] }, "taskType": "CLUSTERING", "title": "t" });
    let path = |model: &str| format!("/v1beta/models/{model}:embedContent");
    let reply = post(&house, &path("vec"), &body).await;
    assert_eq!(reply.headers()["x-tollgate-dropped"], "taskType,title");
    house.sim.clear();
    let reply = post(&house, &path("vec-gemini"), &body).await;
    assert!(!reply.headers().contains_key("x-tollgate-dropped"));
    assert_eq!(house.sim.received()[0].json()["requests"][0]["taskType"], json!("CLUSTERING"));
    house.sim.clear();
    post(&house, &path("vec-cohere"), &body).await;
    assert_eq!(house.sim.received()[0].json()["input_type"], json!("clustering"));
}

/// The same of OpenAI's format, at each kind of provider.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_makers_format_has_no_word_for_is_named() {
    let house = house().await;
    for (model, fields, dropped) in [
        ("vec-gemini", "user input_type truncate", Some("input_type,truncate,user")),
        ("vec-cohere", "user input_type truncate", Some("user")),
        ("vec-cohere", "user task", Some("task,user")),
        ("vec-jina", "user task", None),
        ("vec-dashscope", "user", None),
        ("vec", "user", None),
    ] {
        let mut body = asked(model, "a");
        for field in fields.split(' ') {
            let value = if field == "truncate" { "END" } else { "search_query" };
            body[field] = json!(value);
        }
        house.sim.clear();
        let reply = embed(&house, &body).await;
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        let said = reply.headers().get("x-tollgate-dropped").map(|names| names.to_str().expect("names").to_owned());
        assert_eq!(said.as_deref(), dropped, "{model}: {body}");
        assert_eq!(house.row(call_id(&reply)).await.dropped.as_deref(), dropped, "{model}");
        let sent = house.sim.received()[0].json().to_string();
        for field in fields.split(' ') {
            let lost = dropped.is_some_and(|dropped| dropped.split(',').any(|one| one == field));
            assert_eq!(sent.contains(&format!("\"{field}\":")), !lost, "{model}: {sent}");
        }
    }
}

/// A list that goes in parts names what any of them lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_parts_names_what_any_part_lost() {
    let house = house().await;
    let one = |task: &str| json!({ "content": { "parts": [{ "text": "a" }] }, "taskType": task });
    // A hundred texts are two requests to Cohere, and it is told one purpose for each of them.
    let mut requests = vec![one("CLUSTERING"); 100];
    requests[1] = one("CLASSIFICATION");
    let path = "/v1beta/models/vec-cohere:batchEmbedContents";
    let reply = post(&house, path, &json!({ "requests": requests })).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
        (200, &"taskType".parse().expect("a value"))
    );
    assert_eq!(house.sim.received().len(), 2);
    let reply = post(&house, path, &json!({ "requests": vec![one("CLUSTERING"); 100] })).await;
    assert!(reply.status().is_success() && !reply.headers().contains_key("x-tollgate-dropped"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_shown_with_what_can_be_asked_of_it() {
    let house = house().await;
    let list: Value = house.get("/v1beta/models").send().await.expect("a reply").json().await.expect("JSON");
    let models = list["models"].as_array().expect("models");
    let one = models.iter().find(|model| model["name"] == "models/vec").expect("the model");
    assert_eq!(one["supportedGenerationMethods"], json!(["embedContent", "batchEmbedContents"]));
}
