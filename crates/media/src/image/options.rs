//! What a request says beside the fields that every model has: options that cost more at a provider
//! need a price, and nothing says a size, a number or a picture in words of its own, because
//! whoever reads those words would make something else than what is priced.

use super::plan::ImageRules;
use super::request::ImageRequest;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::LazyLock;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

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
    "steps",
    "num_inference_steps",
    "inference_steps",
    "sample_steps",
    "upscale",
    "upscale_factor",
    "enable_hr",
    "hd",
    "service_tier",
];

/// Values of these that do not, and those of the ones whose usual value is a word.
const OFF: &[&str] = &["false", "disabled"];
const USUAL_FIDELITY: &[&str] = &["low"];
const USUAL_TIERS: &[&str] = &["auto", "default", "standard", "flex"];

/// Formats of a picture that cost more: drawings, and pictures that move.
const COSTLY_FORMATS: &[&str] = &["svg", "gif"];

/// Our own fields. In another spelling they are read by whoever does not mind the letters' case,
/// and in a form by whoever reads brackets.
const OWN: &[&str] = &[
    "model",
    "prompt",
    "n",
    "size",
    "aspect_ratio",
    "resolution",
    "quality",
    "response_format",
    "stream",
    "partial_images",
    "image",
    "images",
    "mask",
];

/// Where pictures belong.
const PICTURE: &str = "`image` of /v1/images/edits";

/// How providers spell the number of pictures, their size and where pictures come from, each with
/// what is written here instead. Case and `_` do not matter.
const FOREIGN: &[(&str, &[&str])] = &[
    (
        "`n`",
        &[
            "num_images",
            "num_images_per_prompt",
            "number_of_images",
            "images_number",
            "image_num",
            "image_count",
            "images_count",
            "n_images",
            "num_outputs",
            "num_output",
            "num_samples",
            "number_of_samples",
            "number_results",
            "sample_count",
            "samples",
            "batch_size",
            "batch_count",
            "n_iter",
            "max_images",
            "candidate_count",
            "quantity",
        ],
    ),
    (
        "`size`",
        &[
            "width",
            "height",
            "image_width",
            "image_height",
            "output_width",
            "output_height",
            "image_size",
            "output_size",
            "sample_image_size",
            "image_resolution",
            "output_resolution",
            "image_dimensions",
            "dimensions",
            "megapixels",
            "output_megapixels",
            "image_aspect_ratio",
            "ratio",
        ],
    ),
    ("`quality`", &["image_quality", "output_quality"]),
    ("`model`", &["models", "model_id", "model_name", "engine"]),
    ("`prompt`", &["prompts"]),
    (
        PICTURE,
        &[
            "image_url",
            "image_urls",
            "image_list",
            "image_input",
            "image_inputs",
            "image_base64",
            "image_prompt",
            "input_image",
            "input_images",
            "input_image_url",
            "input_image_urls",
            "init_image",
            "init_images",
            "base_image_url",
            "source_image",
            "reference_image",
            "reference_images",
            "reference_image_url",
            "reference_image_urls",
            "ref_image",
            "ref_images",
            "control_image",
            "subject_reference",
        ],
    ),
    ("`mask` of /v1/images/edits", &["mask_url", "mask_image", "mask_image_url", "image_mask", "input_mask"]),
    (
        "its members beside `prompt`",
        &[
            "input",
            "inputs",
            "options",
            "params",
            "parameters",
            "extra",
            "extra_args",
            "extra_body",
            "extra_fields",
            "extra_options",
            "extra_params",
            "extra_parameters",
            "additional_params",
            "config",
            "generation_config",
            "image_config",
            "image_generation_config",
            "text_to_image_params",
            "provider_options",
            "sequential_image_generation_options",
        ],
    ),
];

/// Texts for people, and members in which a share, a place or a link means something else.
const HARMLESS: &[&str] = &["user", "safety_identifier", "negative_prompt", "color_palette", "bbox_list", "markup"];

