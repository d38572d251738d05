//! What each maker is sent, and that its pictures arrive.

use super::*;
use crate::house::error_of;

#[tokio::test(flavor = "multi_thread")]
async fn every_maker_makes_several_pictures() {
    let house = house().await;
    for model in MAKERS {
        let (result, row) = made(&house, model, "cats", json!({ "n": 3, "response_format": "b64_json" })).await;
        assert_eq!((pictures(&result), row.charge.nano(), row.counters.calls), (3, 3 * EACH, 3), "{model}");
        assert_eq!(result["metadata"], json!({ "success_count": "3", "failed_count": "0" }), "{model}");
    }
}

/// MM4: of several pictures in one list only the last stayed, and all were charged.
#[tokio::test(flavor = "multi_thread")]
async fn all_pictures_of_one_choice_are_handed_over() {
    let house = house().await;
    let (result, row) = made(&house, "qwen-pictures", "[[sim:one_choice]]", json!({ "n": 3 })).await;
    assert_eq!((result["data"].as_array().map(Vec::len), row.charge.nano()), (Some(3), 3 * EACH));
}

/// MM33: each maker is asked at its own path, in its own words.
#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_translated_for_each_maker() {
    let house = house().await;
    for (model, size, path, sent) in [
        ("pictures", "1536x1024", "/v1/images/generations", json!({ "size": "1536x1024" })),
        ("minimax-pictures", "1280x720", "/video/minimax/v1/image_generation", json!({ "width": 1280, "height": 720 })),
        ("minimax-pictures", "16:9", "/video/minimax/v1/image_generation", json!({ "aspect_ratio": "16:9" })),
        ("ark-pictures", "2K", "/video/ark/api/v3/images/generations", json!({ "size": "2K", "watermark": false })),
        ("ark-pictures", "2048*2048", "/video/ark/api/v3/images/generations", json!({ "size": "2048x2048" })),
        (
            "kling-pictures",
            "2048x2048",
            "/video/kling/v1/images/generations",
            json!({ "resolution": "2k", "aspect_ratio": "1:1" }),
        ),
    ] {
        house.sim.clear();
        made(&house, model, "a cat", json!({ "size": size })).await;
        let first = house.sim.received().remove(0);
        assert_eq!(first.path, path, "{model}");
        let body = first.json();
        for (name, value) in sent.as_object().expect("an object") {
            assert_eq!(&body[name], value, "{model} {size}: {body}");
        }
    }
    house.sim.clear();
    made(&house, "qwen-pictures", "a cat", json!({ "size": "1328x1328" })).await;
    made(&house, "google-pictures", "a cat", json!({ "size": "1024x1792" })).await;
    made(&house, "imagen-pictures", "a cat", json!({ "size": "16:9", "n": 2 })).await;
    let seen: Vec<Value> = house.sim.received().iter().map(tollgate_sim::Received::json).collect();
    assert_eq!(seen[0]["parameters"], json!({ "n": 1, "size": "1328*1328" }));
    let config = &seen[1]["generationConfig"];
    assert_eq!(config["imageConfig"], json!({ "aspectRatio": "9:16", "imageSize": "2K" }));
    assert_eq!(seen[2]["parameters"], json!({ "sampleCount": 2, "aspectRatio": "16:9" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_maker_does_not_take_is_refused_before_anything_is_held() {
    let house = house().await;
    for (model, more, field) in [
        ("minimax-pictures", json!({ "size": "4000x100" }), "size"),
        ("minimax-pictures", json!({ "size": "2K" }), "size"),
        ("ark-pictures", json!({ "size": "16:9" }), "size"),
        ("ark-pictures", json!({ "size": "2K", "aspect_ratio": "16:9" }), "aspect_ratio"),
        ("qwen-pictures", json!({ "size": "2K", "aspect_ratio": "16:9" }), "aspect_ratio"),
        ("wan-pictures", json!({ "size": "1K", "aspect_ratio": "1:1" }), "aspect_ratio"),
        ("kling-pictures", json!({ "size": "4K" }), "size"),
        ("google-pictures", json!({ "size": "1000x300" }), "size"),
        ("minimax-pictures", json!({ "prompt": "x".repeat(1_501) }), "prompt"),
    ] {
        let reply = make(&house, model, "a cat", more).await;
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["param"]), (400, &json!(field)), "{model}: {error}");
    }
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (0, 0));
}

/// A draft that a model shows of its thoughts is not the picture, wherever that is said.
#[tokio::test(flavor = "multi_thread")]
async fn drafts_of_thoughts_are_not_the_picture() {
    let house = house().await;
    for kilobytes in [0, 2_000] {
        let plain = made(&house, "google-pictures", &format!("[[sim:ok kb={kilobytes}]]"), json!({})).await.0;
        let prompt = format!("[[sim:draft kb={kilobytes}]]");
        let (result, row) = made(&house, "google-pictures", &prompt, json!({ "n": 2 })).await;
        // Both requests are the same, so both pictures are.
        assert_eq!((result["data"].as_array().map(Vec::len), row.charge.nano()), (Some(2), 2 * EACH));
        assert_eq!(result["data"][0], result["data"][1]);
        assert_ne!(result["data"][0]["b64_json"], plain["data"][0]["b64_json"]);
        let (one, row) = made(&house, "google-pictures", &prompt, json!({})).await;
        assert_eq!((one["data"].as_array().map(Vec::len), row.charge.nano()), (Some(1), EACH));
        assert_eq!(one["data"][0], result["data"][0]);
    }
}
