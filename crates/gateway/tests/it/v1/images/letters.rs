//! Letters as other writers of JSON have them.

use super::*;

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
}
