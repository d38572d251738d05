//! Letters as other writers of JSON have them, and drawings, which are text inside.

use super::*;
use crate::house::events;

/// Pictures with letters that can be escaped.
fn escaped_ones(letters: &[&str]) {
    for letters in letters {
        assert!(letters.contains('/') && letters.contains('+'), "there is something to escape");
        let bytes = BASE64_STANDARD.decode(letters).expect("base64");
        assert!(bytes.starts_with(b"\x89PNG") && bytes.ends_with(b"IEND\xaeB`\x82"), "the whole picture");
    }
}

/// `\/` and `\u002b` inside the letters: small ones are held, large ones pass.
#[tokio::test(flavor = "multi_thread")]
async fn escaped_letters_are_read_shown_and_counted() {
    let house = house().await;
    for model in ["pictures", "minimax-pictures", "google-pictures", "imagen-pictures"] {
        for kilobytes in [1, 900] {
            let more = json!({ "n": 2, "response_format": "b64_json" });
            let (result, row) = made(&house, model, &format!("[[sim:escaped kb={kilobytes}]]"), more).await;
            let entries = result["data"].as_array().expect("a list").iter();
            escaped_ones(&entries.map(|entry| entry["b64_json"].as_str().expect("letters")).collect::<Vec<_>>());
            assert_eq!((pictures(&result), row.charge.nano(), row.counters.calls), (2, 2 * EACH, 2), "{model}");
            assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "0" }), "{model}");
        }
    }
    // Taken out of the answer, and stored.
    let (result, row) = made(&house, "pictures", "[[sim:escaped kb=300]]", json!({ "response_format": "url" })).await;
    let link = result["data"][0]["url"].as_str().expect("a link");
    let reply = house.http.get(house.url(&link[link.find("/v1/").expect("a path")..])).send().await.expect("a reply");
    escaped_ones(&[&BASE64_STANDARD.encode(reply.bytes().await.expect("a picture"))]);
    assert_eq!(row.charge.nano(), EACH);
    // As events, which pass as they are.
    let body = asked("pictures", "[[sim:escaped kb=300]]", &json!({ "n": 2, "stream": true }));
    let reply = post(&house, "/v1/images/generations", &body).send().await.expect("a reply");
    let call = call_id(&reply);
    let text = reply.text().await.expect("events");
    assert!(text.contains("\\/") && text.contains("\\u002b"), "as they came");
    let shown = events(&text);
    escaped_ones(&shown.iter().map(|event| event["b64_json"].as_str().expect("letters")).collect::<Vec<_>>());
    assert_eq!((shown.len(), house.row(call).await.charge.nano()), (2, 2 * EACH));
}

/// A maker that draws has made what it was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_is_handed_over_and_paid() {
    let house = house().await;
    for (model, kilobytes) in [("pictures", 0), ("pictures", 900), ("google-pictures", 2), ("qwen-pictures", 0)] {
        let more = json!({ "n": 2, "response_format": "b64_json" });
        let (result, row) = made(&house, model, &format!("[[sim:svg kb={kilobytes}]]"), more).await;
        for entry in result["data"].as_array().expect("a list") {
            let drawing = BASE64_STANDARD.decode(entry["b64_json"].as_str().expect("letters")).expect("base64");
            assert!(drawing.starts_with(b"<?xml") && drawing.ends_with(b"</svg>\n"), "{model}");
        }
        assert_eq!((row.charge.nano(), row.counters.calls), (2 * EACH, 2), "{model}");
    }
    let body = json!({ "instances": [{ "prompt": "[[sim:svg]]" }], "parameters": { "sampleCount": 1 } });
    let reply = post(&house, "/v1beta/models/imagen-pictures:predict", &body).send().await.expect("a reply");
    let result: Value = reply.json().await.expect("JSON");
    assert_eq!(result["predictions"][0]["mimeType"], "image/svg+xml", "{result}");
}

/// Whoever opens a drawing runs what is written in it: there are none at an address of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_has_no_link_of_ours() {
    let house = house().await;
    let (result, row) = made(&house, "pictures", "[[sim:svg]]", json!({ "n": 2, "response_format": "url" })).await;
    let fields: Vec<&str> = result["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .map(|warning| warning["field"].as_str().expect("a field"))
        .collect();
    assert_eq!(fields, ["data[0]", "data[1]"], "{result}");
    for entry in result["data"].as_array().expect("a list") {
        assert!(entry["url"] == "" && entry["b64_json"].as_str().is_some_and(|letters| letters.starts_with("PD94")));
    }
    assert_eq!(row.charge.nano(), 2 * EACH);
    assert_eq!(house.dir.join("data/pictures").read_dir().map_or(0, Iterator::count), 0, "nothing is stored");
}
