//! Family A: text, image, reference, edit.

use super::table::{CLIP, OTHER, PICTURE, accepts, refuses};
use serde_json::{Value, json};
use tollgate_media::video::{Offer, Variant, VideoRequest, plan};
use tollgate_wire::error::Code::{InvalidParameter, MissingParameter, UnsupportedValue};

const CALL: &str = "video-synthesis";

fn text(size: &str, seconds: u32) -> Value {
    let parameters = json!({"size": size, "duration": seconds, "prompt_extend": true, "watermark": false});
    json!({"input": {"prompt": "p"}, "parameters": parameters})
}

/// The body of a variant that folds.
fn folded(media: Value, tier: &str, seconds: u32) -> Value {
    let parameters = json!({"resolution": tier, "duration": seconds, "prompt_extend": true, "watermark": false});
    json!({"input": {"prompt": "p", "media": media}, "parameters": parameters})
}

fn picture(url: &str) -> Value {
    json!({"type": "reference_image", "url": url})
}

#[test]
fn general_rules() {
    let says = "size is width and height joined by an asterisk; the letter x is rejected";
    for variant in ["a-text-to-video", "e-text-to-video"] {
        let fields = json!({"prompt": "p", "size": "1280x720"});
        refuses(says, variant, fields, InvalidParameter, "size", "invalid size: 1280x720, example: 1280*720");
    }
    for variant in ["a-image-to-video", "e-image-to-video"] {
        let fields = json!({"input_reference": PICTURE, "size": "1920x1080"});
        refuses(says, variant, fields, InvalidParameter, "size", "invalid size: 1920x1080, example: 1280*720");
    }
    let says = "duration is a whole number of seconds";
    for duration in [json!(5.5), json!("5"), json!(true), json!([5])] {
        let fields = json!({"prompt": "p", "duration": duration});
        refuses(says, "a-text-to-video", fields, InvalidParameter, "duration", "whole number");
    }
}

/// The specification denies three variants a price for 480P and takes the size of the fourth as
/// written. What has no price is refused; an operator who has one can sell it, and then it goes out
/// as written.
#[test]
fn text_to_video_at_480p_is_a_matter_of_price() {
    let mut offer = Offer::of(Variant::named("a-text-to-video").expect("a variant"));
    offer.sold.insert("resolution".to_owned(), ["480P", "720P", "1080P"].map(str::to_owned).to_vec());
    let fields = json!({"model": "m", "prompt": "p", "size": "832*480"});
    let plan =
        plan(&VideoRequest::from_json(fields.to_string().as_bytes()).expect("a request"), &offer).expect("a plan");
    assert_eq!(Value::Object(plan.body.clone()), text("832*480", 5));
    assert_eq!(plan.attribute("resolution"), Some("480P"));
}

#[test]
fn text_to_video() {
    const T2V: &str = "a-text-to-video";
    let defaults = "size=1280*720 resolution=720P audio=true seconds=5 bound=5";
    let says = "only model and prompt are required; 1280*720 and five seconds are submitted";
    accepts(says, T2V, json!({"prompt": "p"}), CALL, text("1280*720", 5), defaults, &[]);
    let says = "size is taken as written";
    for (size, tier) in [("1920*1080", "1080P"), ("1088*832", "720P"), ("1200*700", "720P"), ("1400*1400", "1080P")] {
        let facts = format!("size={size} resolution={tier} audio=true seconds=7 bound=7");
        let fields = json!({"prompt": "p", "size": size, "duration": 7});
        accepts(says, T2V, fields, CALL, text(size, 7), &facts, &[]);
    }
    let fields = json!({"prompt": "p", "seconds": "8"});
    let facts = "size=1280*720 resolution=720P audio=true seconds=8 bound=8";
    accepts("seconds is read where duration is missing", T2V, fields, CALL, text("1280*720", 8), facts, &[]);
    refuses("prompt is required", T2V, json!({}), MissingParameter, "prompt", "required");
    let says =
        "no price is listed for 480P in this family; text-to-video, which takes its size as written, has none either";
    for size in ["832*480", "480*832", "624*624", "640*360"] {
        refuses(says, T2V, json!({"prompt": "p", "size": size}), UnsupportedValue, "size", "480P has no price");
    }
    let fields = json!({"prompt": "p", "size": "3840*2160"});
    refuses("a size above the highest tier has no price", T2V, fields, UnsupportedValue, "size", "no price");
    for duration in [0, 1, 16, -5] {
        let fields = json!({"prompt": "p", "duration": duration});
        refuses("2 to 15 seconds", T2V, fields, InvalidParameter, "duration", "2 to 15");
    }
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "video_url": CLIP});
    let warned = ["input_reference", "video_url"];
    accepts("pictures are not read, and that is reported", T2V, fields, CALL, text("1280*720", 5), defaults, &warned);
}

