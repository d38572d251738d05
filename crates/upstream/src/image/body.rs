//! Bodies for makers of pictures: files that callers uploaded go into JSON as data links, letter by
//! letter while they are sent.

use super::ImageJob;
use crate::{Payload, PayloadPart, SpooledFile};
use bytes::Bytes;
use serde_json::{Map, Value};
use tollgate_media::image::{PictureKind, PictureSource, Shape, SizeClass};
use tollgate_wire::{Problem, SizeMembers};

/// A picture of a form.
#[derive(Clone, Debug)]
pub struct PictureFile {
    pub file: SpooledFile,
    pub kind: PictureKind,
}

/// The pictures of a request as links: those that are files as data links, whose letters are put in
/// when the body is written ([`json_with_files`]).
pub(crate) fn data_links(job: &ImageJob<'_>, sources: &[PictureSource]) -> Vec<String> {
    sources
        .iter()
        .map(|source| match source {
            PictureSource::Link(link) => link.clone(),
            PictureSource::File(at) => {
                let mime = job.files.get(*at).map_or("image/png", |file| file.kind.mime());
                format!("data:{mime};base64,{}", mark(job, *at))
            }
        })
        .collect()
}

/// Stands for the letters of a file. Nobody who wrote the request could know it.
pub(crate) fn mark(job: &ImageJob<'_>, at: usize) -> String {
    format!("<{:032x}-{at}>", u128::from_be_bytes(job.drawn))
}

/// A JSON body with the letters of files in their places.
pub(crate) fn json_with_files(body: &Value, job: &ImageJob<'_>) -> Payload {
    let text = body.to_string();
    if job.files.is_empty() {
        return Payload::Whole(text.into());
    }
    let mut parts: Vec<PayloadPart> = Vec::new();
    let mut rest = text.as_str();
    // The first of the marks that are left, until there is none.
    loop {
        let next = (0..job.files.len()).filter_map(|at| Some((rest.find(&mark(job, at))?, at))).min();
        let Some((place, at)) = next else { break };
        parts.push(Bytes::copy_from_slice(&rest.as_bytes()[..place]).into());
        parts.push(job.files[at].file.base64_part());
        rest = &rest[place + mark(job, at).len()..];
    }
    parts.push(Bytes::copy_from_slice(rest.as_bytes()).into());
    Payload::of_parts(parts)
}

/// The size as OpenAI and its copies take it: a ratio has a field of its own. Some copies have
/// other members for it.
pub(crate) fn put_size(body: &mut Map<String, Value>, job: &ImageJob<'_>, members: SizeMembers) -> Result<(), Problem> {
    if members == SizeMembers::ImageSize
        && let Some(n) = body.remove("n")
    {
        body.insert("batch_size".to_owned(), n);
    }
    let Some(shape) = &job.plan.shape else { return Ok(()) };
    let pixels = || shape.pixels.ok_or_else(|| Problem::wrong("size", "in pixels for this model, such as 1024x1024"));
    match members {
        SizeMembers::Size => put_words(body, job, shape),
        _ if shape.is_auto() => {}
        SizeMembers::AspectRatio => {
            if let Some(ratio) = shape.ratio {
                let wanted = || Problem::wrong("size", &format!("of a ratio of {}", RATIOS.join(", ")));
                let ratio = ratio.nearest(RATIOS).ok_or_else(wanted)?;
                body.insert("aspect_ratio".to_owned(), Value::from(ratio));
            }
            match shape.class {
                Some(SizeClass::K4) => return Err(Problem::wrong("size", "of class `1K` or `2K` for this model")),
                Some(class) => {
                    body.insert("resolution".to_owned(), Value::from(class.name().to_ascii_lowercase()));
                }
                None => {}
            }
        }
        SizeMembers::WidthHeight => {
            let (width, height) = pixels()?;
            body.insert("width".to_owned(), Value::from(width));
            body.insert("height".to_owned(), Value::from(height));
        }
        SizeMembers::ImageSize => {
            let (width, height) = pixels()?;
            body.insert("image_size".to_owned(), Value::from(format!("{width}x{height}")));
        }
    }
    Ok(())
}

/// The caller's own words: a ratio in its own field, beside the class that it may belong to.
fn put_words(body: &mut Map<String, Value>, job: &ImageJob<'_>, shape: &Shape) {
    let ratio = shape.ratio.filter(|_| shape.pixels.is_none()).map(|ratio| ratio.to_string());
    let alone = ratio.as_ref() == Some(&shape.text);
    if !alone {
        body.insert("size".to_owned(), Value::from(shape.text.as_str()));
    }
    if alone && let Some(resolution) = &job.plan.asked.resolution {
        body.insert("resolution".to_owned(), Value::from(resolution.as_str()));
    }
    body.extend(ratio.map(|ratio| ("aspect_ratio".to_owned(), Value::from(ratio))));
}

/// The size for a maker that takes classes or pixels, and has no field for a ratio.
pub(crate) fn class_or_pixels<'p>(shape: &'p Shape, wanted: &str) -> Result<&'p str, Problem> {
    match shape.ratio.filter(|_| shape.pixels.is_none()) {
        None => Ok(&shape.text),
        Some(ratio) if ratio.to_string() == shape.text => Err(Problem::wrong("size", wanted)),
        Some(_) => {
            let left_out = "left out for this model; give `size` in pixels, such as `2048x1152`";
            Err(Problem::wrong("aspect_ratio", left_out))
        }
    }
}

/// Those that a copy of OpenAI with `aspect_ratio` knows.
const RATIOS: &[&str] =
    &["1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:19.5", "19.5:9", "9:20", "20:9", "1:2", "2:1"];

/// Members of a request that a maker does not know, and fields that it has nothing like.
pub(crate) fn dropped(job: &ImageJob<'_>, known: &[&str], without: &[&str]) -> Vec<String> {
    let others = job.plan.asked.others.keys().filter(|name| !known.contains(&name.as_str())).cloned();
    // Where it is left to us nothing of it is lost.
    let named = job.plan.asked.quality.as_ref().filter(|quality| !quality.trim().eq_ignore_ascii_case("auto"));
    let quality = named.filter(|_| without.contains(&"quality")).map(|_| "quality".to_owned());
    let imagen = job.plan.asked.imagen.keys().filter(|_| job.api != "imagen").cloned();
    others.chain(quality).chain(imagen).collect()
}
