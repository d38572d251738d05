//! A request held to what its model sells: what is then asked of a provider is what is priced.

use super::predict;
use super::request::{ImageRequest, PictureFormat};
use super::size::Shape;
use serde_json::Value;
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// What a model sells, as its catalog says.
#[derive(Clone, Debug)]
pub struct ImageRules {
    /// The most pictures of one call.
    pub most: u64,
    /// Asked for where the caller names none, or `auto`.
    pub default_size: Option<String>,
    /// Nothing: every size that is understood, and every quality.
    pub sizes: Vec<String>,
    pub default_quality: Option<String>,
    pub qualities: Vec<String>,
    /// How pictures are handed over where the caller does not say.
    pub format: PictureFormat,
    /// The provider hands over base64 and nothing else.
    pub base64_only: bool,
    /// The gateway keeps pictures, and hands over links to them.
    pub links: bool,
    /// Previews before the finished picture are passed on. They cost at the provider.
    pub partials: bool,
    /// Pictures that an edit may bring along; 0: there are no edits.
    pub sources: u64,
    pub masks: bool,
    /// Characters of a prompt.
    pub prompt: u64,
    /// Parameters that tiers of the price go by, and those that cost the same on purpose.
    pub priced: Vec<String>,
}

/// Parameters that cost more at a provider: without a price they are refused.
const COSTLY: &[&str] = &[
    "svg",
    "tools",
    "prompt_extend",
    "thinking_mode",
    "enable_sequential",
    "sequential_image_generation",
    "layer_decomposition",
    "frame_count",
    "input_fidelity",
];

/// Values of these that do not, and that of one whose usual value is a word.
const OFF: &[&str] = &["false", "disabled"];
const USUAL_FIDELITY: &[&str] = &["low"];

/// Formats of a picture that cost more: drawings, and pictures that move.
const COSTLY_FORMATS: &[&str] = &["svg", "gif"];

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub struct ImagePlan {
    pub asked: ImageRequest,
    pub n: u64,
    pub shape: Option<Shape>,
    pub quality: Option<String>,
    pub format: PictureFormat,
    pub partials: u64,
}

impl ImagePlan {
    pub fn new(asked: ImageRequest, rules: &ImageRules) -> Result<ImagePlan, Problem> {
        let usual = if asked.predicts { predict::USUAL.min(rules.most) } else { 1 };
        let n = asked.n.unwrap_or(usual);
        if n > rules.most {
            return Err(Problem::wrong("n", &format!("at most {} for this model", rules.most)));
        }
        let letters = asked.prompt.chars().count() as u64;
        if letters > rules.prompt {
            return Err(Problem::wrong("prompt", &format!("at most {} characters long for this model", rules.prompt)));
        }
        sources(&asked, rules)?;
        costly(&asked, rules)?;
        let shape = shape(&asked, rules)?;
        let quality = quality(&asked, rules)?;
        let format = asked.response_format.unwrap_or(rules.format);
        if format == PictureFormat::Url && rules.base64_only && (asked.stream || !rules.links) {
            let text = match rules.links {
                true => "The model's provider streams pictures as `b64_json` only; without `stream` there are links.",
                false => "The model's provider hands over pictures as `b64_json` only, and this gateway keeps none.",
            };
            return Err(Problem::new(Code::UnsupportedValue, "response_format", text));
        }
        let partials = asked.partial_images.unwrap_or(0);
        if partials > 0 && !(rules.partials && asked.stream) {
            let text = "Previews are not on sale for this model, or `stream` is not true.";
            return Err(Problem::new(Code::UnsupportedValue, "partial_images", text));
        }
        Ok(ImagePlan { asked, n, shape, quality, format, partials })
    }

