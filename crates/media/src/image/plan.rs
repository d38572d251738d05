//! A request held to what its model sells: what is then asked of a provider is what is priced.

use super::request::{ImageRequest, PictureFormat};
use super::size::Shape;
use super::{options, predict};
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
    /// Parameters that cost the same on purpose, whatever is said there.
    pub one_price: Vec<String>,
    /// Parameters that tiers of the price go by, each with a value that has one.
    pub tiers: Vec<(String, String)>,
}

impl ImageRules {
    /// Whether a tier goes by this value of a parameter.
    pub(super) fn prices(&self, name: &str, value: &Value) -> bool {
        let Some(text) = as_text(value) else { return false };
        self.tiers.iter().any(|(own, priced)| own == name && priced.eq_ignore_ascii_case(text.trim()))
    }
}

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub struct ImagePlan {
    pub asked: ImageRequest,
    pub n: u64,
    pub shape: Option<Shape>,
    pub quality: Option<String>,
    pub format: PictureFormat,
    pub partials: u64,
    /// Options that cost more at the provider: the tier that is taken must go by each.
    pub charged_extra: Vec<String>,
}

/// Facts of every request that a price can go by; besides, it can go by parameters that providers
/// know and we do not.
pub const IMAGE_FACTS: &[&str] = &["size", "resolution", "quality", "n", "stream", "edit", "images"];

impl ImagePlan {
    pub fn new(mut asked: ImageRequest, rules: &ImageRules) -> Result<ImagePlan, Problem> {
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
        let charged_extra = options::check(&asked, rules)?;
        as_priced(&mut asked, rules);
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
        Ok(ImagePlan { asked, n, shape, quality, format, partials, charged_extra })
    }

    /// The effective value of a parameter, which tiers go by.
    pub fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let plain = path.strip_prefix("metadata.").unwrap_or(path);
        match plain {
            "size" => Some(Cow::Borrowed(self.shape.as_ref()?.text.as_str())),
            "resolution" => Some(Cow::Borrowed(self.shape.as_ref()?.class?.name())),
            "quality" => Some(Cow::Borrowed(self.quality.as_deref()?)),
            "n" => Some(Cow::Owned(self.n.to_string())),
            "stream" => Some(Cow::Borrowed(yes_or_no(self.asked.stream))),
            "edit" => Some(Cow::Borrowed(yes_or_no(self.asked.edit))),
            "images" => Some(Cow::Owned(self.asked.images.len().to_string())),
            other => as_text(self.asked.others.get(other)?),
        }
    }
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
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

/// Words that have a price are asked for in the catalog's spelling.
fn as_priced(asked: &mut ImageRequest, rules: &ImageRules) {
    for (name, priced) in &rules.tiers {
        if let Some(Value::String(text)) = asked.others.get_mut(name)
            && text.trim().eq_ignore_ascii_case(priced)
        {
            text.clone_from(priced);
        }
    }
}

/// A value as prices know it.
fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
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
    if rules.sizes.is_empty() {
        return Ok(shape);
    }
    let Some(shape) = shape else { return Ok(None) };
    if rules.sizes.iter().any(|size| size.eq_ignore_ascii_case(&shape.text)) {
        return of_its_class(shape, asked, rules).map(Some);
    }
    let classed = asked.resolution.is_some() || shape.text.ends_with('K');
    if let Some(sold) = sold_as(&shape, classed, rules) {
        return Ok(Some(sold));
    }
    Err(not_sold(asked, rules))
}

/// The field that says a size which is not sold.
fn not_sold(asked: &ImageRequest, rules: &ImageRules) -> Problem {
    let sizes = rules.sizes.join(", ");
    let fields = [
        ("size", asked.size.as_deref()),
        ("aspect_ratio", asked.aspect_ratio.as_deref()),
        ("resolution", asked.resolution.as_deref()),
    ];
    let named = |text: &str| !text.trim().eq_ignore_ascii_case("auto");
    let said = fields.into_iter().find(|(_, text)| text.is_some_and(named)).map(|(field, _)| field);
    match said.filter(|field| *field != "size") {
        Some(field) => {
            let text = format!("`{field}` means none of the sizes of this model, or several of them: {sizes}.");
            Problem::new(Code::UnsupportedValue, field, text)
        }
        None => {
            let text = format!("`size` of this model is one of {sizes}.");
            Problem::new(Code::UnsupportedValue, "size", text)
        }
    }
}

/// A ratio on sale is sold as large as usual, or as large as the price knows.
fn of_its_class(shape: Shape, asked: &ImageRequest, rules: &ImageRules) -> Result<Shape, Problem> {
    let usual = rules.default_size.as_deref().and_then(Shape::of).and_then(|usual| usual.class);
    let named = asked.resolution.is_some() && shape.pixels.is_none() && shape.text.contains(':');
    let known = |name: &String| name == "resolution";
    let priced = rules.one_price.iter().any(known) || rules.tiers.iter().any(|(name, _)| known(name));
    if named && !priced && shape.class != usual {
        let text = "`resolution` is not on sale beside a ratio for this model; leave it out.";
        return Err(Problem::new(Code::UnsupportedValue, "resolution", text));
    }
    Ok(shape)
}

