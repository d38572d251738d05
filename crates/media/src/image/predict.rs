//! A request for pictures in the form of Imagen, `POST …/models/{model}:predict`: the prompt in
//! `instances`, all else in `parameters`. It asks for the same as `POST /v1/images/generations`.

use super::request::{ImageRequest, PictureFormat, count};
use crate::tree;
use serde_json::{Map, Value};
use tollgate_wire::Problem;

/// Pictures where the caller does not say, as Google has it.
pub(super) const USUAL: u64 = 4;

/// What costs nothing more and only Imagen knows; others are told that it was left out.
const ITS_OWN: &[&str] = &[
    "addWatermark",
    "guidanceScale",
    "includeRaiReason",
    "includeSafetyAttributes",
    "language",
    "personGeneration",
    "safetySetting",
];

/// Our names of fields, and how its callers know them.
const NAMES: &[(&str, &str)] = &[
    ("n", "parameters.sampleCount"),
    ("prompt", "instances[0].prompt"),
    ("size", "parameters.aspectRatio"),
    ("aspect_ratio", "parameters.aspectRatio"),
    ("resolution", "parameters.sampleImageSize"),
];

impl ImageRequest {
    /// From a body in the form of Imagen.
    pub fn from_predict(model: &str, body: &[u8]) -> Result<ImageRequest, Problem> {
        let mut members = tree::members(body, usize::MAX)?;
        if let Some(name) = members.keys().find(|name| !["instances", "parameters", "labels"].contains(&name.as_str()))
        {
            let name = tollgate_wire::cut(name, tollgate_wire::NAME);
            return Err(Problem::unsupported(&name, format!("`{name}` is no field of `:predict`.")));
        }
        let mut request = ImageRequest {
            model: model.to_owned(),
            predicts: true,
            response_format: Some(PictureFormat::Base64),
            ..ImageRequest::default()
        };
        let prompt = prompt_of(members.remove("instances").unwrap_or_default())?;
        request.take("prompt", prompt).map_err(predicted)?;
        match members.remove("parameters").unwrap_or_default() {
            Value::Object(parameters) => {
                for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_null()) {
                    request.parameter(&name, value)?;
                }
            }
            Value::Null => {}
            _ => return Err(Problem::wrong("parameters", "an object")),
        }
        request.check().map_err(predicted)
    }

    fn parameter(&mut self, name: &str, value: Value) -> Result<(), Problem> {
        let place = format!("parameters.{}", tollgate_wire::cut(name, tollgate_wire::NAME));
        match name {
            "sampleCount" => {
                let wanted = "a whole number, 1 or more";
                let n = count(&place, &value, wanted)?;
                self.n = if n == 0 { return Err(Problem::wrong(&place, wanted)) } else { Some(n) };
                Ok(())
            }
            "aspectRatio" => self.take("aspect_ratio", value).map_err(predicted),
            "sampleImageSize" | "imageSize" => self.take("resolution", value).map_err(predicted),
            "negativePrompt" => self.take("negative_prompt", value),
            "seed" => self.take("seed", value),
            "outputOptions" => self.output(value),
            name if ITS_OWN.contains(&name) && tree::texts(&value) <= 64 && !value.is_object() && !value.is_array() => {
                self.imagen.insert(name.to_owned(), value);
                Ok(())
            }
            _ => Err(Problem::unsupported(&place, format!("`{place}` is not supported here."))),
        }
    }

    fn output(&mut self, value: Value) -> Result<(), Problem> {
        let Value::Object(options) = value else {
            return Err(Problem::wrong("parameters.outputOptions", "an object"));
        };
        for (name, value) in options.into_iter().filter(|(_, value)| !value.is_null()) {
            match (name.as_str(), value.as_str()) {
                ("mimeType", Some("image/png")) => self.take("output_format", "png".into())?,
                ("mimeType", Some("image/jpeg")) => self.take("output_format", "jpeg".into())?,
                ("mimeType", _) => {
                    let place = "parameters.outputOptions.mimeType";
                    return Err(Problem::wrong(place, "`image/png` or `image/jpeg`"));
                }
                ("compressionQuality", _) => self.take("output_compression", value)?,
                _ => {
                    let place = format!("parameters.outputOptions.{}", tollgate_wire::cut(&name, tollgate_wire::NAME));
                    return Err(Problem::unsupported(&place, format!("`{place}` is not supported here.")));
                }
            }
        }
        Ok(())
    }
}

