//! Family B of the specification, 4.2, sentence by sentence. It is billed by the maker's tokens:
//! held for the largest picture of the resolution, charged as counted, the two seconds of each
//! reference clip included. 2.5 costs 9,730 nano-USD a token, 2.0 6,394 and with a reference video
//! 3,892.

use super::table::{CLIP, OTHER, PICTURE, Sent, Table};
use serde_json::{Value, json};

const PATH: &str = "/video/ark/api/v3/contents/generations/tasks";
const NEW: (&str, &str, i64) = ("seedance-2.5", "doubao-seedance-2-5-260628", 9_730);
const OLD: (&str, &str, i64) = ("seedance-2.0", "doubao-seedance-2-0-260128", 6_394);

fn picture(url: &str, role: Option<&str>) -> Value {
    let mut part = json!({ "type": "image_url", "image_url": { "url": url } });
    if let Some(role) = role {
        part["role"] = json!(role);
    }
    part
}

/// The body for these media, and the price of so many tokens held and counted; five seconds with
/// sound, unless a row says otherwise.
fn sent(model: (&str, &str, i64), mut content: Vec<Value>, more: Value, tokens: (i64, i64)) -> Sent {
    content.push(json!({ "type": "text", "text": "p" }));
    let mut body = json!({
        "model": model.1, "content": content, "resolution": "720p", "duration": 5, "generate_audio": true,
        "watermark": false, "safety_identifier": "{task}",
    });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    let sent = Sent { held: tokens.0 * model.2, charged: tokens.1 * model.2, ..Sent::new(PATH, body, 0) };
    sent.effective("audio=true resolution=720p seconds=5 video_input=false")
}