#[test]
fn text_metadata_is_sent_and_priced() {
    const T2V: &str = "a-text-to-video";
    let parameters = json!({"duration": 10, "size": "1920*1080", "seed": 7, "watermark": true, "prompt_extend": false});
    let input = json!({"negative_prompt": "n", "audio_url": "https://media.example/a.mp3"});
    let fields = json!({"prompt": "p", "size": "1280*720", "duration": 3, "metadata": {"input": input, "parameters": parameters}});
    let mut body = json!({"input": input, "parameters": parameters});
    body["input"]["prompt"] = json!("p");
    let facts = "size=1920*1080 resolution=1080P audio=true seconds=10 bound=10";
    accepts("metadata is merged over the body and priced", T2V, fields, CALL, body, facts, &["size", "duration"]);

    let fields = json!({"prompt": "p", "metadata": {"parameters": {"resolution": "1080P", "ratio": "9:16"}}});
    let parameters =
        json!({"resolution": "1080P", "ratio": "9:16", "duration": 5, "prompt_extend": true, "watermark": false});
    let body = json!({"input": {"prompt": "p"}, "parameters": parameters});
    let facts = "resolution=1080P ratio=9:16 audio=true seconds=5 bound=5";
    accepts("a tier named alone is sent instead of the default size", T2V, fields, CALL, body, facts, &[]);

    let field = "metadata.parameters.resolution";
    let fields = json!({"prompt": "p", "metadata": {"parameters": {"resolution": "480P"}}});
    refuses("480P inside metadata has no price either", T2V, fields, UnsupportedValue, field, "480P has no price");
    let fields = json!({"prompt": "p", "size": "1280*720", "metadata": {"parameters": {"resolution": "1080P"}}});
    refuses("two tiers", T2V, fields, InvalidParameter, field, "different tiers");
    let fields = json!({"prompt": "p", "metadata": {"model": "other"}});
    refuses("metadata cannot change the model", T2V, fields, UnsupportedValue, "metadata.model", "`model` alone");
    let fields = json!({"prompt": "p", "metadata": {"parameters": {"seed": "7"}}});
    refuses("kinds are checked", T2V, fields, InvalidParameter, "metadata.parameters.seed", "whole number");
    let fields = json!({"prompt": "p", "metadata": {"order": "77", "parameters": {"fps": 60}}});
    let warned = ["metadata.order", "metadata.parameters.fps"];
    let facts = "size=1280*720 resolution=720P audio=true seconds=5 bound=5";
    accepts("what nobody knows is not sent", T2V, fields, CALL, text("1280*720", 5), facts, &warned);
}

#[test]
fn image_to_video() {
    const I2V: &str = "a-image-to-video";
    let frame = json!([{"type": "first_frame", "url": PICTURE}]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "1280*720", "duration": 8});
    let facts = "size=1280*720 resolution=720P audio=true seconds=8 bound=8";
    let says = "input_reference becomes the first frame; size (folded) and duration are sent with it";
    accepts(says, I2V, fields, CALL, folded(frame.clone(), "720P", 8), facts, &[]);
    let says = "1920*1080 means 1080P";
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "1920*1080"});
    let facts = "size=1920*1080 resolution=1080P audio=true seconds=5 bound=5";
    accepts(says, I2V, fields, CALL, folded(frame.clone(), "1080P", 5), facts, &[]);
    let says = "without size the provider's default is sent and priced";
    let fields = json!({"prompt": "p", "input_reference": PICTURE});
    let facts = "resolution=1080P audio=true seconds=5 bound=5";
    accepts(says, I2V, fields, CALL, folded(frame.clone(), "1080P", 5), facts, &[]);
    let fields = json!({"prompt": "p", "image": PICTURE});
    accepts("image stands in for it", I2V, fields, CALL, folded(frame.clone(), "1080P", 5), facts, &[]);
    let both = json!([{"type": "first_frame", "url": PICTURE}, {"type": "last_frame", "url": OTHER}]);
    let fields = json!({"prompt": "p", "images": [PICTURE, OTHER]});
    accepts("two images are first and last frame", I2V, fields, CALL, folded(both, "1080P", 5), facts, &[]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "images": [OTHER]});
    accepts(
        "beside a first frame images are not read",
        I2V,
        fields,
        CALL,
        folded(frame, "1080P", 5),
        facts,
        &["images"],
    );
    refuses("a first frame is needed", I2V, json!({"prompt": "p"}), MissingParameter, "input_reference", "first frame");
    let fields = json!({"input_reference": PICTURE, "size": "832*480"});
    refuses("832*480 is refused at once", I2V, fields, UnsupportedValue, "size", "480P has no price");
    let fields = json!({"input_reference": PICTURE, "size": "1000*1000"});
    refuses("a size outside the table has no tier", I2V, fields, InvalidParameter, "size", "invalid size: 1000*1000");
    let media = json!([{"type": "driving_audio", "url": CLIP}, {"type": "first_clip", "url": CLIP}]);
    let fields = json!({"metadata": {"input": {"media": media}}});
    refuses("combinations", I2V, fields, InvalidParameter, "metadata.input.media", "one first frame");
}

