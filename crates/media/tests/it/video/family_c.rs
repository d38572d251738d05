//! Family C: standard, value tier, multi-image reference.

use super::table::{CLIP, OTHER, PICTURE, accepts, ask, refuses};
use serde_json::{Value, json};
use tollgate_media::video::{Offer, Variant, VideoRequest, plan};
use tollgate_wire::error::Code::{InvalidParameter, MissingParameter, UnsupportedValue};

const FACTS: &str = "mode=std audio=false sound=off seconds=5 bound=5";

fn standard(more: Value) -> Value {
    let mut body = json!({"prompt": "p", "mode": "std", "sound": "off", "duration": "5"});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[test]
fn standard_frames_and_defaults() {
    const C: &str = "c-standard";
    let says = "mode defaults to std, duration to 5 seconds, sound to off; without size no ratio is sent";
    accepts(says, C, json!({"prompt": "p"}), "text2video", standard(json!({})), FACTS, &[]);
    let fields = json!({"prompt": "p", "image": PICTURE});
    accepts("the first frame is in image", C, fields, "image2video", standard(json!({"image": PICTURE})), FACTS, &[]);
    let says = "input_reference is never read";
    let fields = json!({"prompt": "p", "input_reference": PICTURE});
    accepts(says, C, fields, "text2video", standard(json!({})), FACTS, &["input_reference"]);
    let fields = json!({"prompt": "p", "image": "data:image/png;base64,iVBORw0K"});
    accepts("bare base64", C, fields, "image2video", standard(json!({"image": "iVBORw0K"})), FACTS, &[]);
    refuses("text alone needs a prompt", C, json!({}), MissingParameter, "prompt", "required");
    let says = "metadata carries image_tail, sound, negative_prompt, cfg_scale";
    let metadata = json!({"image_tail": OTHER, "sound": "on", "negative_prompt": "n", "cfg_scale": 0.7});
    let mut body = standard(metadata.clone());
    body["image"] = json!(PICTURE);
    let fields = json!({"prompt": "p", "image": PICTURE, "metadata": metadata});
    accepts(says, C, fields, "image2video", body, "mode=std audio=true sound=on seconds=5 bound=5", &[]);
    let says = "mode is a field of metadata; at the top it is none, and reported";
    accepts(says, C, json!({"prompt": "p", "mode": "pro"}), "text2video", standard(json!({})), FACTS, &["mode"]);
    let camera = json!({"type": "simple", "config": {"zoom": 5, "pan": 0}});
    let fields = json!({"prompt": "p", "metadata": {"camera_control": camera}});
    accepts("and camera_control", C, fields, "text2video", standard(json!({"camera_control": camera})), FACTS, &[]);
    let fields = json!({"prompt": "p", "metadata": {"sound": "loud"}});
    refuses("sound is on or off", C, fields, InvalidParameter, "metadata.sound", "on, off");
    let fields = json!({"prompt": "p", "metadata": {"cfg_scale": 1.1}});
    refuses("cfg_scale", C, fields, InvalidParameter, "metadata.cfg_scale", "0 to 1");
    let fields = json!({"prompt": "p", "metadata": {"camera_control": camera, "image_tail": OTHER}});
    refuses("exclusive", C, fields, InvalidParameter, "metadata.camera_control", "exclude");
    let fields = json!({"prompt": "p", "duration": 10});
    let facts = "mode=std audio=false sound=off seconds=10 bound=10";
    accepts("duration is sent as text", C, fields, "text2video", standard(json!({"duration": "10"})), facts, &[]);
    let fields = json!({"prompt": "p", "duration": 10, "metadata": {"duration": "3"}});
    let facts = "mode=std audio=false sound=off seconds=3 bound=3";
    accepts("metadata wins", C, fields, "text2video", standard(json!({"duration": "3"})), facts, &["duration"]);
    refuses("3 to 15", C, json!({"prompt": "p", "duration": 16}), InvalidParameter, "duration", "3 to 15");
}

#[test]
fn standard_modes_need_a_price() {
    let fields = json!({"prompt": "p", "metadata": {"mode": "pro"}});
    refuses(
        "a mode without a price",
        "c-standard",
        fields.clone(),
        UnsupportedValue,
        "metadata.mode",
        "pro has no price",
    );
    let mut offer = Offer::of(Variant::named("c-standard").expect("a variant"));
    offer.sold.insert("mode".to_owned(), vec!["std".to_owned(), "pro".to_owned()]);
    let mut fields = fields;
    fields["model"] = json!("m");
    let plan =
        plan(&VideoRequest::from_json(fields.to_string().as_bytes()).expect("a request"), &offer).expect("a plan");
    assert_eq!(plan.body["mode"], "pro");
    assert_eq!((plan.attribute("mode"), plan.attribute("metadata.mode")), (Some("pro"), Some("pro")));
    assert_eq!(plan.attribute("quality"), None);
}

#[test]
fn standard_sizes() {
    const C: &str = "c-standard";
    let with = |size: &str| json!({"prompt": "p", "size": size});
    for (size, ratio) in [
        ("1280x720", "16:9"),
        ("1920x1080", "16:9"),
        ("720x1280", "9:16"),
        ("1080x1920", "9:16"),
        ("1024x1024", "1:1"),
        ("512x512", "1:1"),
    ] {
        let facts = format!("mode=std audio=false sound=off ratio={ratio} seconds=5 bound=5");
        let body = standard(json!({"aspect_ratio": ratio}));
        accepts("the fixed table of x-spelled sizes", C, with(size), "text2video", body, &facts, &[]);
    }
    let facts = "mode=std audio=false sound=off ratio=1:1 seconds=5 bound=5";
    for size in ["1280*720", "1280X720", "16:9", "640x360"] {
        let body = standard(json!({"aspect_ratio": "1:1"}));
        accepts("any other value becomes 1:1 without an error", C, with(size), "text2video", body, facts, &["size"]);
    }
    let fields = json!({"prompt": "p", "size": "1280*720", "metadata": {"aspect_ratio": "9:16"}});
    let facts = "mode=std audio=false sound=off ratio=9:16 seconds=5 bound=5";
    let body = standard(json!({"aspect_ratio": "9:16"}));
    accepts("set metadata.aspect_ratio when framing matters", C, fields, "text2video", body, facts, &["size"]);
    let fields = json!({"prompt": "p", "image": PICTURE, "size": "1280x720"});
    let body = standard(json!({"image": PICTURE}));
    accepts("a picture brings its ratio", C, fields, "image2video", body, FACTS, &["size"]);
}

#[test]
fn value_tier() {
    const C: &str = "c-value";
    let says = "prompt alone gives text-to-video; audio is always included";
    let settings = json!({"resolution": "720p", "duration": 5, "aspect_ratio": "16:9"});
    let facts = "resolution=720p audio=true ratio=16:9 seconds=5 bound=5";
    let body = json!({"prompt": "p", "settings": settings});
    accepts(says, C, json!({"prompt": "p"}), "text-to-video", body.clone(), facts, &[]);
    let says = "adding image gives image-to-video with a contents array";
    let contents = json!([{"type": "prompt", "text": "p"}, {"type": "first_frame", "url": PICTURE}]);
    let with_image = json!({"contents": contents, "settings": {"resolution": "720p", "duration": 5}});
    let facts_image = "resolution=720p audio=true seconds=5 bound=5";
    let fields = json!({"prompt": "p", "image": PICTURE});
    accepts(says, C, fields, "image-to-video", with_image, facts_image, &[]);
    let says = "settings: resolution, duration, aspect_ratio";
    for (resolution, seconds, ratio) in [("720p", 3, "16:9"), ("1080p", 15, "9:16"), ("1080p", 7, "1:1")] {
        let settings = json!({"resolution": resolution, "duration": seconds, "aspect_ratio": ratio});
        let facts = format!("resolution={resolution} audio=true ratio={ratio} seconds={seconds} bound={seconds}");
        let fields = json!({"prompt": "p", "metadata": {"settings": settings}});
        accepts(says, C, fields, "text-to-video", json!({"prompt": "p", "settings": settings}), &facts, &[]);
    }
    for duration in [2, 16] {
        let fields = json!({"prompt": "p", "metadata": {"settings": {"duration": duration}}});
        refuses("3 to 15 seconds", C, fields, InvalidParameter, "metadata.settings.duration", "3 to 15");
    }
    let fields = json!({"prompt": "p", "metadata": {"settings": {"resolution": "4k"}}});
    refuses("720p or 1080p", C, fields, InvalidParameter, "metadata.settings.resolution", "720p, 1080p");
    let fields = json!({"prompt": "p", "metadata": {"settings": {"aspect_ratio": "4:3"}}});
    refuses("ratios", C, fields, InvalidParameter, "metadata.settings.aspect_ratio", "16:9, 9:16, 1:1");
    let fields = json!({"prompt": "p", "metadata": {"settings": {"audio": "off"}}});
    accepts("no switch for audio", C, fields, "text-to-video", body.clone(), facts, &["metadata.settings.audio"]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "1280x720"});
    accepts("other fields", C, fields, "text-to-video", body, facts, &["input_reference", "size"]);
    let fields = json!({"prompt": "p", "duration": 9});
    assert_eq!(
        ask(C, fields).expect("a plan").seconds,
        Some(9),
        "a top-level duration counts where settings say nothing"
    );
}

