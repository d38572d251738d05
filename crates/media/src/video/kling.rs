//! Family C standard (Kling v1): text-to-video, or image-to-video as soon as there is a first or a
//! closing frame.

use super::fields::{FieldNames, VideoFieldKind};
use super::plan::{Case, Draft};
use super::shapes::THREE_RATIOS;
use super::variant::{Api, CALLBACK, OTHER_MODEL, OWN_ID, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Map, Value, json};

/// `input_reference` is never read.
const READS: &[&str] = &["prompt", "image", "size", "duration", "seconds"];

const DEGREES: VideoFieldKind = VideoFieldKind::Number(-10, 10);
const CAMERA: FieldNames = &[
    ("type", VideoFieldKind::OneOf(&["simple", "down_back", "forward_up", "right_turn_forward", "left_turn_forward"])),
    (
        "config",
        VideoFieldKind::Object(&[
            ("horizontal", DEGREES),
            ("vertical", DEGREES),
            ("pan", DEGREES),
            ("tilt", DEGREES),
            ("roll", DEGREES),
            ("zoom", DEGREES),
        ]),
    ),
];
const POINT: VideoFieldKind =
    VideoFieldKind::Object(&[("x", VideoFieldKind::Number(0, 100_000)), ("y", VideoFieldKind::Number(0, 100_000))]);
const MASK: VideoFieldKind =
    VideoFieldKind::Object(&[("mask", VideoFieldKind::Text), ("trajectories", VideoFieldKind::Each(77, &POINT))]);
/// Several shots in one video; both of Kling's older ways take them.
pub(super) const SHOT: VideoFieldKind = VideoFieldKind::Object(&[
    ("index", VideoFieldKind::Whole(1, 6)),
    ("prompt", VideoFieldKind::Text),
    ("duration", VideoFieldKind::Digits(1, 15)),
]);
pub(super) const ELEMENT: VideoFieldKind = VideoFieldKind::Object(&[("element_id", VideoFieldKind::Text)]);
pub(super) const SWITCH: VideoFieldKind = VideoFieldKind::OneOf(&["on", "off"]);
pub(super) const MODES: VideoFieldKind = VideoFieldKind::OneOf(&["std", "pro", "4k"]);
pub(super) const WATERMARK: VideoFieldKind = VideoFieldKind::Object(&[("enabled", VideoFieldKind::Flag)]);
const VOICE: VideoFieldKind = VideoFieldKind::Object(&[("voice_id", VideoFieldKind::Text)]);

const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("model_name", OTHER_MODEL),
    ("callback_url", CALLBACK),
    ("external_task_id", OWN_ID),
    ("mode", MODES),
    ("duration", VideoFieldKind::Digits(1, 86_400)),
    ("image_tail", VideoFieldKind::Text),
    ("sound", SWITCH),
    ("negative_prompt", VideoFieldKind::Text),
    ("cfg_scale", VideoFieldKind::Number(0, 1)),
    ("camera_control", VideoFieldKind::Object(CAMERA)),
    ("aspect_ratio", VideoFieldKind::OneOf(THREE_RATIOS)),
    ("static_mask", VideoFieldKind::Text),
    ("dynamic_masks", VideoFieldKind::Each(6, &MASK)),
    ("multi_shot", VideoFieldKind::Flag),
    ("shot_type", VideoFieldKind::OneOf(&["customize", "intelligence"])),
    ("multi_prompt", VideoFieldKind::Each(6, &SHOT)),
    ("element_list", VideoFieldKind::Each(3, &ELEMENT)),
    ("voice_list", VideoFieldKind::Each(2, &VOICE)),
    ("watermark_info", WATERMARK),
];

/// Dearer modes are sold where the catalog prices them.
const SELLS: &[(&str, &[&str])] = &[("mode", &["std"]), ("sound", &["off", "on"])];

pub(super) const RULES: &[VariantRules] = &[VariantRules {
    name: "c-standard",
    api: Api::KlingV1,
    reads: READS,
    metadata: META,
    sells: SELLS,
    shortest: 3,
    build,
}];

