//! Results that an Idempotency-Key asks for again, however large: the same bytes, made and charged
//! once.

use super::*;
use crate::house::error_of;

const DAY: i64 = 24 * 3_600_000;

async fn keyed(house: &House, key: &str, model: &str, more: Value) -> Response {
    let body = asked(model, "[[sim:kb=900]]", &more);
    post(house, "/v1/images/generations", &body).header("idempotency-key", key).send().await.expect("a reply")
}

/// What is not stored is refused, and not made again.
async fn conflict(house: &House, key: &str, more: Value) {
    conflict_of(house, key, "pictures", more).await;
}

async fn conflict_of(house: &House, key: &str, model: &str, more: Value) {
    let sent = house.sim.received().len();
    let (status, error) = error_of(keyed(house, key, model, more).await).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")), "{error}");
    assert_eq!(house.sim.received().len(), sent, "it was made again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_the_same_again_by_its_key() {
    let mut house = house().await;
    for model in ["pictures", "google-pictures", "qwen-pictures"] {
        let more = json!({ "n": 3, "response_format": "b64_json" });
        let first = keyed(&house, model, model, more.clone()).await;
        let (call, kind) = (call_id(&first), first.headers()["content-type"].clone());
        assert_eq!((first.status().as_u16(), first.headers().get("idempotency-replayed")), (200, None), "{model}");
        let bytes = first.bytes().await.expect("a body");
        assert!(bytes.len() > 3 * 900 * 1_024, "{model}: {} bytes", bytes.len());
        let result: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(pictures(&result), 3, "{model}");
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.counters.calls), (3 * EACH, 3), "{model}");
        let sent = house.sim.received().len();
        for restarted in [false, true] {
            let again = keyed(&house, model, model, more.clone()).await;
            assert_eq!((again.status().as_u16(), call_id(&again)), (200, call), "{model}");
            assert_eq!(
                (&again.headers()["idempotency-replayed"], &again.headers()["content-type"]),
                (&"true".parse().expect("a value"), &kind)
            );
            assert!(again.bytes().await.expect("a body") == bytes, "{model}: not the same bytes");
            if !restarted {
                house.restart().await;
            }
        }
        assert_eq!(house.sim.received().len(), sent, "{model}: made again");
        conflict(&house, model, json!({ "n": 2 })).await;
    }
    // It is no picture that a link could lead to, and is taken away with them.
    let folder = house.dir.join("data/pictures");
    let names: Vec<_> = folder.read_dir().expect("a folder").map(|file| file.expect("read").file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        let path = format!("/v1/images/files/{}?Expires=9999999999&Signature=x", name.to_string_lossy());
        let reply = house.http.get(house.url(&path)).send().await.expect("a reply");
        assert!(reply.status().is_client_error(), "{}", reply.status());
    }
    let store = house.running().app.images.store.as_ref().expect("a store");
    let facts = std::fs::metadata(folder.join(&names[0])).expect("facts");
    let made = facts.modified().expect("a time").duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let swept = store.sweep(i64::try_from(made).expect("small") + DAY + 3_600_000).await;
    assert_eq!((swept.gone, swept.failed), (3, 0), "{swept:?}");
    conflict(&house, "pictures", json!({ "n": 3, "response_format": "b64_json" })).await;
}

/// A stranger fills nobody's disk: without room a result passes as it would without a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_finds_no_room_is_handed_over_and_not_stored() {
    for config in ["[images]\naccount_bytes = \"1MiB\"\n", "[images]\nlinks = false\n"] {
        let house = house_with(Plan { config: config.to_owned(), ..Plan::default() }).await;
        let more = json!({ "n": 2, "response_format": "b64_json" });
        let first = keyed(&house, "a", "pictures", more.clone()).await;
        let call = call_id(&first);
        let result: Value = first.json().await.expect("JSON");
        assert_eq!((pictures(&result), house.row(call).await.charge.nano()), (2, 2 * EACH), "{config}");
        conflict(&house, "a", more).await;
        assert_eq!(house.dir.join("data/pictures").read_dir().map_or(0, Iterator::count), 0, "{config}");
    }
}

