//! Family C value tier (Kling API 2.0): everything but the prompt and the picture is in
//! `metadata.settings`.

use super::fields::{FieldNames, VideoFieldKind};
use super::kling::WATERMARK;
use super::plan::{Case, Draft, object};
use super::shapes::THREE_RATIOS;
use super::variant::{Api, CALLBACK, OTHER_MODEL, OWN_ID, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Value, json};

const READS: &[&str] = &["prompt", "image", "duration", "seconds"];

const META: FieldNames = &[
    ("model", OTHER_MODEL),
    (
        "settings",
        VideoFieldKind::Object(&[
            ("resolution", VideoFieldKind::OneOf(&["720p", "1080p"])),
            ("duration", VideoFieldKind::Whole(0, 86_400)),
            ("aspect_ratio", VideoFieldKind::OneOf(THREE_RATIOS)),
            ("audio", VideoFieldKind::Dropped("Sound is always included; there is no switch.")),
        ]),
    ),
    (
        "options",
        VideoFieldKind::Object(&[
            ("watermark_info", WATERMARK),
            ("callback_url", CALLBACK),
            ("external_task_id", OWN_ID),
        ]),
    ),
];

const SELLS: &[(&str, &[&str])] = &[("resolution", &["720p", "1080p"])];

pub(super) const RULES: &[VariantRules] = &[VariantRules {
    name: "c-value",
    api: Api::Kling2,
    reads: READS,
    metadata: META,
    sells: SELLS,
    shortest: 3,
    build,
}];

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let prompt = case.prompt()?;
    let mut settings = case.take_object("settings");
    let options = case.take_object("options");
    let named = settings.get("resolution").and_then(Value::as_str).map(str::to_owned);
    let resolution = case.or_unasked(named, "resolution", "720p");
    case.sold("resolution", &resolution, "metadata.settings.resolution")?;
    let inner = settings.get("duration").and_then(Value::as_i64);
    let [duration, seconds] = case.top_length();
    let seconds = case.length(&[("metadata.settings.duration", inner), duration, seconds], case.shortest()..=15, 5)?;
    let mut effective = vec![("resolution", resolution.clone()), ("audio", "true".to_owned())];
    settings.insert("resolution".to_owned(), json!(resolution));
    settings.insert("duration".to_owned(), json!(seconds));
    if case.ask.image.is_some() && settings.remove("aspect_ratio").is_some() {
        case.warn("metadata.settings.aspect_ratio", "The video follows the picture's aspect ratio; it was dropped.");
    }
    if case.ask.image.is_none() {
        let ratio = settings.entry("aspect_ratio").or_insert_with(|| json!("16:9"));
        effective.extend(ratio.as_str().map(|ratio| ("ratio", ratio.to_owned())));
    }
    let mut body = object([("settings", Value::Object(settings))]);
    let call = match &case.ask.image {
        Some(image) => {
            let contents = json!([{"type": "prompt", "text": prompt}, {"type": "first_frame", "url": image}]);
            body.insert("contents".to_owned(), contents);
            "image-to-video"
        }
        None => {
            body.insert("prompt".to_owned(), json!(prompt));
            "text-to-video"
        }
    };
    if !options.is_empty() {
        body.insert("options".to_owned(), Value::Object(options));
    }
    let bound = PlanBound { seconds, tokens: None };
    Ok(Draft { call, body, effective, seconds: Some(seconds), bound, ..Draft::default() })
}