    /// The effective value of a parameter, which tiers go by.
    pub fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let plain = path.strip_prefix("metadata.").unwrap_or(path);
        match plain {
            "size" => Some(Cow::Borrowed(self.shape.as_ref()?.text.as_str())),
            "resolution" => Some(Cow::Borrowed(self.shape.as_ref()?.class?.name())),
            "quality" => Some(Cow::Borrowed(self.quality.as_deref()?)),
            "n" => Some(Cow::Owned(self.n.to_string())),
            "stream" => Some(Cow::Borrowed(if self.asked.stream { "true" } else { "false" })),
            other => match self.asked.others.get(other)? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(self.asked.others.get(other)?.to_string())),
                _ => None,
            },
        }
    }
}

fn sources(asked: &ImageRequest, rules: &ImageRules) -> Result<(), Problem> {
    if asked.edit && rules.sources == 0 {
        return Err(Problem::new(
            Code::UnsupportedValue,
            "model",
            "This model does not edit images; send the request to /v1/images/generations.",
        ));
    }
    if asked.images.len() as u64 > rules.sources {
        return Err(Problem::wrong("image", &format!("at most {} images for this model", rules.sources)));
    }
    let markup = asked.others.contains_key("markup");
    if asked.mask.is_some() && markup {
        return Err(Problem::wrong("markup", "left out where there is a `mask`"));
    }
    if (asked.mask.is_some() || markup) && !(asked.edit && rules.masks) {
        let field = if markup { "markup" } else { "mask" };
        return Err(Problem::new(Code::UnsupportedValue, field, format!("This model does not accept `{field}`.")));
    }
    Ok(())
}

/// What costs more has a price, or is refused by its name.
fn costly(asked: &ImageRequest, rules: &ImageRules) -> Result<(), Problem> {
    let priced = |name: &str| rules.priced.iter().any(|own| own == name);
    let is = |value: &Value, words: &[&str]| {
        let text = if *value == Value::Bool(false) { Some("false") } else { value.as_str() };
        text.is_some_and(|text| words.iter().any(|word| word.eq_ignore_ascii_case(text)))
    };
    for (name, value) in &asked.others {
        // A form spells what lies inside in brackets: `tools[0][type]`.
        let member = name.split('[').next().unwrap_or(name);
        let usual = if member == "input_fidelity" { USUAL_FIDELITY } else { OFF };
        let costs = match member {
            "output_format" => is(value, COSTLY_FORMATS),
            _ => COSTLY.contains(&member) && !is(value, usual),
        };
        if costs && !priced(member) {
            let text = format!("`{name}` is charged extra by the provider and has no price for this model.");
            return Err(Problem::new(Code::UnsupportedValue, name, text));
        }
    }
    Ok(())
}

fn shape(asked: &ImageRequest, rules: &ImageRules) -> Result<Option<Shape>, Problem> {
    let read = Shape::read(asked.size.as_deref(), asked.aspect_ratio.as_deref(), asked.resolution.as_deref())?;
    let mut shape = match (read, &rules.default_size) {
        (None, Some(size)) => Shape::of(size),
        (Some(shape), Some(size)) if shape.is_auto() => Shape::of(size),
        (read, _) => read,
    };
    // A ratio alone says nothing of how large: that is as usual.
    if let (Some(shape), Some(size)) = (&mut shape, &rules.default_size)
        && shape.class.is_none()
        && !shape.is_auto()
    {
        shape.class = Shape::of(size).and_then(|usual| usual.class);
    }
    if let Some(shape) = &shape {
        let sold = |size: &String| size.eq_ignore_ascii_case(&shape.text);
        if !rules.sizes.is_empty() && !rules.sizes.iter().any(sold) {
            let text = format!("`size` of this model is one of {}.", rules.sizes.join(", "));
            return Err(Problem::new(Code::UnsupportedValue, "size", text));
        }
    }
    Ok(shape)
}