/// Whoever leaves has paid, and finds the result by the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_left_finds_its_result() {
    let house = house().await;
    let more = json!({ "n": 3, "response_format": "b64_json" });
    let mut first = keyed(&house, "a", "pictures", more.clone()).await;
    let call = call_id(&first);
    assert!(first.chunk().await.expect("a piece").is_some());
    drop(first);
    assert_eq!(house.row(call).await.charge.nano(), 3 * EACH);
    let again = keyed(&house, "a", "pictures", more).await;
    assert_eq!((again.status().as_u16(), call_id(&again)), (200, call));
    assert_eq!(pictures(&again.json().await.expect("JSON")), 3);
    assert_eq!(house.sim.received().len(), 1);
}

/// What breaks off while it is spooled for its key is nobody's: it costs what it would without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_that_breaks_off_is_free() {
    let house = house().await;
    let before = house.available().await;
    for (model, marker, n) in [
        ("pictures", "[[sim:cut kb=1500]]", 1),
        ("pictures", "[[sim:cut kb=1500 cut=fin]]", 2),
        ("google-pictures", "[[sim:cut kb=1500]]", 1),
    ] {
        let body = asked(model, marker, &json!({ "n": n, "response_format": "b64_json" }));
        let sent = house.sim.received().len();
        for _ in 0..2 {
            let request = post(&house, "/v1/images/generations", &body).header("idempotency-key", body.to_string());
            let (status, error) = error_of(request.send().await.expect("a reply")).await;
            assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")), "{body}: {error}");
        }
        assert_eq!(house.sim.received().len() - sent, 1, "{body}: made again");
    }
    house.quiet().await;
    let rows = house.all_rows().await;
    assert!(rows.values().all(|row| row.charge.is_zero() && row.counters.calls == 0), "{rows:?}");
    assert_eq!((house.available().await, rows.len()), (before, 3));
}

/// No room to spool it, from the beginning or for the rest of it: it passes, whole and paid.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_spooled_passes() {
    for (spool, kb) in [("2MiB", 1_500), ("40MiB", 9_000)] {
        let config = format!("[limits]\nupload_bytes = \"1MiB\"\nspool_bytes = \"{spool}\"\n");
        let house = house_with(Plan { config, ..Plan::default() }).await;
        let more = json!({ "n": 1, "response_format": "b64_json" });
        let body = asked("pictures", &format!("[[sim:kb={kb}]]"), &more);
        let post = || post(&house, "/v1/images/generations", &body);
        let without: Value = post().send().await.expect("a reply").json().await.expect("JSON");
        let first = post().header("idempotency-key", "a").send().await.expect("a reply");
        let call = call_id(&first);
        let result: Value = first.json().await.expect("JSON");
        assert!(result["data"] == without["data"] && pictures(&result) == 1, "{spool}: not the same");
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.counters.calls, row.reason.as_str()), (EACH, 1, ""), "{spool}");
        let again = post().header("idempotency-key", "a").send().await.expect("a reply");
        assert_eq!((again.status().as_u16(), house.sim.received().len()), (409, 2), "{spool}");
    }
}

/// Events leave as they come, also where a key may ask for them again.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_not_kept() {
    let house = house().await;
    let more = json!({ "n": 2, "stream": true, "response_format": "b64_json" });
    let first = keyed(&house, "a", "google-pictures", more.clone()).await;
    assert_eq!(first.headers()["content-type"], "text/event-stream");
    let text = first.text().await.expect("events");
    assert_eq!(text.matches("event: image_generation.completed").count(), 2);
    house.quiet().await;
    conflict_of(&house, "a", "google-pictures", more).await;
    assert_eq!(house.dir.join("data/pictures").read_dir().map_or(0, Iterator::count), 0);
}
