//! Families A (Wan) and E (HappyHorse) on DashScope: text, image, reference and edit.
//!
//! Text-to-video sends `size` as it was written; the others fold it into a resolution tier. What
//! `metadata.input` and `metadata.parameters` say wins over the fields beside them, and is priced.

mod body;

use super::fields::{FieldNames, VideoFieldKind};
use super::plan::{Case, Draft};
use super::shapes::{RATIOS, WIDE_RATIOS};
use super::variant::{Api, OTHER_MODEL, VariantRules};
use super::{PlanBound, VideoRefusal};
use body::{WanBody, is_a};
use serde_json::{Value, json};

const TIERS_A: &[&str] = &["720P", "1080P"];
const TIERS_E: &[&str] = &["480P", "720P", "1080P"];
const ALL_TIERS: VideoFieldKind = VideoFieldKind::OneOf(&["480P", "720P", "1080P"]);
const SEED: VideoFieldKind = VideoFieldKind::Whole(0, 2_147_483_647);
/// Ranges are checked against the variant later, so that the message names its own.
const SECONDS: VideoFieldKind = VideoFieldKind::Whole(0, 86_400);

const MEDIA_A: FieldNames = &[
    (
        "type",
        VideoFieldKind::OneOf(&[
            "first_frame",
            "last_frame",
            "driving_audio",
            "first_clip",
            "reference_image",
            "reference_video",
            "video",
        ]),
    ),
    ("url", VideoFieldKind::Text),
    ("reference_voice", VideoFieldKind::Text),
    ("reference_description", VideoFieldKind::Text),
];
const MEDIA_E: FieldNames =
    &[("type", VideoFieldKind::OneOf(&["first_frame", "reference_image"])), ("url", VideoFieldKind::Text)];

macro_rules! wan {
    ($input:expr, $ratios:expr, $more:expr) => {
        &[
            ("model", OTHER_MODEL),
            ("input", VideoFieldKind::Object($input)),
            (
                "parameters",
                VideoFieldKind::Object(&[
                    ("resolution", ALL_TIERS),
                    ("size", VideoFieldKind::Text),
                    ("duration", SECONDS),
                    ("watermark", VideoFieldKind::Flag),
                    ("seed", SEED),
                    ("ratio", $ratios),
                    ("prompt_extend", $more),
                    ("audio_setting", VideoFieldKind::OneOf(&["auto", "origin"])),
                ]),
            ),
        ]
    };
}

const INPUT_TEXT_A: FieldNames = &[("negative_prompt", VideoFieldKind::Text), ("audio_url", VideoFieldKind::Text)];
const INPUT_A: FieldNames =
    &[("negative_prompt", VideoFieldKind::Text), ("media", VideoFieldKind::Each(16, &VideoFieldKind::Object(MEDIA_A)))];
const INPUT_E: FieldNames = &[("media", VideoFieldKind::Each(16, &VideoFieldKind::Object(MEDIA_E)))];
const FOLLOWS: VideoFieldKind = VideoFieldKind::Dropped("The picture or clip decides the aspect ratio.");
const NO_EXTEND: VideoFieldKind = VideoFieldKind::Dropped("This model has no such switch.");

const META_A_TEXT: FieldNames = wan!(INPUT_TEXT_A, VideoFieldKind::OneOf(RATIOS), VideoFieldKind::Flag);
const META_A_IMAGE: FieldNames = wan!(INPUT_A, FOLLOWS, VideoFieldKind::Flag);
const META_A_REFERENCE: FieldNames = wan!(INPUT_A, VideoFieldKind::OneOf(RATIOS), VideoFieldKind::Flag);
const META_E_TEXT: FieldNames = wan!(&[], VideoFieldKind::OneOf(WIDE_RATIOS), NO_EXTEND);
const META_E_IMAGE: FieldNames = wan!(INPUT_E, FOLLOWS, NO_EXTEND);
const META_E_REFERENCE: FieldNames = wan!(INPUT_E, VideoFieldKind::OneOf(WIDE_RATIOS), NO_EXTEND);

const TEXT: &[&str] = &["prompt", "size", "duration", "seconds"];
const IMAGE_A: &[&str] = &["prompt", "input_reference", "image", "images", "size", "duration", "seconds"];
const REFERENCE_A: &[&str] = &["prompt", "input_reference", "images", "video_url", "size", "duration", "seconds"];
const EDIT: &[&str] = &["prompt", "video_url", "size", "duration", "seconds"];
const IMAGE_E: &[&str] = &["prompt", "input_reference", "image", "size", "duration", "seconds"];
const REFERENCE_E: &[&str] = &["prompt", "input_reference", "size", "duration", "seconds"];

