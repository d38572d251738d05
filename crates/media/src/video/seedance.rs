//! Family B (Seedance on Ark): long clips from text, a first frame, or many references.
//!
//! A picture without a role is a first frame; pictures in `images` are references. The two modes
//! never mix, and what the provider would refuse late is refused here at once and free.

use super::fields::{FieldNames, VideoFieldKind};
use super::length::said;
use super::parts::{self, PART, PartTally};
use super::plan::{Case, Draft};
use super::shapes::ADAPTIVE_RATIOS;
use super::variant::{Api, CALLBACK, OTHER_MODEL, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Map, Value, json};
use tollgate_wire::error::Code;

const READS: &[&str] = &["prompt", "images", "input_reference", "duration", "seconds"];
const SELLS: &[(&str, &[&str])] = &[("resolution", &["480p", "720p"])];

const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("callback_url", CALLBACK),
    ("content", VideoFieldKind::Each(64, &VideoFieldKind::Object(PART))),
    ("resolution", VideoFieldKind::OneOf(&["480p", "720p", "1080p", "4k"])),
    ("ratio", VideoFieldKind::OneOf(ADAPTIVE_RATIOS)),
    ("duration", VideoFieldKind::Whole(-1, 86_400)),
    ("generate_audio", VideoFieldKind::Flag),
    ("watermark", VideoFieldKind::Flag),
    ("camera_fixed", VideoFieldKind::Flag),
    ("return_last_frame", VideoFieldKind::Flag),
    ("seed", VideoFieldKind::Whole(-1, 4_294_967_295)),
    ("execution_expires_after", VideoFieldKind::Whole(3600, 259_200)),
    ("safety_identifier", VideoFieldKind::Text),
    ("priority", VideoFieldKind::Whole(0, 9)),
    ("omni_reference_task_type", VideoFieldKind::OneOf(&["auto", "edit", "extend"])),
    ("output_format", VideoFieldKind::OneOf(&["mp4", "mov"])),
    ("service_tier", VideoFieldKind::OneOf(&["default"])),
    ("frames", VideoFieldKind::Refused("Length is given in seconds; a number of frames has no price.")),
    ("draft", VideoFieldKind::Refused("Drafts have no price for this model.")),
    ("tools", VideoFieldKind::Refused("Tools have no price for this model.")),
];

#[rustfmt::skip]
pub(super) const RULES: &[VariantRules] = &[
    VariantRules { name: "b-2.5", api: Api::Ark, reads: READS, metadata: META, sells: SELLS, shortest: 4, build: newest },
    VariantRules { name: "b-2.0", api: Api::Ark, reads: READS, metadata: META, sells: SELLS, shortest: 4, build: older },
    VariantRules { name: "b-2.0-fast", api: Api::Ark, reads: READS, metadata: META, sells: SELLS, shortest: 4, build: older },
    VariantRules { name: "b-2.0-mini", api: Api::Ark, reads: READS, metadata: META, sells: SELLS, shortest: 4, build: older },
];

/// What a line of models takes.
struct Line {
    pictures: usize,
    clips: usize,
    sounds: usize,
    /// The longest video, and the most seconds of reference clips.
    seconds: u32,
    /// Text alone and sound alone are accepted.
    alone: bool,
}

fn newest(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    build(case, &Line { pictures: 30, clips: 10, sounds: 10, seconds: 30, alone: true })
}

fn older(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    build(case, &Line { pictures: 9, clips: 3, sounds: 3, seconds: 15, alone: false })
}

fn build(case: &mut Case<'_>, line: &Line) -> Result<Draft, VideoRefusal> {
    let (content, tally) = gather(case)?;
    check(case, line, tally)?;
    let mut body: Map<String, Value> = Map::new();
    let resolution = case.take_text("resolution");
    let resolution = case.or_unasked(resolution, "resolution", "720p");
    case.sold("resolution", &resolution, "metadata.resolution")?;
    let audio = case.take("generate_audio").unwrap_or(Value::Bool(true));
    let seconds = length(case, line, tally)?;
    body.append(&mut case.meta);
    let ratio = body.get("ratio").and_then(Value::as_str).map(str::to_owned);
    body.entry("watermark").or_insert(Value::Bool(false));
    body.insert("duration".to_owned(), seconds.map_or(json!(-1), |seconds| json!(seconds)));
    let clip_seconds = if tally.clips > 0 { line.seconds } else { 0 };
    let most = seconds.unwrap_or(line.seconds) + clip_seconds;
    let mut effective = vec![
        ("resolution", resolution.clone()),
        ("audio", audio.to_string()),
        ("video_input", (tally.clips > 0).to_string()),
    ];
    effective.extend(ratio.map(|ratio| ("ratio", ratio)));
    let bound = PlanBound { seconds: most, tokens: Some(tokens(&resolution, most)) };
    let made = seconds.unwrap_or(SHORTEST);
    let least = Some(PlanBound { seconds: made, tokens: Some(usual_tokens(&resolution, made)) });
    body.insert("resolution".to_owned(), json!(resolution));
    body.insert("generate_audio".to_owned(), audio);
    body.insert("content".to_owned(), Value::Array(content));
    Ok(Draft { call: "tasks", body, effective, seconds, bound, least, ..Draft::default() })
}

