//! Family D's three legacy-named models (MiniMax v1). Only prompt, duration and size count at the
//! top level; pictures there are dropped, and the task runs and is billed as text-to-video.

use super::fields::{FieldNames, VideoFieldKind};
use super::length::said;
use super::plan::{Case, Draft};
use super::size::Size;
use super::variant::{Api, CALLBACK, OTHER_MODEL, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Map, Value, json};

const READS: &[&str] = &["prompt", "duration", "size"];

const SUBJECT: VideoFieldKind = VideoFieldKind::Object(&[
    ("type", VideoFieldKind::OneOf(&["character"])),
    ("image", VideoFieldKind::Each(1, &VideoFieldKind::Text)),
]);
const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("callback_url", CALLBACK),
    ("first_frame_image", VideoFieldKind::Text),
    ("last_frame_image", VideoFieldKind::Text),
    ("subject_reference", VideoFieldKind::Each(1, &SUBJECT)),
    ("prompt_optimizer", VideoFieldKind::Flag),
    ("fast_pretreatment", VideoFieldKind::Flag),
    ("aigc_watermark", VideoFieldKind::Flag),
    ("duration", VideoFieldKind::Whole(0, 86_400)),
    ("resolution", VideoFieldKind::OneOf(&["512P", "720P", "768P", "1080P"])),
];

const TWO: &[(&str, &[&str])] = &[("resolution", &["768P", "1080P"])];
const THREE: &[(&str, &[&str])] = &[("resolution", &["512P", "768P", "1080P"])];

#[rustfmt::skip]
pub(super) const RULES: &[VariantRules] = &[
    VariantRules { name: "d-legacy", api: Api::MiniMaxV1, reads: READS, metadata: META, sells: TWO, shortest: 6, build: plain },
    VariantRules { name: "d-legacy-fast", api: Api::MiniMaxV1, reads: READS, metadata: META, sells: TWO, shortest: 6, build: fast },
    VariantRules { name: "d-legacy-02", api: Api::MiniMaxV1, reads: READS, metadata: META, sells: THREE, shortest: 6, build: plain },
];

/// The provider's fast model makes nothing out of text alone.
fn fast(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    if !case.meta.contains_key("first_frame_image") {
        let message = "This model makes videos from a picture only: send it in `metadata.first_frame_image`.";
        return Err(VideoRefusal::missing("metadata.first_frame_image", message));
    }
    plain(case)
}

fn plain(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let picture = ["first_frame_image", "subject_reference"].iter().any(|name| case.meta.contains_key(*name));
    if case.ask.prompt.is_none() && !picture {
        return Err(VideoRefusal::missing("prompt", "`prompt` is required."));
    }
    let (param, resolution) = resolution(case)?;
    case.sold("resolution", &resolution, param)?;
    let inner = case.take("duration").and_then(|value| value.as_i64());
    let asked = [("metadata.duration", inner), ("duration", case.ask.duration)];
    let seconds = case.one_length(&asked, &[6, 10], 6)?;
    if resolution == "1080P" && seconds == 10 {
        let param = said(&asked).map_or("duration", |(param, _)| param);
        return Err(VideoRefusal::invalid(param, "At 1080P this model makes 6 seconds only."));
    }
    if resolution == "512P" && !case.meta.contains_key("first_frame_image") {
        return Err(VideoRefusal::unsupported(param, "512P needs a picture in `metadata.first_frame_image`."));
    }
    let mut body: Map<String, Value> = Map::new();
    body.append(&mut case.meta);
    if let Some(prompt) = &case.ask.prompt {
        body.insert("prompt".to_owned(), json!(prompt));
    }
    body.insert("duration".to_owned(), json!(seconds));
    body.insert("resolution".to_owned(), json!(resolution));
    Ok(Draft {
        call: "video_generation",
        body,
        effective: vec![("resolution", resolution)],
        seconds: Some(seconds),
        bound: PlanBound { seconds, tokens: None },
        ..Draft::default()
    })
}

/// The tier whose number stands in the size; otherwise the model's own. What stands in `metadata`
/// counts before it.
fn resolution(case: &mut Case<'_>) -> Result<(&'static str, String), VideoRefusal> {
    const TIERS: [(&str, &str); 4] = [("1080", "1080P"), ("768", "768P"), ("720", "720P"), ("512", "512P")];
    let size = case.ask.size.clone();
    let number =
        |size: &String| TIERS.iter().find(|(number, _)| size.contains(number)).map(|(_, tier)| (*tier).to_owned());
    let named = size.as_ref().and_then(number);
    if let Some(inner) = case.take_text("resolution") {
        if size.is_some() && named.as_ref() != Some(&inner) {
            case.warn("size", "`metadata.resolution` was sent and counts instead.");
        }
        return Ok(("metadata.resolution", inner));
    }
    if let Some(refusal) = size.as_ref().and_then(|size| Size::crossed(size, "size", "768P")) {
        return Err(refusal);
    }
    let unread = size.is_some() && named.is_none();
    let tier = case.or_unasked(named, "resolution", "768P");
    if unread {
        case.warn("size", format!("It names no tier of this model, so the video will be {tier}."));
    }
    Ok(("size", tier))
}
