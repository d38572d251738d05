//! Kling's pictures: a task for one to nine of them, asked for by its id.

use super::{CODES, Kling};
use crate::image::{ImageJob, ImageMaker, PictureLimits, PictureReply, dropped, json_with_files};
use crate::image::{data_links, usage};
use crate::video::Asking;
use crate::video::judge::ProviderError;
use crate::video::read::{id, path_part};
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_media::image::SizeClass;
use tollgate_wire::Problem;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KlingImages;

const PATH: &str = "/v1/images/generations";
const RATIOS: &[&str] = &["16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3", "21:9"];
const KNOWN: &[&str] = &["negative_prompt", "image_reference", "image_fidelity", "human_fidelity"];
const CONTENT: &[&str] = &["1301"];

impl ImageMaker for KlingImages {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let asked = &job.plan.asked;
        if asked.mask.is_some() {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask`."));
        }
        let mut body = json!({
            "model_name": job.model, "prompt": asked.prompt, "n": job.n, "external_task_id": job.external_id,
        });
        for name in KNOWN {
            if let Some(value) = asked.others.get(*name) {
                body[*name] = value.clone();
            }
        }
        if let Some(shape) = job.plan.shape.as_ref().filter(|shape| !shape.is_auto()) {
            body["resolution"] = match shape.class {
                Some(SizeClass::K4) => return Err(Problem::wrong("size", "of class `1K` or `2K` for this model")),
                Some(SizeClass::K2) => json!("2k"),
                Some(SizeClass::K1) | None => json!("1k"),
            };
            if let Some(ratio) = shape.ratio {
                let wanted = || Problem::wrong("size", &format!("of a ratio of {}", RATIOS.join(", ")));
                body["aspect_ratio"] = json!(ratio.nearest(RATIOS).ok_or_else(wanted)?);
            }
        }
        if asked.edit {
            let links = data_links(job, &asked.images);
            let [link] = links.as_slice() else { return Err(Problem::wrong("image", "one image for this model")) };
            // Data goes without its head.
            let bare = link.split_once(";base64,").map_or(link.as_str(), |(_, data)| data);
            body["image"] = json!(bare);
        }
        let request = Kling::request(asking, Method::POST, PATH, Some(&Value::Null));
        let mut request = request.ok_or_else(|| Problem::wrong("model", "reachable"))?;
        *request.body_mut() = json_with_files(&body, job);
        Ok(request)
    }

    fn drops(&self, _: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        dropped(job, KNOWN, &["quality"])
    }

    fn limits(&self, _: &Provider, _: &str) -> PictureLimits {
        PictureLimits { most: 9, sources: 1, masks: false }
    }

    fn read(&self, _: &str, reply: &Value) -> Result<PictureReply, Fault> {
        if reply["code"] != 0 {
            return Err(self.said(reply));
        }
        let data = &reply["data"];
        match data["task_status"].as_str().unwrap_or_default() {
            "succeed" | "succeeded" => {
                let images = data["task_result"]["images"].as_array().into_iter().flatten();
                let link =
                    |one: &Value| Some((one["url"].as_str().filter(|url| !url.is_empty())?.to_owned(), String::new()));
                Ok(PictureReply {
                    links: images.filter_map(link).collect(),
                    usage: usage(data),
                    ..PictureReply::default()
                })
            }
            "failed" => {
                let text = data["task_status_msg"].as_str().unwrap_or_default();
                let lower = text.to_ascii_lowercase();
                let content = ["risk", "sensitive", "violat", "moderation"].iter().any(|word| lower.contains(word));
                let code = if content { 1301 } else { 5000 };
                Err(self.said(&json!({"code": code, "message": text})))
            }
            _ => {
                let task = id(&data["task_id"]).ok_or_else(Fault::garbage)?;
                Ok(PictureReply { task: Some(task), ..PictureReply::default() })
            }
        }
    }

    fn poll(&self, asking: &Asking<'_>, _: &ImageJob<'_>, task: &str) -> Option<Outgoing> {
        Kling::request(asking, Method::GET, &format!("{PATH}/{}", path_part(task)?), None)
    }

    fn poll_every(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let code = id(&json["code"]);
        let said =
            code.as_deref().map(|code| ProviderError { code, text: json["message"].as_str().unwrap_or_default() });
        making::coded(reply, said, CODES, CONTENT)
    }
}

impl KlingImages {
    /// What an error in an answer of 200 means.
    fn said(&self, reply: &Value) -> Fault {
        self.refused(&WholeReply { status: 200, headers: http::HeaderMap::new(), body: reply.to_string().into() })
    }
}
