//! POST /v1/rerank and POST /v2/rerank.

use crate::house::{House, Plan, call_id, error_of};
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::Ending;

/// A token costs 1,000 nano-USD, a search 2,000,000.
pub const CATALOG: &str = r#"
[model."rank"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."rank-jina"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-jina", upstream_model = "sim-plain" }]

[model."rank-cohere"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
billing_unit = "per_call"
price = { per_call = 2_000 }
route = [{ provider = "sim-cohere", upstream_model = "sim-plain" }]
"#;

async fn house() -> House {
    let config = super::embeddings::PROVIDERS.to_owned();
    House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await
}

async fn post(house: &House, path: &str, body: &Value) -> Response {
    house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

fn asked(model: &str) -> Value {
    let documents = json!(["a green apple", { "text": "a red apple" }, "nothing at all"]);
    json!({ "model": model, "query": "red apple", "documents": documents })
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_come_in_order_whoever_ranks_them() {
    let house = house().await;
    for model in ["rank", "rank-jina", "rank-cohere"] {
        for path in ["/v1/rerank", "/v2/rerank"] {
            let reply = post(&house, path, &asked(model)).await;
            assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
            let call = call_id(&reply);
            let body: Value = reply.json().await.expect("JSON");
            let order: Vec<u64> =
                body["results"].as_array().expect("results").iter().filter_map(|one| one["index"].as_u64()).collect();
            assert_eq!(order, [1, 0, 2], "{model}: {body}");
            assert_eq!((&body["results"][0]["relevance_score"], &body["model"]), (&json!(1.0), &json!(model)));
            assert_eq!(body["meta"]["billed_units"]["search_units"], json!(1));
            assert!(body["results"][0]["document"].is_null() && body["id"] == json!(call.to_string()));
            let row = house.row(call).await;
            assert_eq!((row.endpoint.as_ref(), row.ending), (path, Ending::Answered));
            // Three documents of eight words, and the question with each of them.
            let charge = if model == "rank-cohere" { 2_000_000 } else { (9 + 3 * 2) * 1_000 };
            assert_eq!((row.charge.nano(), row.hold >= row.charge), (charge, true), "{model}: {row:?}");
            assert_eq!(row.estimated, model == "rank-cohere", "{model}: Cohere tells no tokens");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_is_wanted_and_the_documents_when_they_are() {
    let house = house().await;
    for model in ["rank-jina", "rank-cohere"] {
        let mut body = asked(model);
        body["top_n"] = json!(2);
        body["return_documents"] = json!(true);
        house.sim.clear();
        let ranked: Value = post(&house, "/v1/rerank", &body).await.json().await.expect("JSON");
        assert_eq!(ranked["results"].as_array().map(Vec::len), Some(2), "{model}");
        assert_eq!(ranked["results"][0]["document"], json!({ "text": "a red apple" }));
        let sent = house.sim.received()[0].json();
        assert_eq!(sent["documents"][1], json!("a red apple"), "{model}: plain texts");
        assert_ne!(sent["return_documents"], json!(true), "{model}: nobody sends back what we have");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_is_not_told_is_named() {
    let house = house().await;
    for (model, dropped) in
        [("rank-jina", "max_chunks_per_doc,max_tokens_per_doc,user"), ("rank-cohere", "max_chunks_per_doc,user")]
    {
        let mut body = asked(model);
        body["return_documents"] = json!(true);
        body["max_tokens_per_doc"] = json!(512);
        body["max_chunks_per_doc"] = json!(10);
        body["user"] = json!("u");
        for path in ["/v1/rerank", "/v2/rerank"] {
            let reply = post(&house, path, &body).await;
            assert_eq!(reply.headers()["x-tollgate-dropped"], dropped, "{model} {path}");
            assert_eq!(house.row(call_id(&reply)).await.dropped.as_deref(), Some(dropped), "{model} {path}");
        }
        let plain = post(&house, "/v1/rerank", &asked(model)).await;
        assert!(!plain.headers().contains_key("x-tollgate-dropped"), "{model}");
    }
}

/// What the price goes by is not left out on the way.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_price_goes_by_reaches_the_provider_or_is_refused() {
    const TIERS: &str = r#"
[model."rank-tiers"]
type = "rerank"
supported_endpoint_types = ["jina-rerank"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-jina", upstream_model = "sim-plain" }]
tier = [{ name = "short", when = [{ dim = "request_attr", path = "max_tokens_per_doc", equals = 512 }], multiplier = 2 }]

[model."vec-tiers"]
type = "embedding"
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
tier = [{ name = "late", when = [{ dim = "request_attr", path = "task", equals = "x" }], multiplier = 2 }]
"#;
    let config = super::embeddings::PROVIDERS.to_owned();
    let house = House::with(Plan { catalog: TIERS, config, ..Plan::default() }).await;
    let mut body = asked("rank-tiers");
    body["max_tokens_per_doc"] = json!(512);
    let embedding = json!({ "model": "vec-tiers", "input": "a", "task": "x" });
    for (path, body, param) in [("/v1/rerank", &body, "max_tokens_per_doc"), ("/v1/embeddings", &embedding, "task")] {
        for path in [path.to_owned(), format!("/v1/quote?endpoint={path}")] {
            let (status, error) = error_of(post(&house, &path, body).await).await;
            assert_eq!((status, &error["param"]), (400, &json!(param)), "{path}: {error}");
        }
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
    assert_eq!(post(&house, "/v1/rerank", &asked("rank-tiers")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hundred_documents_are_a_search() {
    let house = house().await;
    for (documents, units) in [(1, 1), (100, 1), (101, 2), (250, 3)] {
        let body = json!({ "model": "rank-cohere", "query": "q", "documents": vec!["d"; documents] });
        for path in ["/v1/rerank", "/v2/rerank"] {
            let quote = format!("/v1/quote?endpoint={path}");
            let quoted: Value = post(&house, &quote, &body).await.json().await.expect("JSON");
            let row = house.row(call_id(&post(&house, path, &body).await)).await;
            assert_eq!((row.charge.nano(), row.hold.nano()), (units * 2_000_000, units * 2_000_000), "{documents}");
            assert_eq!(quoted["total_nano_usd"].as_i64(), Some(units * 2_000_000), "{documents}");
            assert_eq!((quoted["endpoint"].as_str(), row.endpoint.as_ref()), (Some(path), path));
        }
    }
}

/// Cohere cuts long documents into pieces and bills each of them as a document.
#[tokio::test(flavor = "multi_thread")]
async fn long_documents_are_as_many_searches_as_the_provider_bills() {
    let house = house().await;
    for (documents, words, units) in [(100, 499, 1), (100, 500, 2), (60, 999, 2), (50, 2_000, 3), (1, 2_000, 1)] {
        let body = json!({ "model": "rank-cohere", "query": "q", "documents": vec!["red ".repeat(words); documents] });
        let quoted: Value = post(&house, "/v1/quote?endpoint=/v1/rerank", &body).await.json().await.expect("JSON");
        let row = house.row(call_id(&post(&house, "/v1/rerank", &body).await)).await;
        assert_eq!(row.charge.nano(), units * 2_000_000, "{documents} of {words}");
        assert!(row.hold >= row.charge && quoted["most_nano_usd"].as_i64() == Some(row.hold.nano()), "{quoted}");
        // A server that bills by the search and does not cut is paid by the hundred.
        let plain = json!({ "model": "rank-cohere", "query": "q [[sim:no_usage]]", "documents": body["documents"] });
        let row = house.row(call_id(&post(&house, "/v1/rerank", &plain).await)).await;
        assert_eq!(row.charge.nano(), 2_000_000, "{documents} of {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_none_is_free_and_not_repeated() {
    let house = house().await;
    for (marker, code) in [
        ("garbage", "upstream_invalid_reply"),
        ("empty", "upstream_invalid_reply"),
        ("cut_midstream", "upstream_error"),
        ("kind=inside", "overloaded"),
        ("error400", "invalid_request"),
        ("error500", "upstream_error"),
    ] {
        for model in ["rank", "rank-jina", "rank-cohere"] {
            house.sim.clear();
            let body = json!({ "model": model, "query": format!("q [[sim:{marker}]]"), "documents": ["d"] });
            let reply = post(&house, "/v1/rerank", &body).await;
            let call = call_id(&reply);
            let once = reply.headers().get("x-should-retry").is_some_and(|value| value == "false");
            let (_, error) = error_of(reply).await;
            assert_eq!(error["code"], json!(code), "{model} {marker}: {error}");
            assert_eq!(once, ["garbage", "empty", "cut_midstream", "error400"].contains(&marker), "{model} {marker}");
            assert_eq!((house.sim.received().len(), house.row(call).await.charge.nano()), (1, 0), "{model} {marker}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_ranks_once() {
    let house = house().await;
    for (at, path) in ["/v1/rerank", "/v2/rerank"].into_iter().enumerate() {
        let ask = |body: Value| {
            let request = house.http.post(house.url(path)).bearer_auth(&house.key);
            request.header("idempotency-key", path).json(&body).send()
        };
        let first = ask(asked("rank")).await.expect("a reply").text().await.expect("text");
        house.quiet().await;
        let again = ask(asked("rank")).await.expect("a reply");
        assert!(again.headers().contains_key("idempotency-replayed"), "{path}");
        assert_eq!(again.text().await.expect("text"), first, "{path}");
        assert_eq!(ask(asked("rank-jina")).await.expect("a reply").status(), 409, "{path}");
        assert_eq!(house.all_rows().await.len(), at + 1, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_ranked_is_refused_by_name() {
    let house = house().await;
    for (body, param) in [
        (json!({ "model": "rank", "documents": ["a"] }), "query"),
        (json!({ "model": "rank", "query": "q" }), "documents"),
        (json!({ "model": "rank", "query": "q", "documents": [] }), "documents"),
        (json!({ "model": "rank", "query": "q", "documents": [{ "image": "x" }] }), "documents[0]"),
        (json!({ "model": "rank", "query": "q", "documents": ["a"], "top_n": 0 }), "top_n"),
        (json!({ "model": "plain", "query": "q", "documents": ["a"] }), "model"),
    ] {
        let (status, error) = error_of(post(&house, "/v1/rerank", &body).await).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{error}");
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}