fn quality(asked: &ImageRequest, rules: &ImageRules) -> Result<Option<String>, Problem> {
    let auto = |quality: &str| quality.eq_ignore_ascii_case("auto");
    let named = asked.quality.clone().filter(|quality| !auto(quality) || rules.default_quality.is_none());
    let Some(quality) = named.or_else(|| rules.default_quality.clone()) else { return Ok(None) };
    // In the catalog's spelling, which its prices go by and its provider knows.
    let sold = rules.qualities.iter().find(|sold| sold.eq_ignore_ascii_case(&quality)).cloned();
    if sold.is_none() && !rules.qualities.is_empty() {
        let text = format!("`quality` of this model is one of {}.", rules.qualities.join(", "));
        return Err(Problem::new(Code::UnsupportedValue, "quality", text));
    }
    Ok(sold.or(Some(quality)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> ImageRules {
        ImageRules {
            most: 4,
            default_size: Some("1024x1024".to_owned()),
            sizes: Vec::new(),
            default_quality: Some("medium".to_owned()),
            qualities: vec!["low".to_owned(), "medium".to_owned()],
            format: PictureFormat::Base64,
            base64_only: true,
            links: false,
            partials: false,
            sources: 2,
            masks: false,
            prompt: 10,
            priced: Vec::new(),
        }
    }

    fn plan(more: Value, edit: bool) -> Result<ImagePlan, Problem> {
        let mut body = json!({"model": "m", "prompt": "p"});
        if edit {
            body["image"] = json!("https://a.example/1.png");
        }
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        ImagePlan::new(ImageRequest::from_json(body.to_string().as_bytes(), edit)?, &rules())
    }

    #[test]
    fn what_is_left_out_is_asked_for_and_priced_as_usual() {
        for (asked, size, class, quality) in [
            (json!({}), "1024x1024", "1K", "medium"),
            (json!({"size": "auto", "quality": "auto"}), "1024x1024", "1K", "medium"),
            (json!({"size": "2048*2048", "quality": "low"}), "2048x2048", "2K", "low"),
            (json!({"aspect_ratio": "16:9"}), "16:9", "1K", "medium"),
            (json!({"size": "4k"}), "4K", "4K", "medium"),
            (json!({"quality": "LOW"}), "1024x1024", "1K", "low"),
            (json!({"quality": "Auto"}), "1024x1024", "1K", "medium"),
        ] {
            let plan = plan(asked.clone(), false).expect("a plan");
            let chosen =
                ["size", "resolution", "quality"].map(|name| plan.attribute(name).expect("chosen").into_owned());
            assert_eq!(chosen, [size, class, quality], "{asked}");
        }
    }

    #[test]
    fn what_is_not_sold_is_refused_by_its_name() {
        for (asked, edit, field) in [
            (json!({"n": 5}), false, "n"),
            (json!({"prompt": "more than ten"}), false, "prompt"),
            (json!({"quality": "high"}), false, "quality"),
            (json!({"response_format": "url"}), false, "response_format"),
            (json!({"stream": true, "partial_images": 1}), false, "partial_images"),
            (json!({"prompt_extend": true}), false, "prompt_extend"),
            (json!({"output_format": "svg"}), false, "output_format"),
            (json!({"output_format": "SVG"}), false, "output_format"),
            (json!({"output_format": "gif"}), false, "output_format"),
            (json!({"tools": [{"type": "web_search"}]}), false, "tools"),
            (json!({"tools[0][type]": "web_search"}), true, "tools[0][type]"),
            (json!({"svg[model]": "x"}), true, "svg[model]"),
            (json!({"input_fidelity": "high"}), true, "input_fidelity"),
            (json!({"quality": "xhigh"}), false, "quality"),
            (json!({"mask": "data:,"}), true, "mask"),
            (json!({"image": ["data:,", "data:,", "data:,"]}), true, "image"),
        ] {
            assert_eq!(plan(asked.clone(), edit).expect_err("refused").param.as_deref(), Some(field), "{asked}");
        }
        let usual = json!({"prompt_extend": false, "sequential_image_generation": "Disabled", "input_fidelity": "low"});
        assert!(plan(usual, false).is_ok());
    }
}
