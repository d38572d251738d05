//! Embeddings when the provider fails, and when there are too many vectors to be held.

use super::{asked, cost, embed, house, vectors};
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::Ending;

/// A reply that cannot be used was paid for by nobody but us: one request, one row, no charge, and
/// nobody is asked to try again.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_without_the_vectors_is_free_and_not_repeated() {
    let plan =
        Plan { catalog: super::CATALOG, config: super::PROVIDERS.to_owned(), patience: "1500ms", ..Plan::default() };
    let house = House::with(plan).await;
    for (marker, code) in [
        ("garbage", "upstream_invalid_reply"),
        ("garbage kind=text", "upstream_invalid_reply"),
        ("garbage kind=binary", "upstream_invalid_reply"),
        ("empty", "upstream_invalid_reply"),
        ("kind=short", "upstream_invalid_reply"),
        ("cut_midstream", "upstream_error"),
        ("cut_midstream cut=fin", "upstream_error"),
        ("hang_midstream", "upstream_timeout"),
    ] {
        for model in ["vec", "vec-cohere", "vec-jina", "vec-dashscope", "vec-gemini"] {
            // The gateway waits for these two as long as it does for real ones.
            if marker == "hang_midstream" && ["vec-cohere", "vec-jina"].contains(&model) {
                continue;
            }
            house.sim.clear();
            let reply = embed(&house, &asked(model, json!(["a", format!("[[sim:{marker}]]")]))).await;
            let (call, once) = (call_id(&reply), reply.headers().get("x-should-retry").cloned());
            let (status, error) = error_of(reply).await;
            assert!(status >= 500 && error["code"] == code, "{model} {marker}: {status} {error}");
            assert_eq!(once.as_ref().map(|value| value.as_bytes()), Some(&b"false"[..]), "{model} {marker}");
            assert_eq!(house.sim.received().len(), 1, "{model} {marker}");
            let row = house.row(call).await;
            assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0), "{model} {marker}");
        }
    }
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_errors_of_embeddings_are_translated_and_free() {
    let house = house().await;
    for (marker, status, code) in [
        ("error400", 400, "invalid_request"),
        ("error401", 502, "upstream_error"),
        ("error404", 502, "upstream_error"),
        ("error429", 429, "rate_limit_exceeded"),
        ("error500", 502, "upstream_error"),
        ("error503", 503, "overloaded"),
        ("html500", 502, "upstream_error"),
        ("kind=inside", 503, "overloaded"),
    ] {
        for model in ["vec", "vec-cohere", "vec-jina", "vec-gemini"] {
            let reply = embed(&house, &asked(model, format!("[[sim:{marker}]]"))).await;
            let call = call_id(&reply);
            let (got, error) = error_of(reply).await;
            assert_eq!((got, &error["code"]), (status, &json!(code)), "{model} {marker}: {error}");
            let text = error.to_string();
            assert!(!text.contains("internal") && !text.contains("sk-sim") && !text.contains('<'), "{marker}: {text}");
            assert_eq!(house.row(call).await.charge.nano(), 0, "{model} {marker}");
        }
    }
    assert_eq!(house.available().await, 10_000_000_000);
}

