//! Seedream at Ark: nearly OpenAI's form, one picture a request, entries that may be errors.

use super::video::CODES;
use crate::image::{
    ImageJob, ImageMaker, PictureLimits, PictureReply, class_or_pixels, data_links, dropped, json_with_files, usage,
};
use crate::makers::openai::LAYOUT;
use crate::video::Asking;
use crate::video::judge::ProviderError;
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::Method;
use serde_json::{Value, json};
use tollgate_media::image::{Layout, PictureFormat};
use tollgate_wire::Problem;

/// The base address ends in `/api/v3`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seedream;

/// What it knows besides.
const KNOWN: &[&str] =
    &["seed", "guidance_scale", "watermark", "output_format", "optimize_prompt", "optimize_prompt_options", SERIES];
/// Several pictures that belong together: as many as the model likes.
const SERIES: &str = "sequential_image_generation";
/// Part of every code for content.
const CONTENT: &[&str] = &["SensitiveContent"];

impl ImageMaker for Seedream {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let asked = &job.plan.asked;
        if asked.mask.is_some() {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask`."));
        }
        let format = if job.plan.format == PictureFormat::Base64 { "b64_json" } else { "url" };
        // Marks are on at the provider unless the field says no; a series would be more pictures
        // than asked.
        let mut body = json!({
            "model": job.model, "prompt": asked.prompt, "response_format": format, "watermark": false,
            "sequential_image_generation": "disabled",
        });
        let series = asked.others.get(SERIES).and_then(Value::as_str);
        if asked.others.contains_key(SERIES) && !series.is_some_and(|word| word.eq_ignore_ascii_case("disabled")) {
            let text = format!("`{SERIES}` is not taken: pictures are made one by one here, as many as `n` says.");
            return Err(Problem::unsupported(SERIES, text));
        }
        for name in KNOWN.iter().filter(|name| **name != SERIES) {
            if let Some(value) = asked.others.get(*name) {
                body[*name] = value.clone();
            }
        }
        if let Some(shape) = job.plan.shape.as_ref().filter(|shape| !shape.is_auto()) {
            let wanted = "`1K`, `2K`, `4K` or pixels such as `2048x2048` for this model";
            body["size"] = json!(class_or_pixels(shape, wanted)?);
        }
        if asked.edit {
            body["image"] = data_links(job, &asked.images).into();
        }
        let request = asking.bearer(Method::POST, "/images/generations", Some(&Value::Null));
        let mut request = request.ok_or_else(|| Problem::wrong("model", "reachable"))?;
        *request.body_mut() = json_with_files(&body, job);
        Ok(request)
    }

    fn drops(&self, _: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        dropped(job, KNOWN, &["quality"])
    }

    fn limits(&self, _: &Provider, _: &str) -> PictureLimits {
        PictureLimits { most: u64::MAX, sources: 14, masks: false }
    }

    fn repeats(&self, _: &str) -> bool {
        true
    }

    fn layout(&self, _: &str) -> &'static Layout {
        &LAYOUT
    }

    fn read(&self, _: &str, reply: &Value) -> Result<PictureReply, Fault> {
        let entries = reply["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let link =
            |entry: &Value| Some((entry["url"].as_str().filter(|url| !url.is_empty())?.to_owned(), String::new()));
        let error =
            entries.iter().map(|entry| &entry["error"]).chain([&reply["error"]]).find(|error| error.is_object());
        let failure = error.map(|error| {
            let whole = json!({ "error": error }).to_string();
            self.refused(&WholeReply { status: 200, headers: http::HeaderMap::new(), body: whole.into() })
        });
        Ok(PictureReply { links: entries.iter().filter_map(link).collect(), failure, usage: usage(reply), task: None })
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let error = &json["error"];
        let said = error["code"]
            .as_str()
            .map(|code| ProviderError { code, text: error["message"].as_str().unwrap_or_default() });
        making::coded(reply, said, CODES, CONTENT)
    }
}
