//! What goes wrong with pictures, and that it costs nothing.

use super::*;
use crate::house::error_of;

/// MM14, MM15: a 200 that cannot be read, or has no picture, was billed and asked again elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_picture_is_free_and_not_asked_again() {
    let house = house().await;
    for model in MAKERS {
        for scenario in ["none", "garbage", "packed"] {
            if scenario == "garbage" && ["wan-pictures", "kling-pictures"].contains(&model) {
                continue;
            }
            house.sim.clear();
            let reply = make(&house, model, &format!("[[sim:{scenario}]]"), json!({})).await;
            assert_eq!(reply.headers()["x-should-retry"], "false", "{model} {scenario}");
            let (status, error) = free(&house, reply).await;
            // A task says of each picture why it is not there.
            let explained = (model, scenario) == ("wan-pictures", "none");
            let code = if explained { "upstream_error" } else { "upstream_invalid_reply" };
            assert_eq!((status, &error["code"]), (502, &json!(code)), "{model} {scenario}");
            let asked = house.sim.received().iter().filter(|one| one.method == "POST").count();
            assert_eq!(asked, 1, "{model} {scenario}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decoded_is_not_a_picture() {
    let house = house().await;
    for model in ["pictures", "minimax-pictures", "google-pictures", "imagen-pictures", "ark-pictures"] {
        let format = json!({ "response_format": "b64_json" });
        for scenario in ["foreign", "broken"] {
            let reply = make(&house, model, &format!("[[sim:{scenario}]]"), format.clone()).await;
            assert_eq!(free(&house, reply).await.0, 502, "{model} {scenario}");
        }
    }
    // One of three is cut: two are shown and paid.
    for model in ["pictures", "minimax-pictures", "imagen-pictures"] {
        let more = json!({ "n": 3, "response_format": "b64_json" });
        let (result, row) = made(&house, model, "[[sim:broken fail=1]]", more).await;
        assert_eq!((pictures(&result), row.charge.nano()), (2, 2 * EACH), "{model}");
        assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "1" }), "{model}");
    }
}

/// MM2: failed entries of a batch became entries with an empty link, and were charged.
#[tokio::test(flavor = "multi_thread")]
async fn pictures_that_fail_are_neither_shown_nor_charged() {
    let house = house().await;
    for model in ["minimax-pictures", "wan-pictures", "qwen-pictures", "imagen-pictures", "pictures"] {
        let (result, row) = made(&house, model, "[[sim:partial fail=2]]", json!({ "n": 4 })).await;
        assert_eq!(result["data"].as_array().map(Vec::len), Some(2), "{model}");
        assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "2" }), "{model}");
        assert_eq!((row.hold.nano(), row.charge.nano()), (4 * EACH, 2 * EACH), "{model}");
    }
}