/// What frames a reply is ours: a provider that compresses is not believed, and nothing of its
/// headers reaches a client.
#[tokio::test(flavor = "multi_thread")]
async fn headers_that_frame_a_reply_are_never_the_providers() {
    let house = house().await;
    for model in ["vec", "vec-cohere", "vec-gemini"] {
        let reply = embed(&house, &asked(model, "[[sim:kind=packed]]")).await;
        assert_eq!(reply.status(), 502, "{model}");
        assert!(!reply.headers().contains_key("content-encoding"), "{model}");
        assert_eq!(reply.headers()["content-type"], "application/json");
        let (_, error) = error_of(reply).await;
        assert_eq!(error["code"], json!("upstream_invalid_reply"), "{model}: our JSON, whatever stands before us");
        let reply = embed(&house, &asked(model, "plain")).await;
        assert!(
            !reply.headers().contains_key("content-encoding") && !reply.headers().contains_key("transfer-encoding")
        );
        let length: usize = reply.headers()["content-length"].to_str().expect("text").parse().expect("a number");
        assert_eq!(reply.bytes().await.expect("a body").len(), length, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_come_in_the_form_that_was_asked_for() {
    let house = house().await;
    let plain: Value = embed(&house, &asked("vec", "a [[sim:kind=floats]]")).await.json().await.expect("JSON");
    let mut body = asked("vec", "a [[sim:kind=floats]]");
    body["encoding_format"] = json!("base64");
    let packed: Value = embed(&house, &body).await.json().await.expect("JSON");
    assert!(packed["data"][0]["embedding"].is_string() && plain["data"][0]["embedding"].is_array());
    assert_eq!(vectors(&packed), vectors(&plain));
    let shuffled: Value =
        embed(&house, &asked("vec", json!(["a", "b [[sim:kind=shuffled]]"]))).await.json().await.expect("JSON");
    let index = |at: usize| shuffled["data"][at]["index"].as_u64();
    assert_eq!((index(0), index(1)), (Some(1), Some(0)), "each says which text it is of");
}

/// More vectors than are held pass; their report at the end is what is charged.
#[tokio::test(flavor = "multi_thread")]
async fn many_vectors_pass_and_are_charged_by_the_report_at_their_end() {
    let house = house().await;
    let texts: Vec<String> = (0..100).map(|at| format!("text {at}")).collect();
    for (model, format) in
        [("vec", "float"), ("vec", "base64"), ("vec-gemini", "float"), ("vec-cohere", "base64"), ("vec-jina", "base64")]
    {
        let mut body = asked(model, json!(if model == "vec-cohere" { &texts[..96] } else { &texts[..] }));
        body["dimensions"] = json!(3_072);
        body["encoding_format"] = json!(format);
        let reply = embed(&house, &body).await;
        assert_eq!(reply.status(), 200, "{model}");
        assert!(!reply.headers().contains_key("x-tollgate-charge-usd"), "{model}: not known before the end");
        let call = call_id(&reply);
        let reply: Value = reply.json().await.expect("JSON");
        let all = vectors(&reply);
        assert_eq!(
            (all.len(), all[0].len(), &reply["model"]),
            (if model == "vec-cohere" { 96 } else { 100 }, 3_072, &json!(model))
        );
        let (tokens, charge, estimated) = cost(&house, call).await;
        assert_eq!(reply["usage"]["prompt_tokens"], json!(tokens), "{model}");
        assert_eq!(
            (charge, estimated),
            (i64::try_from(tokens).expect("few") * 1_000, model == "vec-gemini"),
            "{model}"
        );
    }
    // Whoever repeats the key of so many gets the same, made and paid once.
    let mut body = asked("vec", json!(texts));
    body["dimensions"] = json!(3_072);
    let mut got = Vec::new();
    let sent = house.sim.received().len();
    for _ in 0..2 {
        let request = house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key).json(&body);
        let reply = request.header("idempotency-key", "many").send().await.expect("a reply");
        got.push((call_id(&reply), reply.bytes().await.expect("vectors")));
        house.quiet().await;
    }
    assert!(got[0] == got[1] && got[0].1.len() > 1 << 20 && house.sim.received().len() == sent + 1);
    let (tokens, charge, _) = cost(&house, got[0].0).await;
    assert_eq!(charge, i64::try_from(tokens).expect("few") * 1_000);
    // Broken off on its way: no half of it is taken for the whole, and nothing is charged.
    let mut broken = vec!["text".to_owned(); 299];
    broken.push("[[sim:cut_midstream]]".to_owned());
    let mut body = asked("vec", json!(broken));
    body["dimensions"] = json!(3_072);
    let reply = embed(&house, &body).await;
    let call = call_id(&reply);
    assert!(reply.bytes().await.is_err(), "the transfer is broken off");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge.nano()), (Ending::UpstreamFault, 0));
}

