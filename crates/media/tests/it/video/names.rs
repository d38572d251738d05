//! A refusal names the field that was sent, and nothing that was not: where a value has a default,
//! the default is on sale.

use super::table::{CLIP, PICTURE};
use serde_json::{Value, json};
use tollgate_media::video::{Offer, Plan, Variant, VideoRefusal, VideoRequest, plan};
use tollgate_wire::error::Code::{self, InvalidParameter, MissingParameter, UnsupportedValue};

/// A model of this variant that sells these values, and videos up to this length.
fn sell(
    variant: &str,
    sold: &[(&str, &[&str])],
    max_seconds: Option<u32>,
    mut fields: Value,
) -> Result<Plan, VideoRefusal> {
    let mut offer = Offer::of(Variant::named(variant).expect("a variant"));
    offer.max_seconds = max_seconds;
    for (name, values) in sold {
        offer.sold.insert((*name).to_owned(), values.iter().map(|value| (*value).to_owned()).collect());
    }
    fields["model"] = json!("m");
    plan(&VideoRequest::from_json(fields.to_string().as_bytes())?, &offer)
}

#[track_caller]
fn refused(variant: &str, fields: Value, code: Code, param: &str, text: &str) {
    let refusal = sell(variant, &[], None, fields.clone()).expect_err("refused");
    assert_eq!((refusal.code, refusal.param.as_deref()), (code, Some(param)), "{variant} {fields}: {refusal:?}");
    assert!(refusal.message.contains(text), "{variant} {fields}: {}", refusal.message);
    if text.starts_with('`') {
        assert!(refusal.message.starts_with(&format!("`{param}`")), "{variant} {fields}: {}", refusal.message);
    }
}

fn parameters(parameters: Value) -> Value {
    json!({"prompt": "p", "input_reference": PICTURE, "metadata": {"parameters": parameters}})
}

fn media(media: Value) -> Value {
    json!({"prompt": "p", "metadata": {"input": {"media": media}}})
}

#[test]
fn sizes_and_tiers() {
    const SIZE: &str = "metadata.parameters.size";
    for variant in ["a-text-to-video", "a-image-to-video", "a-reference-to-video", "e-text-to-video"] {
        let invalid = "invalid size: 1280x720, example: 1280*720";
        refused(variant, parameters(json!({"size": "1280x720"})), InvalidParameter, SIZE, invalid);
        let fields = json!({"prompt": "p", "input_reference": PICTURE, "size": "1280x720"});
        refused(variant, fields, InvalidParameter, "size", invalid);
    }
    refused("a-image-to-video", parameters(json!({"size": "1000*1000"})), InvalidParameter, SIZE, "invalid size");
    refused("a-image-to-video", parameters(json!({"size": "832*480"})), UnsupportedValue, SIZE, "480P has no price");
    refused("a-text-to-video", parameters(json!({"size": "832*480"})), UnsupportedValue, SIZE, "480P has no price");
    refused("a-text-to-video", parameters(json!({"size": "3840*2160"})), UnsupportedValue, SIZE, "no price");
    for variant in ["a-text-to-video", "a-image-to-video"] {
        let fields = parameters(json!({"size": "1280*720", "resolution": "1080P"}));
        let says = "`metadata.parameters.size` and `metadata.parameters.resolution` name different";
        let refusal = sell(variant, &[], None, fields).expect_err("two tiers");
        assert!(refusal.message.starts_with(says), "{}", refusal.message);
    }
    let fields = json!({"prompt": "p", "metadata": {"resolution": "512P"}});
    refused("d-legacy-02", fields, UnsupportedValue, "metadata.resolution", "needs a picture");
    refused("veo", json!({"prompt": "p", "size": "3840x2160"}), UnsupportedValue, "size", "4k has no price");
    let fields = json!({"prompt": "p", "size": "1280x720", "metadata": {"resolution": "4k"}});
    refused("veo", fields, UnsupportedValue, "metadata.resolution", "4k has no price");
}

