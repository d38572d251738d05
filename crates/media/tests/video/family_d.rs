//! Family D: the native-audio model and the three legacy-named ones.

use crate::table::{CLIP, OTHER, PICTURE, accepts, ask, refuses};
use serde_json::{Value, json};
use tollgate_wire::error::Code::{InvalidParameter, MissingParameter, UnsupportedValue};

const CALL: &str = "video_generation";

fn native(mut content: Vec<Value>, more: Value) -> Value {
    content.push(json!({"type": "text", "text": "p"}));
    let mut body = json!({"content": content, "resolution": "768P", "duration": 5});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

fn picture(url: &str, role: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}, "role": role})
}

#[test]
fn native_audio_media() {
    const D: &str = "d-native-audio";
    let facts = "resolution=768P audio=true video_input=false reference_images=0 seconds=5 bound=5";
    for field in ["image", "input_reference"] {
        let mut fields = json!({"prompt": "p"});
        fields[field] = json!(PICTURE);
        let body = native(vec![picture(PICTURE, "first_frame")], json!({}));
        accepts("image or input_reference becomes the first frame", D, fields, CALL, body, facts, &[]);
    }
    let fields = json!({"prompt": "p", "image": PICTURE, "input_reference": OTHER});
    let body = native(vec![picture(PICTURE, "first_frame")], json!({}));
    accepts("one of them counts", D, fields, CALL, body, facts, &["input_reference"]);
    let fields = json!({"prompt": "p", "images": [PICTURE, OTHER]});
    let body = native(vec![picture(PICTURE, "reference_image"), picture(OTHER, "reference_image")], json!({}));
    let facts = "resolution=768P audio=true video_input=false reference_images=2 seconds=5 bound=5";
    accepts("images become reference images", D, fields, CALL, body, facts, &[]);
    let fields = json!({"prompt": "p", "video_url": CLIP});
    let clip = json!({"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"});
    let facts = "resolution=768P audio=true video_input=true reference_images=0 seconds=5 bound=20";
    accepts("video_url becomes a reference video", D, fields, CALL, native(vec![clip], json!({})), facts, &[]);
    let fields = json!({"prompt": "p", "image": PICTURE, "images": [OTHER]});
    refuses("frames exclude references", D, fields, InvalidParameter, "images", "cannot be sent together");
    let five = ask(D, json!({"prompt": "p", "images": vec![PICTURE; 5]})).expect("a plan");
    assert_eq!(five.attribute("reference_images"), Some("5"));
    let six = json!({"prompt": "p", "images": vec![PICTURE; 6]});
    refuses("the sixth costs extra and has no price", D, six, UnsupportedValue, "images", "6 has no price");
    let many = json!(vec![PICTURE; 10]);
    refuses("at most 9", D, json!({"prompt": "p", "images": many}), InvalidParameter, "images", "at most 9");
    refuses("prompt is required", D, json!({"image": PICTURE}), MissingParameter, "prompt", "required");
}

#[test]
fn native_audio_size_length_ratio() {
    const D: &str = "d-native-audio";
    let with = |more: Value| {
        let mut fields = json!({"prompt": "p", "metadata": {"ratio": "16:9"}});
        for (name, value) in more.as_object().expect("an object") {
            fields[name] = value.clone();
        }
        fields
    };
    let says = "size is 768P or 2K";
    let facts = "resolution=2K audio=true video_input=false reference_images=0 ratio=16:9 seconds=4 bound=4";
    let body = native(vec![], json!({"resolution": "2K", "duration": 4, "ratio": "16:9"}));
    accepts(says, D, with(json!({"size": "2K", "duration": 4})), CALL, body, facts, &[]);
    for size in ["2k", "768p", "1080P", "1280*720"] {
        refuses(says, D, with(json!({"size": size})), InvalidParameter, "size", "768P or 2K");
    }
    let says = "duration is a whole number from 4 to 15";
    for duration in [3, 16] {
        refuses(says, D, with(json!({"duration": duration})), InvalidParameter, "duration", "4 to 15");
    }
    refuses(says, D, with(json!({"duration": 4.5})), InvalidParameter, "duration", "whole number");
    let says = "text-only requests need an explicit metadata.ratio other than adaptive";
    refuses(says, D, json!({"prompt": "p"}), MissingParameter, "metadata.ratio", "required");
    let fields = json!({"prompt": "p", "metadata": {"ratio": "adaptive"}});
    refuses(says, D, fields, MissingParameter, "metadata.ratio", "adaptive");
    let fields = json!({"prompt": "p", "image": PICTURE, "metadata": {"ratio": "16:9"}});
    let facts = "resolution=768P audio=true video_input=false reference_images=0 seconds=5 bound=5";
    let body = native(vec![picture(PICTURE, "first_frame")], json!({}));
    accepts("a first frame brings its ratio", D, fields, CALL, body, facts, &["metadata.ratio"]);
    let fields = json!({"prompt": "p", "metadata": {"ratio": "1:1", "aigc_watermark": false}});
    let facts = "resolution=768P audio=true video_input=false reference_images=0 ratio=1:1 seconds=5 bound=5";
    let body = native(vec![], json!({"ratio": "1:1", "aigc_watermark": false}));
    accepts("an explicit false stays", D, fields, CALL, body, facts, &[]);
}

