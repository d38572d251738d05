//! MiniMax's pictures: an answer of 200 to everything, counts as texts, base64 under another name.

use super::video::{CODES, base_code};
use crate::image::{ImageJob, ImageMaker, PictureLimits, PictureReply, data_links, dropped, json_with_files};
use crate::video::Asking;
use crate::video::judge::ProviderError;
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::Method;
use serde_json::{Value, json};
use tollgate_media::image::{Layout, PictureFormat, SizeClass};
use tollgate_wire::Problem;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MiniMaxImages;

const RATIOS: &[&str] = &["1:1", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "21:9"];
const LAYOUT: Layout = Layout { picture: &["data", "image_base64", "*"], prompt: None, draft: None };
/// What it knows besides.
const KNOWN: &[&str] = &["seed", "prompt_optimizer", "aigc_watermark", "style"];
/// Codes for content: of the request, and of what was made.
pub(super) const CONTENT: &[&str] = &["1026", "1027"];
/// The way of models that take ratios only.
const LIVE: &str = "live";

impl ImageMaker for MiniMaxImages {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let asked = &job.plan.asked;
        let format = if job.plan.format == PictureFormat::Base64 { "base64" } else { "url" };
        let mut body = json!({"model": job.model, "prompt": asked.prompt, "n": job.n, "response_format": format});
        for name in KNOWN {
            if let Some(value) = asked.others.get(*name) {
                body[*name] = value.clone();
            }
        }
        put_size(&mut body, job)?;
        if asked.mask.is_some() {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask`."));
        }
        if asked.edit {
            let subjects = data_links(job, &asked.images);
            if subjects.len() > 1 {
                return Err(Problem::wrong("image", "one picture for this model"));
            }
            let subject = |link: String| json!({"type": "character", "image_file": link});
            body["subject_reference"] = subjects.into_iter().map(subject).collect();
        }
        let request = asking.bearer(Method::POST, "/v1/image_generation", Some(&Value::Null));
        let mut request = request.ok_or_else(|| Problem::wrong("model", "reachable"))?;
        *request.body_mut() = json_with_files(&body, job);
        Ok(request)
    }

    fn drops(&self, _: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        dropped(job, KNOWN, &["quality"])
    }

    fn ways(&self) -> &'static [&'static str] {
        &["", LIVE]
    }

    fn limits(&self, _: &Provider, _: &str) -> PictureLimits {
        PictureLimits { most: 9, sources: 1, masks: false }
    }

    fn layout(&self, _: &str) -> &'static Layout {
        &LAYOUT
    }

    fn read(&self, _: &str, reply: &Value) -> Result<PictureReply, Fault> {
        if base_code(reply).is_some() {
            let whole = WholeReply { status: 200, headers: http::HeaderMap::new(), body: reply.to_string().into() };
            return Err(self.refused(&whole));
        }
        let links = reply["data"]["image_urls"].as_array().into_iter().flatten();
        let links = links.filter_map(|link| Some((link.as_str()?.to_owned(), String::new()))).collect();
        // What its filter took away is counted, and never a fault of ours.
        let failed = reply["metadata"]["failed_count"].as_str().and_then(|count| count.parse::<u64>().ok());
        let failure =
            failed.filter(|failed| *failed > 0).map(|_| Fault::content("The provider's filter took the picture away."));
        Ok(PictureReply { links, failure, ..PictureReply::default() })
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let said = base_code(&json);
        let said = said.as_ref().map(|(code, text)| ProviderError { code, text });
        making::coded(reply, said, CODES, CONTENT)
    }
}

/// Pixels where it takes them, else the ratio they have.
fn put_size(body: &mut Value, job: &ImageJob<'_>) -> Result<(), Problem> {
    let Some(shape) = job.plan.shape.as_ref().filter(|shape| !shape.is_auto()) else { return Ok(()) };
    let side = |side: u32| (512..=2048).contains(&side) && side.is_multiple_of(8);
    if let Some((width, height)) =
        shape.pixels.filter(|(width, height)| side(*width) && side(*height) && job.api != LIVE)
    {
        body["width"] = json!(width);
        body["height"] = json!(height);
        return Ok(());
    }
    let ratio = shape.ratio.and_then(|ratio| ratio.nearest(RATIOS));
    let Some(ratio) = ratio.filter(|_| shape.class.is_none_or(|class| class == SizeClass::K1)) else {
        let wanted = format!("sides of 512 to 2048 in steps of 8, or a ratio of {}", RATIOS.join(", "));
        return Err(Problem::wrong("size", &wanted));
    };
    body["aspect_ratio"] = json!(ratio);
    Ok(())
}
