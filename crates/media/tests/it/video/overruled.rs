//! What was sent and lost against something else is reported, field by field; what says the same
//! twice is not.

use super::table::{CLIP, PICTURE, ask, refuses};
use serde_json::{Value, json};
use tollgate_wire::error::Code::InvalidParameter;

#[test]
fn every_override_is_reported_once() {
    let media = |fields: Value, more: Value| {
        let mut fields = fields;
        fields["prompt"] = json!("p");
        fields["metadata"] = more;
        fields
    };
    let none: &[&str] = &[];
    let size = &["size"][..];
    for (variant, fields, warned) in [
        // Lengths: every one that differs from the one that counts.
        ("a-text-to-video", media(json!({"duration": 5, "seconds": "7"}), json!({})), &["seconds"][..]),
        (
            "a-text-to-video",
            media(json!({"duration": 5, "seconds": "7"}), json!({"parameters": {"duration": 6}})),
            &["duration", "seconds"],
        ),
        (
            "a-text-to-video",
            media(json!({"duration": 6, "seconds": "6"}), json!({"parameters": {"duration": 6}})),
            none,
        ),
        (
            "a-video-edit",
            media(json!({"video_url": CLIP, "duration": 4}), json!({"parameters": {"duration": 0}})),
            &["duration"],
        ),
        (
            "b-2.5",
            media(json!({"seconds": "8", "duration": 9}), json!({"duration": 10})),
            &["metadata.duration", "duration"],
        ),
        ("b-2.5", media(json!({"seconds": "-1"}), json!({"duration": 10})), &["metadata.duration"]),
        ("b-2.5", media(json!({"duration": 9}), json!({"duration": 10})), &["duration"]),
        ("b-2.5", media(json!({"seconds": "8", "duration": 8}), json!({"duration": 8})), none),
        (
            "c-standard",
            media(json!({"duration": 5, "seconds": "6"}), json!({"duration": "7"})),
            &["duration", "seconds"],
        ),
        ("c-value", media(json!({"duration": 5}), json!({"settings": {"duration": 7}})), &["duration"]),
        ("d-native-audio", media(json!({"image": PICTURE, "seconds": "6"}), json!({"duration": 7})), &["seconds"]),
        ("d-legacy", media(json!({"duration": 6}), json!({"duration": 10})), &["duration"]),
        ("sora", media(json!({"seconds": "8", "duration": 4}), json!({})), &["duration"]),
        ("veo", media(json!({"seconds": "8"}), json!({"durationSeconds": 6})), &["seconds"]),
        // Sizes, tiers and ratios.
        ("a-text-to-video", media(json!({"size": "1280*720"}), json!({"parameters": {"size": "1920*1080"}})), size),
        ("a-text-to-video", media(json!({"size": "1280*720"}), json!({"parameters": {"size": "1280*720"}})), none),
        (
            "a-reference-to-video",
            media(json!({"input_reference": PICTURE, "size": "1280*720"}), json!({"parameters": {"ratio": "9:16"}})),
            size,
        ),
        (
            "a-reference-to-video",
            media(json!({"input_reference": PICTURE, "size": "720*1280"}), json!({"parameters": {"ratio": "9:16"}})),
            none,
        ),
        ("c-standard", media(json!({"size": "1280x720"}), json!({"aspect_ratio": "9:16"})), size),
        ("c-standard", media(json!({"size": "1280x720"}), json!({"aspect_ratio": "16:9"})), none),
        ("c-standard", media(json!({"size": "1280*720"}), json!({"aspect_ratio": "16:9"})), size),
        ("d-native-audio", media(json!({"image": PICTURE, "size": "2K"}), json!({"resolution": "768P"})), size),
        ("d-native-audio", media(json!({"image": PICTURE, "size": "2K"}), json!({"resolution": "2K"})), none),
        ("d-legacy", media(json!({"size": "1080P"}), json!({"resolution": "768P"})), size),
        ("d-legacy", media(json!({"size": "1366*768"}), json!({"resolution": "768P"})), none),
        ("d-legacy", media(json!({"size": "640*480"}), json!({})), size),
        ("veo", media(json!({"size": "1920x1080"}), json!({"resolution": "720p"})), size),
        ("veo", media(json!({"size": "1280x720"}), json!({"aspectRatio": "9:16"})), size),
        ("veo", media(json!({"size": "1280x720"}), json!({"aspectRatio": "16:9", "resolution": "720p"})), none),
        // Prompts.
        ("c-multi-image", media(json!({}), json!({"aspect_ratio": "1:1", "prompt": "q"})), &["metadata.prompt"]),
        ("c-multi-image", media(json!({}), json!({"aspect_ratio": "1:1", "prompt": "p"})), none),
    ] {
        let plan = ask(variant, fields.clone()).unwrap_or_else(|refusal| panic!("{variant} {fields}: {refusal:?}"));
        let reported: Vec<_> = plan.warnings.iter().map(|warning| warning.field.as_str()).collect();
        assert_eq!(reported, warned, "{variant} {fields}: {:?}", plan.warnings);
    }
}

#[test]
fn the_letter_x_is_refused_where_sizes_are_tiers_too() {
    for variant in ["d-native-audio", "d-legacy", "d-legacy-02"] {
        let fields = json!({"prompt": "p", "size": "1280x768", "metadata": {}});
        let text = "invalid size: 1280x768, example: 768P";
        refuses("general rule 1", variant, fields, InvalidParameter, "size", text);
    }
}