#[test]
fn multi_image() {
    const C: &str = "c-multi-image";
    let with = |metadata: Value| json!({"prompt": "p", "metadata": metadata});
    let body = |more: Value| {
        let mut body = json!({"prompt": "p", "mode": "pro", "sound": "off", "duration": "5"});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let images = json!([{"image_url": PICTURE}, {"image_url": OTHER}]);
    let says = "upstream's default pro is sent and priced; sound defaults to off";
    let metadata = json!({"image_list": images, "aspect_ratio": "16:9"});
    let facts = "mode=pro audio=false sound=off ratio=16:9 seconds=5 bound=5";
    accepts(says, C, with(metadata.clone()), "omni-video", body(metadata), facts, &[]);
    for mode in ["std", "pro", "4k"] {
        let metadata = json!({"aspect_ratio": "1:1", "mode": mode, "duration": "15"});
        let facts = format!("mode={mode} audio=false sound=off ratio=1:1 seconds=15 bound=15");
        accepts("mode is std, pro or 4k", C, with(metadata.clone()), "omni-video", body(metadata), &facts, &[]);
    }
    let fields = with(json!({"aspect_ratio": "1:1", "mode": "8k"}));
    refuses("other modes", C, fields, InvalidParameter, "metadata.mode", "std, pro, 4k");
    let says = "aspect_ratio is required whenever no first frame is present";
    refuses(says, C, with(json!({"image_list": images})), MissingParameter, "metadata.aspect_ratio", "first frame");
    let frames = json!({"image_list": [{"image_url": PICTURE, "type": "first_frame"}, {"image_url": OTHER, "type": "end_frame"}]});
    let facts = "mode=pro audio=false sound=off seconds=5 bound=5";
    accepts("a first frame", C, with(frames.clone()), "omni-video", body(frames), facts, &[]);
    let fields = with(json!({"image_list": [{"image_url": PICTURE, "type": "reference"}], "aspect_ratio": "1:1"}));
    refuses(
        "type is first_frame or end_frame",
        C,
        fields,
        InvalidParameter,
        "metadata.image_list[0].type",
        "first_frame, end_frame",
    );
    let fields = with(json!({"image_list": [{"image_url": PICTURE, "type": "end_frame"}], "aspect_ratio": "1:1"}));
    refuses("an end frame needs a first frame", C, fields, InvalidParameter, "metadata.image_list", "one first frame");
    for duration in ["2", "16", "5s", "-5"] {
        let fields = with(json!({"aspect_ratio": "1:1", "duration": duration}));
        refuses("duration is text from 3 to 15", C, fields, InvalidParameter, "metadata.duration", "3 to 15");
    }
    let says = "every parameter is in metadata, and there is no resolution";
    let fields = json!({"prompt": "p", "image": PICTURE, "size": "1280x720", "duration": 9,
        "metadata": {"aspect_ratio": "1:1", "resolution": "1080p"}});
    let facts = "mode=pro audio=false sound=off ratio=1:1 seconds=5 bound=5";
    let warned = ["image", "size", "duration", "metadata.resolution"];
    accepts(says, C, fields, "omni-video", body(json!({"aspect_ratio": "1:1"})), facts, &warned);
}

#[test]
fn multi_image_reference_video() {
    const C: &str = "c-multi-image";
    let field = "metadata.video_list[0].refer_type";
    let with = |video: Value| json!({"prompt": "p", "metadata": {"aspect_ratio": "1:1", "video_list": [video]}});
    let video = json!({"video_url": CLIP, "refer_type": "feature", "keep_original_sound": "no"});
    let body = json!({"prompt": "p", "mode": "pro", "sound": "off", "duration": "5", "aspect_ratio": "1:1", "video_list": [video]});
    let facts = "mode=pro audio=false sound=off ratio=1:1 seconds=5 bound=5";
    accepts("refer_type equals feature", C, with(video), "omni-video", body, facts, &[]);
    let fields = with(json!({"video_url": CLIP, "refer_type": "base"}));
    refuses("base is refused", C, fields, UnsupportedValue, field, "cannot be priced");
    let fields = with(json!({"video_url": CLIP}));
    refuses("so is none, which means base", C, fields, UnsupportedValue, field, "left out");
    let fields = json!({"prompt": "p", "metadata": {"aspect_ratio": "1:1", "sound": "on",
        "video_list": [{"video_url": CLIP, "refer_type": "feature"}]}});
    refuses("no sound beside it", C, fields, InvalidParameter, "metadata.sound", "off");
    let images = json!(vec![json!({"image_url": PICTURE}); 5]);
    let fields = json!({"prompt": "p", "metadata": {"aspect_ratio": "1:1", "image_list": images,
        "video_list": [{"video_url": CLIP, "refer_type": "feature"}]}});
    refuses("four images beside it", C, fields, InvalidParameter, "metadata.image_list", "at most 4");
}

/// What the shots add up to is made and billed, so it has to be the length that is priced.
#[test]
fn lengths_of_shots_add_up_to_the_length() {
    let shots = |lengths: &[Value]| -> Value {
        let shot = |(at, length): (usize, &Value)| json!({"index": at + 1, "prompt": "p", "duration": length});
        lengths.iter().enumerate().map(shot).collect()
    };
    for variant in ["c-standard", "c-multi-image"] {
        let with = |duration: &str, shots: Value| {
            json!({"prompt": "p", "metadata": {"aspect_ratio": "1:1", "duration": duration, "multi_shot": true,
                "shot_type": "customize", "multi_prompt": shots}})
        };
        let fifteen = shots(&[json!("7"), json!(8)]);
        let param = "metadata.multi_prompt";
        let says = "15 seconds of shots are not sold as 5";
        refuses(says, variant, with("5", fifteen.clone()), InvalidParameter, param, "15 seconds together");
        refuses("nor as 14", variant, with("14", fifteen.clone()), InvalidParameter, param, "the video 14");
        let fields = with("5", shots(&[json!("5"), Value::Null]));
        refuses("all or none", variant, fields, MissingParameter, "metadata.multi_prompt[1].duration", "required");
        for (duration, shots) in [("15", fifteen), ("5", json!([{"index": 1, "prompt": "p"}]))] {
            let plan = ask(variant, with(duration, shots)).expect("a plan");
            assert_eq!(
                (plan.body["duration"].as_str(), plan.bound.seconds.to_string().as_str()),
                (Some(duration), duration)
            );
        }
    }
}