#[rustfmt::skip]
pub(super) const RULES: &[VariantRules] = &[
    VariantRules { name: "a-text-to-video", api: Api::DashScope, reads: TEXT, metadata: META_A_TEXT, sells: &[("resolution", TIERS_A)], shortest: 2, build: text },
    VariantRules { name: "a-image-to-video", api: Api::DashScope, reads: IMAGE_A, metadata: META_A_IMAGE, sells: &[("resolution", TIERS_A)], shortest: 2, build: image },
    VariantRules { name: "a-reference-to-video", api: Api::DashScope, reads: REFERENCE_A, metadata: META_A_REFERENCE, sells: &[("resolution", TIERS_A)], shortest: 2, build: reference },
    VariantRules { name: "a-video-edit", api: Api::DashScope, reads: EDIT, metadata: META_A_IMAGE, sells: &[("resolution", TIERS_A)], shortest: 2, build: edit },
    VariantRules { name: "e-text-to-video", api: Api::DashScope, reads: TEXT, metadata: META_E_TEXT, sells: &[("resolution", TIERS_E)], shortest: 3, build: text },
    VariantRules { name: "e-image-to-video", api: Api::DashScope, reads: IMAGE_E, metadata: META_E_IMAGE, sells: &[("resolution", TIERS_E)], shortest: 3, build: image },
    VariantRules { name: "e-reference-to-video", api: Api::DashScope, reads: REFERENCE_E, metadata: META_E_REFERENCE, sells: &[("resolution", TIERS_E)], shortest: 3, build: reference },
];

const MEDIA: &str = "metadata.input.media";

/// Longest clip a provider takes as source or reference; its seconds may be billed.
const CLIP: u32 = 10;
const SHORTEST_CLIP: u32 = 2;

fn part(kind: &str, url: &str) -> Value {
    json!({"type": kind, "url": url})
}

fn count(media: &[Value], kinds: &[&str]) -> usize {
    media.iter().filter(|one| one["type"].as_str().is_some_and(|kind| kinds.contains(&kind))).count()
}

fn text(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mut body = WanBody::begin(case, true)?;
    let effective = body.as_written(case)?;
    let seconds = body.seconds(case, case.shortest(), 15, 5)?;
    Ok(body.finish(effective, Some(seconds), seconds))
}

fn image(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mut body = WanBody::begin(case, false)?;
    let mut own = Vec::new();
    let first = case.ask.reference_link().or_else(|| case.ask.image.clone());
    let fields: &[&str] =
        if is_a(case) { &["input_reference", "image", "images"] } else { &["input_reference", "image"] };
    match (first, &case.ask.images[..]) {
        (Some(first), images) => {
            own.push(part("first_frame", &first));
            if is_a(case) && !images.is_empty() {
                case.warn("images", "The first frame was sent beside it and is the only picture read.");
            }
        }
        (None, [first, rest @ ..]) if is_a(case) => {
            own.push(part("first_frame", first));
            own.extend(rest.first().map(|last| part("last_frame", last)));
            if rest.len() > 1 {
                case.warn("images", "Only the first two pictures are read: the first and the last frame.");
            }
        }
        _ => {}
    }
    let listed = body.lists_media();
    let media = body.media(case, fields, own)?;
    check_frames(media, listed)?;
    let clips = count(media, &["first_clip"]);
    let effective = body.fold(case, false)?;
    let seconds = body.seconds(case, case.shortest(), 15, 5)?;
    Ok(body.finish(effective, Some(seconds), seconds + clip_seconds(clips)))
}

/// One first frame or one first clip, perhaps a last frame, perhaps a voice for the frames.
fn check_frames(media: &[Value], listed: bool) -> Result<(), VideoRefusal> {
    let of = |kind: &str| count(media, &[kind]);
    let begins = of("first_frame") + of("first_clip");
    if begins == 0 && listed {
        return Err(VideoRefusal::missing(MEDIA, "`metadata.input.media` needs a first frame or a first clip."));
    }
    if begins == 0 {
        return Err(VideoRefusal::missing("input_reference", "`input_reference` is required: the first frame."));
    }
    let known = begins + of("last_frame") + of("driving_audio");
    let voice = of("driving_audio") <= of("first_frame");
    if begins > 1 || of("last_frame") > 1 || known != media.len() || !voice {
        let message =
            "An image-to-video takes one first frame or clip, at most one last frame, and a voice with a first frame.";
        return Err(VideoRefusal::invalid(MEDIA, message));
    }
    Ok(())
}

