//! Pictures as events, with previews and without.

use super::*;
use crate::dialects::scripted::{Scripted, Written};
use crate::house::{error_of, events};
use crate::watch::HANG;
use std::sync::Arc;
use tokio::sync::Notify;

async fn stream(house: &House, model: &str, prompt: &str, more: Value) -> (String, UsageRow) {
    let mut body = asked(model, prompt, &more);
    body["stream"] = json!(true);
    let reply = post(house, "/v1/images/generations", &body).send().await.expect("a reply");
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["content-type"]),
        (200, &"text/event-stream".parse().expect("a type"))
    );
    assert_eq!(reply.headers()["cache-control"], "no-cache");
    let call = call_id(&reply);
    let text = reply.text().await.expect("all of it");
    (text, house.row(call).await)
}

fn kinds(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_pass_and_finished_pictures_are_charged() {
    let house = house().await;
    let more = json!({ "n": 2, "partial_images": 2 });
    let (text, row) = stream(&house, "pictures", "[[sim:kb=300]]", more).await;
    let (preview, done) = ("image_generation.partial_image", "image_generation.completed");
    assert_eq!(kinds(&text), [preview, preview, done, preview, preview, done]);
    assert!(
        events(&text).iter().all(|event| event["b64_json"].as_str().is_some_and(|letters| letters.len() > 300 * 1024))
    );
    assert_eq!((row.charge.nano(), row.counters.calls), (2 * EACH, 2));
    let sent = house.sim.received().pop().expect("sent").json();
    assert_eq!((&sent["stream"], &sent["partial_images"]), (&json!(true), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn makers_without_streams_are_streamed_by_us() {
    let house = house().await;
    for model in ["old-pictures", "minimax-pictures", "ark-pictures", "google-pictures", "wan-pictures"] {
        let (text, row) = stream(&house, model, "cats", json!({ "n": 2, "response_format": "b64_json" })).await;
        assert_eq!(kinds(&text), ["image_generation.completed"; 2], "{model}");
        let events_seen = events(&text);
        assert!(
            events_seen
                .iter()
                .all(|event| event["type"] == "image_generation.completed" && event["created_at"].is_u64())
        );
        assert!(events_seen.iter().all(|event| !event["b64_json"].as_str().unwrap_or_default().is_empty()), "{model}");
        assert_eq!(row.charge.nano(), 2 * EACH, "{model}");
    }
    // A provider that was asked for a stream and answers at once.
    let (text, row) = stream(&house, "pictures", "[[sim:whole]]", json!({})).await;
    assert_eq!((kinds(&text), row.charge.nano()), (vec!["image_generation.completed".to_owned()], EACH));
}

const SCRIPTED: &str = r#"
[model."scripted-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true }
route = [{ provider = "script", upstream_model = "any" }]
"#;

/// All that is large comes in one answer, of which the second half is late.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_ends_with_its_picture() {
    let picture =
        [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01", &[7; 900 << 10][..], b"\0\0\0\0IEND\xaeB`\x82"].concat();
    let entry = json!({ "b64_json": BASE64_STANDARD.encode(picture) });
    let late = Arc::new(Notify::new());
    let answer = Written::json(json!({ "created": 1, "data": [entry, entry] })).waits_after("\"}", late.clone());
    let config = Scripted::start(vec![answer]).await.config("openai");
    let house = House::with(Plan { catalog: SCRIPTED, config, ..Plan::default() }).await;
    let body = asked("scripted-pictures", "cats", &json!({ "n": 2, "stream": true }));
    let mut reply = post(&house, "/v1/images/generations", &body).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = Vec::new();
    while !text.ends_with(b"}\n\n") {
        let piece = tokio::time::timeout(HANG, reply.chunk()).await.expect("the end of the first event");
        text.extend_from_slice(&piece.expect("a piece").expect("more"));
    }
    late.notify_one();
    text.extend_from_slice(&reply.bytes().await.expect("the rest"));
    let text = String::from_utf8(text).expect("text");
    assert_eq!((kinds(&text).len(), house.row(call).await.charge.nano()), (2, 2 * EACH));
    assert!(events(&text).iter().all(|event| event["b64_json"] == entry["b64_json"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_are_refused_where_they_are_not_on_sale() {
    let house = house().await;
    for (model, more) in
        [("old-pictures", json!({ "stream": true, "partial_images": 1 })), ("pictures", json!({ "partial_images": 1 }))]
    {
        let (status, error) = error_of(make(&house, model, "a cat", more).await).await;
        assert_eq!((status, &error["param"]), (400, &json!("partial_images")), "{model}");
    }
}

/// MM8: leave at every event, and pay what the provider bills.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_left_is_read_to_its_end_and_paid() {
    let house = house().await;
    for left_after in 0..3 {
        let body = asked("pictures", &format!("cats {left_after} [[sim:kb=600]]"), &json!({ "n": 3, "stream": true }));
        let mut reply = post(&house, "/v1/images/generations", &body).send().await.expect("a reply");
        let call = call_id(&reply);
        let mut seen = 0;
        while seen < left_after {
            let piece = reply.chunk().await.expect("a piece").expect("more");
            seen += piece.windows(2).filter(|window| *window == b"\n\n").count();
        }
        drop(reply);
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.counters.calls), (3 * EACH, 3), "left after {left_after}: {row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_fails_says_so_and_what_was_finished_is_paid() {
    let house = house().await;
    let (text, row) = stream(&house, "pictures", "[[sim:midstream n=1]]", json!({ "n": 3 })).await;
    assert_eq!(kinds(&text), ["image_generation.completed", "error"]);
    assert!(!text.contains("internal"), "{text}");
    let last = events(&text).pop().expect("an event");
    assert_eq!(last["error"]["code"], "upstream_error", "{last}");
    assert_eq!((row.charge.nano(), row.counters.calls), (EACH, 1));
    // Before the first event it is an error like any other.
    let body = asked("pictures", "[[sim:moderation]]", &json!({ "stream": true }));
    let reply = post(&house, "/v1/images/generations", &body).send().await.expect("a reply");
    assert_eq!(free(&house, reply).await.0, 400);
}

const COPIED: &str = r#"
[model."scripted-stream"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, streams = true, most = 4 }
route = [{ provider = "script", upstream_model = "any" }]
"#;

/// Letters of a small picture, some of which can be escaped.
fn letters() -> String {
    let picture = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01", &[0xfb; 900][..], b"\0\0\0\0IEND\xaeB`\x82"];
    BASE64_STANDARD.encode(picture.concat())
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// Whoever copies OpenAI's events calls them as he likes: what is handed over is counted and paid.
#[tokio::test(flavor = "multi_thread")]
async fn no_picture_of_a_copied_stream_is_free() {
    let (own, kind) = (letters(), "image_generation.completed");
    let one = data(&json!({ "type": kind, "b64_json": own }));
    let escaped = one.replace('/', "\\/").replace('+', "\\u002b");
    let cut = data(&json!({ "type": kind, "b64_json": &own[..800] }));
    let preview = data(&json!({ "type": "image_generation.partial_image", "b64_json": own }));
    let same = |text: String, asked: u64, paid: i64| (text.clone(), asked, paid, text, false);
    // What came, for how many, how many are paid, what leaves of it, and whether an error follows.
    let cases = [
        same(data(&json!({ "type": "image_edit.completed", "b64_json": own })), 1, 1),
        same(data(&json!({ "type": "image.done", "b64_json": own })), 1, 1),
        same(data(&json!({ "b64_json": own })), 1, 1),
        same(format!("event: {kind}\n{}", data(&json!({ "b64_json": own }))), 1, 1),
        same(data(&json!({ "type": kind, "data": [{ "b64_json": own }, { "b64_json": own }] })), 2, 2),
        same(data(&json!({ "type": kind, "url": "https://media.example/1.png" })), 1, 1),
        same(format!("{one}{}", data(&json!({ "type": "over", "usage": { "total_tokens": 7 } }))), 1, 1),
        same(one.replace('\n', "\r\n"), 1, 1),
        same(one.replacen("data: ", "data:", 1), 1, 1),
        same(escaped, 1, 1),
        (one.trim_end().to_owned(), 1, 1, one.clone(), false),
        (one.repeat(3), 2, 2, one.repeat(2), false),
        (format!("{one}data: <html>\n\n"), 1, 1, one.clone(), false),
        (format!("{one}data: <html>\n\n"), 2, 1, one.clone(), true),
        (one[..500].to_owned(), 1, 0, format!("{}\n\n\n", &one[..500]), true),
        (cut.clone(), 1, 0, cut, true),
        (preview.clone(), 1, 0, preview, true),
    ];
    let answers = cases.iter().map(|case| Written::events(case.0.as_str())).collect();
    let config = Scripted::start(answers).await.config("openai");
    let house = House::with(Plan { catalog: COPIED, config, ..Plan::default() }).await;
    for (came, asked, paid, leaves, fails) in cases {
        let (text, row) = stream(&house, "scripted-stream", "cats", json!({ "n": asked })).await;
        let what = came.replace(&own, "…");
        let rest = text.strip_prefix(leaves.as_str()).unwrap_or_else(|| panic!("{what}: {}", text.replace(&own, "…")));
        assert_eq!((rest.starts_with("event: error\ndata: {"), rest.is_empty()), (fails, !fails), "{what}: {rest}");
        assert_eq!((row.charge.nano(), row.counters.calls), (paid * EACH, paid as u64), "{what}");
    }
}

/// Whoever leaves in the middle of such a stream pays for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_stream_that_is_left_is_read_to_its_end_and_paid() {
    let one = data(&json!({ "type": "image.done", "b64_json": letters() }));
    let late = Arc::new(Notify::new());
    let answer = Written::events(one.repeat(3)).waits_after("\n\n", late.clone());
    let config = Scripted::start(vec![answer]).await.config("openai");
    let house = House::with(Plan { catalog: COPIED, config, ..Plan::default() }).await;
    let body = asked("scripted-stream", "cats", &json!({ "n": 3, "stream": true }));
    let mut reply = post(&house, "/v1/images/generations", &body).send().await.expect("a reply");
    let call = call_id(&reply);
    assert!(reply.chunk().await.expect("a piece").is_some());
    drop(reply);
    late.notify_one();
    let row = house.row(call).await;
    assert_eq!((row.charge.nano(), row.counters.calls), (3 * EACH, 3), "{row:?}");
}
