//! Family C multi-image reference (Kling omni): every parameter is in `metadata`.
//!
//! The provider's default mode is `pro`, so `pro` is sent and priced. A reference video without
//! `refer_type` would be an edit, billed by the length of the video supplied, which nobody knows
//! beforehand: both are refused.

use super::fields::{FieldNames, VideoFieldKind};
use super::kling::{ELEMENT, MODES, SHOT, SWITCH, WATERMARK, bare, check_shots};
use super::plan::{Case, Draft};
use super::request::check_link;
use super::shapes::THREE_RATIOS;
use super::variant::{Api, CALLBACK, OTHER_MODEL, OWN_ID, VariantRules};
use super::{PlanBound, VideoRefusal, Warning};
use serde_json::{Map, Value, json};

const READS: &[&str] = &["prompt"];

const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("model_name", OTHER_MODEL),
    ("callback_url", CALLBACK),
    ("external_task_id", OWN_ID),
    ("resolution", VideoFieldKind::Dropped("There is no such field; `metadata.mode` is the quality tier.")),
    ("prompt", VideoFieldKind::Text),
    (
        "image_list",
        VideoFieldKind::Each(
            7,
            &VideoFieldKind::Object(&[
                ("image_url", VideoFieldKind::Text),
                ("type", VideoFieldKind::OneOf(&["first_frame", "end_frame"])),
            ]),
        ),
    ),
    (
        "video_list",
        VideoFieldKind::Each(
            1,
            &VideoFieldKind::Object(&[
                ("video_url", VideoFieldKind::Text),
                ("refer_type", VideoFieldKind::OneOf(&["feature", "base"])),
                ("keep_original_sound", VideoFieldKind::OneOf(&["yes", "no"])),
            ]),
        ),
    ),
    ("element_list", VideoFieldKind::Each(7, &ELEMENT)),
    ("mode", MODES),
    ("aspect_ratio", VideoFieldKind::OneOf(THREE_RATIOS)),
    ("duration", VideoFieldKind::Digits(3, 15)),
    ("sound", SWITCH),
    ("multi_shot", VideoFieldKind::Flag),
    ("shot_type", VideoFieldKind::OneOf(&["customize", "intelligence"])),
    ("multi_prompt", VideoFieldKind::Each(6, &SHOT)),
    ("watermark_info", WATERMARK),
];

const SELLS: &[(&str, &[&str])] = &[("mode", &["std", "pro", "4k"]), ("sound", &["off", "on"])];

pub(super) const RULES: &[VariantRules] = &[VariantRules {
    name: "c-multi-image",
    api: Api::KlingOmni,
    reads: READS,
    metadata: META,
    sells: SELLS,
    shortest: 3,
    build,
}];

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mode = case.take_text("mode");
    let mode = case.or_unasked(mode, "mode", "pro");
    case.sold("mode", &mode, "metadata.mode")?;
    let sound = case.take_text("sound");
    let sound = case.or_unasked(sound, "sound", "off");
    case.sold("sound", &sound, "metadata.sound")?;
    let asked = case.take_text("duration").and_then(|text| text.parse().ok());
    let seconds = case.length(&[("metadata.duration", asked)], case.shortest()..=15, 5)?;
    check_shots(case, seconds)?;
    let videos = videos(case)?;
    let (images, first) = images(case, !videos.is_empty())?;
    if !videos.is_empty() && sound == "on" {
        return Err(VideoRefusal::invalid("metadata.sound", "`metadata.sound` must be `off` with a reference video."));
    }
    let ratio = case.take_text("aspect_ratio");
    if ratio.is_none() && !first {
        let message = "`metadata.aspect_ratio` is required when there is no first frame.";
        return Err(VideoRefusal::missing("metadata.aspect_ratio", message));
    }
    let mut body: Map<String, Value> = Map::new();
    let inner = case.take("prompt");
    match (&case.ask.prompt, inner) {
        (Some(prompt), inner) => {
            if inner.is_some_and(|inner| inner != json!(prompt)) {
                case.warnings.push(Warning::new("metadata.prompt", "`prompt` was sent and counts instead."));
            }
            body.insert("prompt".to_owned(), json!(prompt));
        }
        (None, Some(prompt)) => {
            body.insert("prompt".to_owned(), prompt);
        }
        (None, None) if case.meta.contains_key("multi_prompt") => {}
        (None, None) => return Err(VideoRefusal::missing("prompt", "`prompt` is required.")),
    }
    body.append(&mut case.meta);
    for (name, list) in [("image_list", images), ("video_list", videos)] {
        if !list.is_empty() {
            body.insert(name.to_owned(), Value::Array(list));
        }
    }
    body.insert("mode".to_owned(), json!(mode));
    body.insert("sound".to_owned(), json!(sound));
    body.insert("duration".to_owned(), json!(seconds.to_string()));
    let mut effective = vec![("mode", mode), ("audio", (sound == "on").to_string()), ("sound", sound)];
    if let Some(ratio) = ratio {
        body.insert("aspect_ratio".to_owned(), json!(ratio));
        effective.push(("ratio", ratio));
    }
    let bound = PlanBound { seconds, tokens: None };
    Ok(Draft { call: "omni-video", body, effective, seconds: Some(seconds), bound, ..Draft::default() })
}

fn videos(case: &mut Case<'_>) -> Result<Vec<Value>, VideoRefusal> {
    let videos = case.take_list("video_list").unwrap_or_default();
    for (at, video) in videos.iter().enumerate() {
        let path = format!("metadata.video_list[{at}].refer_type");
        if video["refer_type"] != "feature" {
            let message = "`refer_type` must be `feature`: the editing mode `base`, which the provider also takes when \
                           `refer_type` is left out, is billed by the supplied video's length and cannot be priced before submission.";
            return Err(VideoRefusal::unsupported(&path, message));
        }
        let path = format!("metadata.video_list[{at}].video_url");
        let url = video["video_url"].as_str();
        check_link(url.ok_or_else(|| VideoRefusal::missing(&path, format!("`{path}` is required.")))?, &path)?;
    }
    Ok(videos)
}

/// The pictures, and whether one of them is a first frame.
fn images(case: &mut Case<'_>, with_video: bool) -> Result<(Vec<Value>, bool), VideoRefusal> {
    let mut images = case.take_list("image_list").unwrap_or_default();
    for (at, image) in images.iter_mut().enumerate() {
        let path = format!("metadata.image_list[{at}].image_url");
        let Some(url) = image["image_url"].as_str() else {
            return Err(VideoRefusal::missing(&path, format!("`{path}` is required.")));
        };
        check_link(url, &path)?;
        let url = bare(url).to_owned();
        image["image_url"] = json!(url);
    }
    if with_video && images.len() > 4 {
        let message = format!("{} images were sent; beside a reference video at most 4 are accepted.", images.len());
        return Err(VideoRefusal::invalid("metadata.image_list", message));
    }
    let of = |kind: &str| images.iter().filter(|image| image["type"] == kind).count();
    let (first, end) = (of("first_frame"), of("end_frame"));
    if first > 1 || end > first {
        let message = "There can be one first frame, and one end frame beside it.";
        return Err(VideoRefusal::invalid("metadata.image_list", message));
    }
    Ok((images, first == 1))
}