fn legacy(more: Value) -> Value {
    let mut body = json!({"prompt": "p", "duration": 6, "resolution": "768P"});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[test]
fn legacy_top_level() {
    const FACTS: &str = "resolution=768P seconds=6 bound=6";
    for variant in ["d-legacy", "d-legacy-02"] {
        accepts("defaults", variant, json!({"prompt": "p"}), CALL, legacy(json!({})), FACTS, &[]);
        let says = "top-level pictures and clips are dropped: it runs, and is billed, as text-to-video";
        let fields =
            json!({"prompt": "p", "image": PICTURE, "input_reference": PICTURE, "images": [OTHER], "video_url": CLIP});
        let warned = ["input_reference", "images", "image", "video_url"];
        accepts(says, variant, fields, CALL, legacy(json!({})), FACTS, &warned);
        let says = "only prompt, duration and size are read";
        let fields = json!({"prompt": "p", "duration": 10, "size": "1366*768", "seconds": "6"});
        let facts = "resolution=768P seconds=10 bound=10";
        accepts(says, variant, fields, CALL, legacy(json!({"duration": 10})), facts, &["seconds"]);
        let fields = json!({"prompt": "p", "size": "1920*1080"});
        let facts = "resolution=1080P seconds=6 bound=6";
        accepts("size names the tier", variant, fields, CALL, legacy(json!({"resolution": "1080P"})), facts, &[]);
        let fields = json!({"prompt": "p", "size": "1280*720"});
        refuses("720P is not sold", variant, fields, UnsupportedValue, "size", "720P has no price");
        let fields = json!({"prompt": "p", "duration": 8});
        refuses("6 or 10 seconds", variant, fields, InvalidParameter, "duration", "6 or 10");
        let fields = json!({"prompt": "p", "duration": 10, "size": "1080P"});
        refuses("1080P is 6 seconds", variant, fields, InvalidParameter, "duration", "6 seconds only");
        refuses("prompt", variant, json!({}), MissingParameter, "prompt", "required");
    }
}

#[test]
fn legacy_pictures_go_in_metadata() {
    const FACTS: &str = "resolution=768P seconds=6 bound=6";
    let metadata = json!({
        "first_frame_image": PICTURE, "last_frame_image": OTHER,
        "subject_reference": [{"type": "character", "image": [PICTURE]}], "prompt_optimizer": false,
    });
    for variant in ["d-legacy", "d-legacy-fast", "d-legacy-02"] {
        let fields = json!({"prompt": "p", "metadata": metadata});
        accepts("first, last and subject", variant, fields, CALL, legacy(metadata.clone()), FACTS, &[]);
    }
    let says = "the fast model takes pictures only: text alone is refused, with that reason";
    for fields in [json!({"prompt": "p"}), json!({"prompt": "p", "image": PICTURE})] {
        refuses(says, "d-legacy-fast", fields, MissingParameter, "metadata.first_frame_image", "picture only");
    }
    let fields = json!({"prompt": "p", "size": "512P", "metadata": {"first_frame_image": PICTURE}});
    let body = legacy(json!({"resolution": "512P", "first_frame_image": PICTURE}));
    accepts("512P with a picture", "d-legacy-02", fields, CALL, body, "resolution=512P seconds=6 bound=6", &[]);
    let fields = json!({"prompt": "p", "size": "512P"});
    refuses("512P needs one", "d-legacy-02", fields, UnsupportedValue, "size", "first_frame_image");
    let fields = json!({"prompt": "p", "metadata": {"resolution": "1080P", "duration": 6}});
    let body = legacy(json!({"resolution": "1080P"}));
    accepts("metadata is priced", "d-legacy", fields, CALL, body, "resolution=1080P seconds=6 bound=6", &[]);
}