/// A client that leaves while its vectors pass has them made: our own count is charged.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_its_vectors_pays_for_what_was_read() {
    let house = house().await;
    let mut body = asked("vec", json!(vec!["one two [[sim:hang_midstream]]"; 300]));
    body["dimensions"] = json!(3_072);
    let mut reply = embed(&house, &body).await;
    let call = call_id(&reply);
    assert!(reply.chunk().await.expect("a piece").is_some());
    drop(reply);
    let row = house.row(call).await;
    assert_eq!((row.ending, row.estimated), (Ending::ClientLeft, true));
    assert!(row.charge.nano() > 0 && row.charge <= row.hold, "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_pays_nothing() {
    let house = house().await;
    let request =
        house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key).json(&asked("vec", "[[sim:hang]]"));
    house.leave(request).await;
    house.quiet().await;
    let rows = house.all_rows().await;
    let row = rows.values().next().expect("a row");
    assert_eq!((row.ending, row.charge.nano()), (Ending::ClientLeft, 0));
    tokio::time::timeout(Duration::from_secs(60), async {
        while house.sim.received()[0].client_closed_at_ms.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the provider saw it leave");
}

/// What 2,047 good texts and a bad one would cost the operator otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_a_text_that_is_refused_is_charged() {
    let house = house().await;
    let mut texts = vec!["one two"; 20];
    texts[19] = "one two [[sim:error400]]";
    let reply = embed(&house, &asked("vec-parts", json!(texts))).await;
    let (call, once) = (call_id(&reply), reply.headers().get("x-should-retry").cloned());
    assert_eq!(once.expect("a word"), "false");
    let (status, error) = error_of(reply).await;
    let said = error["message"].as_str().expect("a message").to_owned();
    assert!(status == 400 && said.contains("The 18 texts before this part of the list were read"), "{error}");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.charge.nano(), row.counters.input), (Ending::UpstreamFault, 36_000, 36), "{row:?}");
    assert!(row.charge <= row.hold && !row.estimated && row.attempts == 7, "{row:?}");
    // A provider that reports nothing: our own count of the same texts.
    texts[2] = "one two [[sim:no_usage]]";
    let row = house.row(call_id(&embed(&house, &asked("vec-parts", json!(texts))).await)).await;
    let counted: u64 = texts[..18].iter().map(|text| crate::house::counted(text)).sum();
    assert_eq!((row.counters.input, row.estimated), (counted, true), "{row:?}");
    // Nothing was read before the first part.
    texts[0] = "one two [[sim:error400]]";
    texts[2] = "one two [[sim:error400]]";
    let row = house.row(call_id(&embed(&house, &asked("vec-parts", json!(texts))).await)).await;
    assert_eq!((row.charge.nano(), row.attempts), (0, 1), "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_list_in_parts_pays_for_the_parts_that_were_read() {
    let house = house().await;
    let mut texts = vec!["one two"; 9];
    texts[8] = "one two [[sim:hang]]";
    let request = house.http.post(house.url("/v1/embeddings")).bearer_auth(&house.key);
    let mut leaving = tokio::task::JoinSet::new();
    leaving.spawn(request.json(&asked("vec-parts", json!(texts))).send());
    while house.sim.received().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    leaving.shutdown().await;
    house.quiet().await;
    let rows = house.all_rows().await;
    let row = rows.values().next().expect("a row");
    assert_eq!((row.ending, row.charge.nano(), row.counters.input), (Ending::ClientLeft, 12_000, 12), "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_part_that_a_busy_provider_does_not_take_is_asked_for_again() {
    let house = house().await;
    let mut texts = vec!["one two"; 6];
    texts[5] = "one two [[sim:error429 retry_after=0]]";
    let reply = embed(&house, &asked("vec-parts", json!(texts))).await;
    let call = call_id(&reply);
    assert_eq!(error_of(reply).await.0, 429);
    let row = house.row(call).await;
    // A provider that is busy for good is nobody's fault but its own.
    assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::UpstreamFault, 0, 5), "{row:?}");
    assert_eq!(house.sim.received().len(), 5);
}
