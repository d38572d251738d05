//! POST /v1/images/generations with OpenAI's own kind of provider.

use super::*;
use crate::house::error_of;
use crate::v1::speech::readers::resident;

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_made_shown_and_charged() {
    let house = house().await;
    let reply = make(&house, "pictures", "a cat", json!({})).await;
    let (charge, call) = (reply.headers().get("x-tollgate-charge-usd").cloned(), call_id(&reply));
    assert_eq!(reply.headers()["content-type"], "application/json");
    let result: Value = reply.json().await.expect("JSON");
    assert_eq!(pictures(&result), 1);
    assert!(result["created"].as_u64().is_some_and(|at| at > 1_700_000_000), "{result}");
    assert_eq!(result["metadata"], json!({ "success_count": "1", "failed_count": "0" }));
    assert_eq!((&result["data"][0]["url"], &result["background"]), (&json!(""), &json!("opaque")));
    assert_eq!(result["usage"]["total_tokens"], 1_065);
    assert_eq!(charge.expect("a charge"), "0.04");
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.hold.nano(), row.estimated), (EACH, EACH, false));
    assert_eq!((row.counters.calls, row.counters.input), (1, 1), "one prompt token as an accounting entry");
    assert!(row.raw_usage.expect("the provider's report").contains("1065"));
    // What was left out is asked for as it is priced; the newer models refuse a format.
    let sent = house.sim.received().pop().expect("sent").json();
    let expected = json!({
        "model": "sim-image-new", "prompt": "a cat", "n": 1, "size": "1024x1024", "quality": "medium",
    });
    assert_eq!(sent, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effective_format_fills_its_key_and_both_are_there() {
    let house = house().await;
    for (model, format, url, letters) in [
        ("old-pictures", None, true, false),
        ("old-pictures", Some("url"), true, false),
        ("old-pictures", Some("b64_json"), false, true),
        ("pictures", None, false, true),
        ("pictures", Some("b64_json"), false, true),
        ("pictures", Some("url"), true, false),
        ("minimax-pictures", None, true, false),
        ("minimax-pictures", Some("b64_json"), false, true),
        ("ark-pictures", Some("b64_json"), false, true),
        ("google-pictures", None, false, true),
    ] {
        let more = format.map_or(json!({}), |format| json!({ "response_format": format }));
        let (result, row) = made(&house, model, "a cat", more).await;
        let entry = &result["data"][0];
        let filled = |key: &str| !entry[key].as_str().expect("always there").is_empty();
        assert_eq!((filled("url"), filled("b64_json")), (url, letters), "{model} {format:?}: {entry}");
        assert_eq!(row.charge.nano(), EACH);
    }
    // Links of providers that only have these, where the data is wanted.
    let (result, _) = made(&house, "qwen-pictures", "a cat", json!({ "response_format": "b64_json" })).await;
    assert_eq!(pictures(&result), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn n_multiplies_the_hold_and_delivered_pictures_the_charge() {
    let house = house().await;
    let (result, row) = made(&house, "pictures", "cats", json!({ "n": 4 })).await;
    assert_eq!(pictures(&result), 4);
    let entries = result["data"].as_array().expect("a list");
    assert!(entries.iter().all(|one| entries.iter().filter(|other| *other == one).count() == 1), "each is its own");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.counters.calls), (4 * EACH, 4 * EACH, 4));
    for n in [json!(0), json!(5), json!(-1), json!("many"), json!(1.5)] {
        let reply = make(&house, "pictures", "cats", json!({ "n": n })).await;
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["param"]), (400, &json!("n")), "{n}");
    }
}

/// MM6: more pictures than asked for were handed over and not charged elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn more_pictures_than_asked_for_are_neither_shown_nor_charged() {
    let house = house().await;
    for model in ["pictures", "old-pictures", "minimax-pictures", "qwen-pictures"] {
        let (result, row) = made(&house, model, "[[sim:surplus made=8]]", json!({})).await;
        assert_eq!(result["data"].as_array().map(Vec::len), Some(1), "{model}");
        assert_eq!((row.charge.nano(), row.counters.calls), (EACH, 1), "{model}");
    }
}

/// MM17: the reply of a repeated key is that of the first, and so is the charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gets_the_same_pictures_and_pays_once() {
    let house = house().await;
    let send = async |prompt: &str| {
        let body = asked("pictures", prompt, &json!({}));
        post(&house, "/v1/images/generations", &body).header("idempotency-key", "k-1").send().await.expect("a reply")
    };
    let first = send("a cat").await;
    let call = call_id(&first);
    let first = first.bytes().await.expect("a body");
    let again = send("a cat").await;
    assert_eq!((again.headers()["idempotency-replayed"].as_bytes(), call_id(&again)), (&b"true"[..], call));
    assert_eq!(again.bytes().await.expect("a body"), first);
    assert_eq!(error_of(send("a dog").await).await.0, 409);
    assert_eq!(house.sim.received().len(), 1);
    assert_eq!(house.all_rows().await.len(), 1);
}