/// The one prompt.
fn prompt_of(instances: Value) -> Result<Value, Problem> {
    let missing = || Problem::missing("instances[0].prompt");
    let Value::Array(mut instances) = instances else { return Err(missing()) };
    if instances.len() > 1 {
        return Err(Problem::wrong("instances", "one object with a `prompt`"));
    }
    let Some(Value::Object(mut instance)) = instances.pop() else { return Err(missing()) };
    let prompt = instance.remove("prompt").ok_or_else(missing)?;
    match instance.keys().next() {
        None => Ok(prompt),
        Some(other) => {
            let place = format!("instances[0].{}", tollgate_wire::cut(other, tollgate_wire::NAME));
            Err(Problem::unsupported(
                &place,
                format!("`{place}` is not supported here: pictures are made of a prompt."),
            ))
        }
    }
}

/// A field in the words of Imagen's callers.
pub fn predicted_name(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

fn predicted(problem: Problem) -> Problem {
    match problem.param.as_deref().and_then(predicted_name) {
        Some(theirs) => problem.about(theirs),
        None => problem,
    }
}

/// What of Imagen's own parameters a request has, for a provider that knows them.
pub fn imagen_parameters(asked: &ImageRequest) -> Map<String, Value> {
    let mut all = asked.imagen.clone();
    for (ours, theirs) in [("negative_prompt", "negativePrompt"), ("seed", "seed")] {
        if let Some(value) = asked.others.get(ours) {
            all.insert(theirs.to_owned(), value.clone());
        }
    }
    let mime = match asked.others.get("output_format").and_then(Value::as_str) {
        Some("png") => Some("image/png"),
        Some("jpeg") => Some("image/jpeg"),
        _ => None,
    };
    let quality = asked.others.get("output_compression").filter(|value| value.is_number());
    if mime.is_some() || quality.is_some() {
        let mut options = Map::new();
        options.extend(mime.map(|mime| ("mimeType".to_owned(), Value::from(mime))));
        options.extend(quality.map(|quality| ("compressionQuality".to_owned(), quality.clone())));
        all.insert("outputOptions".to_owned(), Value::Object(options));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> Result<ImageRequest, Problem> {
        ImageRequest::from_predict("m", body.to_string().as_bytes())
    }

    #[test]
    fn a_request_says_the_same_in_other_words() {
        let body = json!({ "instances": [{ "prompt": "a cat" }], "parameters": {
            "sampleCount": 2, "aspectRatio": "16:9", "sampleImageSize": "2K", "personGeneration": "allow_adult",
            "seed": 7, "outputOptions": { "mimeType": "image/jpeg", "compressionQuality": 80 }, "language": null,
        } });
        let asked = read(&body).unwrap();
        assert_eq!((asked.model.as_str(), asked.prompt.as_str(), asked.n), ("m", "a cat", Some(2)));
        assert_eq!((asked.aspect_ratio.as_deref(), asked.resolution.as_deref()), (Some("16:9"), Some("2K")));
        assert_eq!(asked.response_format, Some(PictureFormat::Base64));
        assert_eq!(
            Value::Object(imagen_parameters(&asked)),
            json!({ "personGeneration": "allow_adult", "seed": 7,
                "outputOptions": { "mimeType": "image/jpeg", "compressionQuality": 80 } })
        );
        assert_eq!(read(&json!({ "instances": [{ "prompt": "a cat" }] })).unwrap().n, None);
    }

    #[test]
    fn what_is_wrong_is_named_in_its_own_words() {
        let with = |parameters: Value| json!({ "instances": [{ "prompt": "a cat" }], "parameters": parameters });
        for (body, param) in [
            (json!({}), "instances[0].prompt"),
            (json!({ "instances": [] }), "instances[0].prompt"),
            (json!({ "instances": [{}] }), "instances[0].prompt"),
            (json!({ "instances": [{ "prompt": " " }] }), "instances[0].prompt"),
            (json!({ "instances": [{ "prompt": 7 }] }), "instances[0].prompt"),
            (json!({ "instances": [{ "prompt": "a" }, { "prompt": "b" }] }), "instances"),
            (json!({ "instances": [{ "prompt": "a", "image": {} }] }), "instances[0].image"),
            (json!({ "instances": [{ "prompt": "a" }], "model": "x" }), "model"),
            (with(json!(7)), "parameters"),
            (with(json!({ "sampleCount": 0 })), "parameters.sampleCount"),
            (with(json!({ "sampleCount": "many" })), "parameters.sampleCount"),
            (with(json!({ "aspectRatio": 7 })), "parameters.aspectRatio"),
            (with(json!({ "storageUri": "gs://x" })), "parameters.storageUri"),
            (with(json!({ "outputOptions": { "mimeType": "image/gif" } })), "parameters.outputOptions.mimeType"),
            (with(json!({ "personGeneration": { "a": 1 } })), "parameters.personGeneration"),
        ] {
            let problem = read(&body).unwrap_err();
            assert_eq!(problem.param.as_deref(), Some(param), "{body}");
        }
    }
}