/// The sizes this family knows, all spelt with an x.
const SIZES: &[(&str, &str)] = &[
    ("1280x720", "16:9"),
    ("1920x1080", "16:9"),
    ("720x1280", "9:16"),
    ("1080x1920", "9:16"),
    ("1024x1024", "1:1"),
    ("512x512", "1:1"),
];

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mode = case.take_text("mode");
    let mode = case.or_unasked(mode, "mode", "std");
    case.sold("mode", &mode, "metadata.mode")?;
    let sound = case.take_text("sound");
    let sound = case.or_unasked(sound, "sound", "off");
    case.sold("sound", &sound, "metadata.sound")?;
    let inner = case.take_text("duration").and_then(|text| text.parse().ok());
    let [duration, seconds] = case.top_length();
    let seconds = case.length(&[("metadata.duration", inner), duration, seconds], case.shortest()..=15, 5)?;
    check_shots(case, seconds)?;
    let tail = case.take_text("image_tail");
    let pictures = case.ask.image.is_some() || tail.is_some();
    let ratio = ratio(case, pictures);
    exclusive(case, tail.is_some())?;

    let mut body: Map<String, Value> = Map::new();
    body.append(&mut case.meta);
    match &case.ask.prompt {
        Some(prompt) => {
            body.insert("prompt".to_owned(), json!(prompt));
        }
        None if pictures => {}
        None => return Err(VideoRefusal::missing("prompt", "`prompt` is required.")),
    }
    for (name, link) in [("image", case.ask.image.as_deref()), ("image_tail", tail.as_deref())] {
        if let Some(link) = link {
            body.insert(name.to_owned(), json!(bare(link)));
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
    Ok(Draft {
        call: if pictures { "image2video" } else { "text2video" },
        body,
        effective,
        seconds: Some(seconds),
        bound: PlanBound { seconds, tokens: None },
        ..Draft::default()
    })
}

/// The named ratio, else the table's; an unknown size is square. Pictures bring their own ratio.
fn ratio(case: &mut Case<'_>, pictures: bool) -> Option<String> {
    let named = case.take_text("aspect_ratio");
    if pictures {
        let sent = [("metadata.aspect_ratio", named.is_some()), ("size", case.ask.size.is_some())];
        for (field, _) in sent.into_iter().filter(|(_, sent)| *sent) {
            case.warn(field, "The video follows the picture's aspect ratio; it was dropped.");
        }
        return None;
    }
    let Some(size) = case.ask.size.clone() else { return named };
    let known = SIZES.iter().find(|(text, _)| *text == size);
    let read = known.map_or("1:1", |(_, ratio)| ratio);
    if let Some(named) = named {
        if named != read {
            case.warn("size", "`metadata.aspect_ratio` was sent and counts instead.");
        }
        return Some(named);
    }
    if known.is_none() {
        let list: Vec<_> = SIZES.iter().map(|(text, _)| *text).collect();
        let message = format!(
            "{size} is not in the table of sizes ({}), so the video will be 1:1; set `metadata.aspect_ratio` instead.",
            list.join(", ")
        );
        case.warn("size", message);
    }
    Some(read.to_owned())
}

/// A closing frame, masks and camera moves exclude each other, and so do elements and voices.
fn exclusive(case: &Case<'_>, tail: bool) -> Result<(), VideoRefusal> {
    let has = |name: &str| case.meta.contains_key(name);
    let masks = has("static_mask") || has("dynamic_masks");
    if [tail, masks, has("camera_control")].into_iter().filter(|one| *one).count() > 1 {
        let message = "`image_tail`, masks and `camera_control` exclude each other.";
        return Err(VideoRefusal::invalid("metadata.camera_control", message));
    }
    if has("element_list") && has("voice_list") {
        return Err(VideoRefusal::invalid(
            "metadata.voice_list",
            "`element_list` and `voice_list` exclude each other.",
        ));
    }
    Ok(())
}

/// The lengths of shots, where they are given, are that of the video: whatever they add up to is
/// what the provider makes and bills.
pub(super) fn check_shots(case: &Case<'_>, seconds: u32) -> Result<(), VideoRefusal> {
    let shots = case.meta.get("multi_prompt").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let lengths: Vec<Option<u32>> = shots.iter().map(|shot| shot["duration"].as_str()?.parse().ok()).collect();
    if lengths.iter().all(Option::is_none) {
        return Ok(());
    }
    if let Some(at) = lengths.iter().position(Option::is_none) {
        let path = format!("metadata.multi_prompt[{at}].duration");
        let message = format!("`{path}` is required where other shots have a duration.");
        return Err(VideoRefusal::missing(&path, message));
    }
    let sum: u32 = lengths.into_iter().flatten().sum();
    if sum != seconds {
        let message =
            format!("The shots last {sum} seconds together, the video {seconds}; set `duration` to their sum.");
        return Err(VideoRefusal::invalid("metadata.multi_prompt", message));
    }
    Ok(())
}

/// Kling takes a link or bare base64, without the head of a data link.
pub(super) fn bare(link: &str) -> &str {
    let data = link.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    data.map_or(link, |(_, data)| data)
}
