//! OpenAI's own video models: the provider spells sizes with an x, and takes a picture as a file
//! only.

use super::fields::{FieldNames, VideoFieldKind};
use super::plan::{Case, Draft, object};
use super::size::Size;
use super::variant::{Api, OTHER_MODEL, VariantRules};
use super::{PictureUpload, PlanBound, Reference, VideoRefusal};
use serde_json::json;

const READS: &[&str] = &["prompt", "input_reference", "size", "seconds", "duration"];
const META: FieldNames = &[("model", OTHER_MODEL), ("remix_of", VideoFieldKind::Refused("Use the remix endpoint."))];

const SMALL: &[(&str, &[&str])] = &[("size", &["720x1280", "1280x720"])];
const LARGE: &[(&str, &[&str])] = &[("size", &["720x1280", "1280x720", "1024x1792", "1792x1024"])];

#[rustfmt::skip]
pub(super) const RULES: &[VariantRules] = &[
    VariantRules { name: "sora", api: Api::Sora, reads: READS, metadata: META, sells: SMALL, shortest: 4, build },
    VariantRules { name: "sora-pro", api: Api::Sora, reads: READS, metadata: META, sells: LARGE, shortest: 4, build },
];

fn build(case: &mut Case<'_>) -> Result<Draft, VideoRefusal> {
    let prompt = case.prompt()?;
    let size = match &case.ask.size {
        None => case.or_unasked(None, "size", "720x1280"),
        Some(text) => {
            let size = Size::either(text).ok_or_else(|| Size::invalid(text, "size"))?;
            format!("{}x{}", size.width, size.height)
        }
    };
    case.sold("size", &size, "size")?;
    let [duration, seconds] = case.top_length();
    let length = case.one_length(&[seconds, duration], &[4, 8, 12], 4)?;
    let upload = picture(case)?;
    let body = object([("prompt", json!(prompt)), ("size", json!(size)), ("seconds", json!(length.to_string()))]);
    let resolution = resolution(&size).to_owned();
    Ok(Draft {
        call: "videos",
        body,
        upload,
        effective: vec![("size", size), ("resolution", resolution), ("audio", "true".to_owned())],
        seconds: Some(length),
        bound: PlanBound { seconds: length, tokens: None },
        ..Draft::default()
    })
}

pub(super) fn resolution(size: &str) -> &'static str {
    if size.contains("1792") { "1024p" } else { "720p" }
}

/// The provider does not fetch links, and neither do we.
pub(super) fn picture(case: &Case<'_>) -> Result<Option<PictureUpload>, VideoRefusal> {
    match &case.ask.input_reference {
        None => Ok(None),
        Some(Reference::File(file)) => Ok(Some(file.clone())),
        Some(Reference::Link(link)) => PictureUpload::from_data_link(link).map(Some).ok_or_else(|| {
            let message = "This model takes the picture itself: upload it as a file, or send it as a base64 data link.";
            VideoRefusal::invalid("input_reference", message)
        }),
    }
}
