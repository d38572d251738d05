//! Family D native-audio (MiniMax v2): a first frame or references from the gateway's own fields.

use super::fields::{FieldNames, VideoFieldKind};
use super::parts::{self, PART, PartTally};
use super::plan::{Case, Draft};
use super::shapes::ADAPTIVE_RATIOS;
use super::size::Size;
use super::variant::{Api, CALLBACK, OTHER_MODEL, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Map, Value, json};

const READS: &[&str] = &["prompt", "image", "input_reference", "images", "video_url", "size", "duration", "seconds"];

const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("callback_url", CALLBACK),
    ("ratio", VideoFieldKind::OneOf(ADAPTIVE_RATIOS)),
    ("content", VideoFieldKind::Each(32, &VideoFieldKind::Object(PART))),
    ("aigc_watermark", VideoFieldKind::Flag),
    ("resolution", VideoFieldKind::OneOf(&["768P", "2K"])),
    ("duration", VideoFieldKind::Whole(0, 86_400)),
];

/// Pictures from the sixth on cost extra at the maker: they are sold where the catalog lists, and
/// so prices, them.
const SELLS: &[(&str, &[&str])] =
    &[("resolution", &["768P", "2K"]), ("reference_images", &["0", "1", "2", "3", "4", "5"])];

pub(super) const RULES: &[VariantRules] = &[VariantRules {
    name: "d-native-audio",
    api: Api::MiniMaxV2,
    reads: READS,
    metadata: META,
    sells: SELLS,
    shortest: 4,
    build,
}];

/// All reference clips together are at most this long, and are billed.
const CLIPS: u32 = 15;

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let prompt = case.prompt()?;
    let resolution = resolution(case)?;
    let inner = case.take("duration").and_then(|value| value.as_i64());
    let [duration, seconds] = case.top_length();
    let seconds = case.length(&[("metadata.duration", inner), duration, seconds], case.shortest()..=15, 5)?;
    let (mut content, tally) = gather(case)?;
    check(case, tally)?;
    case.sold("reference_images", &tally.pictures.to_string(), sent(case, &["images"]))?;
    let ratio = ratio(case, tally)?;
    content.push(parts::text(&prompt));
    let mut body: Map<String, Value> = Map::new();
    body.append(&mut case.meta);
    body.insert("content".to_owned(), Value::Array(content));
    body.insert("resolution".to_owned(), json!(resolution));
    body.insert("duration".to_owned(), json!(seconds));
    let mut effective = vec![
        ("resolution", resolution),
        ("audio", "true".to_owned()),
        ("video_input", (tally.clips > 0).to_string()),
        ("reference_images", tally.pictures.to_string()),
    ];
    if let Some(ratio) = ratio {
        body.insert("ratio".to_owned(), json!(ratio));
        effective.push(("ratio", ratio));
    }
    let most = seconds + if tally.clips > 0 { CLIPS } else { 0 };
    let bound = PlanBound { seconds: most, tokens: None };
    Ok(Draft { call: "video_generation", body, effective, seconds: Some(seconds), bound, ..Draft::default() })
}

fn resolution(case: &mut Case<'_>) -> Result<String, VideoRefusal> {
    let inner = case.take_text("resolution");
    let (param, named) = match (inner, case.ask.size.clone()) {
        (Some(inner), size) => {
            if size.is_some_and(|size| size != inner) {
                case.warn("size", "`metadata.resolution` was sent and counts instead.");
            }
            ("metadata.resolution", Some(inner))
        }
        (None, size) => ("size", size),
    };
    let value = case.or_unasked(named, "resolution", "768P");
    if !["768P", "2K"].contains(&value.as_str()) {
        let otherwise = || VideoRefusal::invalid(param, format!("`{param}` must be 768P or 2K, not {value}."));
        return Err(Size::crossed(&value, param, "768P").unwrap_or_else(otherwise));
    }
    case.sold("resolution", &value, param)?;
    Ok(value)
}

fn gather(case: &mut Case<'_>) -> Result<(Vec<Value>, PartTally), VideoRefusal> {
    let (mut content, texts) = parts::read(case.take_list("content").unwrap_or_default())?;
    if !texts.is_empty() {
        case.warn("metadata.content", "`prompt` was sent and replaces the text in it.");
    }
    // Here a role is required, and a picture without one is a first frame as everywhere.
    for part in content.iter_mut().filter(|part| part["role"].is_null()) {
        part["role"] = json!("first_frame");
    }
    let first = case.ask.image.clone();
    if first.is_some() && case.ask.input_reference.is_some() {
        case.warn("input_reference", "`image` was sent beside it and is the first frame.");
    }
    let first = first.or_else(|| case.ask.reference_link());
    content.extend(first.map(|link| parts::picture(&link, Some("first_frame"))));
    content.extend(case.ask.images.iter().map(|image| parts::picture(image, Some("reference_image"))));
    content.extend(case.ask.video_url.iter().map(|video| parts::clip(video)));
    let tally = parts::tally(&content);
    Ok((content, tally))
}

/// The first of these fields that was sent; otherwise what is wrong stands in `metadata.content`.
fn sent(case: &Case<'_>, fields: &[&'static str]) -> &'static str {
    fields.iter().copied().find(|field| case.ask.sent().any(|sent| sent == *field)).unwrap_or("metadata.content")
}

fn check(case: &Case<'_>, tally: PartTally) -> Result<(), VideoRefusal> {
    if tally.frames() > 0 && tally.references() > 0 {
        let message = "A first frame (`image`, `input_reference`) and references (`images`, `video_url`) cannot be sent together.";
        return Err(VideoRefusal::invalid(sent(case, &["images", "video_url"]), message));
    }
    if tally.first > 1 || tally.last > tally.first {
        let message = "There can be one first frame, and one last frame beside it.";
        return Err(VideoRefusal::invalid("metadata.content", message));
    }
    let sound_alone = tally.sounds > 0 && tally.pictures + tally.clips == 0;
    if tally.pictures > 9 || tally.clips > 3 || tally.sounds > 3 || sound_alone {
        let message =
            "This model takes at most 9 reference images, 3 videos and 3 audio clips; audio needs an image or a video.";
        let fields: &[&str] = if tally.pictures > 9 { &["images"] } else { &[] };
        return Err(VideoRefusal::invalid(sent(case, fields), message));
    }
    Ok(())
}

fn ratio(case: &mut Case<'_>, tally: PartTally) -> Result<Option<String>, VideoRefusal> {
    let ratio = case.take_text("ratio");
    if tally == PartTally::default() && ratio.as_deref().is_none_or(|ratio| ratio == "adaptive") {
        let message = "With text alone `metadata.ratio` is required and cannot be `adaptive`.";
        return Err(VideoRefusal::missing("metadata.ratio", message));
    }
    if tally.frames() > 0 && ratio.as_deref().is_some_and(|ratio| ratio != "adaptive") {
        case.warn("metadata.ratio", "The video follows the first frame's aspect ratio; it was dropped.");
        return Ok(None);
    }
    Ok(ratio)
}
