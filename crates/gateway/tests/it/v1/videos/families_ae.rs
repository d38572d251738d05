//! Families A and E of the specification, 4.2, sentence by sentence, and the general rules. Prices:
//! 720P 83,400 and 1080P 139,000 micro-USD a second for A; 62,550, 125,100 and 166,800 for the
//! three tiers of E.

use super::table::{CLIP, OTHER, PICTURE, Sent, Table};
use serde_json::{Value, json};

const PATH: &str = "/video/dashscope/api/v1/services/aigc/video-generation/video-synthesis";

fn text(model: &str, size: &str, seconds: u32) -> Value {
    let parameters = json!({ "size": size, "duration": seconds, "prompt_extend": true, "watermark": false });
    json!({ "model": model, "input": { "prompt": "p" }, "parameters": parameters })
}

/// The body of a variant that folds its size.
fn folded(model: &str, media: Value, tier: &str, seconds: u32) -> Value {
    let mut parameters = json!({ "resolution": tier, "duration": seconds, "watermark": false });
    if model.starts_with("wan") {
        parameters["prompt_extend"] = json!(true);
    }
    json!({ "model": model, "input": { "prompt": "p", "media": media }, "parameters": parameters })
}

fn media(kind: &str, url: &str) -> Value {
    json!({ "type": kind, "url": url })
}