/// What is known of a name.
#[derive(Clone, Copy)]
enum Known {
    Costly,
    /// What is written instead.
    Instead(&'static str),
}

/// By the folded name.
static NAMES: LazyLock<HashMap<String, Known>> = LazyLock::new(|| {
    let costly = COSTLY.iter().map(|name| (fold(name), Known::Costly));
    let foreign =
        FOREIGN.iter().flat_map(|(instead, names)| names.iter().map(move |name| (fold(name), Known::Instead(instead))));
    costly.chain(foreign).collect()
});

/// The most options of a request, those inside of others included.
const MOST: usize = 1_000;
/// The longest name of one.
const LONGEST_NAME: usize = 128;
/// The longest text that is read as JSON.
const LONGEST_TEXT: usize = 16 << 10;

/// What costs more has a price, and what a price goes by is said in its own field; or it is refused
/// by its name. Gives the options that cost more and have a tier.
pub(super) fn check(asked: &ImageRequest, rules: &ImageRules) -> Result<Vec<String>, Problem> {
    let mut look = Look { rules, left: MOST, charged_extra: Vec::new() };
    look.members(&asked.others, "")?;
    Ok(look.charged_extra)
}

/// A look at all options. What it takes is bounded, because nobody has paid for it yet.
struct Look<'r> {
    rules: &'r ImageRules,
    /// Options that there may still be.
    left: usize,
    charged_extra: Vec<String>,
}

impl Look<'_> {
    /// The members of an object and, at any depth, of those in them.
    fn members(&mut self, object: &Map<String, Value>, within: &str) -> Result<(), Problem> {
        for (name, value) in object {
            if name.len() > LONGEST_NAME {
                return Err(unknown(name, &format!("its name is longer than {LONGEST_NAME} bytes")));
            }
            let place = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
            self.count(&place)?;
            // A form spells what lies inside in brackets: `tools[0][type]`.
            let mut parts = name.split(['.', '[', ']']).filter(|part| !part.is_empty());
            // What is said of the outermost holds for all of it.
            let top = place.split(['.', '[']).next().unwrap_or_default();
            let meant = HARMLESS.contains(&name.as_str()) || self.rules.one_price.iter().any(|own| own == top);
            if meant && own(top).is_none() {
                continue;
            }
            if fold(name).is_empty() {
                return Err(unknown(&place, "it has no name"));
            }
            parts.try_for_each(|part| {
                let costly = costly(part, value);
                let priced = costly && self.rules.prices(&place, value);
                if priced {
                    self.charged_extra.push(place.clone());
                }
                member(&place, part, costly && !priced, self.rules)
            })?;
            self.inside(value, &place)?;
        }
        Ok(())
    }

    fn count(&mut self, place: &str) -> Result<(), Problem> {
        let many = || unknown(place, &format!("there are more than {MOST} options before it"));
        self.left = self.left.checked_sub(1).ok_or_else(many)?;
        Ok(())
    }

    fn inside(&mut self, value: &Value, place: &str) -> Result<(), Problem> {
        match value {
            Value::Object(object) => self.members(object, place),
            Value::Array(list) => list.iter().try_for_each(|one| {
                self.count(place)?;
                self.inside(one, place)
            }),
            // An object may be written as a text, as it is in forms.
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if text.len() > LONGEST_TEXT {
                    let most = LONGEST_TEXT >> 10;
                    return Err(unknown(place, &format!("a text that begins as JSON has at most {most} KiB")));
                }
                match serde_json::from_str(text) {
                    Ok(Value::String(_)) | Err(_) => Ok(()),
                    Ok(value) => self.inside(&value, place),
                }
            }
            _ => Ok(()),
        }
    }
}

fn member(place: &str, name: &str, costs: bool, rules: &ImageRules) -> Result<(), Problem> {
    if costs {
        let text = format!("`{place}` is charged extra by the provider and has no price for this model.");
        return Err(Problem::new(Code::UnsupportedValue, place, text));
    }
    if let Some(own) = own(name) {
        return Err(unknown(place, &format!("write `{own}`")));
    }
    match foreign(name) {
        Some(instead) if !rules.tiers.iter().any(|(own, _)| own == place) => {
            Err(unknown(place, &format!("write {instead}")))
        }
        _ => Ok(()),
    }
}

/// Whether a value of this option costs more at a provider.
fn costly(name: &str, value: &Value) -> bool {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Bool(false) => "false",
        _ => "",
    };
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text.trim()));
    match fold(name).as_str() {
        "outputformat" => is(COSTLY_FORMATS),
        "inputfidelity" => !is(USUAL_FIDELITY),
        "servicetier" => !is(USUAL_TIERS),
        folded => matches!(NAMES.get(folded), Some(Known::Costly)) && !is(OFF),
    }
}

