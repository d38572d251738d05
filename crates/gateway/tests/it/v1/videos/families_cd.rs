//! Families C and D of the specification, 4.2, sentence by sentence. Micro-USD: C standard and
//! multi-image 83,400 a second, `pro` 1.33 times, `4k` 5 times; the value tier 112,000 and 140,000;
//! D native 69,500 and 111,200; its legacy models 278,000 a clip.

use super::table::{CLIP, OTHER, PICTURE, Sent, Table, finished};
use serde_json::{Value, json};

const TEXT: &str = "/video/kling/v1/videos/text2video";
const IMAGE: &str = "/video/kling/v1/videos/image2video";
const OMNI: &str = "/video/kling/v1/videos/omni-video";

fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

fn standard(more: Value) -> Value {
    let body = json!({
        "model_name": "kling-v3", "prompt": "p", "mode": "std", "sound": "off", "duration": "5",
        "external_task_id": "{task}",
    });
    with(body, more)
}

#[tokio::test(flavor = "multi_thread")]
async fn c_standard() {
    const C: &str = "kling-v3";
    const STD: &str = "audio=false mode=std seconds=5 sound=off";
    let framed = |ratio: &str| format!("audio=false mode=std ratio={ratio} seconds=5 sound=off");
    let table = Table::new().await;
    let says = "`mode` defaults to std, `duration` to 5 seconds, `sound` to off";
    table
        .sends(says, C, json!({ "prompt": "p" }), Sent::new(TEXT, standard(json!({})), 5 * 83_400).effective(STD))
        .await;
    let says = "first frame in `image`";
    let sent = Sent::new(IMAGE, standard(json!({ "image": PICTURE })), 5 * 83_400).effective(STD);
    table.sends(says, C, json!({ "prompt": "p", "image": PICTURE }), sent).await;
    let says = "`input_reference` is never read";
    let sent = Sent::new(TEXT, standard(json!({})), 5 * 83_400).effective(STD).warned(&["input_reference"]);
    table.sends(says, C, json!({ "prompt": "p", "input_reference": PICTURE }), sent).await;
    let says = "`metadata` carries image_tail, sound, negative_prompt, cfg_scale";
    let metadata = json!({ "image_tail": OTHER, "sound": "on", "negative_prompt": "n", "cfg_scale": 0.7 });
    let body = with(standard(json!({ "image": PICTURE })), metadata.clone());
    let ask = json!({ "prompt": "p", "image": PICTURE, "metadata": metadata });
    let sent = Sent::new(IMAGE, body, 5 * 83_400).effective("audio=true mode=std seconds=5 sound=on");
    table.sends(says, C, ask, sent).await;
    let says = "and camera_control";
    let metadata = json!({ "camera_control": { "type": "simple", "config": { "zoom": 5 } } });
    let ask = json!({ "prompt": "p", "metadata": metadata });
    table.sends(says, C, ask, Sent::new(TEXT, standard(metadata), 5 * 83_400).effective(STD)).await;
    let says = "the aspect ratio is read from `size` through a table of x-spelled sizes";
    for (size, ratio) in [
        ("1280x720", "16:9"),
        ("1920x1080", "16:9"),
        ("720x1280", "9:16"),
        ("1080x1920", "9:16"),
        ("1024x1024", "1:1"),
        ("512x512", "1:1"),
    ] {
        let sent = Sent::new(TEXT, standard(json!({ "aspect_ratio": ratio })), 5 * 83_400).effective(framed(ratio));
        table.sends(says, C, json!({ "prompt": "p", "size": size }), sent).await;
    }
    let says = "any other value, including the asterisk spelling, becomes 1:1 without an error";
    for size in ["1280*720", "640x360"] {
        let sent = Sent::new(TEXT, standard(json!({ "aspect_ratio": "1:1" })), 5 * 83_400);
        let sent = sent.effective(framed("1:1")).warned(&["size"]);
        table.sends(says, C, json!({ "prompt": "p", "size": size }), sent).await;
    }
    let says = "set `metadata.aspect_ratio` directly when framing matters";
    let ask = json!({ "prompt": "p", "size": "1280*720", "metadata": { "aspect_ratio": "9:16" } });
    let sent = Sent::new(TEXT, standard(json!({ "aspect_ratio": "9:16" })), 5 * 83_400).effective(framed("9:16"));
    table.sends(says, C, ask, sent.warned(&["size"])).await;
    let says = "masks, or a voice, go with a picture";
    let path = json!([{ "x": 1, "y": 1 }, { "x": 20, "y": 30 }]);
    for metadata in [
        json!({ "static_mask": OTHER, "dynamic_masks": [{ "mask": OTHER, "trajectories": path }] }),
        json!({ "voice_list": [{ "voice_id": "v" }], "sound": "on" }),
    ] {
        let body = with(standard(json!({ "image": PICTURE })), metadata.clone());
        let effective = if metadata["sound"] == "on" { "audio=true mode=std seconds=5 sound=on" } else { STD };
        let ask = json!({ "prompt": "p", "image": PICTURE, "metadata": metadata });
        table.sends(says, C, ask, Sent::new(IMAGE, body, 5 * 83_400).effective(effective)).await;
    }
    let says = "the quality tier is read from `metadata.mode`, and priced";
    let ask = json!({ "prompt": "p", "metadata": { "mode": "pro" } });
    let sent = Sent::new(TEXT, standard(json!({ "mode": "pro" })), 554_610);
    table.sends(says, C, ask, sent.effective("audio=false mode=pro seconds=5 sound=off")).await;
    let says = "a mode without a price is refused before sending";
    let ask = json!({ "prompt": "p", "metadata": { "mode": "4k" } });
    table.refuses(says, C, ask, "unsupported_value", "metadata.mode", "no price").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c_value_tier() {
    const C: &str = "kling-3.0-turbo";
    let path = |kind: &str| -> &'static str {
        if kind == "text" {
            "/video/kling/text-to-video/kling-3.0-turbo"
        } else {
            "/video/kling/image-to-video/kling-3.0-turbo"
        }
    };
    let table = Table::new().await;
    let options = json!({ "external_task_id": "{task}" });
    let says = "`prompt` alone gives text-to-video";
    let settings = json!({ "resolution": "720p", "duration": 5, "aspect_ratio": "16:9" });
    let body = json!({ "prompt": "p", "settings": settings, "options": options });
    let plain = "audio=true ratio=16:9 resolution=720p seconds=5";
    let sent = Sent::new(path("text"), body.clone(), 5 * 112_000).effective(plain);
    table.sends(says, C, json!({ "prompt": "p" }), sent).await;
    let says = "adding `image` gives image-to-video with a `contents` array";
    let contents = json!([{ "type": "prompt", "text": "p" }, { "type": "first_frame", "url": PICTURE }]);
    let with_image =
        json!({ "contents": contents, "settings": { "resolution": "720p", "duration": 5 }, "options": options });
    let ask = json!({ "prompt": "p", "image": PICTURE });
    let sent = Sent::new(path("image"), with_image, 5 * 112_000);
    table.sends(says, C, ask, sent.effective("audio=true resolution=720p seconds=5")).await;
    let says = "`metadata.settings`: resolution, duration 3 to 15, aspect_ratio";
    for (resolution, seconds, ratio, each) in
        [("720p", 3, "16:9", 112_000), ("1080p", 15, "9:16", 140_000), ("1080p", 7, "1:1", 140_000)]
    {
        let settings = json!({ "resolution": resolution, "duration": seconds, "aspect_ratio": ratio });
        let body = json!({ "prompt": "p", "settings": settings, "options": options });
        let ask = json!({ "prompt": "p", "metadata": { "settings": settings } });
        let effective = format!("audio=true ratio={ratio} resolution={resolution} seconds={seconds}");
        table.sends(says, C, ask, Sent::new(path("text"), body, seconds * each).effective(effective)).await;
    }
    for (settings, field, text) in [
        (json!({ "duration": 2 }), "duration", "3 to 15"),
        (json!({ "duration": 16 }), "duration", "3 to 15"),
        (json!({ "resolution": "4k" }), "resolution", "720p, 1080p"),
        (json!({ "aspect_ratio": "4:3" }), "aspect_ratio", "16:9, 9:16, 1:1"),
    ] {
        let ask = json!({ "prompt": "p", "metadata": { "settings": settings } });
        table.refuses(says, C, ask, "invalid_parameter", &format!("metadata.settings.{field}"), text).await;
    }
    let says = "audio is always included, with no switch";
    let ask = json!({ "prompt": "p", "metadata": { "settings": { "audio": "off" } } });
    let sent = Sent::new(path("text"), body, 5 * 112_000).effective(plain).warned(&["metadata.settings.audio"]);
    table.sends(says, C, ask, sent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c_multi_image() {
    const C: &str = "kling-v3-omni";
    let square = "audio=false mode=pro ratio=1:1 seconds=5 sound=off";
    let table = Table::new().await;
    let omni = |more: Value| {
        let body = json!({
            "model_name": C, "prompt": "p", "mode": "pro", "sound": "off", "duration": "5", "external_task_id": "{task}",
        });
        with(body, more)
    };
    let ask = |metadata: Value| json!({ "prompt": "p", "metadata": metadata });
    let says = "`metadata.image_list` of objects with `image_url`; upstream's default `pro` is billed at 1.33 times";
    let metadata = json!({ "image_list": [{ "image_url": PICTURE }, { "image_url": OTHER }], "aspect_ratio": "16:9" });
    let sent = Sent::new(OMNI, omni(metadata.clone()), 554_610)
        .effective("audio=false mode=pro ratio=16:9 seconds=5 sound=off");
    table.sends(says, C, ask(metadata), sent).await;
    let says = "`metadata.mode` is the quality tier: std, and `4k` at 5 times; `metadata.duration` is a string to 15";
    for (mode, micro) in [("std", 15 * 83_400), ("4k", 15 * 5 * 83_400)] {
        let metadata = json!({ "aspect_ratio": "1:1", "mode": mode, "duration": "15" });
        let effective = format!("audio=false mode={mode} ratio=1:1 seconds=15 sound=off");
        table.sends(says, C, ask(metadata.clone()), Sent::new(OMNI, omni(metadata), micro).effective(effective)).await;
    }
    let says = "every parameter is in `metadata`; no `resolution` field";
    let warned = &["image", "size", "duration", "metadata.resolution"];
    let metadata = json!({ "aspect_ratio": "1:1", "resolution": "1080p" });
    let asked = json!({ "prompt": "p", "image": PICTURE, "size": "1280x720", "duration": 9, "metadata": metadata });
    let sent = Sent::new(OMNI, omni(json!({ "aspect_ratio": "1:1" })), 554_610).effective(square).warned(warned);
    table.sends(says, C, asked, sent).await;
    let says = "`type` is only first_frame or end_frame; a first frame needs no aspect_ratio";
    let frames = json!([{ "image_url": PICTURE, "type": "first_frame" }, { "image_url": OTHER, "type": "end_frame" }]);
    let metadata = json!({ "image_list": frames });
    let sent = Sent::new(OMNI, omni(metadata.clone()), 554_610).effective("audio=false mode=pro seconds=5 sound=off");
    table.sends(says, C, ask(metadata), sent).await;
    let wrong = json!({ "image_list": [{ "image_url": PICTURE, "type": "reference" }], "aspect_ratio": "1:1" });
    table.refuses(says, C, ask(wrong), "invalid_parameter", "metadata.image_list[0].type", "first_frame").await;
    let says = "`metadata.aspect_ratio` is required whenever no first frame is present";
    let none = json!({ "image_list": [{ "image_url": PICTURE }] });
    table.refuses(says, C, ask(none), "missing_parameter", "metadata.aspect_ratio", "first frame").await;
    let says = "`metadata.duration` is a string from 3 to 15";
    let long = json!({ "aspect_ratio": "1:1", "duration": "16" });
    table.refuses(says, C, ask(long), "invalid_parameter", "metadata.duration", "3 to 15").await;
    let says = "a reference video goes in `metadata.video_list` with `refer_type` feature";
    let metadata = json!({ "aspect_ratio": "1:1", "video_list": [{ "video_url": CLIP, "refer_type": "feature" }] });
    let sent = Sent::new(OMNI, omni(metadata.clone()), 554_610).effective(square);
    table.sends(says, C, ask(metadata), sent).await;
    let says = "the editing mode `base`, also by default, cannot be priced and is refused";
    let field = "metadata.video_list[0].refer_type";
    for video in [json!({ "video_url": CLIP, "refer_type": "base" }), json!({ "video_url": CLIP })] {
        let metadata = json!({ "aspect_ratio": "1:1", "video_list": [video] });
        table.refuses(says, C, ask(metadata), "unsupported_value", field, "cannot be priced").await;
    }
    // A too-small reference image passes submission, then fails the task; refunded.
    let small = json!({ "image_list": [{ "image_url": "https://media.example/64x64.png" }], "aspect_ratio": "1:1" });
    let before = table.house.available().await;
    let body = json!({ "model": C, "prompt": "p", "metadata": small });
    let reply = table.house.http.post(table.house.url("/v1/videos")).bearer_auth(&table.house.key).json(&body);
    let task: Value = reply.send().await.expect("a reply").json().await.expect("JSON");
    let done = finished(&table.house, task["id"].as_str().expect("an id")).await;
    assert_eq!((&done["status"], &done["error"]["message"]), (&json!("failed"), &json!("Image pixel is invalid")));
    assert_eq!(table.house.available().await, before, "refunded");
}

#[tokio::test(flavor = "multi_thread")]
async fn d_native_audio() {
    const D: &str = "MiniMax-H3";
    const PATH: &str = "/video/minimax/v2/video_generation";
    let table = Table::new().await;
    let body = |mut content: Vec<Value>, more: Value| {
        content.push(json!({ "type": "text", "text": "p" }));
        with(json!({ "model": D, "content": content, "resolution": "768P", "duration": 5 }), more)
    };
    let effective = |ratio: &str, pictures: u32, size: &str, seconds: u32, video: bool| {
        format!("audio=true {ratio}reference_images={pictures} resolution={size} seconds={seconds} video_input={video}")
    };
    let picture = |url: &str, role: &str| json!({ "type": "image_url", "image_url": { "url": url }, "role": role });
    let says = "`image` or `input_reference` becomes the first frame";
    for field in ["image", "input_reference"] {
        let ask = with(json!({ "prompt": "p" }), json!({ field: PICTURE }));
        let sent = Sent::new(PATH, body(vec![picture(PICTURE, "first_frame")], json!({})), 5 * 69_500);
        table.sends(says, D, ask, sent.effective(effective("", 0, "768P", 5, false))).await;
    }
    let says = "`images` become reference images";
    let both = vec![picture(PICTURE, "reference_image"), picture(OTHER, "reference_image")];
    let sent = Sent::new(PATH, body(both, json!({})), 5 * 69_500).effective(effective("", 2, "768P", 5, false));
    table.sends(says, D, json!({ "prompt": "p", "images": [PICTURE, OTHER] }), sent).await;
    let says = "`video_url` becomes a reference video, whose seconds the provider bills";
    let clip = json!({ "type": "video_url", "video_url": { "url": CLIP }, "role": "reference_video" });
    let sent = Sent::new(PATH, body(vec![clip], json!({})), 20 * 69_500).effective(effective("", 0, "768P", 5, true));
    table.sends(says, D, json!({ "prompt": "p", "video_url": CLIP }), sent.charged(D_WITH_CLIP * 69_500_000)).await;
    let says = "`size` is 768P or 2K; `duration` a whole number from 4 to 15";
    let ask = json!({ "prompt": "p", "image": PICTURE, "size": "2K", "duration": 15 });
    let more = json!({ "resolution": "2K", "duration": 15 });
    let sent = Sent::new(PATH, body(vec![picture(PICTURE, "first_frame")], more), 15 * 111_200);
    table.sends(says, D, ask, sent.effective(effective("", 0, "2K", 15, false))).await;
    let ask = json!({ "prompt": "p", "image": PICTURE, "size": "1080P" });
    table.refuses(says, D, ask, "invalid_parameter", "size", "768P or 2K").await;
    let says = "general rule 1: the letter x is rejected with this message";
    let ask = json!({ "prompt": "p", "image": PICTURE, "size": "1280x720" });
    let message = "invalid size: 1280x720, example: 768P";
    table.refuses(says, D, ask, "invalid_parameter", "size", message).await;
    let says = "`metadata.resolution` wins over `size`, which is reported";
    let ask = json!({ "prompt": "p", "image": PICTURE, "size": "2K", "metadata": { "resolution": "768P" } });
    let sent = Sent::new(PATH, body(vec![picture(PICTURE, "first_frame")], json!({})), 5 * 69_500);
    table.sends(says, D, ask, sent.effective(effective("", 0, "768P", 5, false)).warned(&["size"])).await;
    for duration in [3, 16] {
        let ask = json!({ "prompt": "p", "image": PICTURE, "duration": duration });
        table.refuses(says, D, ask, "invalid_parameter", "duration", "4 to 15").await;
    }
    let says = "text-only requests need an explicit `metadata.ratio` other than adaptive";
    let ask = json!({ "prompt": "p", "metadata": { "ratio": "16:9" } });
    let sent = Sent::new(PATH, body(vec![], json!({ "ratio": "16:9" })), 5 * 69_500);
    table.sends(says, D, ask, sent.effective(effective("ratio=16:9 ", 0, "768P", 5, false))).await;
    for ask in [json!({ "prompt": "p" }), json!({ "prompt": "p", "metadata": { "ratio": "adaptive" } })] {
        table.refuses(says, D, ask, "missing_parameter", "metadata.ratio", "adaptive").await;
    }
}

/// Five seconds made, and those of the clip as the maker counts them.
const D_WITH_CLIP: i64 = 9;

#[tokio::test(flavor = "multi_thread")]
async fn d_legacy() {
    const PATH: &str = "/video/minimax/v1/video_generation";
    const PLAIN: &str = "resolution=768P seconds=6";
    let table = Table::new().await;
    let body = |model: &str, more: Value| {
        with(json!({ "model": model, "prompt": "p", "duration": 6, "resolution": "768P" }), more)
    };
    let dropped = &["input_reference", "images", "image", "video_url"];
    for model in ["MiniMax-Hailuo-2.3", "MiniMax-Hailuo-02"] {
        let says = "only `prompt`, `duration` and `size` are read from the top level";
        let ask = json!({ "prompt": "p", "duration": 10, "size": "768P" });
        let sent =
            Sent::new(PATH, body(model, json!({ "duration": 10 })), 556_000).effective("resolution=768P seconds=10");
        table.sends(says, model, ask, sent).await;
        let sent = Sent::new(PATH, body(model, json!({ "resolution": "1080P" })), 486_500);
        let sent = sent.effective("resolution=1080P seconds=6");
        table.sends(says, model, json!({ "prompt": "p", "size": "1080P" }), sent).await;
        let says = "general rule 1: the letter x is rejected with this message";
        let ask = json!({ "prompt": "p", "size": "1280x768" });
        let message = "invalid size: 1280x768, example: 768P";
        table.refuses(says, model, ask, "invalid_parameter", "size", message).await;
        let says = "images at the top level are dropped: it runs as text-to-video and is billed so";
        let ask = json!({
            "prompt": "p", "image": PICTURE, "input_reference": PICTURE, "images": [PICTURE], "video_url": CLIP,
        });
        let sent = Sent::new(PATH, body(model, json!({})), 278_000).effective(PLAIN).warned(dropped);
        table.sends(says, model, ask, sent).await;
        let says = "images go in `metadata.first_frame_image`";
        let metadata = json!({ "first_frame_image": PICTURE });
        let ask = json!({ "prompt": "p", "metadata": metadata });
        table.sends(says, model, ask, Sent::new(PATH, body(model, metadata), 278_000).effective(PLAIN)).await;
    }
    let says = "and in `metadata.last_frame_image`";
    let metadata = json!({ "first_frame_image": PICTURE, "last_frame_image": OTHER });
    let ask = json!({ "prompt": "p", "metadata": metadata });
    let model = "MiniMax-Hailuo-02";
    table.sends(says, model, ask, Sent::new(PATH, body(model, metadata), 278_000).effective(PLAIN)).await;
    let says = "and in `metadata.subject_reference`, as it is written";
    let subject = json!([{ "type": "character", "image": [PICTURE] }]);
    for model in ["MiniMax-Hailuo-2.3", "MiniMax-Hailuo-02"] {
        let metadata = json!({ "subject_reference": subject });
        let ask = json!({ "prompt": "p", "metadata": metadata });
        table.sends(says, model, ask, Sent::new(PATH, body(model, metadata), 278_000).effective(PLAIN)).await;
        for (wrong, field) in [
            (json!(PICTURE), "metadata.subject_reference"),
            (json!([{ "type": "animal", "image": [PICTURE] }]), "metadata.subject_reference[0].type"),
            (json!([{ "type": "character", "image": PICTURE }]), "metadata.subject_reference[0].image"),
        ] {
            let ask = json!({ "prompt": "p", "metadata": { "subject_reference": wrong } });
            table.refuses("of the maker's shape only", model, ask, "invalid_parameter", field, "").await;
        }
        let says = "what is no field of theirs is dropped, also inside metadata, and reported";
        let ask = json!({ "prompt": "p", "subject_reference": subject, "metadata": { "subject": subject } });
        let warned = &["subject_reference", "metadata.subject"];
        let sent = Sent::new(PATH, body(model, json!({})), 278_000).effective(PLAIN).warned(warned);
        table.sends(says, model, ask, sent).await;
    }
    let says = "the fast model takes image requests only: text alone is refused free of charge";
    let fast = "MiniMax-Hailuo-2.3-Fast";
    let field = "metadata.first_frame_image";
    table.refuses(says, fast, json!({ "prompt": "p", "image": PICTURE }), "missing_parameter", field, "picture").await;
    let metadata = json!({ "first_frame_image": PICTURE });
    let ask = json!({ "prompt": "p", "metadata": metadata });
    table.sends(says, fast, ask, Sent::new(PATH, body(fast, metadata), 187_650).effective(PLAIN)).await;
}
