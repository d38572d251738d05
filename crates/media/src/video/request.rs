//! A video request as it was sent, JSON or form, checked for types only: what the fields mean is
//! each family's affair.

use super::fields::whole_or_digits;
use super::form;
use super::{PictureUpload, VideoRefusal};
use crate::tree;
use serde_json::{Map, Value};
use tollgate_wire::error::Code;
use tollgate_wire::multipart::FormPart;

/// One request, in either encoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VideoRequest {
    pub model: String,
    pub prompt: Option<String>,
    pub input_reference: Option<Reference>,
    pub images: Vec<String>,
    pub image: Option<String>,
    pub video_url: Option<String>,
    pub size: Option<String>,
    pub duration: Option<i64>,
    pub seconds: Option<i64>,
    pub metadata: Map<String, Value>,
    /// Top-level fields outside the list above.
    pub others: Map<String, Value>,
    /// From a form: numbers and flags inside `metadata` are still text.
    pub loose: bool,
}

/// The value of `input_reference`.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    Link(String),
    File(PictureUpload),
}

/// Longest prompt taken; providers cut or refuse far shorter ones.
const PROMPT: usize = 64 << 10;
/// Longest link; pictures as data are longer and have their own limit, the body's.
const LINK: usize = 8 << 10;

impl VideoRequest {
    /// Reads a JSON body.
    pub fn from_json(body: &[u8]) -> Result<VideoRequest, VideoRefusal> {
        let fields = tree::members(body, usize::MAX).map_err(|problem| not_json(problem.message))?;
        VideoRequest::from_fields(fields, None, false)
    }

    /// Reads the parts of a form.
    pub fn from_form(parts: Vec<FormPart>) -> Result<VideoRequest, VideoRefusal> {
        let (mut fields, file) = form::gather(parts)?;
        // `metadata` may also be sent as one field of JSON.
        if let Some(Value::String(text)) = fields.get("metadata") {
            let parsed = serde_json::from_str(text).ok().filter(Value::is_object);
            let parsed = parsed.ok_or_else(|| VideoRefusal::invalid("metadata", "`metadata` must be an object."))?;
            fields.insert("metadata".to_owned(), parsed);
        }
        VideoRequest::from_fields(fields, file, true)
    }

    fn from_fields(
        mut fields: Map<String, Value>,
        file: Option<PictureUpload>,
        loose: bool,
    ) -> Result<VideoRequest, VideoRefusal> {
        fields.retain(|_, value| !value.is_null());
        let model = text(&mut fields, "model", 256)?;
        let model = model.ok_or_else(|| VideoRefusal::missing("model", "`model` is required."))?;
        let prompt = text(&mut fields, "prompt", PROMPT)?;
        let input_reference = match file {
            Some(file) => Some(Reference::File(file)),
            None => reference(&mut fields)?,
        };
        Ok(VideoRequest {
            model,
            prompt,
            input_reference,
            images: links(&mut fields, "images")?,
            image: link(&mut fields, "image")?,
            video_url: link(&mut fields, "video_url")?,
            size: text(&mut fields, "size", 64)?,
            duration: duration(&mut fields, loose)?,
            seconds: seconds(&mut fields)?,
            metadata: metadata(&mut fields)?,
            others: fields,
            loose,
        })
    }

    /// `input_reference` as a provider takes it in JSON: the link, or the file as a data link.
    pub(crate) fn reference_link(&self) -> Option<String> {
        match self.input_reference.as_ref()? {
            Reference::Link(link) => Some(link.clone()),
            Reference::File(file) => Some(file.data_link()),
        }
    }

    /// The top-level fields of the specification that were sent.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &'static str> {
        [
            ("prompt", self.prompt.is_some()),
            ("input_reference", self.input_reference.is_some()),
            ("images", !self.images.is_empty()),
            ("image", self.image.is_some()),
            ("video_url", self.video_url.is_some()),
            ("size", self.size.is_some()),
            ("duration", self.duration.is_some()),
            ("seconds", self.seconds.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, sent)| sent.then_some(name))
    }
}

fn not_json(message: String) -> VideoRefusal {
    VideoRefusal { code: Code::InvalidJson, message, param: None }
}

/// Empty text counts as absent: SDKs and forms send it for fields left out.
fn text(fields: &mut Map<String, Value>, name: &str, most: usize) -> Result<Option<String>, VideoRefusal> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() > most => Err(VideoRefusal::invalid(
            name,
            format!("`{name}` is {} bytes long; at most {most} are accepted.", text.len()),
        )),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(VideoRefusal::invalid(name, format!("`{name}` must be text."))),
    }
}

fn link(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, VideoRefusal> {
    match text(fields, name, usize::MAX)? {
        None => Ok(None),
        Some(link) => check_link(&link, name).map(|()| Some(link)),
    }
}

pub(crate) fn check_link(link: &str, param: &str) -> Result<(), VideoRefusal> {
    let long = link.len() > LINK && !link.starts_with("data:");
    if long || link.bytes().any(|b| b.is_ascii_control() || b == b' ') {
        return Err(VideoRefusal::invalid(param, format!("`{param}` is not a link.")));
    }
    Ok(())
}

fn links(fields: &mut Map<String, Value>, name: &str) -> Result<Vec<String>, VideoRefusal> {
    let bad = || VideoRefusal::invalid(name, format!("`{name}` must be an array of links."));
    let list = match fields.remove(name) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(bad()),
    };
    let each = list.into_iter().enumerate().map(|(at, one)| match one {
        Value::String(link) if !link.is_empty() => check_link(&link, &format!("{name}[{at}]")).map(|()| link),
        _ => Err(bad()),
    });
    each.collect()
}

/// A link, or the object OpenAI's newer SDKs send.
fn reference(fields: &mut Map<String, Value>) -> Result<Option<Reference>, VideoRefusal> {
    const NAME: &str = "input_reference";
    if let Some(Value::Object(object)) = fields.get(NAME) {
        let Some(Value::String(inner)) = object.get("image_url") else {
            let message = "`input_reference` must be a link, a file, or an object with `image_url`.";
            return Err(VideoRefusal::invalid(NAME, message));
        };
        let inner = Value::String(inner.clone());
        fields.insert(NAME.to_owned(), inner);
    }
    Ok(link(fields, NAME)?.map(Reference::Link))
}

fn duration(fields: &mut Map<String, Value>, loose: bool) -> Result<Option<i64>, VideoRefusal> {
    match fields.remove("duration") {
        None => Ok(None),
        Some(Value::String(text)) if loose && text.is_empty() => Ok(None),
        Some(value) => {
            let number = if value.is_string() && !loose { None } else { whole_or_digits(&value) };
            let message = "`duration` must be a whole number of seconds.";
            number.map(Some).ok_or_else(|| VideoRefusal::invalid("duration", message))
        }
    }
}

fn seconds(fields: &mut Map<String, Value>) -> Result<Option<i64>, VideoRefusal> {
    match fields.remove("seconds") {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(value) => {
            let message = "`seconds` must be a whole number of seconds, as text.";
            whole_or_digits(&value).map(Some).ok_or_else(|| VideoRefusal::invalid("seconds", message))
        }
    }
}

fn metadata(fields: &mut Map<String, Value>) -> Result<Map<String, Value>, VideoRefusal> {
    match fields.remove("metadata") {
        None => Ok(Map::new()),
        Some(Value::Object(metadata)) => Ok(metadata),
        Some(_) => Err(VideoRefusal::invalid("metadata", "`metadata` must be an object.")),
    }
}
