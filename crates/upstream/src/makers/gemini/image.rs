//! Pictures at Google: image models answer as in a conversation, one picture a request; Imagen
//! predicts several.

use super::chat::in_a_path;
use crate::chat::{key_in, post};
use crate::image::{ImageJob, ImageMaker, PictureLimits, PictureReply, data_links, dropped, json_with_files};
use crate::video::Asking;
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::image::{Layout, imagen_parameters};
use tollgate_wire::Problem;

/// At the Gemini API, whose base address has no path, or on Vertex AI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeminiImages {
    /// Below which its models are.
    pub models: &'static str,
    /// Its key goes in a header; else a token is added when it is sent.
    pub plain_key: bool,
}

impl GeminiImages {
    pub(crate) const OWN: GeminiImages = GeminiImages { models: "/v1beta/models", plain_key: true };
    pub(crate) const VERTEX: GeminiImages = GeminiImages { models: crate::makers::vertex::MODELS, plain_key: false };
}

const RATIOS: &[&str] = &["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"];
const PARTS: Layout = Layout {
    picture: &["candidates", "*", "content", "parts", "*", "inlineData", "data"],
    prompt: None,
    draft: Some(&["candidates", "*", "content", "parts", "*", "thought"]),
};
const PREDICTIONS: Layout = Layout { picture: &["predictions", "*", "bytesBase64Encoded"], prompt: None, draft: None };
/// The way of Imagen.
const IMAGEN: &str = "imagen";
/// What it is sent of other members of a request.
const IMAGEN_KNOWS: &[&str] = &["negative_prompt", "seed", "output_format", "output_compression"];
/// Why there is no picture, in an answer of 200.
const REFUSALS: &[&str] = &[
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "PROHIBITED_CONTENT",
    "SAFETY",
    "BLOCKLIST",
    "SPII",
    "RECITATION",
];

impl ImageMaker for GeminiImages {
    fn create(&self, asking: &Asking<'_>, job: &ImageJob<'_>) -> Result<Outgoing, Problem> {
        let asked = &job.plan.asked;
        if asked.mask.is_some() {
            return Err(Problem::unsupported("mask", "The model's provider takes no `mask`."));
        }
        let (verb, body) =
            if job.api == IMAGEN { ("predict", predict(job)?) } else { ("generateContent", content(job)?) };
        let path = format!("{}/{}:{verb}", self.models, in_a_path(job.model));
        let uri = asking.provider.base_url.join(&path).map_err(|_| Problem::wrong("model", "reachable"))?;
        let mut request = post(uri, Bytes::new(), job.external_id);
        *request.body_mut() = json_with_files(&body, job);
        if self.plain_key {
            key_in(&mut request, "x-goog-api-key", asking.provider);
        }
        Ok(request)
    }

    fn drops(&self, _: &Provider, job: &ImageJob<'_>) -> Vec<String> {
        match job.api {
            IMAGEN => dropped(job, IMAGEN_KNOWS, &["quality"]),
            _ => dropped(job, &[], &["quality"]),
        }
    }

    fn ways(&self) -> &'static [&'static str] {
        &["", IMAGEN]
    }

    fn limits(&self, _: &Provider, api: &str) -> PictureLimits {
        match api {
            IMAGEN => PictureLimits { most: 4, sources: 0, masks: false },
            _ => PictureLimits { masks: false, ..PictureLimits::NONE },
        }
    }

    fn repeats(&self, api: &str) -> bool {
        api != IMAGEN
    }

    fn layout(&self, api: &str) -> &'static Layout {
        if api == IMAGEN { &PREDICTIONS } else { &PARTS }
    }

    fn read(&self, api: &str, reply: &Value) -> Result<PictureReply, Fault> {
        let refusal = match api {
            IMAGEN => {
                let predictions = reply["predictions"].as_array().into_iter().flatten();
                predictions.filter_map(|one| one["raiFilteredReason"].as_str()).next().map(str::to_owned)
            }
            _ => {
                let blocked = reply["promptFeedback"]["blockReason"].as_str();
                let ended = reply["candidates"][0]["finishReason"].as_str().filter(|why| REFUSALS.contains(why));
                blocked.or(ended).map(|why| format!("The provider refused the content ({why})."))
            }
        };
        let usage = reply.get("usageMetadata").filter(|usage| usage.is_object()).map(Value::to_string);
        Ok(PictureReply { failure: refusal.map(|text| Fault::content(&text)), usage, ..PictureReply::default() })
    }

    fn refused(&self, reply: &WholeReply) -> Fault {
        making::openai(reply)
    }
}

/// The shape in Google's words.
fn put_shape(into: &mut Value, job: &ImageJob<'_>) -> Result<(), Problem> {
    let Some(shape) = job.plan.shape.as_ref().filter(|shape| !shape.is_auto()) else { return Ok(()) };
    if let Some(ratio) = shape.ratio {
        let wanted = || Problem::wrong("size", &format!("of a ratio of {}", RATIOS.join(", ")));
        into["aspectRatio"] = json!(ratio.nearest(RATIOS).ok_or_else(wanted)?);
    }
    if let Some(class) = shape.class {
        into["imageSize"] = json!(class.name());
    }
    Ok(())
}

fn content(job: &ImageJob<'_>) -> Result<Value, Problem> {
    let asked = &job.plan.asked;
    let mut parts = Vec::new();
    for (at, link) in data_links(job, &asked.images).into_iter().enumerate() {
        let data = link.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let Some((mime, data)) = data else {
            let field = format!("image[{at}]");
            return Err(Problem::unsupported(
                &field,
                "The provider of this model does not accept URLs: send the image itself.",
            ));
        };
        parts.push(json!({"inlineData": {"mimeType": mime, "data": data}}));
    }
    parts.push(json!({ "text": asked.prompt }));
    let mut config = json!({"responseModalities": ["IMAGE"]});
    let mut image = json!({});
    put_shape(&mut image, job)?;
    if image != json!({}) {
        config["imageConfig"] = image;
    }
    Ok(json!({"contents": [{"role": "user", "parts": parts}], "generationConfig": config}))
}

fn predict(job: &ImageJob<'_>) -> Result<Value, Problem> {
    if job.plan.asked.edit {
        return Err(Problem::unsupported(
            "image",
            "This model does not edit images; send the request to /v1/images/generations.",
        ));
    }
    let mut parameters = Value::Object(imagen_parameters(&job.plan.asked));
    parameters["sampleCount"] = json!(job.n);
    put_shape(&mut parameters, job)?;
    Ok(json!({"instances": [{"prompt": job.plan.asked.prompt}], "parameters": parameters}))
}