#[test]
fn reference_to_video() {
    const R2V: &str = "a-reference-to-video";
    let facts = "resolution=1080P audio=true seconds=5 bound=5";
    let fields = json!({"prompt": "p", "input_reference": PICTURE});
    accepts("input_reference takes one", R2V, fields, CALL, folded(json!([picture(PICTURE)]), "1080P", 5), facts, &[]);
    let fields = json!({"prompt": "p", "images": [PICTURE, OTHER]});
    let media = json!([picture(PICTURE), picture(OTHER)]);
    accepts("several go in images", R2V, fields, CALL, folded(media, "1080P", 5), facts, &[]);
    let fields = json!({"prompt": "p", "images": [PICTURE], "video_url": CLIP});
    let media = json!([picture(PICTURE), {"type": "reference_video", "url": CLIP}]);
    let with_clip = "resolution=1080P audio=true seconds=5 bound=15";
    accepts("video_url adds a reference video", R2V, fields, CALL, folded(media, "1080P", 5), with_clip, &[]);
    let says = "with input_reference and images only input_reference stays";
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "images": [OTHER, OTHER]});
    accepts(says, R2V, fields, CALL, folded(json!([picture(PICTURE)]), "1080P", 5), facts, &["images"]);
    let says = "references count together, at most five";
    let fields = json!({"prompt": "p", "images": [PICTURE, PICTURE, PICTURE, PICTURE], "video_url": CLIP});
    let mut media = vec![picture(PICTURE); 4];
    media.push(json!({"type": "reference_video", "url": CLIP}));
    accepts(says, R2V, fields, CALL, folded(json!(media), "1080P", 5), with_clip, &[]);
    let fields = json!({"prompt": "p", "images": [PICTURE, PICTURE, PICTURE, PICTURE, PICTURE], "video_url": CLIP});
    refuses(says, R2V, fields, InvalidParameter, "images", "at most 5");
    refuses("none", R2V, json!({"prompt": "p"}), MissingParameter, "input_reference", "reference is required");
    let fields = json!({"prompt": "p", "images": [PICTURE], "video_url": CLIP, "duration": 11});
    refuses("with a video at most 10 seconds", R2V, fields, InvalidParameter, "duration", "2 to 10");
    let mut upright = folded(json!([picture(PICTURE)]), "720P", 5);
    upright["parameters"]["ratio"] = json!("9:16");
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "720*1280"});
    let facts = "size=720*1280 resolution=720P ratio=9:16 audio=true seconds=5 bound=5";
    accepts("an upright size keeps its ratio", R2V, fields, CALL, upright, facts, &[]);
    let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "832*480"});
    refuses("832*480 is refused", R2V, fields, UnsupportedValue, "size", "480P has no price");
    let fields = json!({"input_reference": PICTURE});
    refuses("prompt is required", R2V, fields, MissingParameter, "prompt", "required");
}

#[test]
fn video_edit() {
    const EDIT: &str = "a-video-edit";
    let source = json!([{"type": "video", "url": CLIP}]);
    let fields = json!({"prompt": "p", "video_url": CLIP, "size": "1280*720"});
    let facts = "size=1280*720 resolution=720P audio=true bound=20";
    let says = "video_url is the source clip, size sets the output; source and output seconds may both be billed";
    accepts(says, EDIT, fields, CALL, folded(source.clone(), "720P", 0), facts, &[]);
    let fields = json!({"prompt": "p", "video_url": CLIP, "duration": 4});
    let facts = "resolution=1080P audio=true seconds=4 bound=14";
    accepts("a length of its own", EDIT, fields, CALL, folded(source, "1080P", 4), facts, &[]);
    for (duration, text) in [(1, "2 to 10"), (11, "0 to 10")] {
        let fields = json!({"prompt": "p", "video_url": CLIP, "duration": duration});
        refuses("2 to 10 seconds", EDIT, fields, InvalidParameter, "duration", text);
    }
    let fields = json!({"prompt": "p", "video_url": "https://media.example/a.webm?x=1.mp4"});
    refuses("MP4 or MOV", EDIT, fields, InvalidParameter, "video_url", "MP4 or MOV");
    refuses("the clip is needed", EDIT, json!({"prompt": "p"}), MissingParameter, "video_url", "required");
    let fields = json!({"prompt": "p", "video_url": CLIP, "size": "832*480"});
    refuses("832*480 is refused", EDIT, fields, UnsupportedValue, "size", "480P has no price");
}