#[test]
fn lengths() {
    let edit = |more: Value| {
        let mut fields = json!({"prompt": "p", "video_url": CLIP});
        for (name, value) in more.as_object().expect("an object") {
            fields[name] = value.clone();
        }
        fields
    };
    let inner = |duration: i64| json!({"metadata": {"parameters": {"duration": duration}}});
    refused("a-video-edit", edit(inner(1)), InvalidParameter, "metadata.parameters.duration", "` is 1; an edit");
    refused("a-video-edit", edit(json!({"seconds": "1"})), InvalidParameter, "seconds", "`seconds` is 1");
    refused("a-video-edit", edit(inner(11)), InvalidParameter, "metadata.parameters.duration", "` is 11");
    refused("sora", json!({"prompt": "p", "duration": 5}), InvalidParameter, "duration", "`duration` is 5");
    refused("sora", json!({"prompt": "p", "seconds": "16"}), InvalidParameter, "seconds", "4, 8 or 12");
    refused("veo", json!({"prompt": "p", "duration": 5}), InvalidParameter, "duration", "`duration` is 5");
    let fields = json!({"prompt": "p", "metadata": {"durationSeconds": 7}});
    refused("veo", fields, InvalidParameter, "metadata.durationSeconds", "`metadata.durationSeconds` is 7");
    let fields = json!({"prompt": "p", "metadata": {"duration": 8}});
    refused("d-legacy", fields, InvalidParameter, "metadata.duration", "6 or 10");
    let fields = json!({"prompt": "p", "size": "1080P", "metadata": {"duration": 10}});
    refused("d-legacy", fields, InvalidParameter, "metadata.duration", "6 seconds only");
}

#[test]
fn references() {
    const MEDIA: &str = "metadata.input.media";
    let picture = json!({"type": "reference_image", "url": PICTURE});
    refused("a-reference-to-video", media(json!(vec![picture.clone(); 6])), InvalidParameter, MEDIA, "at most 5");
    refused("e-reference-to-video", media(json!(vec![picture.clone(); 10])), InvalidParameter, MEDIA, "at most 9");
    let fields = json!({"prompt": "p", "images": vec![PICTURE; 6]});
    refused("a-reference-to-video", fields, InvalidParameter, "images", "at most 5");
    let frame = json!([{"type": "first_frame", "url": PICTURE}]);
    refused("a-reference-to-video", media(frame), MissingParameter, MEDIA, "needs a reference");
    refused("a-image-to-video", media(json!([picture])), MissingParameter, MEDIA, "needs a first frame");
    refused("a-video-edit", media(json!([picture])), MissingParameter, MEDIA, "needs the video");
    let film = json!([{"type": "video", "url": "https://media.example/a.webm"}]);
    refused("a-video-edit", media(film), InvalidParameter, MEDIA, "MP4 or MOV");
    let part = json!({"type": "image_url", "image_url": {"url": PICTURE}, "role": "reference_image"});
    let content = |parts: Vec<Value>| json!({"prompt": "p", "metadata": {"content": parts}});
    refused("b-2.5", content(vec![part.clone(); 31]), InvalidParameter, "metadata.content", "at most 30");
    let fields = json!({"prompt": "p", "images": vec![PICTURE; 31]});
    refused("b-2.5", fields, InvalidParameter, "images", "at most 30");
    refused("d-native-audio", content(vec![part.clone(); 6]), UnsupportedValue, "metadata.content", "6 has no price");
    refused("d-native-audio", content(vec![part; 10]), InvalidParameter, "metadata.content", "at most 9");
    let fields = json!({"prompt": "p", "image": PICTURE, "video_url": CLIP});
    refused("d-native-audio", fields, InvalidParameter, "video_url", "cannot be sent together");
}