/// The field of ours that a name means.
fn own(name: &str) -> Option<&'static str> {
    let folded = fold(name);
    OWN.iter().copied().find(|own| own.bytes().filter(|byte| *byte != b'_').eq(folded.bytes()))
}

/// What is written instead of a provider's own name; several are often numbered.
fn foreign(name: &str) -> Option<&'static str> {
    let folded = fold(name);
    let plain = folded.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let known = NAMES.get(&folded).or_else(|| NAMES.get(plain));
    match known {
        Some(Known::Instead(instead)) => Some(instead),
        _ if plain == "image" => Some(PICTURE),
        _ => None,
    }
}

fn unknown(place: &str, instead: &str) -> Problem {
    let shown = tollgate_wire::cut(place, tollgate_wire::NAME);
    Problem::new(Code::UnknownParameter, &shown, format!("`{shown}` is not taken for pictures: {instead}."))
}

/// A name as it is read by whoever is not strict: some take `ſ` for an `s`, and the sign of Kelvin
/// for a `k`.
fn fold(name: &str) -> String {
    let lower = name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    lower.filter(|letter| letter.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{plan, rules};
    use super::*;
    use serde_json::json;

    #[test]
    fn what_costs_more_is_refused_by_its_name() {
        for (asked, edit, field) in [
            (json!({"prompt_extend": true}), false, "prompt_extend"),
            (json!({"output_format": "svg"}), false, "output_format"),
            (json!({"output_format": "SVG"}), false, "output_format"),
            (json!({"output_format": "gif"}), false, "output_format"),
            (json!({"outputFormat": "gif"}), false, "outputFormat"),
            (json!({"tools": [{"type": "web_search"}]}), false, "tools"),
            (json!({"tools[0][type]": "web_search"}), true, "tools[0][type]"),
            (json!({"svg[model]": "x"}), true, "svg[model]"),
            (json!({"input_fidelity": "high"}), true, "input_fidelity"),
            (json!({"metadata": {"promptExtend": true}}), false, "metadata.promptExtend"),
            (json!({"steps": 50}), false, "steps"),
            (json!({"service_tier": "priority"}), false, "service_tier"),
        ] {
            let problem = plan(asked.clone(), edit).expect_err("refused");
            assert_eq!((problem.param.as_deref(), problem.code), (Some(field), Code::UnsupportedValue), "{asked}");
        }
        let usual = json!({"prompt_extend": false, "sequential_image_generation": "Disabled", "input_fidelity": "low"});
        assert!(plan(usual, false).is_ok());
    }

    /// Whoever reads them would make more, larger or other pictures than are priced.
    #[test]
    fn sizes_numbers_and_pictures_in_other_words_are_refused_by_their_name() {
        for (asked, edit, field, instead) in [
            (json!({"width": 4096}), false, "width", "`size`"),
            (json!({"height": 4096}), false, "height", "`size`"),
            (json!({"image_size": "4096x4096"}), false, "image_size", "`size`"),
            (json!({"imageSize": "4K"}), false, "imageSize", "`size`"),
            (json!({"aspectRatio": "16:9"}), false, "aspectRatio", "`aspect_ratio`"),
            (json!({"num_images": 4}), false, "num_images", "`n`"),
            (json!({"numberOfImages": 4}), false, "numberOfImages", "`n`"),
            (json!({"batch_size": 4}), false, "batch_size", "`n`"),
            (json!({"max_images": 15}), false, "max_images", "`n`"),
            (json!({"N": 4}), false, "N", "`n`"),
            (json!({"models": ["dear"]}), false, "models", "`model`"),
            (json!({"Size": "4096x4096"}), false, "Size", "`size`"),
            (json!({"ſize": "4096x4096"}), false, "ſize", "`size`"),
            (json!({"QUALITY": "max"}), false, "QUALITY", "`quality`"),
            (json!({"responseFormat": "url"}), false, "responseFormat", "`response_format`"),
            (json!({"n[0]": "4"}), true, "n[0]", "`n`"),
            (json!({"size[]": "4096x4096"}), true, "size[]", "`size`"),
            (json!({"[n]": "4"}), true, "[n]", "`n`"),
            (json!({"image[]": "https://a.example/2.png"}), true, "image[]", "`image`"),
            (json!({"image[0][image_url]": "https://a.example/2.png"}), true, "image[0][image_url]", "`image`"),
            (json!({"image_url": "https://a.example/2.png"}), false, "image_url", "`image` of"),
            (json!({"image2": "https://a.example/2.png"}), true, "image2", "`image` of"),
            (json!({"input_image_3": "https://a.example/2.png"}), true, "input_image_3", "`image` of"),
            (json!({"mask_url": "https://a.example/2.png"}), false, "mask_url", "`mask` of"),
            (json!({"parameters": {"size": "4K"}}), false, "parameters", "beside `prompt`"),
            (json!({"extra_body": {"a": 1}}), false, "extra_body", "beside `prompt`"),
            (json!({"extra_body[model]": "dear"}), true, "extra_body[model]", "beside `prompt`"),
            (json!({"imageConfig": {"imageSize": "4K"}}), false, "imageConfig", "beside `prompt`"),
            (
                json!({"sequential_image_generation_options": {"max_images": 9}}),
                false,
                "sequential_image_generation_options",
                "beside `prompt`",
            ),
            (json!({"metadata": {"size": "4K"}}), false, "metadata.size", "`size`"),
            (json!({"metadata": [{"deep": {"n": 9}}]}), false, "metadata.deep.n", "`n`"),
            (json!({"metadata": "{\"n\": 9}"}), false, "metadata.n", "`n`"),
            (json!({"[]": 1}), true, "[]", "no name"),
        ] {
            let problem = plan(asked.clone(), edit).expect_err("refused");
            assert_eq!((problem.param.as_deref(), problem.code), (Some(field), Code::UnknownParameter), "{asked}");
            assert!(problem.message.contains(instead), "{}", problem.message);
        }
        let harmless = json!({
            "user": "{\"n\": 1}", "seed": 7, "background": "opaque", "metadata": {"team": "a"},
            "color_palette": [{"hex": "#fff", "ratio": "50%"}], "negative_prompt": "[size]",
        });
        assert!(plan(harmless, false).is_ok());
    }

    /// Nobody has paid for the look: what it takes, and what is said of it, is bounded.
    #[test]
    fn many_options_long_names_and_long_texts_are_refused_at_once() {
        let many = |count: usize| (0..count).map(|at| (format!("k{at}"), json!(1))).collect::<Map<_, _>>();
        let long = "z".repeat(2_000_000);
        for (asked, why) in [
            (json!({"metadata": many(1_000)}), "more than 1000 options"),
            (json!({"metadata": vec![1; 1_000]}), "more than 1000 options"),
            (json!({"metadata": json!(vec![1; 2_000]).to_string()}), "more than 1000 options"),
            (json!({"metadata": {long.clone(): many(9)}}), "longer than 128 bytes"),
            (json!({long: 1}), "longer than 128 bytes"),
            (json!({"metadata": format!("[{}0]", "0,".repeat(100_000))}), "at most 16 KiB"),
        ] {
            let problem = plan(asked, false).expect_err("refused");
            assert!(problem.message.contains(why) && problem.message.len() < 500, "{}", problem.message);
            assert!(problem.param.is_some_and(|param| param.len() <= 256));
        }
        assert!(plan(json!({"metadata": many(900)}), false).is_ok());
    }

    #[test]
    fn what_has_a_price_or_costs_the_same_on_purpose_is_taken() {
        let tiers = [("steps", "50"), ("output_format", "svg"), ("width", "2048")];
        let rules = ImageRules {
            one_price: vec!["extra_body".to_owned(), "size".to_owned()],
            tiers: tiers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..rules()
        };
        let plan = |more: Value| {
            let mut body = json!({"model": "m", "prompt": "p"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            super::super::ImagePlan::new(ImageRequest::from_json(body.to_string().as_bytes(), false)?, &rules)
        };
        for (asked, name, value) in [
            (json!({"steps": 50}), "steps", "50"),
            (json!({"output_format": "SVG"}), "output_format", "svg"),
            (json!({"width": 2048}), "width", "2048"),
            (json!({"extra_body": {"n": 4}, "seed": 1}), "seed", "1"),
        ] {
            let plan = plan(asked.clone()).unwrap_or_else(|problem| panic!("{asked}: {problem:?}"));
            assert_eq!(plan.attribute(name).as_deref(), Some(value), "in the catalog's spelling");
        }
        for asked in
            [json!({"steps": 51}), json!({"steps": 50.5}), json!({"output_format": "gif"}), json!({"size[]": 1})]
        {
            assert!(plan(asked.clone()).is_err(), "{asked} has no price");
        }
    }
}