/// Five seconds of 720p: the bound, and what a picture of 16:9 has.
const FIVE: (i64, i64) = (108_985, 108_000);
const REFERENCE: Option<&str> = Some("reference_image");

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_length() {
    let table = Table::new().await;
    let says = "reference images go in `images`";
    let both = vec![picture(PICTURE, REFERENCE), picture(OTHER, REFERENCE)];
    let ask = json!({ "prompt": "p", "images": [PICTURE, OTHER] });
    table.sends(says, NEW.0, ask.clone(), sent(NEW, both.clone(), json!({}), FIVE)).await;
    table.sends(says, OLD.0, ask, sent(OLD, both.clone(), json!({}), FIVE)).await;
    let says = "`input_reference` takes a single one, and alone it is a first frame";
    let first = || vec![picture(PICTURE, None)];
    let ask = json!({ "prompt": "p", "input_reference": PICTURE });
    table.sends(says, NEW.0, ask, sent(NEW, first(), json!({}), FIVE)).await;
    let says = "when both are sent, both stay";
    let ask = json!({ "prompt": "p", "input_reference": OTHER, "images": [PICTURE] });
    table.sends(says, NEW.0, ask, sent(NEW, both, json!({}), FIVE)).await;
    let says = "length goes in `seconds` (string)";
    let eight = (174_375, 172_800);
    let long = "audio=true resolution=720p seconds=8 video_input=false";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "seconds": "8" });
    table.sends(says, NEW.0, ask, sent(NEW, first(), json!({ "duration": 8 }), eight).effective(long)).await;
    let says = "or `duration`";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "duration": 8 });
    table.sends(says, NEW.0, ask, sent(NEW, first(), json!({ "duration": 8 }), eight).effective(long)).await;
    let says = "`seconds` counts before `metadata.duration` and `duration`, which are reported";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "seconds": "8", "duration": 9, "metadata": { "duration": 10 } });
    let sent_eight = sent(NEW, first(), json!({ "duration": 8 }), eight).effective(long);
    table.sends(says, NEW.0, ask, sent_eight.warned(&["metadata.duration", "duration"])).await;
    let says = "`seconds` of 2 is refused (5 works)";
    let ask = json!({ "prompt": "p", "input_reference": PICTURE, "seconds": "2" });
    table.refuses(says, NEW.0, ask, "invalid_parameter", "seconds", "4 to 30").await;
    let says = "30 seconds in one shot";
    let ask = json!({ "prompt": "p", "images": [PICTURE], "seconds": "30" });
    let one = || vec![picture(PICTURE, REFERENCE)];
    let sent = sent(NEW, one(), json!({ "duration": 30 }), (653_907, 648_000));
    let effective = "audio=true resolution=720p seconds=30 video_input=false";
    table.sends(says, NEW.0, ask, sent.effective(effective)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_modes() {
    let table = Table::new().await;
    let one = || vec![picture(PICTURE, REFERENCE)];
    let says = "`metadata.resolution` 480p, `metadata.ratio`, `metadata.generate_audio` false for no audio track";
    let metadata = json!({ "resolution": "480p", "ratio": "16:9", "generate_audio": false });
    let ask = json!({ "prompt": "p", "images": [PICTURE], "metadata": metadata });
    let effective = "audio=false ratio=16:9 resolution=480p seconds=5 video_input=false";
    table.sends(says, NEW.0, ask, sent(NEW, one(), metadata, (50_625, 48_600)).effective(effective)).await;
    let says = "`metadata.resolution` is 480p or 720p";
    let ask = json!({ "prompt": "p", "images": [PICTURE], "metadata": { "resolution": "1080p" } });
    table.refuses(says, NEW.0, ask, "unsupported_value", "metadata.resolution", "480p, 720p").await;
    let says = "`metadata.content` is an array of parts with `type`, `image_url.url` and `role`";
    let ask = json!({ "prompt": "p", "metadata": { "content": one() } });
    table.sends(says, OLD.0, ask, sent(OLD, one(), json!({}), FIVE)).await;
    let says = "an image without `role` is the first frame, and `ratio` with it is refused";
    let ask = json!({ "prompt": "p", "metadata": { "content": [picture(PICTURE, None)], "ratio": "16:9" } });
    let code = "InvalidParameter.TaskTypeConstraint";
    table.refuses(says, NEW.0, ask, code, "metadata.ratio", "adaptive").await;
    let says = "with a `role` on every part `ratio` is accepted";
    let ask = json!({ "prompt": "p", "metadata": { "content": one(), "ratio": "21:9" } });
    let effective = "audio=true ratio=21:9 resolution=720p seconds=5 video_input=false";
    table.sends(says, NEW.0, ask, sent(NEW, one(), json!({ "ratio": "21:9" }), FIVE).effective(effective)).await;
    let clip = json!({ "type": "video_url", "video_url": { "url": CLIP }, "role": "reference_video" });
    let link = "https://media.example/a.mp3";
    let sound = json!({ "type": "audio_url", "audio_url": { "url": link }, "role": "reference_audio" });
    let says = "up to 30 images, 10 videos and 10 audio clips";
    let full = [vec![picture(PICTURE, REFERENCE); 30], vec![clip.clone(); 10], vec![sound.clone(); 10]].concat();
    let ask = json!({ "prompt": "p", "metadata": { "content": full } });
    let clips = "audio=true resolution=720p seconds=5 video_input=true";
    table.sends(says, NEW.0, ask, sent(NEW, full, json!({}), (762_891, 540_000)).effective(clips)).await;
    for (count, part, what) in
        [(31, picture(PICTURE, REFERENCE), "30"), (11, clip.clone(), "10"), (11, sound.clone(), "10")]
    {
        let ask = json!({ "prompt": "p", "metadata": { "content": vec![part; count] } });
        table.refuses(says, NEW.0, ask, "invalid_parameter", "metadata.content", &format!("at most {what}")).await;
    }
    let says = "audio-only input: the 2.5 model accepts an audio reference alone";
    let alone = vec![sound.clone()];
    let ask = json!({ "prompt": "p", "metadata": { "content": alone } });
    table.sends(says, NEW.0, ask.clone(), sent(NEW, alone, json!({}), FIVE)).await;
    let says = "the 2.0 line needs at least one image or video reference";
    for model in ["seedance-2.0", "seedance-2.0-fast", "seedance-2.0-mini"] {
        table.refuses(says, model, ask.clone(), "missing_parameter", "images", "at least one image or video").await;
        table.refuses(says, model, json!({ "prompt": "p" }), "missing_parameter", "images", "at least one").await;
    }
    let says = "a video is enough, and its tokens cost less";
    let ask = json!({ "prompt": "p", "metadata": { "content": [clip] } });
    let cheaper = (OLD.0, OLD.1, 3_892);
    let sent = sent(cheaper, vec![clip.clone()], json!({}), (435_938, 151_200)).effective(clips);
    table.sends(says, OLD.0, ask, sent).await;
}