fn reference(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mut body = WanBody::begin(case, true)?;
    let mut own = Vec::new();
    let single = case.ask.reference_link();
    if let Some(single) = &single {
        own.push(part("reference_image", single));
    }
    if is_a(case) {
        if single.is_none() {
            own.extend(case.ask.images.iter().map(|image| part("reference_image", image)));
        } else if !case.ask.images.is_empty() {
            case.warn("images", "`input_reference` was sent beside it and is the only one kept.");
        }
        own.extend(case.ask.video_url.iter().map(|video| part("reference_video", video)));
    }
    let listed = body.lists_media();
    let media = body.media(case, &["input_reference", "images", "video_url"], own)?;
    let clips = check_references(media, is_a(case), listed)?;
    let effective = body.fold(case, true)?;
    let most = if clips > 0 { 10 } else { 15 };
    let seconds = body.seconds(case, case.shortest(), most, 5)?;
    Ok(body.finish(effective, Some(seconds), seconds + clip_seconds(clips)))
}

/// A: pictures and at most three clips, together one to five. E: one to nine pictures. Says how
/// many clips.
fn check_references(media: &[Value], a: bool, listed: bool) -> Result<usize, VideoRefusal> {
    let (pictures, clips) = (count(media, &["reference_image"]), count(media, &["reference_video"]));
    let first = count(media, &["first_frame"]);
    let together = pictures + clips;
    if together == 0 && listed {
        return Err(VideoRefusal::missing(MEDIA, "`metadata.input.media` needs a reference."));
    }
    if together == 0 {
        let message = if a {
            "A reference is required: `input_reference`, `images` or `video_url`."
        } else {
            "A reference is required: `input_reference`, or several in `metadata.input.media`."
        };
        return Err(VideoRefusal::missing("input_reference", message));
    }
    let most = if a { 5 } else { 9 };
    if together > most {
        let message = format!("{together} references were sent; images and videos together are at most {most}.");
        return Err(VideoRefusal::invalid(if listed { MEDIA } else { "images" }, message));
    }
    if clips > 3 || first > usize::from(a) || together + first != media.len() {
        let message = "The references are of the wrong kinds for this model.";
        return Err(VideoRefusal::invalid(MEDIA, message));
    }
    Ok(clips)
}

fn edit(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let mut body = WanBody::begin(case, true)?;
    let own = case.ask.video_url.iter().map(|video| part("video", video)).collect();
    let listed = body.lists_media();
    let media = body.media(case, &["video_url"], own)?;
    let (videos, pictures) = (count(media, &["video"]), count(media, &["reference_image"]));
    if videos == 0 && listed {
        return Err(VideoRefusal::missing(MEDIA, "`metadata.input.media` needs the video to edit."));
    }
    if videos == 0 {
        return Err(VideoRefusal::missing("video_url", "`video_url` is required: the clip to edit."));
    }
    if videos > 1 || pictures > 3 || videos + pictures != media.len() {
        let message = "An edit takes one video and at most three reference images.";
        return Err(VideoRefusal::invalid(MEDIA, message));
    }
    let source = media.iter().find(|one| one["type"] == "video").and_then(|one| one["url"].as_str());
    check_container(source.unwrap_or_default(), if listed { MEDIA } else { "video_url" })?;
    let effective = body.fold(case, false)?;
    let length = body.edit_seconds(case, i64::from(CLIP))?;
    let made = if length == 0 { CLIP } else { length };
    let draft = body.finish(effective, (length > 0).then_some(length), made + CLIP);
    // Where nobody says how long it is, it is at least as long as the shortest source.
    let least = PlanBound { seconds: length.max(SHORTEST_CLIP), tokens: None };
    Ok(Draft { least: Some(least), ..draft })
}

/// MP4 or MOV. A link without a telling ending is left to the provider.
fn check_container(link: &str, param: &str) -> Result<(), VideoRefusal> {
    const OTHERS: &[&str] = &["avi", "mkv", "webm", "wmv", "flv", "mpg", "mpeg", "m4v", "ts", "gif", "3gp", "ogv"];
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending {
        Some(ending) if OTHERS.contains(&ending.as_str()) => {
            Err(VideoRefusal::invalid(param, "The clip to edit must be MP4 or MOV, 2 to 10 seconds long."))
        }
        _ => Ok(()),
    }
}

fn clip_seconds(clips: usize) -> u32 {
    u32::try_from(clips).unwrap_or(u32::MAX).saturating_mul(CLIP)
}
