//! From a request to money: the facts of a plan choose the tier, its bound is what is held. Prices
//! of the catalog, rules of the families, nothing in between.

use super::table::{CLIP, PICTURE, ask};
use serde_json::{Value, json};
use tollgate_catalog::{Face, PriceFacts, Quantities, load};
use tollgate_media::video::Plan;

/// Micro-USD: 100 per second, 2,000 per clip, so that every row can be checked in the head.
const CATALOG: &str = r#"
[model.seconds]
type = "video"
billing_unit = "per_second"
supported_endpoint_types = ["openai-video"]
price = { video_second = 100 }
route = [{ provider = "p", upstream_model = "u" }]
tier = [
  { name = "480", when = [{ dim = "request_attr", path = "resolution", equals = "480P" }], multiplier = "1/2" },
  { name = "1080", when = [{ dim = "request_attr", path = "resolution", equals = "1080P" }], multiplier = "5/3" },
  { name = "2k", when = [{ dim = "request_attr", path = "resolution", equals = "2K" }], multiplier = "8/5" },
  { name = "pro", when = [{ dim = "request_attr", path = "metadata.mode", equals = "pro" }], multiplier = "133/100" },
  { name = "4k", when = [{ dim = "request_attr", path = "mode", equals = "4k" }], multiplier = 5 },
]

[model.clips]
type = "video"
billing_unit = "per_call"
supported_endpoint_types = ["openai-video"]
price = { per_call = 2_000 }
route = [{ provider = "p", upstream_model = "u" }]
tier = [
  { name = "long", when = [{ dim = "request_attr", path = "seconds", equals = "10" }], price = { per_call = 4_000 } },
  { name = "1080", when = [{ dim = "request_attr", path = "resolution", equals = "1080P" }], price = { per_call = 3_500 } },
]
"#;

/// Nano-USD held for a plan sold as this model.
fn held(model: &str, plan: &Plan) -> i64 {
    let snapshot = load(&[("test.toml".to_owned(), CATALOG.to_owned())]).expect("a catalog");
    let attr = |path: &str| plan.attribute(path).map(str::to_owned);
    let facts = PriceFacts { attr: &attr, ..PriceFacts::at(0) };
    let price = snapshot.model(model).expect("a model").price(&facts).expect("a price");
    let quantities = match model {
        "clips" => Quantities::NONE.with(Face::PerCall, 1),
        _ => Quantities::NONE.with(Face::VideoSecond, u64::from(plan.bound.seconds)),
    };
    price.charge(&quantities).expect("a charge").nano()
}

#[test]
fn what_is_asked_for_is_what_is_priced() {
    let omni = |metadata: Value| {
        let mut metadata = metadata;
        metadata["aspect_ratio"] = json!("1:1");
        json!({"prompt": "p", "metadata": metadata})
    };
    for (says, model, variant, fields, micro, thousandths) in [
        ("A: five seconds of 720P", "seconds", "a-text-to-video", json!({"prompt": "p"}), 500, 0),
        ("A: 1080P by its size", "seconds", "a-text-to-video", json!({"prompt": "p", "size": "1920*1080"}), 833, 334),
        (
            "A: the default tier of the provider is priced",
            "seconds",
            "a-image-to-video",
            json!({"input_reference": PICTURE}),
            833,
            334,
        ),
        (
            "A: a tier inside metadata is priced",
            "seconds",
            "a-text-to-video",
            json!({"prompt": "p", "metadata": {"parameters": {"resolution": "1080P", "duration": 15}}}),
            2500,
            0,
        ),
        (
            "A: an edit holds source and output",
            "seconds",
            "a-video-edit",
            json!({"prompt": "p", "video_url": CLIP, "size": "1280*720"}),
            2000,
            0,
        ),
        ("E: 480P is priced", "seconds", "e-text-to-video", json!({"prompt": "p", "size": "832*480"}), 250, 0),
        ("C standard: std", "seconds", "c-standard", json!({"prompt": "p", "duration": 10}), 1000, 0),
        ("C multi-image: the default is pro, 1.33 times", "seconds", "c-multi-image", omni(json!({})), 665, 0),
        ("C multi-image: std", "seconds", "c-multi-image", omni(json!({"mode": "std"})), 500, 0),
        (
            "C multi-image: 4k, 5 times",
            "seconds",
            "c-multi-image",
            omni(json!({"mode": "4k", "duration": "15"})),
            7500,
            0,
        ),
        (
            "D native: 2K",
            "seconds",
            "d-native-audio",
            json!({"prompt": "p", "size": "2K", "metadata": {"ratio": "1:1"}}),
            800,
            0,
        ),
        (
            "D native: a reference video's seconds are held",
            "seconds",
            "d-native-audio",
            json!({"prompt": "p", "video_url": CLIP}),
            2000,
            0,
        ),
        ("D legacy: per clip", "clips", "d-legacy", json!({"prompt": "p"}), 2000, 0),
        (
            "D legacy: dropped pictures change nothing",
            "clips",
            "d-legacy",
            json!({"prompt": "p", "image": PICTURE}),
            2000,
            0,
        ),
        ("D legacy: ten seconds", "clips", "d-legacy", json!({"prompt": "p", "duration": 10}), 4000, 0),
        ("D legacy: 1080P", "clips", "d-legacy", json!({"prompt": "p", "metadata": {"resolution": "1080P"}}), 3500, 0),
    ] {
        let plan = ask(variant, fields).unwrap_or_else(|refusal| panic!("{says}: {refusal:?}"));
        assert_eq!(held(model, &plan), micro * 1000 + thousandths, "{says}");
    }
}
