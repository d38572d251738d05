//! Links of our own to pictures whose maker hands over base64 only: signed, bounded in bytes and in
//! time, and still there after a restart.

use super::*;
use crate::house::error_of;

const DAY: i64 = 24 * 3_600_000;

fn link(result: &Value, at: usize) -> String {
    let entry = &result["data"][at];
    assert_eq!(entry["b64_json"], "", "one of the two is filled: {entry}");
    entry["url"].as_str().expect("a link").to_owned()
}

/// A link as it is opened by somebody without a key.
async fn open(house: &House, link: &str) -> Response {
    let path = &link[link.find("/v1/").expect("a path of ours")..];
    house.http.get(house.url(path)).send().await.expect("a reply")
}

async fn ended(house: &House, link: &str) {
    let (status, error) = error_of(open(house, link).await).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("link_invalid")), "{link}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_ours_opens_without_a_key_until_it_ends() {
    let mut house = house().await;
    for (model, kilobytes) in [("pictures", 20), ("pictures", 1_500), ("google-pictures", 900), ("imagen-pictures", 30)]
    {
        let prompt = format!("[[sim:kb={kilobytes}]]");
        let (plain, _) = made(&house, model, &prompt, json!({ "n": 1 })).await;
        let letters = plain["data"][0]["b64_json"].as_str().expect("letters");
        let wanted = BASE64_STANDARD.decode(letters).expect("base64");
        let (result, row) = made(&house, model, &prompt, json!({ "n": 2, "response_format": "url" })).await;
        assert_eq!((row.charge.nano(), row.counters.calls), (2 * EACH, 2), "{model}");
        assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "0" }));
        assert_ne!(link(&result, 0), link(&result, 1));
        for at in 0..2 {
            let reply = open(&house, &link(&result, at)).await;
            assert_eq!((reply.status().as_u16(), reply.headers()["content-type"].as_bytes()), (200, &b"image/png"[..]));
            assert_eq!(reply.headers()["x-content-type-options"], "nosniff");
            let bytes = reply.bytes().await.expect("bytes");
            assert!(at > 0 || bytes == wanted, "{model}: the same picture");
            assert!(bytes.len() >= kilobytes * 1_024 && bytes.starts_with(b"\x89PNG"), "{model}");
        }
    }
    let (result, _) = made(&house, "pictures", "a cat", json!({ "response_format": "url" })).await;
    let link = link(&result, 0);
    let path = link[link.find("/v1/").expect("a path")..].to_owned();
    let part = house.http.get(house.url(&path)).header("range", "bytes=0-7").send().await.expect("a reply");
    assert_eq!((part.status().as_u16(), part.bytes().await.expect("bytes").as_ref()), (206, &b"\x89PNG\r\n\x1a\n"[..]));
    let beyond = house.http.get(house.url(&path)).header("range", "bytes=99999999-").send().await.expect("a reply");
    assert_eq!(beyond.status(), 416);
    // Nobody makes a link but us, and none leads elsewhere.
    for (from, to) in [("Signature=", "Signature=A"), ("Expires=", "Expires=9"), ("-0-", "-1-"), (".png", ".jpg")] {
        ended(&house, &link.replace(from, to)).await;
    }
    ended(&house, "/v1/images/files/..%2F..%2Ftollgate.toml?Expires=9999999999&Signature=x").await;
    // It is there after a restart, and gone after its time.
    house.restart().await;
    assert_eq!(open(&house, &link).await.status(), 200);
    let folder = house.dir.join("data/pictures");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 9);
    house.later(DAY + 1_000).await;
    ended(&house, &link).await;
    let store = house.running().app.images.store.as_ref().expect("a store");
    let real = std::fs::metadata(folder.read_dir().expect("a folder").next().expect("a file").expect("read").path());
    let real = real.expect("facts").modified().expect("a time");
    let real = real.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let swept = store.sweep(i64::try_from(real).expect("small") + DAY + 3_600_000).await;
    assert_eq!((swept.gone, swept.failed), (9, 0), "{swept:?}");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_finds_no_room_is_handed_over_as_data() {
    let config = "[images]\naccount_bytes = \"150KiB\"\ntotal_bytes = \"200KiB\"\n".to_owned();
    let mut house = house_with(Plan { config, ..Plan::default() }).await;
    let more = || json!({ "response_format": "url" });
    let (first, _) = made(&house, "pictures", "[[sim:kb=100]]", more()).await;
    let stored = link(&first, 0);
    // One account takes no more than its part, also after a restart, which counts anew.
    for _ in 0..2 {
        let (second, row) = made(&house, "pictures", "[[sim:kb=100]]", more()).await;
        let entry = &second["data"][0];
        assert!(entry["url"] == "" && entry["b64_json"].as_str().is_some_and(|letters| letters.len() > 100_000));
        let warning = &second["warnings"][0];
        assert_eq!(warning["field"], "data[0]", "{warning}");
        assert!(warning["message"].as_str().is_some_and(|text| text.contains("b64_json")), "{warning}");
        assert_eq!(row.charge.nano(), EACH, "it was made");
        house.restart().await;
    }
    // Each of several says for itself that it found none.
    let (third, row) = made(&house, "pictures", "[[sim:kb=30]]", json!({ "n": 3, "response_format": "url" })).await;
    assert!(!link(&third, 0).is_empty() && row.charge.nano() == 3 * EACH, "{}", third["warnings"]);
    let fields = third["warnings"].as_array().expect("warnings").iter().map(|warning| warning["field"].clone());
    assert_eq!(fields.collect::<Vec<_>>(), ["data[1]", "data[2]"]);
    // Neither do all of them together.
    let (_, key) = house.stranger("10").await;
    let body = asked("pictures", "[[sim:kb=120]]", &more());
    let reply = house.http.post(house.url("/v1/images/generations")).bearer_auth(&key).json(&body);
    let result: Value = reply.send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(result["data"][0]["url"], "", "{}", result["warnings"]);
    let small = asked("pictures", "[[sim:kb=20]]", &more());
    let reply = house.http.post(house.url("/v1/images/generations")).bearer_auth(&key).json(&small);
    let result: Value = reply.send().await.expect("a reply").json().await.expect("JSON");
    assert!(!link(&result, 0).is_empty());
    assert_eq!(open(&house, &stored).await.status(), 200, "what was there before is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_pictures_are_kept_links_are_refused_by_name() {
    let config = "[images]\nlinks = false\n".to_owned();
    let without = house_with(Plan { config, ..Plan::default() }).await;
    let with = house().await;
    for (house, more) in
        [(&without, json!({ "response_format": "url" })), (&with, json!({ "response_format": "url", "stream": true }))]
    {
        let body = asked("pictures", "a cat", &more);
        let (status, error) = error_of(make(house, "pictures", "a cat", more).await).await;
        assert_eq!((status, error["param"].as_str()), (400, Some("response_format")), "{error}");
        let url = house.url("/v1/quote?endpoint=/v1/images/generations");
        let quote = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        assert_eq!(error_of(quote).await.0, 400, "a quote refuses what the call would");
        assert!(house.sim.received().is_empty());
    }
}

/// What cannot be decoded is not stored either.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_picture_has_no_link() {
    let house = house().await;
    let more = json!({ "n": 3, "response_format": "url" });
    let (result, row) = made(&house, "pictures", "[[sim:broken fail=1 kb=200]]", more).await;
    assert_eq!(result["data"].as_array().expect("a list").len(), 2, "{result}");
    assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "1" }));
    assert_eq!(row.charge.nano(), 2 * EACH);
    for at in 0..2 {
        assert_eq!(open(&house, &link(&result, at)).await.status(), 200);
    }
}