/// A model that does not sell its variant's own default sells its requests what it lists first, and
/// refuses none of them for a field that was not sent.
#[test]
fn the_default_is_on_sale() {
    let text = json!({"prompt": "p"});
    let frame = json!({"prompt": "p", "input_reference": PICTURE});
    let edit = json!({"prompt": "p", "video_url": CLIP});
    let omni = json!({"prompt": "p", "metadata": {"aspect_ratio": "1:1"}});
    let native = json!({"prompt": "p", "metadata": {"ratio": "1:1"}});
    for (variant, fields, parameter, sold, at, sent) in [
        ("a-text-to-video", &text, "resolution", &["1080P", "720P"][..], "/parameters/size", "1280*720"),
        ("a-text-to-video", &text, "resolution", &["1080P"], "/parameters/size", "1920*1080"),
        ("e-text-to-video", &text, "resolution", &["480P"], "/parameters/size", "832*480"),
        ("a-image-to-video", &frame, "resolution", &["720P"], "/parameters/resolution", "720P"),
        ("a-reference-to-video", &frame, "resolution", &["720P"], "/parameters/resolution", "720P"),
        ("a-video-edit", &edit, "resolution", &["720P"], "/parameters/resolution", "720P"),
        ("e-image-to-video", &frame, "resolution", &["480P", "720P"], "/parameters/resolution", "480P"),
        ("b-2.5", &text, "resolution", &["480p"], "/resolution", "480p"),
        ("c-standard", &text, "mode", &["pro"], "/mode", "pro"),
        ("c-standard", &text, "sound", &["on"], "/sound", "on"),
        ("c-value", &text, "resolution", &["1080p"], "/settings/resolution", "1080p"),
        ("c-multi-image", &omni, "mode", &["std"], "/mode", "std"),
        ("d-native-audio", &native, "resolution", &["2K"], "/resolution", "2K"),
        ("d-legacy", &text, "resolution", &["1080P"], "/resolution", "1080P"),
        ("sora", &text, "size", &["1280x720"], "/size", "1280x720"),
        ("veo", &text, "resolution", &["1080p"], "/parameters/resolution", "1080p"),
    ] {
        let plan = sell(variant, &[(parameter, sold)], None, fields.clone());
        let plan = plan.unwrap_or_else(|refusal| panic!("{variant} {sold:?}: {refusal:?}"));
        let body = Value::Object(plan.body.clone());
        assert_eq!(body.pointer(at), Some(&json!(sent)), "{variant} {sold:?}: {body}");
        let priced = if parameter == "size" || at != "/parameters/size" { sent } else { sold[sold.len() - 1] };
        assert_eq!(plan.attribute(parameter), Some(priced), "{variant} {sold:?}");
    }
}

/// The same for lengths: unasked it is never longer than what is sold, and what is longer is
/// refused by the name it was sent under.
#[test]
fn the_longest_on_sale() {
    let text = json!({"prompt": "p"});
    let frame = json!({"prompt": "p", "input_reference": PICTURE});
    let edit = json!({"prompt": "p", "video_url": CLIP});
    let native = json!({"prompt": "p", "metadata": {"ratio": "1:1"}});
    for (variant, fields, most, seconds, bound) in [
        ("a-text-to-video", &text, 4, 4, 4),
        ("a-text-to-video", &text, 10, 5, 5),
        ("a-image-to-video", &frame, 3, 3, 3),
        // The source may be billed with all its seconds.
        ("a-video-edit", &edit, 6, 6, 16),
        ("b-2.5", &text, 4, 4, 4),
        ("c-standard", &text, 3, 3, 3),
        ("d-native-audio", &native, 4, 4, 4),
        ("d-legacy", &text, 8, 6, 6),
        ("sora", &text, 6, 4, 4),
        ("veo", &text, 7, 6, 6),
        ("veo", &text, 5, 4, 4),
    ] {
        let plan = sell(variant, &[], Some(most), fields.clone());
        let plan = plan.unwrap_or_else(|refusal| panic!("{variant} up to {most}: {refusal:?}"));
        assert_eq!((plan.seconds, plan.bound.seconds), (Some(seconds), bound), "{variant} up to {most}");
    }
    for (variant, fields, most, code, param, says) in [
        ("a-text-to-video", json!({"prompt": "p", "seconds": "5"}), 4, InvalidParameter, "seconds", "2 to 4 seconds"),
        ("sora", json!({"prompt": "p", "duration": 12}), 10, InvalidParameter, "duration", "4 or 8 seconds"),
        ("veo", json!({"prompt": "p", "duration": 8}), 6, InvalidParameter, "duration", "4 or 6 seconds"),
        ("d-legacy", json!({"prompt": "p", "duration": 10}), 9, InvalidParameter, "duration", "makes 6 seconds"),
        (
            "a-video-edit",
            json!({"prompt": "p", "video_url": CLIP, "duration": 0}),
            6,
            UnsupportedValue,
            "duration",
            "2 to 6",
        ),
    ] {
        let refusal = sell(variant, &[], Some(most), fields).expect_err(variant);
        assert_eq!((refusal.code, refusal.param.as_deref()), (code, Some(param)), "{variant}: {refusal:?}");
        assert!(refusal.message.contains(says), "{variant}: {}", refusal.message);
    }
}

