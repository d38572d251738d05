//! DashScope's pictures: newer models answer at once, in the shape of a conversation; older ones
//! begin a task that is asked for.

use super::video::CODES;
use crate::image::{
    ImageJob, ImageMaker, PictureLimits, PictureReply, class_or_pixels, data_links, dropped, json_with_files, usage,
};
use crate::video::Asking;
use crate::video::judge::ProviderError;
use crate::video::read::{id, path_part};
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tollgate_wire::Problem;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QwenImages;

/// The way of older models: a task for new pictures, another for changed ones.
const TASKS: &str = "tasks";
const SERVICES: &str = "/api/v1/services/aigc";
/// What it knows besides, as parameters.
const KNOWN: &[&str] =
    &["seed", "negative_prompt", "prompt_extend", "watermark", "thinking_mode", "bbox_list", "color_palette"];
const CONTENT: &[&str] = &["DataInspectionFailed", "data_inspection_failed"];

impl ImageMaker for QwenImages {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let asked = &job.plan.asked;
        if asked.mask.is_some() {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask` here."));
        }
        // The default is four on several models.
        let mut parameters = json!({ "n": job.n });
        if let Some(shape) = job.plan.shape.as_ref().filter(|shape| !shape.is_auto()) {
            let size = class_or_pixels(shape, "pixels such as `1024x1024` for this model")?;
            parameters["size"] = json!(size.replace('x', "*"));
        }
        for name in KNOWN.iter().filter(|name| job.api != TASKS || **name != "negative_prompt") {
            if let Some(value) = asked.others.get(*name) {
                parameters[*name] = value.clone();
            }
        }
        let links = data_links(job, &asked.images);
        let stored = links.iter().any(|link| link.starts_with("oss://"));
        let (path, input) = match (job.api == TASKS, asked.edit) {
            (false, _) => {
                let pictures = links.into_iter().map(|link| json!({ "image": link }));
                let content: Vec<Value> = pictures.chain([json!({ "text": asked.prompt })]).collect();
                ("/multimodal-generation/generation", json!({"messages": [{"role": "user", "content": content}]}))
            }
            (true, edit) => {
                let mut input = json!({ "prompt": asked.prompt });
                if let Some(value) = asked.others.get("negative_prompt") {
                    input["negative_prompt"] = value.clone();
                }
                if edit {
                    input["images"] = links.into();
                }
                (if edit { "/image2image/image-synthesis" } else { "/text2image/image-synthesis" }, input)
            }
        };
        let body = json!({"model": job.model, "input": input, "parameters": parameters});
        let request = asking.bearer(Method::POST, &format!("{SERVICES}{path}"), Some(&Value::Null));
        let mut request = request.ok_or_else(|| Problem::wrong("model", "reachable"))?;
        *request.body_mut() = json_with_files(&body, job);
        let enable = HeaderValue::from_static("enable");
        if job.api == TASKS {
            request.headers_mut().insert("x-dashscope-async", enable.clone());
        }
        if stored {
            request.headers_mut().insert("x-dashscope-ossresourceresolve", enable);
        }
        Ok(request)
    }

    fn drops(&self, _: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        dropped(job, KNOWN, &["quality"])
    }

    fn ways(&self) -> &'static [&'static str] {
        &["", TASKS]
    }

    fn limits(&self, _: &Provider, _: &str) -> PictureLimits {
        PictureLimits { most: 6, sources: 9, masks: false }
    }

    /// Every picture of every choice: all of them may stand in one list, or each in a choice of its
    /// own.
    fn read(&self, api: &str, reply: &Value) -> Result<PictureReply, Fault> {
        let output = &reply["output"];
        if api == TASKS {
            return self.task(reply);
        }
        let choices = output["choices"].as_array().into_iter().flatten();
        let contents = choices.flat_map(|choice| choice["message"]["content"].as_array().into_iter().flatten());
        let links = contents.filter_map(|part| Some((part["image"].as_str()?.to_owned(), String::new()))).collect();
        Ok(PictureReply { links, usage: usage(reply), ..PictureReply::default() })
    }

    fn poll(&self, asking: &Asking<'_>, _: &ImageJob<'_>, task: &str) -> Option<Outgoing> {
        asking.bearer(Method::GET, &format!("/api/v1/tasks/{}", path_part(task)?), None)
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let said = json["code"]
            .as_str()
            .map(|code| ProviderError { code, text: json["message"].as_str().unwrap_or_default() });
        making::coded(reply, said, CODES, CONTENT)
    }
}

impl QwenImages {
    /// How a task stands. An entry without a link is a picture that was not made.
    fn task(&self, reply: &Value) -> Result<PictureReply, Fault> {
        let output = &reply["output"];
        let said = |of: &Value| {
            let body = json!({"code": of["code"], "message": of["message"]}).to_string();
            self.refused(&WholeReply { status: 200, headers: http::HeaderMap::new(), body: body.into() })
        };
        match output["task_status"].as_str().unwrap_or_default() {
            "SUCCEEDED" => {
                let results = output["results"].as_array().map(Vec::as_slice).unwrap_or_default();
                let link = |one: &Value| {
                    let prompt = one["actual_prompt"].as_str().unwrap_or_default();
                    Some((one["url"].as_str().filter(|url| !url.is_empty())?.to_owned(), prompt.to_owned()))
                };
                let failure = results.iter().find(|one| one["code"].is_string()).map(said);
                Ok(PictureReply {
                    links: results.iter().filter_map(link).collect(),
                    failure,
                    usage: usage(reply),
                    task: None,
                })
            }
            "FAILED" if output["code"].is_string() => Err(said(output)),
            // Cancelled, an id that nobody knows any more, or a failure without a word: there will
            // be no pictures.
            "FAILED" | "CANCELED" | "UNKNOWN" => {
                Err(Fault { maybe_charged: false, try_other: false, ..Fault::garbage() })
            }
            _ => {
                let task = id(&output["task_id"]).ok_or_else(Fault::garbage)?;
                Ok(PictureReply { task: Some(task), ..PictureReply::default() })
            }
        }
    }
}