/// MM17: a repeated key hid the first error behind another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gets_the_same_error() {
    let house = house().await;
    let send = async || {
        let body = asked("pictures", "[[sim:lost]]", &json!({}));
        let reply = post(&house, "/v1/images/generations", &body)
            .header("idempotency-key", "k-2")
            .send()
            .await
            .expect("a reply");
        assert_eq!(reply.headers()["x-should-retry"], "false");
        error_of(reply).await
    };
    let first = send().await;
    house.quiet().await;
    assert_eq!((first.0, send().await), (502, first));
    assert_eq!(house.sim.received().len(), 1, "it may have been made: nobody makes it again");
}

/// MM5: a picture model asked by chat was billed for millions of tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_pictures_is_refused_where_it_is_not_offered() {
    let house = house().await;
    let messages = json!([{ "role": "user", "content": "a cat" }]);
    for model in MAKERS {
        for (path, body) in [
            ("/v1/chat/completions", json!({ "model": model, "messages": messages })),
            ("/v1/messages", json!({ "model": model, "messages": messages, "max_tokens": 5 })),
            ("/v1/responses", json!({ "model": model, "input": "a cat" })),
            ("/v1/videos", json!({ "model": model, "prompt": "a cat" })),
        ] {
            let reply = post(&house, path, &body).send().await.expect("a reply");
            assert_eq!(reply.status(), 400, "{model} {path}");
        }
    }
    let reply = make(&house, "plain", "a cat", json!({})).await;
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (400, &json!("unsupported_value")));
    assert_eq!(house.sim.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_pass_to_openai_and_are_reported_elsewhere() {
    let house = house().await;
    let more = json!({ "user": "u-1", "background": "opaque" });
    made(&house, "pictures", "a cat", more.clone()).await;
    let sent = house.sim.received().pop().expect("sent").json();
    assert_eq!((&sent["user"], &sent["background"]), (&json!("u-1"), &json!("opaque")));
    let reply = make(&house, "minimax-pictures", "a cat", json!({ "user": "u-1", "quality": "high", "seed": 3 })).await;
    assert_eq!(reply.headers()["x-tollgate-dropped"], "user,quality");
    assert_eq!(house.sim.received().pop().expect("sent").json()["seed"], 3);
}

/// MM38: options that cost more at a provider are refused where they have no price.
#[tokio::test(flavor = "multi_thread")]
async fn what_costs_more_and_has_no_price_is_refused_by_its_name() {
    let house = house().await;
    for (model, more, field) in [
        ("pictures", json!({ "output_format": "svg" }), "output_format"),
        ("pictures", json!({ "output_format": "GIF" }), "output_format"),
        ("pictures", json!({ "input_fidelity": "high" }), "input_fidelity"),
        ("pictures", json!({ "quality": "max" }), "quality"),
        ("qwen-pictures", json!({ "prompt_extend": true }), "prompt_extend"),
        ("ark-pictures", json!({ "sequential_image_generation": "auto" }), "sequential_image_generation"),
        ("ark-pictures", json!({ "tools": [{ "type": "web_search" }] }), "tools"),
    ] {
        let (status, error) = error_of(make(&house, model, "a cat", more).await).await;
        assert_eq!((status, &error["param"]), (400, &json!(field)), "{model}");
    }
    assert_eq!(house.sim.received().len(), 0);
}

/// A large answer passes while it is rewritten, and is the same.
#[tokio::test(flavor = "multi_thread")]
async fn large_pictures_pass() {
    let house = house().await;
    for model in ["pictures", "minimax-pictures", "google-pictures", "imagen-pictures", "ark-pictures", "qwen-pictures"]
    {
        let more = json!({ "n": 3, "response_format": "b64_json" });
        let (result, row) = made(&house, model, "[[sim:kb=900]]", more).await;
        let first = result["data"][0]["b64_json"].as_str().expect("letters");
        assert!(first.len() > 900 * 1024, "{model}");
        assert_eq!((pictures(&result), row.charge.nano(), row.counters.calls), (3, 3 * EACH, 3), "{model}");
        assert_eq!(result["metadata"]["success_count"], "3", "{model}");
    }
}

/// MM35: a reader that takes nothing holds nothing but what is on its way: the provider waits with
/// it. Each has a picture of 20 MB on offer; the bound is that of speech, which has more readers.
#[tokio::test(flavor = "multi_thread")]
async fn large_pictures_wait_for_their_reader() {
    const READERS: usize = 40;
    const MIB: u64 = 20;
    const MOST: u64 = READERS as u64 * MIB * 1024 / 8;
    let config = "[limits]\nwrite_time = \"1h\"\n".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let prompt = format!("[[sim:huge mib={MIB}]]");
    let before = resident();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let reply = make(&house, "pictures", &prompt, json!({})).await;
        assert_eq!(reply.status(), 200);
        readers.push(reply);
    }
    // None of them has read: none of the answers is through, and all calls are open.
    let open = house.running().app.running.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(open, READERS, "no answer was taken ahead of its reader");
    let mut most = resident().saturating_sub(before);
    assert!(most < MOST, "{most} KiB more for {READERS} readers");
    for mut reply in readers.drain(..).take(5) {
        let (call, mut read) = (call_id(&reply), 0);
        while let Some(piece) = reply.chunk().await.expect("a whole answer") {
            read += piece.len() as u64;
        }
        most = most.max(resident().saturating_sub(before));
        assert!(read > MIB << 20, "{read} bytes");
        assert_eq!(house.row(call).await.charge.nano(), EACH);
    }
    assert!(most < MOST, "{most} KiB more while they read");
}
