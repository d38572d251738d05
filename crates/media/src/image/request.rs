//! A request for pictures, from JSON or from the fields of a form. Errors name the field; what is
//! not known here is preserved for providers that may know it.

use crate::tree;
use serde_json::{Map, Value};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// How a picture is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    Url,
    Base64,
}

impl PictureFormat {
    pub const fn name(self) -> &'static str {
        match self {
            PictureFormat::Url => "url",
            PictureFormat::Base64 => "b64_json",
        }
    }

    pub fn named(name: &str) -> Option<PictureFormat> {
        match name {
            "url" => Some(PictureFormat::Url),
            "b64_json" => Some(PictureFormat::Base64),
            _ => None,
        }
    }
}

/// A picture that a request brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PictureSource {
    /// An address, or a data link.
    Link(String),
    /// A file of the form, by its place among them.
    File(usize),
}

/// The longest prompt that anybody takes, in characters.
const LONGEST_PROMPT: usize = 32_000;
/// The most pictures that a request brings along.
const MOST_SOURCES: usize = 16;
/// The most members that are preserved for providers.
const MOST_OTHERS: usize = 64;
/// The longest plain value: no size, quality or format is longer.
const LONGEST_WORD: usize = 64;

/// What a caller asks for.
#[derive(Clone, Debug, Default)]
pub struct ImageRequest {
    pub model: String,
    pub prompt: String,
    pub n: Option<u64>,
    pub size: Option<String>,
    pub aspect_ratio: Option<String>,
    pub resolution: Option<String>,
    pub quality: Option<String>,
    pub response_format: Option<PictureFormat>,
    pub stream: bool,
    pub partial_images: Option<u64>,
    /// Pictures to be changed; none to make a new one.
    pub images: Vec<PictureSource>,
    pub mask: Option<PictureSource>,
    /// Members that only some providers know.
    pub others: Map<String, Value>,
    /// It changes pictures.
    pub edit: bool,
    /// It is asked in the form of Imagen, and is answered so.
    pub predicts: bool,
    /// Parameters that only Imagen knows.
    pub imagen: Map<String, Value>,
}

impl ImageRequest {
    /// From a JSON body.
    pub fn from_json(body: &[u8], edit: bool) -> Result<ImageRequest, Problem> {
        ImageRequest::from_members(tree::members(body, usize::MAX)?, edit)
    }

