//! POST /v1/quote for videos: the price is that of the body the maker would get, with the prices of
//! the shipped catalog.

use crate::house::{House, Plan};
use serde_json::{Value, json};

const PICTURE: &str = "https://media.example/640x640.png";
const CLIP: &str = "https://media.example/clip.mp4";

async fn quoted(house: &House, endpoint: &str, body: &Value) -> (u16, Value) {
    let url = house.url(&format!("/v1/quote?endpoint={endpoint}"));
    let reply = house.http.post(url).bearer_auth(&house.key).json(body).send().await.expect("a reply");
    (reply.status().as_u16(), reply.json().await.expect("JSON"))
}

fn with(model: &str, mut body: Value) -> Value {
    body["model"] = json!(model);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_sent_is_what_is_quoted() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    let omni = |metadata: Value| {
        let mut metadata = metadata;
        metadata["aspect_ratio"] = json!("1:1");
        json!({ "prompt": "p", "metadata": metadata })
    };
    // Model, body, tier, micro-USD.
    for (model, body, tier, micro) in [
        ("wan2.7-t2v", json!({ "prompt": "p" }), None, 5 * 83_400),
        ("wan2.7-t2v", json!({ "prompt": "p", "size": "1920*1080" }), Some("1080P"), 5 * 139_000),
        (
            "wan2.7-t2v",
            json!({ "prompt": "p", "metadata": { "parameters": { "resolution": "1080P", "duration": 15 } } }),
            Some("1080P"),
            15 * 139_000,
        ),
        ("wan2.7-i2v", json!({ "input_reference": PICTURE }), Some("1080P"), 5 * 139_000),
        ("wan2.7-i2v", json!({ "input_reference": PICTURE, "size": "1280*720" }), None, 5 * 83_400),
        ("wan2.7-videoedit", json!({ "prompt": "p", "video_url": CLIP, "size": "1280*720" }), None, 20 * 83_400),
        ("happyhorse-1.1-t2v", json!({ "prompt": "p", "size": "832*480" }), Some("480P"), 5 * 62_550),
        ("happyhorse-1.1-i2v", json!({ "input_reference": PICTURE, "size": "832*480" }), Some("480P"), 5 * 62_550),
        ("kling-v3", json!({ "prompt": "p", "duration": 10 }), None, 10 * 83_400),
        ("kling-v3", json!({ "prompt": "p", "metadata": { "mode": "pro" } }), Some("pro"), 554_610),
        ("kling-3.0-turbo", json!({ "prompt": "p" }), None, 5 * 112_000),
        (
            "kling-3.0-turbo",
            json!({ "prompt": "p", "metadata": { "settings": { "resolution": "1080p", "duration": 3 } } }),
            Some("1080p"),
            3 * 140_000,
        ),
        ("kling-v3-omni", omni(json!({})), Some("pro"), 554_610),
        ("kling-v3-omni", omni(json!({ "mode": "std" })), None, 5 * 83_400),
        ("kling-v3-omni", omni(json!({ "mode": "4k", "duration": "15" })), Some("4k"), 15 * 5 * 83_400),
        ("MiniMax-H3", json!({ "prompt": "p", "size": "2K", "metadata": { "ratio": "1:1" } }), Some("2K"), 556_000),
        ("MiniMax-Hailuo-2.3", json!({ "prompt": "p" }), None, 278_000),
        ("MiniMax-Hailuo-2.3", json!({ "prompt": "p", "duration": 10 }), Some("10s"), 556_000),
        ("MiniMax-Hailuo-2.3", json!({ "prompt": "p", "size": "1080P" }), Some("1080P"), 486_500),
        ("sora-2", json!({ "prompt": "p" }), None, 4 * 100_000),
        ("sora-2-pro", json!({ "prompt": "p", "size": "1792x1024", "seconds": "8" }), Some("large"), 8 * 500_000),
        ("veo-3.1", json!({ "prompt": "p" }), None, 8 * 400_000),
    ] {
        for endpoint in ["/v1/videos", "/v1/video/generations"] {
            let (status, quote) = quoted(&house, endpoint, &with(model, body.clone())).await;
            assert_eq!(status, 200, "{model}: {quote}");
            let seen = (quote["tier"]["name"].as_str(), quote["hold_nano_usd"].as_i64());
            assert_eq!(seen, (tier, Some(micro * 1_000)), "{model} {body}");
            assert_eq!(quote["total_nano_usd"], quote["hold_nano_usd"]);
        }
    }
    // Tokens are bounded by the largest picture of the resolution; a stated use is exact.
    let body = with("seedance-2.5", json!({ "prompt": "p" }));
    let (_, quote) = quoted(&house, "/v1/videos", &body).await;
    assert_eq!((&quote["kind"], &quote["lines"][0]["quantity"]), (&json!("upper_bound"), &json!(108_985)));
    assert_eq!(quote["depends_on"], json!(["the tokens the provider counts"]));
    let (_, quote) = quoted(&house, "/v1/videos&output=108000", &body).await;
    assert_eq!((&quote["kind"], &quote["total_nano_usd"]), (&json!("exact"), &json!(108_000 * 9_730)));
    let video = json!({ "prompt": "p", "metadata": { "content": [
        { "type": "video_url", "video_url": { "url": CLIP }, "role": "reference_video" },
    ] } });
    let (_, quote) = quoted(&house, "/v1/videos", &with("seedance-2.0", video)).await;
    assert_eq!(quote["tier"]["name"], "with_video");
    assert!(house.sim.received().is_empty(), "nothing is sent for a quote");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_price_is_refused() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    for (model, body, code, param) in [
        ("wan2.7-t2v", json!({ "prompt": "p", "size": "832*480" }), "unsupported_value", "size"),
        ("wan2.7-i2v", json!({ "input_reference": PICTURE, "size": "832*480" }), "unsupported_value", "size"),
        (
            "wan2.7-r2v",
            json!({ "prompt": "p", "input_reference": PICTURE, "size": "832*480" }),
            "unsupported_value",
            "size",
        ),
        (
            "wan2.7-videoedit",
            json!({ "prompt": "p", "video_url": CLIP, "size": "832*480" }),
            "unsupported_value",
            "size",
        ),
        ("wan2.7-t2v", json!({ "prompt": "p", "size": "1280x720" }), "invalid_parameter", "size"),
        ("kling-v3", json!({ "prompt": "p", "metadata": { "mode": "4k" } }), "unsupported_value", "metadata.mode"),
        (
            "MiniMax-Hailuo-02",
            json!({ "prompt": "p", "size": "512P", "metadata": { "first_frame_image": PICTURE } }),
            "unsupported_value",
            "size",
        ),
        ("no-such-model", json!({ "prompt": "p" }), "model_not_found", "model"),
        ("plain", json!({ "prompt": "p" }), "unsupported_value", "model"),
    ] {
        let (status, quote) = quoted(&house, "/v1/videos", &with(model, body.clone())).await;
        let seen = (quote["error"]["code"].as_str(), quote["error"]["param"].as_str());
        assert_eq!(seen, (Some(code), Some(param)), "{model} {body}: {status} {quote}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_price_list_shows_videos() {
    let house = House::with(Plan { videos: true, ..Plan::default() }).await;
    let list: Value = house.get("/api/pricing").send().await.expect("a reply").json().await.expect("JSON");
    let all = list["data"].as_array().expect("a list");
    let record = all.iter().find(|one| one["model_name"] == "kling-v3-omni").expect("the model");
    assert_eq!((&record["billing_unit"], &record["quota_type"]), (&json!("per_second"), &json!(1)));
    assert_eq!(record["book_faces"]["standard"]["video_second"], 83_400);
    assert_eq!(record["book_faces"]["tiers"][0]["standard"]["video_second"], 110_922);
    assert_eq!(record["book_faces"]["tiers"][1]["when"][0]["equals"], "4k");
    let specs: Value = serde_json::from_str(record["specs"].as_str().expect("text")).expect("JSON");
    assert_eq!((&specs["type"], &specs["max_duration_seconds"]), (&json!("video"), &json!(15)));
}
