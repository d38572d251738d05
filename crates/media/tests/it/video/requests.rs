//! Reading requests: types, absence, limits.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_media::video::{Offer, Reference, Variant, VideoRequest, plan};
use tollgate_wire::error::Code;

fn read(value: Value) -> Result<VideoRequest, (Code, String)> {
    VideoRequest::from_json(value.to_string().as_bytes())
        .map_err(|refusal| (refusal.code, refusal.param.unwrap_or_default()))
}

#[test]
fn every_field() {
    let request = read(json!({
        "model": "m", "prompt": "p", "input_reference": "https://a/1", "images": ["https://a/2"], "image": "https://a/3",
        "video_url": "https://a/4", "size": "1280*720", "duration": 5, "seconds": "8", "metadata": {"a": 1}, "webhook_url": "x",
    }))
    .expect("a request");
    assert_eq!(request.input_reference, Some(Reference::Link("https://a/1".to_owned())));
    assert_eq!((request.duration, request.seconds, request.images.len()), (Some(5), Some(8), 1));
    assert_eq!(request.others.keys().collect::<Vec<_>>(), ["webhook_url"]);
    let request = read(json!({"model": "m", "input_reference": {"image_url": "https://a/1"}})).expect("a request");
    assert_eq!(request.input_reference, Some(Reference::Link("https://a/1".to_owned())));
}

#[test]
fn nothing_sent_is_nothing_asked() {
    let empty = read(json!({
        "model": "m", "prompt": "", "input_reference": null, "images": [], "image": "", "size": "", "duration": null,
        "seconds": "", "metadata": null,
    }));
    assert_eq!(empty.expect("a request"), read(json!({"model": "m"})).expect("a request"));
}

#[test]
fn wrong_types_name_their_field() {
    use Code::{InvalidParameter, MissingParameter};
    for (fields, code, param) in [
        (json!({}), MissingParameter, "model"),
        (json!({"model": 7}), InvalidParameter, "model"),
        (json!({"prompt": ["p"]}), InvalidParameter, "prompt"),
        (json!({"images": "https://a/1"}), InvalidParameter, "images"),
        (json!({"images": [7]}), InvalidParameter, "images"),
        (json!({"images": ["https://a/ 1"]}), InvalidParameter, "images[0]"),
        (json!({"image": {"url": "x"}}), InvalidParameter, "image"),
        (json!({"input_reference": {"file_id": "x"}}), InvalidParameter, "input_reference"),
        (json!({"size": 720}), InvalidParameter, "size"),
        (json!({"seconds": "5.5"}), InvalidParameter, "seconds"),
        (json!({"metadata": "x"}), InvalidParameter, "metadata"),
        (json!({"video_url": "h".repeat(9000)}), InvalidParameter, "video_url"),
    ] {
        let mut fields = fields;
        if fields.get("model").is_none() && param != "model" {
            fields["model"] = json!("m");
        }
        assert_eq!(read(fields.clone()).expect_err(param), (code, param.to_owned()), "{fields}");
    }
    for body in ["", "{", "[]", "7", "{\"model\":\"m\",}"] {
        assert_eq!(VideoRequest::from_json(body.as_bytes()).expect_err(body).code, Code::InvalidJson, "{body}");
    }
}

#[test]
fn unknown_fields_are_reported_and_empty_ones_count_for_nothing() {
    let fields = json!({
        "model": "m", "prompt": "p", "mode": "pro", "webhook_url": "https://caller.example",
        "metadata": {"negative_prompt": "", "image_tail": null, "mode": " "},
    });
    let offer = Offer::of(Variant::named("c-standard").expect("a variant"));
    let plan = plan(&read(fields).expect("a request"), &offer).expect("a plan");
    let warned: Vec<_> = plan.warnings.iter().map(|warning| warning.field.as_str()).collect();
    assert_eq!((warned, plan.call), (vec!["mode"], "text2video"));
    assert_eq!(json!(plan.body), json!({"prompt": "p", "mode": "std", "sound": "off", "duration": "5"}));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5i64..40).prop_map(Value::from),
        prop_oneof![
            Just("5"),
            Just("720p"),
            Just("https://a/1"),
            Just("first_frame"),
            Just("image_url"),
            Just("16:9"),
            Just("")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![
            Just("input"),
            Just("parameters"),
            Just("content"),
            Just("media"),
            Just("type"),
            Just("url"),
            Just("image_url"),
            Just("role"),
            Just("duration"),
            Just("resolution"),
            Just("ratio"),
            Just("image_list"),
            Just("video_list"),
            Just("settings"),
            Just("mode"),
            Just("odd"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name, inner), 0..5).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    /// Whatever is sent, a family answers, and what it lets through has a bound and facts.
    #[test]
    fn any_metadata(metadata in any_json(), duration in proptest::option::of(-2i64..40), picture in any::<bool>(), loose in any::<bool>()) {
        let mut fields = json!({"model": "m", "prompt": "p", "metadata": metadata, "duration": duration});
        if picture {
            fields["image"] = json!("https://a/1");
            fields["input_reference"] = json!("https://a/2");
        }
        let Ok(mut request) = VideoRequest::from_json(fields.to_string().as_bytes()) else { return Ok(()) };
        request.loose = loose;
        for variant in Variant::all() {
            match plan(&request, &Offer::of(variant)) {
                Ok(plan) => {
                    prop_assert!(plan.bound.seconds >= plan.seconds.unwrap_or(1) && plan.bound.seconds <= 60);
                    prop_assert!(plan.body.get("model").is_none() && plan.body.get("callback_url").is_none());
                    prop_assert_eq!(plan.attribute("model"), Some("m"));
                }
                Err(refusal) => prop_assert!(refusal.param.is_some() && !refusal.message.is_empty()),
            }
        }
    }
}