/// All media, then the text: the entries of `metadata.content`, those of `images`, and
/// `input_reference`.
fn gather(case: &mut Case<'_>) -> Result<(Vec<Value>, PartTally), VideoRefusal> {
    let (mut content, texts) = parts::read(case.take_list("content").unwrap_or_default())?;
    let reference = case.ask.reference_link();
    // Alone, a single picture is a first frame; among references it is one of them.
    let alone = content.is_empty() && case.ask.images.is_empty();
    content.extend(case.ask.images.iter().map(|image| parts::picture(image, Some("reference_image"))));
    content.extend(reference.map(|link| parts::picture(&link, (!alone).then_some("reference_image"))));
    let tally = parts::tally(&content);
    let prompt = match &case.ask.prompt {
        Some(prompt) => {
            if !texts.is_empty() {
                case.warn("metadata.content", "`prompt` was sent and replaces the text in it.");
            }
            Some(prompt.clone())
        }
        None => (!texts.is_empty()).then(|| texts.join("\n")),
    };
    content.extend(prompt.map(|prompt| parts::text(&prompt)));
    if content.is_empty() {
        return Err(VideoRefusal::missing("prompt", "`prompt` is required."));
    }
    Ok((content, tally))
}

fn check(case: &Case<'_>, line: &Line, tally: PartTally) -> Result<(), VideoRefusal> {
    if tally.frames() > 0 && tally.references() > 0 {
        let message =
            "A first or last frame and references cannot be sent together: give every part a role of the same mode.";
        return Err(VideoRefusal::new(Code::TaskTypeConstraint, "metadata.content", message));
    }
    if tally.first > 1 || tally.last > 1 || tally.last > tally.first {
        let message =
            "There can be one first frame, and one last frame beside it. Pictures without `role` are first frames.";
        return Err(VideoRefusal::new(Code::TaskTypeConstraint, "metadata.content", message));
    }
    for (have, most, what) in [
        (tally.pictures, line.pictures, "images"),
        (tally.clips, line.clips, "videos"),
        (tally.sounds, line.sounds, "audio clips"),
    ] {
        if have > most {
            let message = format!("{have} reference {what} were sent; this model takes at most {most}.");
            let named = what == "images" && !case.ask.images.is_empty();
            return Err(VideoRefusal::invalid(if named { "images" } else { "metadata.content" }, message));
        }
    }
    if !line.alone && tally.first + tally.pictures + tally.clips == 0 {
        let message =
            "This model needs at least one image or video: `images`, `input_reference` or `metadata.content`.";
        return Err(VideoRefusal::missing("images", message));
    }
    let ratio = case.meta.get("ratio").and_then(Value::as_str);
    if tally.first > 0 && ratio.is_some_and(|ratio| ratio != "adaptive") {
        let message = "The video follows the first frame's aspect ratio: `ratio` must be `adaptive` or left out.";
        return Err(VideoRefusal::new(Code::TaskTypeConstraint, "metadata.ratio", message));
    }
    Ok(())
}

/// `None` leaves the length to the model.
fn length(case: &mut Case<'_>, line: &Line, tally: PartTally) -> Result<Option<u32>, VideoRefusal> {
    let inner = case.take("duration").and_then(|value| value.as_i64());
    let edits = case.meta.get("omni_reference_task_type").is_some_and(|kind| kind == "edit");
    let candidates = [("seconds", case.ask.seconds), ("metadata.duration", inner), ("duration", case.ask.duration)];
    let asked = said(&candidates);
    case.overruled(&candidates);
    let edits = edits && tally.clips > 0;
    let most = case.longest(i64::from(line.seconds));
    let bounded = most < i64::from(line.seconds);
    match asked {
        // Nobody knows how long it would be, and not every length is sold.
        _ if edits && bounded => {
            let message =
                format!("An edit is as long as its source, and this model is sold with up to {most} seconds.");
            Err(VideoRefusal::unsupported("metadata.omni_reference_task_type", message))
        }
        Some((name, -1)) if bounded => {
            let message =
                format!("`{name}` is -1, which leaves the length to the model; it is sold with 4 to {most} seconds.");
            Err(VideoRefusal::unsupported(name, message))
        }
        Some((_, -1)) => Ok(None),
        Some((name, _)) if edits => {
            let message = "An edit keeps the length of its source: the duration must be -1 or left out.";
            Err(VideoRefusal::new(Code::TaskTypeConstraint, name, message))
        }
        None if edits => Ok(None),
        _ => case.within(&candidates, case.shortest()..=i64::from(line.seconds), 5).map(Some),
    }
}

/// The shortest video of this family, and the shortest source of an edit.
const SHORTEST: u32 = 4;

/// The tokens the provider counts for a video of 16:9, to which those of other ratios come within a
/// hundredth.
fn usual_tokens(resolution: &str, seconds: u32) -> u64 {
    let pixels: u64 = match resolution {
        "480p" => 864 * 480,
        "720p" => 1280 * 720,
        "1080p" => 1920 * 1080,
        _ => 3840 * 2160,
    };
    pixels * 24 * u64::from(seconds) / 1024
}

/// The most tokens the provider counts: pixels × 24 frames a second ÷ 1024, for the largest picture
/// of a resolution.
fn tokens(resolution: &str, seconds: u32) -> u64 {
    let pixels: u64 = match resolution {
        "480p" => 432_000,
        "720p" => 930_000,
        "1080p" => 2_100_000,
        _ => 8_500_000,
    };
    (pixels * 24 * u64::from(seconds)).div_ceil(1024)
}