/// MM3: a picture whose download failed was dropped in silence, though charged.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_cannot_be_fetched_stays_with_its_link() {
    let house = house().await;
    for code in ["404", "403", "huge"] {
        let prompt = format!("[[sim:link code={code}]]");
        let (result, row) = made(&house, "qwen-pictures", &prompt, json!({ "response_format": "b64_json" })).await;
        let entry = &result["data"][0];
        assert!(entry["url"].as_str().is_some_and(|url| url.starts_with("http")) && entry["b64_json"] == "", "{entry}");
        assert_eq!((&result["warnings"][0]["field"], row.charge.nano()), (&json!("data[0]"), EACH), "{code}");
    }
    // A page is no picture: free.
    let more = json!({ "response_format": "b64_json" });
    let reply = make(&house, "qwen-pictures", "[[sim:link code=html]]", more).await;
    assert_eq!(free(&house, reply).await.0, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_refusal_has_its_own_code_is_free_and_final() {
    let house = house().await;
    for model in MAKERS {
        for scenario in ["moderation", "moderated"] {
            if scenario == "moderated" && ["qwen-pictures", "imagen-pictures"].contains(&model) {
                continue;
            }
            house.sim.clear();
            let reply = make(&house, model, &format!("[[sim:{scenario}]]"), json!({})).await;
            assert_eq!(reply.headers()["x-should-retry"], "false", "{model} {scenario}");
            let (status, error) = free(&house, reply).await;
            assert_eq!(
                (status, &error["code"]),
                (400, &json!("content_policy_violation")),
                "{model} {scenario}: {error}"
            );
            assert!(!error["message"].as_str().expect("a text").contains("req_0123"), "{error}");
            assert_eq!(house.sim.received().iter().filter(|one| one.method == "POST").count(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_failures_of_a_provider_are_reported_as_what_they_are() {
    let house = house().await;
    for model in MAKERS {
        for (scenario, status, repeats) in
            [("limited", 429, true), ("error", 502, false), ("page", 502, false), ("refuse", 400, false)]
        {
            let reply = make(&house, model, &format!("[[sim:{scenario}]]"), json!({})).await;
            let advised = reply.headers().get("x-should-retry").is_none_or(|value| value != "false");
            assert_eq!(advised, repeats, "{model} {scenario}");
            // A proxy's page says nothing of what the maker did; those with codes of their own
            // would have said it in these.
            let own_codes = !["pictures", "old-pictures", "google-pictures", "imagen-pictures"].contains(&model);
            let status = if scenario == "page" && own_codes { 504 } else { status };
            assert_eq!(free(&house, reply).await.0, status, "{model} {scenario}");
        }
    }
}

/// What was sent and not answered may have been made: nobody makes it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_not_asked_for_again() {
    let house = house().await;
    for model in ["two-ways", "ark-pictures", "wan-pictures", "kling-pictures"] {
        house.sim.clear();
        let reply = make(&house, model, "[[sim:lost]]", json!({})).await;
        assert_eq!(reply.headers()["x-should-retry"], "false", "{model}");
        assert_eq!(free(&house, reply).await.0, 502, "{model}");
        assert_eq!(house.sim.received().len(), 1, "{model}");
    }
}

/// MM1: a wait loop that skipped its limit when questions failed never ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_never_over_ends_at_the_limit() {
    let house = house_with(Plan { patience: "400ms", ..Plan::default() }).await;
    for model in ["wan-pictures", "kling-pictures"] {
        for scenario in ["poll_broken", "poll_hang"] {
            house.sim.clear();
            let reply = make(&house, model, &format!("[[sim:{scenario}]]"), json!({})).await;
            assert_eq!(reply.headers()["x-should-retry"], "false", "{model}");
            let (status, error) = free(&house, reply).await;
            assert_eq!((status, &error["code"]), (504, &json!("upstream_timeout")), "{model} {scenario}");
            let begun = house.sim.received().iter().filter(|one| one.method == "POST").count();
            assert_eq!(begun, 1, "{model} {scenario}: never begun again");
        }
    }
    assert_eq!(house.available().await, 10_000_000_000, "nothing stays held");
}

/// MM16: a moderated task was asked for until the time limit.
#[tokio::test(flavor = "multi_thread")]
async fn every_last_word_of_a_task_ends_the_call() {
    let house = house().await;
    for model in ["wan-pictures", "kling-pictures"] {
        house.sim.clear();
        let reply = make(&house, model, "[[sim:moderated]]", json!({})).await;
        assert_eq!(free(&house, reply).await.1["code"], "content_policy_violation", "{model}");
        assert_eq!(house.sim.received().iter().filter(|one| one.method == "GET").count(), 2, "{model}");
        // Whatever the word is, there is one question while it runs and one that tells.
        let words: &[&str] = if model == "wan-pictures" { &["FAILED", "CANCELED", "UNKNOWN"] } else { &["failed"] };
        for word in words {
            house.sim.clear();
            let reply = make(&house, model, &format!("[[sim:ended code={word}]]"), json!({})).await;
            assert_eq!(free(&house, reply).await.0, 502, "{model} {word}");
            assert_eq!(house.sim.received().iter().filter(|one| one.method == "GET").count(), 2, "{model} {word}");
        }
        // A word that nobody knows is a task that runs.
        let (_, row) = made(&house, model, "[[sim:word]]", json!({})).await;
        assert_eq!(row.charge.nano(), EACH, "{model}");
    }
}

/// MM8: whoever left after the first picture paid for one of many.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_pays_for_what_was_made() {
    let house = house().await;
    for model in ["pictures", "qwen-pictures"] {
        house.sim.shut(if model == "pictures" { "/v1/images/generations" } else { "/video/" });
        let body = asked(model, "cats", &json!({ "n": 3 }));
        house.leave(post(&house, "/v1/images/generations", &body)).await;
        house.sim.open();
        house.quiet().await;
        let rows = house.all_rows().await;
        let row = rows.values().find(|row| row.model == model).expect("a row");
        assert_eq!((row.charge.nano(), row.counters.calls), (3 * EACH, 3), "{model}: {row:?}");
    }
}

/// A client that stops reading in the middle of a large answer: the rest is read and counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_mid_picture_pays_for_all_of_them() {
    let house = house().await;
    let mut reply = make(&house, "pictures", "[[sim:kb=3000]]", json!({ "n": 3 })).await;
    let call = call_id(&reply);
    assert!(reply.headers().get("x-tollgate-charge-usd").is_none(), "not certain yet");
    assert!(reply.chunk().await.expect("a piece").is_some());
    drop(reply);
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.counters.calls), (3 * EACH, 3), "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_dies_in_mid_picture_costs_nothing() {
    let house = house().await;
    let reply = make(&house, "pictures", "[[sim:cut kb=10]]", json!({})).await;
    assert_eq!(free(&house, reply).await.0, 502);
    // So much has passed that the answer cannot become an error any more: it breaks off.
    let reply = make(&house, "pictures", "[[sim:cut kb=2000]]", json!({ "n": 4 })).await;
    let call = call_id(&reply);
    if reply.status() == 200 {
        assert!(reply.bytes().await.is_err(), "half a picture is no picture");
    }
    let row = house.row(call).await;
    assert_eq!(row.charge.nano(), 0, "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_refused() {
    let house = house_with(Plan { sim: "reply_bytes = \"1MiB\"", ..Plan::default() }).await;
    let reply = make(&house, "pictures", "[[sim:kb=900]]", json!({})).await;
    let (status, error) = free(&house, reply).await;
    assert_eq!((status, &error["code"]), (502, &json!("upstream_invalid_reply")));
}

/// MM36: what a provider says of its framing is not said to our clients.
#[tokio::test(flavor = "multi_thread")]
async fn framing_headers_are_ours() {
    let house = house().await;
    let reply = make(&house, "pictures", "[[sim:kb=2000]]", json!({})).await;
    let headers = reply.headers().clone();
    assert!(headers.get("content-encoding").is_none() && headers.get("openai-processing-ms").is_none(), "{headers:?}");
    let result: Value = reply.json().await.expect("JSON");
    assert_eq!(pictures(&result), 1);
    let (status, _) = error_of(make(&house, "pictures", "[[sim:packed]]", json!({})).await).await;
    assert_eq!(status, 502);
}