/// The size on sale that a ratio means: the usual one if it has that ratio, else the only one that
/// does. `classed`: the caller says how large it shall be, too.
fn sold_as(shape: &Shape, classed: bool, rules: &ImageRules) -> Option<Shape> {
    let ratio = shape.ratio.filter(|_| shape.pixels.is_none())?;
    let fits =
        |size: &Shape| size.pixels.is_some() && size.ratio == Some(ratio) && (!classed || size.class == shape.class);
    let usual = rules.default_size.as_deref().and_then(Shape::of).filter(fits);
    let mut sold = rules.sizes.iter().filter_map(|size| Shape::of(size)).filter(fits);
    usual.filter(|usual| rules.sizes.iter().any(|size| size.eq_ignore_ascii_case(&usual.text))).or_else(|| {
        let only = sold.next();
        only.filter(|only| sold.all(|other| other == *only))
    })
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
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub fn rules() -> ImageRules {
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
            one_price: Vec::new(),
            tiers: Vec::new(),
        }
    }

    pub fn plan(more: Value, edit: bool) -> Result<ImagePlan, Problem> {
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
            (json!({"quality": "xhigh"}), false, "quality"),
            (json!({"mask": "data:,"}), true, "mask"),
            (json!({"image": ["data:,", "data:,", "data:,"]}), true, "image"),
        ] {
            assert_eq!(plan(asked.clone(), edit).expect_err("refused").param.as_deref(), Some(field), "{asked}");
        }
    }

    /// A price can go by what a picture is made of.
    #[test]
    fn edits_and_the_number_of_their_pictures_are_facts() {
        let facts = |plan: &ImagePlan| ["edit", "images"].map(|name| plan.attribute(name).map(Cow::into_owned));
        let said = |edit: &str, images: &str| [Some(edit.to_owned()), Some(images.to_owned())];
        assert_eq!(facts(&plan(json!({}), false).expect("a plan")), said("false", "0"));
        assert_eq!(facts(&plan(json!({}), true).expect("a plan")), said("true", "1"));
        let two = plan(json!({"image": ["data:,", "data:,"]}), true).expect("a plan");
        assert_eq!(facts(&two), said("true", "2"));
    }

    #[test]
    fn a_ratio_is_sold_as_the_size_that_has_it() {
        let sizes = ["1024x1024", "1536x1024", "1024x1536", "2048x2048", "2048x1152", "3840x2160"];
        let rules = ImageRules { sizes: sizes.map(str::to_owned).to_vec(), ..rules() };
        let size = |more: Value| -> Result<String, String> {
            let mut body = json!({"model": "m", "prompt": "p"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let asked = ImageRequest::from_json(body.to_string().as_bytes(), false).expect("a request");
            let plan = ImagePlan::new(asked, &rules).map_err(|problem| problem.param.unwrap_or_default())?;
            Ok(plan.attribute("size").expect("a size").into_owned())
        };
        for (asked, expected) in [
            (json!({"aspect_ratio": "1:1"}), Ok("1024x1024")),
            (json!({"size": "1:1"}), Ok("1024x1024")),
            (json!({"aspect_ratio": "2:2", "size": "auto"}), Ok("1024x1024")),
            (json!({"aspect_ratio": "1:1", "resolution": "2K"}), Ok("2048x2048")),
            (json!({"aspect_ratio": "1:1", "size": "2K"}), Ok("2048x2048")),
            (json!({"aspect_ratio": "3:2"}), Ok("1536x1024")),
            (json!({"aspect_ratio": "16:9", "resolution": "4K"}), Ok("3840x2160")),
            (json!({"aspect_ratio": "16:9"}), Err("aspect_ratio")),
            (json!({"aspect_ratio": "21:9"}), Err("aspect_ratio")),
            (json!({"size": "21:9"}), Err("size")),
            (json!({"aspect_ratio": "1:1", "resolution": "4K"}), Err("aspect_ratio")),
            (json!({"resolution": "2K"}), Err("resolution")),
            (json!({"size": "2K"}), Err("size")),
        ] {
            assert_eq!(size(asked.clone()), expected.map(str::to_owned).map_err(str::to_owned), "{asked}");
        }
    }

    /// A ratio that is on sale is no way to a larger picture at its price.
    #[test]
    fn a_ratio_on_sale_is_as_large_as_usual() {
        let ratios = ImageRules { sizes: vec!["1:1".to_owned(), "16:9".to_owned()], ..rules() };
        let tiered = ImageRules { tiers: vec![("resolution".to_owned(), "4K".to_owned())], ..ratios.clone() };
        for (rules, resolution, taken) in
            [(&ratios, "1K", true), (&ratios, "4K", false), (&tiered, "1K", true), (&tiered, "4K", true)]
        {
            let body = json!({"model": "m", "prompt": "p", "aspect_ratio": "16:9", "resolution": resolution});
            let asked = ImageRequest::from_json(body.to_string().as_bytes(), false).expect("a request");
            let refused = ImagePlan::new(asked, rules).err().and_then(|problem| problem.param);
            assert_eq!(refused.as_deref(), (!taken).then_some("resolution"), "{resolution}");
        }
    }
}