/// A length that the model chooses could be longer than what is sold: it is for those only who sell
/// all of them.
#[test]
fn a_length_the_model_chooses() {
    let open = |name: &str| {
        let mut fields = json!({"prompt": "p", "images": [PICTURE]});
        match name {
            "metadata.duration" => fields["metadata"] = json!({"duration": -1}),
            "seconds" => fields["seconds"] = json!("-1"),
            name => fields[name] = json!(-1),
        }
        fields
    };
    let clip = json!({"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"});
    let edit = json!({"prompt": "p", "metadata": {"content": [clip], "omni_reference_task_type": "edit"}});
    for (variant, makes) in [("b-2.5", 30), ("b-2.0", 15), ("b-2.0-fast", 15), ("b-2.0-mini", 15)] {
        for name in ["duration", "seconds", "metadata.duration"] {
            for sold in [None, Some(makes), Some(makes + 1)] {
                let plan = sell(variant, &[], sold, open(name)).expect("all that it makes is sold");
                assert_eq!((plan.seconds, plan.bound.seconds), (None, makes), "{variant} {name}");
            }
            let refusal = sell(variant, &[], Some(makes - 1), open(name)).expect_err("longer than what is sold");
            assert_eq!((refusal.code, refusal.param.as_deref()), (UnsupportedValue, Some(name)), "{variant}");
            assert!(refusal.message.contains(&format!("4 to {}", makes - 1)), "{}", refusal.message);
        }
        assert_eq!(sell(variant, &[], None, edit.clone()).expect("a plan").seconds, None);
        let refusal = sell(variant, &[], Some(makes - 1), edit.clone()).expect_err("as long as its source");
        assert_eq!(refusal.param.as_deref(), Some("metadata.omni_reference_task_type"), "{variant}");
    }
}

/// What a variant says is its shortest can be bought, also where nothing longer is on sale; below
/// that nothing can.
#[test]
fn the_shortest_of_every_variant_is_what_it_says() {
    for variant in Variant::all() {
        let name = variant.name();
        let (shortest, last) = (variant.shortest(), name.rsplit('-').next());
        let metadata = match name {
            "c-multi-image" => json!({"aspect_ratio": "1:1"}),
            "d-native-audio" => json!({"ratio": "1:1"}),
            "d-legacy-fast" => json!({"first_frame_image": PICTURE}),
            _ if name.starts_with("b-") => {
                json!({"content": [{"type": "image_url", "image_url": {"url": PICTURE}, "role": "reference_image"}]})
            }
            _ => json!({}),
        };
        let mut fields = json!({"prompt": "p", "metadata": metadata});
        if name == "a-video-edit" {
            fields["video_url"] = json!(CLIP);
        } else if last == Some("video") && !name.ends_with("text-to-video") {
            fields["input_reference"] = json!(PICTURE);
        }
        let made = sell(name, &[], Some(shortest), fields.clone());
        assert_eq!(made.map(|plan| plan.seconds), Ok(Some(shortest)), "{name}: {fields}");
        for most in 1..shortest {
            let refusal = sell(name, &[], Some(most), fields.clone()).expect_err(name);
            assert!(refusal.message.contains("seconds"), "{name}: {}", refusal.message);
        }
    }
}
