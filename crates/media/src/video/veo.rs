//! Google's video models: `instances` and `parameters`, the picture inside the JSON.

use super::fields::{FieldNames, VideoFieldKind};
use super::plan::{Case, Draft, object};
use super::size::Size;
use super::sora::picture;
use super::variant::{Api, OTHER_MODEL, VariantRules};
use super::{PlanBound, VideoRefusal};
use serde_json::{Map, Value, json};

const READS: &[&str] = &["prompt", "input_reference", "size", "seconds", "duration"];
const META: FieldNames = &[
    ("model", OTHER_MODEL),
    ("aspectRatio", VideoFieldKind::OneOf(&["16:9", "9:16"])),
    ("resolution", VideoFieldKind::OneOf(&["720p", "1080p", "4k"])),
    ("durationSeconds", VideoFieldKind::Whole(0, 86_400)),
    ("negativePrompt", VideoFieldKind::Text),
    ("personGeneration", VideoFieldKind::OneOf(&["allow_all", "allow_adult", "dont_allow"])),
    ("seed", VideoFieldKind::Whole(0, 4_294_967_295)),
    ("sampleCount", VideoFieldKind::Whole(1, 1)),
];

const SELLS: &[(&str, &[&str])] = &[("resolution", &["720p", "1080p"])];

pub(super) const RULES: &[VariantRules] =
    &[VariantRules { name: "veo", api: Api::Veo, reads: READS, metadata: META, sells: SELLS, shortest: 4, build }];

const SIZES: &[(u32, u32, &str, &str)] = &[
    (1280, 720, "16:9", "720p"),
    (720, 1280, "9:16", "720p"),
    (1920, 1080, "16:9", "1080p"),
    (1080, 1920, "9:16", "1080p"),
    (3840, 2160, "16:9", "4k"),
    (2160, 3840, "9:16", "4k"),
];

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let prompt = case.prompt()?;
    let (ratio, resolution) = framing(case)?;
    let inner = case.take("durationSeconds").and_then(|value| value.as_i64());
    let [duration, seconds] = case.top_length();
    let length = case.one_length(&[("metadata.durationSeconds", inner), seconds, duration], &[4, 6, 8], 8)?;
    let mut instance = object([("prompt", json!(prompt))]);
    if let Some(picture) = picture(case)? {
        let image = json!({"bytesBase64Encoded": picture.base64(), "mimeType": picture.content_type});
        instance.insert("image".to_owned(), image);
    }
    let mut parameters: Map<String, Value> = Map::new();
    parameters.append(&mut case.meta);
    parameters.insert("aspectRatio".to_owned(), json!(ratio));
    parameters.insert("resolution".to_owned(), json!(resolution));
    parameters.insert("durationSeconds".to_owned(), json!(length));
    parameters.insert("sampleCount".to_owned(), json!(1));
    Ok(Draft {
        call: "predictLongRunning",
        body: object([("instances", json!([instance])), ("parameters", Value::Object(parameters))]),
        effective: vec![("ratio", ratio), ("resolution", resolution), ("audio", "true".to_owned())],
        seconds: Some(length),
        bound: PlanBound { seconds: length, tokens: None },
        ..Draft::default()
    })
}

/// Aspect ratio and resolution: as `metadata` names them, else as the size does.
fn framing(case: &mut Case<'_>) -> Result<(String, String), VideoRefusal> {
    let (ratio, named) = (case.take_text("aspectRatio"), case.take_text("resolution"));
    let row = match &case.ask.size {
        None => None,
        Some(text) => {
            let size = Size::either(text).ok_or_else(|| Size::invalid(text, "size"))?;
            let row = SIZES.iter().find(|row| (row.0, row.1) == (size.width, size.height));
            Some(row.ok_or_else(|| VideoRefusal::unsupported("size", format!("{text} is not a size of this model.")))?)
        }
    };
    let loses = |named: &Option<String>, read: &str| named.as_ref().is_some_and(|named| named != read);
    if row.is_some_and(|row| loses(&ratio, row.2) || loses(&named, row.3)) {
        case.warn("size", "`metadata.aspectRatio` and `metadata.resolution` count instead of what it says of them.");
    }
    let param = if named.is_none() && row.is_some() { "size" } else { "metadata.resolution" };
    let named = named.or_else(|| row.map(|row| row.3.to_owned()));
    let resolution = case.or_unasked(named, "resolution", "720p");
    case.sold("resolution", &resolution, param)?;
    Ok((ratio.unwrap_or_else(|| row.map_or("16:9", |row| row.2).to_owned()), resolution))
}
