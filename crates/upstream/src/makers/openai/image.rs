//! Pictures as OpenAI makes them, and everybody who copied it: all of a request passes, files as a
//! form of our own.

use crate::chat::{bearer, post};
use crate::image::{ImageJob, ImageMaker, PictureReply, put_size, usage};
use crate::video::Asking;
use crate::{Fault, FormPayload, Outgoing, Payload, WholeReply, making};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use tollgate_media::image::{Layout, PictureSource};
use tollgate_wire::Problem;

/// The base address ends in `/v1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiImages;

/// Also of others who answer so.
pub(crate) const LAYOUT: Layout =
    Layout { picture: &["data", "*", "b64_json"], prompt: Some(&["data", "*", "revised_prompt"]), draft: None };

impl ImageMaker for OpenAiImages {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let path = if job.plan.asked.edit { "/images/edits" } else { "/images/generations" };
        let uri = asking.provider.base_url.join(path).map_err(|_| Problem::wrong("model", "reachable"))?;
        let fields = fields(asking, job)?;
        let mut request = post(uri, Bytes::new(), job.external_id);
        if job.files.is_empty() {
            let mut body = fields;
            put_links(&mut body, job);
            *request.body_mut() = Payload::Whole(Value::Object(body).to_string().into());
        } else {
            let form = form(&fields, job)?;
            request.headers_mut().insert(CONTENT_TYPE, form.content_type());
            *request.body_mut() = form.payload();
        }
        bearer(&mut request, asking.provider);
        Ok(request)
    }

    /// Whoever copies OpenAI may know what we do not.
    fn drops(&self, job: &ImageJob<'_>) -> Vec<String> {
        job.plan.asked.imagen.keys().cloned().collect()
    }

    fn streams(&self) -> bool {
        true
    }

    fn layout(&self, _: &str) -> &'static Layout {
        &LAYOUT
    }

    fn read(&self, _: &str, reply: &Value) -> Result<PictureReply, Fault> {
        let Some(entries) = reply["data"].as_array() else { return Err(Fault::garbage()) };
        let link = |entry: &Value| {
            let url = entry["url"].as_str().filter(|url| !url.is_empty())?;
            let prompt = entry["revised_prompt"].as_str().unwrap_or_default();
            Some((url.to_owned(), prompt.to_owned()))
        };
        Ok(PictureReply {
            links: entries.iter().filter_map(link).collect(),
            usage: usage(reply),
            ..PictureReply::default()
        })
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        making::openai(reply)
    }
}

/// What is said of the pictures, whichever form it has.
fn fields(asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Map<String, Value>, Problem> {
    let asked = &job.plan.asked;
    let mut body = asked.others.clone();
    body.insert("model".to_owned(), json!(job.model));
    body.insert("prompt".to_owned(), json!(asked.prompt));
    body.insert("n".to_owned(), json!(job.n));
    put_size(&mut body, job, asking.provider.settings.quirks.picture_size)?;
    if let Some(quality) = &job.plan.quality {
        body.insert("quality".to_owned(), json!(quality));
    }
    if job.sends_format {
        body.insert("response_format".to_owned(), json!(job.plan.format.name()));
    }
    if job.streams {
        body.insert("stream".to_owned(), json!(true));
        if job.plan.partials > 0 {
            body.insert("partial_images".to_owned(), json!(job.plan.partials));
        }
    }
    Ok(body)
}

/// Pictures by their links, as OpenAI's JSON form of edits has them.
fn put_links(body: &mut Map<String, Value>, job: &ImageJob<'_>) {
    let link = |source: &PictureSource| match source {
        PictureSource::Link(link) => Some(json!({ "image_url": link })),
        PictureSource::File(_) => None,
    };
    if job.plan.asked.edit {
        body.insert("images".to_owned(), job.plan.asked.images.iter().filter_map(link).collect());
    }
    if let Some(mask) = job.plan.asked.mask.as_ref().and_then(link) {
        body.insert("mask".to_owned(), mask);
    }
}

fn form(fields: &Map<String, Value>, job: &ImageJob<'_>) -> Result<FormPayload, Problem> {
    let mut form = FormPayload::new(job.drawn);
    for (name, value) in fields {
        form = match value {
            Value::String(text) => form.field(name, text),
            Value::Null => form,
            other => form.field(name, &other.to_string()),
        };
    }
    let images = &job.plan.asked.images;
    // One picture and several are spelt differently by those who send them, and so they are here.
    let name = if images.len() == 1 { "image" } else { "image[]" };
    let sources = images.iter().map(|source| (name, "image", source));
    let mask = job.plan.asked.mask.as_ref().map(|source| ("mask", "mask", source));
    for (at, (name, word, source)) in sources.chain(mask).enumerate() {
        let PictureSource::File(place) = source else {
            return Err(Problem::wrong(word, "a file, as the other pictures are"));
        };
        let file = job.files.get(*place).ok_or_else(|| Problem::missing(word))?;
        let file_name = format!("{word}-{at}.{}", file.kind.extension());
        form = form.file(name, &file_name, file.kind.mime(), file.file.part());
    }
    Ok(form)
}
