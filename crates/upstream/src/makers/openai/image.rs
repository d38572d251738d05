//! Pictures as OpenAI makes them, and everybody who copied it: all of a request passes, files as a
//! form of our own. Who takes less says so in its quirks.

use crate::chat::{bearer, post};
use crate::image::{
    ImageJob, ImageMaker, PictureFile, PictureLimits, PictureReply, data_links, dropped, json_with_files, put_size,
    usage,
};
use crate::video::Asking;
use crate::{Fault, FormPayload, Outgoing, Provider, WholeReply, making};
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
        let quirks = &asking.provider.settings.quirks;
        if job.plan.asked.mask.is_some() && !quirks.takes_for_pictures("mask") {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask`."));
        }
        let mut fields = fields(asking, job)?;
        let mut request = post(uri, Bytes::new(), job.external_id);
        if quirks.picture_links {
            put_urls(&mut fields, job);
            *request.body_mut() = json_with_files(&Value::Object(fields), job);
        } else if let Some(files) = all_files(job) {
            let form = form(&fields, &files, job.drawn);
            request.headers_mut().insert(CONTENT_TYPE, form.content_type());
            *request.body_mut() = form.payload();
        } else {
            put_links(&mut fields, job);
            *request.body_mut() = json_with_files(&Value::Object(fields), job);
        }
        bearer(&mut request, asking.provider);
        Ok(request)
    }

    /// Whoever copies OpenAI may know what we do not.
    fn drops(&self, provider: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        let quirks = &provider.settings.quirks;
        let taken = job.plan.asked.others.keys().map(String::as_str).filter(|name| quirks.takes_for_pictures(name));
        let without: &[&str] = if self.takes_quality(provider) { &[] } else { &["quality"] };
        dropped(job, &taken.collect::<Vec<_>>(), without)
    }

    fn takes_quality(&self, provider: &Provider) -> bool {
        provider.settings.quirks.takes_for_pictures("quality")
    }

    fn limits(&self, provider: &Provider, _: &str) -> PictureLimits {
        PictureLimits { masks: provider.settings.quirks.takes_for_pictures("mask"), ..PictureLimits::NONE }
    }

    fn streams(&self, provider: &Provider) -> bool {
        provider.settings.quirks.takes_for_pictures("stream")
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
    let quirks = &asking.provider.settings.quirks;
    let mut body = asked.others.clone();
    body.retain(|name, _| quirks.takes_for_pictures(name));
    body.insert("model".to_owned(), json!(job.model));
    body.insert("prompt".to_owned(), json!(asked.prompt));
    body.insert("n".to_owned(), json!(job.n));
    put_size(&mut body, job, quirks.picture_size)?;
    if let Some(quality) = job.plan.quality.as_ref().filter(|_| quirks.takes_for_pictures("quality")) {
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

/// The pictures of a request with the words for them, where there are some and all are files. Where
/// one of them is a link the others go as links too: a form has files only.
fn all_files<'j>(job: &ImageJob<'j>) -> Option<Vec<(&'static str, &'j PictureFile)>> {
    let asked = &job.plan.asked;
    let images = asked.images.iter().map(|source| ("image", source));
    let sources = images.chain(asked.mask.iter().map(|source| ("mask", source)));
    let file = |(word, source): (&'static str, &PictureSource)| match source {
        PictureSource::File(at) => Some((word, job.files.get(*at)?)),
        PictureSource::Link(_) => None,
    };
    sources.map(file).collect::<Option<Vec<_>>>().filter(|files| !files.is_empty())
}

/// Pictures by their links, as OpenAI's JSON form of edits has them.
fn put_links(body: &mut Map<String, Value>, job: &ImageJob<'_>) {
    let links = |sources: &[PictureSource]| -> Vec<Value> {
        data_links(job, sources).into_iter().map(|link| json!({ "image_url": link })).collect()
    };
    if job.plan.asked.edit {
        body.insert("images".to_owned(), links(&job.plan.asked.images).into());
    }
    let mask = links(job.plan.asked.mask.as_slice()).pop();
    body.extend(mask.map(|mask| ("mask".to_owned(), mask)));
}

/// The same for who has a word of its own for one picture, and a list for several.
fn put_urls(body: &mut Map<String, Value>, job: &ImageJob<'_>) {
    let link = |link: String| json!({ "url": link, "type": "image_url" });
    let mut links: Vec<Value> = data_links(job, &job.plan.asked.images).into_iter().map(link).collect();
    match links.len() {
        0 => {}
        1 => body.extend(links.pop().map(|one| ("image".to_owned(), one))),
        _ => body.extend([("images".to_owned(), Value::from(links))]),
    }
    let mask = data_links(job, job.plan.asked.mask.as_slice()).pop();
    body.extend(mask.map(|mask| ("mask".to_owned(), link(mask))));
}

fn form(fields: &Map<String, Value>, files: &[(&str, &PictureFile)], drawn: [u8; 16]) -> FormPayload {
    let mut form = FormPayload::new(drawn);
    for (name, value) in fields {
        form = match value {
            Value::String(text) => form.field(name, text),
            Value::Null => form,
            other => form.field(name, &other.to_string()),
        };
    }
    let several = files.iter().filter(|(word, _)| *word == "image").count() > 1;
    for (at, (word, file)) in files.iter().enumerate() {
        // One picture and several are spelt differently by those who send them, and so they are
        // here.
        let name = if *word == "image" && several { "image[]" } else { word };
        let file_name = format!("{word}-{at}.{}", file.kind.extension());
        form = form.file(name, &file_name, file.kind.mime(), file.file.part());
    }
    form
}
