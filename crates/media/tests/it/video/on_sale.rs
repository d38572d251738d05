//! What the catalog decides of a request, and what is charged where a provider never tells what it
//! made.

use super::table::{CLIP, ask};
use serde_json::{Value, json};
use tollgate_media::video::{Offer, Variant, VideoRequest, plan};

/// What is charged where nobody tells what was made: what was asked for; of what was left to the
/// provider, the least it makes.
#[test]
fn the_least_that_was_made() {
    for (variant, fields, seconds, tokens) in [
        ("a-text-to-video", json!({"prompt": "p"}), 5, None),
        ("a-reference-to-video", json!({"prompt": "p", "video_url": CLIP}), 5, None),
        ("a-video-edit", json!({"prompt": "p", "video_url": CLIP}), 2, None),
        ("a-video-edit", json!({"prompt": "p", "video_url": CLIP, "duration": 7}), 7, None),
        ("b-2.5", json!({"prompt": "p"}), 5, Some(108_000)),
        ("b-2.5", json!({"prompt": "p", "metadata": {"resolution": "480p"}}), 5, Some(48_600)),
        ("b-2.5", json!({"prompt": "p", "seconds": "-1"}), 4, Some(86_400)),
        ("c-standard", json!({"prompt": "p", "duration": 10}), 10, None),
    ] {
        let plan = ask(variant, fields.clone()).unwrap_or_else(|refusal| panic!("{variant} {fields}: {refusal:?}"));
        assert_eq!((plan.least.seconds, plan.least.tokens), (seconds, tokens), "{variant} {fields}");
        assert!(
            plan.least.seconds <= plan.bound.seconds && plan.least.tokens <= plan.bound.tokens,
            "{variant} {fields}"
        );
    }
}

/// For a server that does not read sizes: the same said a second time, as tier and ratio.
#[test]
fn tier_and_ratio_beside_the_size() {
    let sent = |variant: &str, mut fields: Value| {
        fields["model"] = json!("m");
        fields["prompt"] = json!("p");
        let request = VideoRequest::from_json(fields.to_string().as_bytes()).expect("a request");
        let offer = Offer { tier_beside_size: true, ..Offer::of(Variant::named(variant).expect("a variant")) };
        plan(&request, &offer).map(|plan| plan.body["parameters"].clone())
    };
    for (variant, fields, size, tier, ratio) in [
        ("a-text-to-video", json!({}), "1280*720", "720P", "16:9"),
        ("a-text-to-video", json!({"size": "1080*1920"}), "1080*1920", "1080P", "9:16"),
        ("e-text-to-video", json!({"size": "624*624"}), "624*624", "480P", "1:1"),
    ] {
        let parameters = sent(variant, fields.clone()).unwrap_or_else(|refusal| panic!("{fields}: {refusal:?}"));
        let chosen = (&parameters["size"], &parameters["resolution"], &parameters["ratio"]);
        assert_eq!(chosen, (&json!(size), &json!(tier), &json!(ratio)), "{variant} {fields}");
    }
    let refusal = sent("a-text-to-video", json!({"size": "1000*900"})).expect_err("it has no ratio");
    assert_eq!(refusal.param.as_deref(), Some("size"));
}

#[test]
fn what_is_made_again_must_still_be_on_sale() {
    let variant = Variant::named("sora-pro").expect("a variant");
    let earlier = [("size", "1792x1024".to_owned()), ("resolution", "1024p".to_owned())];
    let offer = Offer::of(variant);
    assert!(offer.sells_again(&earlier, Some(12), "id").is_ok());
    let mut small = offer.clone();
    small.sold.insert("size".to_owned(), vec!["720x1280".to_owned()]);
    let refusal = small.sells_again(&earlier, Some(12), "id").expect_err("no longer sold");
    assert_eq!(refusal.param.as_deref(), Some("id"));
    let short = Offer { max_seconds: Some(8), ..offer };
    assert!(short.sells_again(&earlier, Some(8), "id").is_ok());
    assert!(short.sells_again(&earlier, Some(12), "id").expect_err("too long").message.contains("up to 8"));
}
