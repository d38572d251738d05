//! Addresses that a provider would open: what leads inside, or is none of the web, does not reach
//! one.

use super::CATALOG;
use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};

const BAD: [&str; 9] = [
    "file:///etc/passwd",
    "JavaScript:alert(1)",
    "ftp://media.example/a.png",
    "http://127.0.0.1/a.png",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]:8080/a.png",
    "http://2130706433/a.png",
    "http://localhost/a.png",
    "https://metadata.google.internal/a.png",
];

/// Path, body and the field of an address in each dialect, at a provider of its own dialect.
fn asks(url: &str) -> [(&'static str, Value, &'static str); 7] {
    let image = json!({ "type": "image", "source": { "type": "url", "url": url } });
    let picture = json!({ "type": "input_image", "image_url": url });
    let file = json!({ "type": "input_file", "file_url": url });
    let user = |content: Value| json!([{ "role": "user", "content": content }]);
    [
        (
            "/v1/chat/completions",
            json!({ "model": "gemini-on-openai", "messages": user(json!([{ "type": "image_url", "image_url": { "url": url } }])) }),
            "messages[0].content[0].image_url.url",
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "gemini-on-openai", "messages": user(json!([{ "type": "video_url", "video_url": { "url": url } }])) }),
            "messages[0].content[0].video_url.url",
        ),
        (
            "/v1/messages",
            json!({ "model": "gemini-on-anthropic", "max_tokens": 9, "messages": user(json!([image])) }),
            "messages[0].content[0].source.url",
        ),
        (
            "/v1/responses",
            json!({ "model": "gemini-on-openai-response", "input": user(json!([picture])) }),
            "input[0].content[0].image_url",
        ),
        (
            "/v1/responses",
            json!({ "model": "gemini-on-openai-response", "input": user(json!([file])) }),
            "input[0].content[0].file_url",
        ),
        (
            "/v1/responses",
            json!({ "model": "gemini-on-openai-response", "input": "x",
                "tools": [{ "type": "mcp", "server_label": "a", "server_url": url }] }),
            "tools[0].server_url",
        ),
        (
            "/v1beta/models/gemini-on-gemini:generateContent",
            json!({ "contents": [{ "role": "user", "parts": [{ "fileData": { "mimeType": "image/png", "fileUri": url } }] }] }),
            "contents[0].parts[0].fileData.fileUri",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_inside_reaches_no_provider() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    for url in BAD {
        for (path, body, field) in asks(url) {
            let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await;
            let reply = reply.expect("a reply");
            let status = reply.status().as_u16();
            let error: Value = reply.json().await.expect("JSON");
            let text = error["error"]["message"].as_str().unwrap_or_default();
            assert!(status == 400 && text.contains(&format!("`{field}`")), "{path} {url}: {status} {error}");
        }
    }
    assert!(house.sim.received().is_empty(), "nothing was sent");
    house.quiet().await;
    assert!(house.all_rows().await.is_empty(), "and nothing was held");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_inside_reaches_no_maker_of_videos_and_no_source_of_data() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    for url in BAD {
        for (body, field) in [
            (json!({ "input_reference": url }), "input_reference"),
            (json!({ "images": ["https://media.example/a.png", url] }), "images[1]"),
            (json!({ "image": url }), "image"),
            (json!({ "video_url": url }), "video_url"),
            (json!({ "metadata": { "image_tail": url } }), "metadata.image_tail"),
            (json!({ "metadata": { "input": { "media": [{ "url": url }] } } }), "metadata.input.media[0].url"),
        ] {
            let mut body = body;
            (body["model"], body["prompt"]) = (json!("kling-v3"), json!("p"));
            let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
            let (status, error) = error_of(reply.expect("a reply")).await;
            assert_eq!((status, &error["param"]), (400, &json!(field)), "{url}: {error}");
        }
    }
    house.quiet().await;
    assert!(house.all_rows().await.is_empty());
    // Words are no addresses.
    let body =
        json!({ "model": "kling-v3", "prompt": "p", "metadata": { "negative_prompt": "file: a dog, http: a cat" } });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    assert_eq!(reply.expect("a reply").status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_providers_are_inside_says_so() {
    let config = "[fetch]\nprivate = [\"10.1.0.0/16\"]\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    for (url, may) in [
        ("http://10.1.2.3/a.png", true),
        ("http://files.internal/a.png", true),
        ("http://10.2.0.1/a.png", false),
        ("file:///etc/passwd", false),
    ] {
        let (path, body, _) = asks(url)[0].clone();
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&body).send().await;
        assert_eq!(reply.expect("a reply").status() == 200, may, "{url}");
    }
}