    /// From members, wherever they stood.
    pub fn from_members(members: Map<String, Value>, edit: bool) -> Result<ImageRequest, Problem> {
        let mut request = ImageRequest { edit, ..ImageRequest::default() };
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            request.take(&name, value)?;
        }
        request.check()
    }

    /// Bytes of texts that are held in memory until it is answered, beside those of its pictures.
    pub fn kept_texts(&self) -> usize {
        self.prompt.len() + self.others.iter().map(|(name, value)| name.len() + tree::texts(value)).sum::<usize>()
    }

    /// What every request must have.
    pub fn check(self) -> Result<ImageRequest, Problem> {
        if self.model.is_empty() {
            return Err(Problem::missing("model"));
        }
        if self.prompt.trim().is_empty() {
            return Err(Problem::missing("prompt"));
        }
        if self.edit && self.images.is_empty() {
            return Err(Problem::missing("image"));
        }
        Ok(self)
    }

    /// One member. Forms have texts only, so numbers and switches may be written as such.
    pub fn take(&mut self, name: &str, value: Value) -> Result<(), Problem> {
        match name {
            "model" => self.model = text(name, value, 200)?,
            "prompt" => {
                self.prompt = text(name, value, usize::MAX)?;
                if self.prompt.chars().count() > LONGEST_PROMPT {
                    return Err(Problem::wrong(name, &format!("at most {LONGEST_PROMPT} characters long")));
                }
            }
            "n" => self.n = Some(count(name, &value, "a whole number, 1 or more").and_then(|n| at_least_one(name, n))?),
            "size" => self.size = Some(text(name, value, LONGEST_WORD)?),
            "aspect_ratio" => self.aspect_ratio = Some(text(name, value, LONGEST_WORD)?),
            "resolution" => self.resolution = Some(text(name, value, LONGEST_WORD)?),
            "quality" => self.quality = Some(text(name, value, LONGEST_WORD)?),
            "response_format" => {
                let format = text(name, value, LONGEST_WORD)?;
                let known = PictureFormat::named(&format);
                self.response_format = Some(known.ok_or_else(|| Problem::wrong(name, "`url` or `b64_json`"))?);
            }
            "stream" => self.stream = switch(name, &value)?,
            "partial_images" => {
                let partials = count(name, &value, "a whole number from 0 to 3")?;
                if partials > 3 {
                    return Err(Problem::wrong(name, "a whole number from 0 to 3"));
                }
                self.partial_images = Some(partials);
            }
            "image" | "images" => self.take_sources(name, value)?,
            "mask" => self.mask = Some(source("mask", value)?),
            _ => {
                if self.others.len() >= MOST_OTHERS {
                    return Err(Problem::wrong(name, "left out: the request has too many fields"));
                }
                self.others.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn take_sources(&mut self, name: &str, value: Value) -> Result<(), Problem> {
        if !self.edit {
            let text = format!("`{name}` belongs to edits: send it to /v1/images/edits.");
            return Err(Problem::new(Code::UnsupportedValue, name, text));
        }
        match value {
            Value::Array(list) => {
                for (at, one) in list.into_iter().enumerate() {
                    let found = source(&format!("{name}[{at}]"), one)?;
                    self.add(found)?;
                }
                Ok(())
            }
            one => {
                let found = source(name, one)?;
                self.add(found)
            }
        }
    }

    /// One more picture that is to be changed.
    pub fn add(&mut self, source: PictureSource) -> Result<(), Problem> {
        if self.images.len() >= MOST_SOURCES {
            return Err(Problem::wrong("image", &format!("at most {MOST_SOURCES} images")));
        }
        self.images.push(source);
        Ok(())
    }
}

/// A picture by its link: as a text, or in the object that OpenAI has for it.
fn source(at: &str, value: Value) -> Result<PictureSource, Problem> {
    let link = match value {
        Value::String(link) => link,
        Value::Object(mut members) => {
            if members.contains_key("file_id") {
                let field = format!("{at}.file_id");
                let text = format!("`{field}` is not supported: send the image itself or its URL.");
                return Err(Problem::new(Code::UnsupportedValue, &field, text));
            }
            match members.remove("image_url") {
                Some(Value::String(link)) => link,
                Some(Value::Object(mut inner)) => match inner.remove("url") {
                    Some(Value::String(link)) => link,
                    _ => return Err(Problem::wrong(&format!("{at}.image_url"), "a URL")),
                },
                _ => return Err(Problem::wrong(&format!("{at}.image_url"), "a URL")),
            }
        }
        _ => return Err(Problem::wrong(at, "the URL of an image, or a data URL")),
    };
    let scheme = link.split(':').next().unwrap_or_default().to_ascii_lowercase();
    if !["http", "https", "data"].contains(&scheme.as_str()) {
        return Err(Problem::wrong(at, "an http(s) URL or a data URL"));
    }
    Ok(PictureSource::Link(link))
}

fn text(name: &str, value: Value, most: usize) -> Result<String, Problem> {
    match value {
        Value::String(text) if text.len() <= most => Ok(text),
        Value::String(_) => Err(Problem::wrong(name, &format!("at most {most} bytes long"))),
        _ => Err(Problem::wrong(name, "a string")),
    }
}

pub(super) fn count(name: &str, value: &Value, wanted: &str) -> Result<u64, Problem> {
    let number = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| Problem::wrong(name, wanted))
}

fn at_least_one(name: &str, n: u64) -> Result<u64, Problem> {
    if n == 0 { Err(Problem::wrong(name, "a whole number, 1 or more")) } else { Ok(n) }
}

fn switch(name: &str, value: &Value) -> Result<bool, Problem> {
    match value {
        Value::Bool(on) => Ok(*on),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        _ => Err(Problem::wrong(name, "true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value, edit: bool) -> Result<ImageRequest, Problem> {
        ImageRequest::from_json(body.to_string().as_bytes(), edit)
    }

    #[test]
    fn a_request_is_read_in_either_spelling() {
        let asked = read(
            &json!({"model": "m", "prompt": "a cat", "n": "2", "stream": "true", "size": "1024x1024", "user": "u", "mask": null}),
            false,
        )
        .expect("read");
        assert_eq!((asked.n, asked.stream, asked.others.len(), asked.mask), (Some(2), true, 1, None));
        let forms = [
            json!({"image": "https://a.example/1.png"}),
            json!({"image": ["https://a.example/1.png"]}),
            json!({"images": [{"image_url": "https://a.example/1.png"}]}),
            json!({"image": {"image_url": {"url": "https://a.example/1.png"}}}),
        ];
        for form in forms {
            let mut body = json!({"model": "m", "prompt": "p"});
            body.as_object_mut().expect("an object").extend(form.as_object().expect("an object").clone());
            let sources = read(&body, true).expect("read").images;
            assert_eq!(sources, [PictureSource::Link("https://a.example/1.png".to_owned())]);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |name: &str, value: Value| {
            let mut body = json!({"model": "m", "prompt": "p", "image": "data:image/png;base64,AA"});
            body[name] = value;
            body
        };
        for (body, field) in [
            (json!({"prompt": "p", "image": "data:,"}), "model"),
            (json!({"model": "m", "prompt": " ", "image": "data:,"}), "prompt"),
            (json!({"model": "m", "prompt": "p"}), "image"),
            (with("prompt", json!("x".repeat(32_001))), "prompt"),
            (with("n", json!(0)), "n"),
            (with("n", json!(-1)), "n"),
            (with("n", json!(1.5)), "n"),
            (with("response_format", json!("png")), "response_format"),
            (with("stream", json!("yes")), "stream"),
            (with("partial_images", json!(4)), "partial_images"),
            (with("image", json!("ftp://x/1.png")), "image"),
            (with("image", json!(7)), "image"),
            (with("images", json!([{"file_id": "f"}])), "images[0].file_id"),
            (with("images", json!([{"image_url": 7}])), "images[0].image_url"),
            (with("image", json!(vec!["data:,"; 17])), "image"),
            (with("mask", json!({"file_id": "f"})), "mask.file_id"),
        ] {
            let refused = read(&body, true).expect_err("refused");
            assert_eq!(refused.param.as_deref(), Some(field), "{body}");
        }
        assert_eq!(read(&with("n", json!(1)), false).expect_err("refused").param.as_deref(), Some("image"));
        assert_eq!(read(&json!([]), false).expect_err("refused").code, Code::InvalidJson);
    }
}