#[tokio::test(flavor = "multi_thread")]
async fn general_rules_and_text_to_video() {
    const T2V: &str = "wan2.7-t2v";
    const DEFAULT: &str = "audio=true resolution=720P seconds=5 size=1280*720";
    let table = Table::new().await;
    let says = "`size` is joined by an asterisk; the letter x is rejected with this message";
    let ask = json!({ "prompt": "p", "size": "1280x720" });
    let message = "invalid size: 1280x720, example: 1280*720";
    table.refuses(says, T2V, ask, "invalid_parameter", "size", message).await;
    let says = "`duration` is a whole number of seconds";
    let ask = json!({ "prompt": "p", "duration": 5.5 });
    table.refuses(says, T2V, ask, "invalid_parameter", "duration", "whole number").await;
    let says = "only `model` and `prompt` required: 1280*720 and five seconds are submitted";
    let sent = Sent::new(PATH, text(T2V, "1280*720", 5), 5 * 83_400).effective(DEFAULT);
    table.sends(says, T2V, json!({ "prompt": "p" }), sent).await;
    table.refuses("`prompt` is required", T2V, json!({}), "missing_parameter", "prompt", "required").await;
    let says = "`size` is taken as written";
    let sent = Sent::new(PATH, text(T2V, "1920*1080", 7), 7 * 139_000)
        .effective("audio=true resolution=1080P seconds=7 size=1920*1080");
    table.sends(says, T2V, json!({ "prompt": "p", "size": "1920*1080", "duration": 7 }), sent).await;
    let says = "what metadata changes is priced";
    let parameters = json!({ "resolution": "1080P", "duration": 15 });
    let mut body = text(T2V, "", 15);
    body["parameters"] = json!({ "resolution": "1080P", "duration": 15, "prompt_extend": true, "watermark": false });
    let ask = json!({ "prompt": "p", "metadata": { "parameters": parameters } });
    table
        .sends(says, T2V, ask, Sent::new(PATH, body, 15 * 139_000).effective("audio=true resolution=1080P seconds=15"))
        .await;
    let says = "fields the model does not read are dropped, and reported";
    let sent = Sent::new(PATH, text(T2V, "1280*720", 5), 5 * 83_400).effective(DEFAULT).warned(&["input_reference"]);
    table.sends(says, T2V, json!({ "prompt": "p", "input_reference": PICTURE }), sent).await;
    let says = "family A at 480P has no price, text-to-video included";
    let ask = json!({ "prompt": "p", "size": "832*480" });
    table.refuses(says, T2V, ask, "unsupported_value", "size", "480P has no price").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn family_a_pictures_and_edits() {
    const LARGE: &str = "audio=true resolution=1080P seconds=5";
    let table = Table::new().await;
    let (i2v, r2v, edit) = ("wan2.7-i2v", "wan2.7-r2v", "wan2.7-videoedit");
    let says = "`input_reference` becomes the first frame; `size`, folded to 720P, and `duration` are sent with it";
    let first = json!([media("first_frame", PICTURE)]);
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "size": "1280*720", "duration": 8 });
    let sent = Sent::new(PATH, folded(i2v, first.clone(), "720P", 8), 8 * 83_400);
    table.sends(says, i2v, ask, sent.effective("audio=true resolution=720P seconds=8 size=1280*720")).await;
    let says = "1920*1080 means 1080P";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "size": "1920*1080" });
    let sent = Sent::new(PATH, folded(i2v, first.clone(), "1080P", 5), 5 * 139_000);
    table.sends(says, i2v, ask, sent.effective("audio=true resolution=1080P seconds=5 size=1920*1080")).await;
    let says = "no size: the provider's default is resolved, sent and charged";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE });
    let sent = Sent::new(PATH, folded(i2v, first, "1080P", 5), 5 * 139_000).effective(LARGE);
    table.sends(says, i2v, ask, sent).await;
    let says = "reference-to-video: `input_reference` takes one image";
    let one = json!([media("reference_image", PICTURE)]);
    let ask = json!({ "prompt": "p", "input_reference": PICTURE });
    let sent = Sent::new(PATH, folded(r2v, one.clone(), "1080P", 5), 5 * 139_000).effective(LARGE);
    table.sends(says, r2v, ask, sent).await;
    let says = "several go in `images`; `video_url` adds a reference video";
    let several =
        json!([media("reference_image", PICTURE), media("reference_image", OTHER), media("reference_video", CLIP)]);
    let ask = json!({ "prompt": "p", "images": [PICTURE, OTHER], "video_url": CLIP, "size": "1280*720" });
    let held = Sent::new(PATH, folded(r2v, several, "720P", 5), 15 * 83_400);
    let charged = 5 * 83_400 * 1_000;
    let effective = "audio=true resolution=720P seconds=5 size=1280*720";
    table.sends(says, r2v, ask, held.charged(charged).effective(effective)).await;
    let says = "with `input_reference` and `images` only `input_reference` stays";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "images": [OTHER] });
    let sent = Sent::new(PATH, folded(r2v, one, "1080P", 5), 5 * 139_000).effective(LARGE).warned(&["images"]);
    table.sends(says, r2v, ask, sent).await;
    let says = "references count together, at most five";
    let five = json!([PICTURE, PICTURE, PICTURE, PICTURE, PICTURE]);
    let ask = json!({ "prompt": "p", "images": five, "video_url": CLIP });
    table.refuses(says, r2v, ask, "invalid_parameter", "images", "at most 5").await;
    let says = "video-edit: `video_url` is the source clip; `size` sets the output";
    let source = json!([media("video", CLIP)]);
    let ask = json!({ "prompt": "p", "video_url": CLIP, "size": "1280*720", "duration": 4 });
    let sent = Sent::new(PATH, folded(edit, source, "720P", 4), 14 * 83_400);
    let sent = sent.effective("audio=true resolution=720P seconds=4 size=1280*720");
    table.sends(says, edit, ask, sent.charged(11 * 83_400 * 1_000)).await;
    let says = "`metadata` wins over the fields beside it, and each that loses is reported";
    let ask = json!({
        "prompt": "p", "input_reference": PICTURE, "size": "1920*1080", "duration": 9, "seconds": "8",
        "metadata": { "parameters": { "size": "1280*720", "duration": 6 } },
    });
    let sent = Sent::new(PATH, folded(i2v, json!([media("first_frame", PICTURE)]), "720P", 6), 6 * 83_400);
    let sent = sent.effective("audio=true resolution=720P seconds=6 size=1280*720");
    table.sends(says, i2v, ask, sent.warned(&["size", "duration", "seconds"])).await;
    let says = "2 to 10 seconds";
    let ask = json!({ "prompt": "p", "video_url": CLIP, "duration": 11 });
    table.refuses(says, edit, ask, "invalid_parameter", "duration", "10").await;
    let says = "MP4 or MOV";
    let ask = json!({ "prompt": "p", "video_url": "https://media.example/a.webm" });
    table.refuses(says, edit, ask, "invalid_parameter", "video_url", "MP4 or MOV").await;
    let says = "832*480 has no price for these three: refused at once";
    for (model, ask) in [
        (i2v, json!({ "input_reference": PICTURE })),
        (r2v, json!({ "prompt": "p", "input_reference": PICTURE })),
        (edit, json!({ "prompt": "p", "video_url": CLIP })),
    ] {
        let mut ask = ask;
        ask["size"] = json!("832*480");
        table.refuses(says, model, ask, "unsupported_value", "size", "480P has no price").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn family_e() {
    let table = Table::new().await;
    let (t2v, i2v, r2v) = ("happyhorse-1.1-t2v", "happyhorse-1.1-i2v", "happyhorse-1.1-r2v");
    let says = "480P is priced, so 832*480 is accepted";
    let mut body = text(t2v, "832*480", 5);
    body["parameters"].as_object_mut().expect("an object").remove("prompt_extend");
    let small = "audio=true resolution=480P seconds=5 size=832*480";
    let sent = Sent::new(PATH, body, 5 * 62_550).effective(small);
    table.sends(says, t2v, json!({ "prompt": "p", "size": "832*480" }), sent).await;
    let first = json!([media("first_frame", PICTURE)]);
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "size": "832*480", "duration": 3 });
    let sent = Sent::new(PATH, folded(i2v, first, "480P", 3), 3 * 62_550);
    table.sends(says, i2v, ask, sent.effective("audio=true resolution=480P seconds=3 size=832*480")).await;
    let one = json!([media("reference_image", PICTURE)]);
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "size": "832*480" });
    table.sends(says, r2v, ask, Sent::new(PATH, folded(r2v, one, "480P", 5), 5 * 62_550).effective(small)).await;
    let says = "several references go in `metadata.input.media`";
    let several = json!([media("reference_image", PICTURE), media("reference_image", OTHER)]);
    let ask = json!({ "prompt": "p", "metadata": { "input": { "media": several } } });
    let sent = Sent::new(PATH, folded(r2v, several, "1080P", 5), 5 * 166_800);
    table.sends(says, r2v, ask, sent.effective("audio=true resolution=1080P seconds=5")).await;
    let says = "the assembly triggered by `images` belongs only to A";
    let ask = json!({ "prompt": "p", "images": [PICTURE, OTHER] });
    table.refuses(says, r2v, ask, "missing_parameter", "input_reference", "metadata.input.media").await;
}
