//! OpenRouter's list of models: USD per token as texts. It has the price of the cheapest endpoint.

use super::ListedTier;
use super::json::PriceNode;
use super::litellm_tiers::{copy_tools, hours_between};
use super::source::{PriceSource, SourceModel, over, utc_hours, when};
use crate::{Face, Faces};

const FACES: [(&str, Face, i32); 8] = [
    ("prompt", Face::Input, 12),
    ("completion", Face::Output, 12),
    ("input_cache_read", Face::CacheRead, 12),
    ("input_cache_write", Face::CacheWrite, 12),
    ("audio", Face::AudioInput, 12),
    ("image_output", Face::ImageOutput, 12),
    ("request", Face::PerCall, 6),
    ("web_search", Face::WebSearch, 6),
];

pub(super) fn read(whole: &PriceNode) -> Result<PriceSource, String> {
    let data = whole.get("data").ok_or("it has no `data`")?;
    let mut source = PriceSource::default();
    for record in data.list() {
        let Some(name) = record.text("id") else { continue };
        let left = match record.get("pricing") {
            None => Err("has no price"),
            Some(_) if name.ends_with(":free") => Err("is a free variant"),
            Some(_) if name.ends_with("-latest") || name.starts_with("openrouter/") => Err("is an alias that moves"),
            Some(pricing) => Ok(pricing),
        };
        match left {
            Ok(pricing) => source.models.push(model(name, record, pricing)),
            Err(reason) => source.left_out.push((name.to_owned(), reason.to_owned())),
        }
    }
    Ok(source)
}

fn model(name: &str, record: &PriceNode, pricing: &PriceNode) -> SourceModel {
    let mut model = SourceModel::named(name);
    facts(&mut model, record);
    if pricing
        .map()
        .any(|(_, number)| matches!(number, PriceNode::Text(text) | PriceNode::Number(text) if text.starts_with('-')))
    {
        model.cannot("has a price that varies");
        return model;
    }
    for (field, face, power) in FACES {
        if let Some(number) =
            pricing.get(field).filter(|number| !is_zero(number) || matches!(face, Face::Input | Face::Output))
        {
            model.price(face, number, power);
        }
    }
    let thoughts = pricing.get("internal_reasoning").and_then(|number| number.digits()?.scaled(12));
    if let Some((price, _)) = thoughts.filter(|(price, _)| model.list.get(Face::Output).is_some_and(|own| *price > own))
    {
        model.list.set(Face::Output, Some(price));
        model.stops.push("thinks at a higher price than it answers: the higher one is taken".to_owned());
    }
    if pricing.get("image").is_some_and(|number| !is_zero(number)) {
        model.notes.push("a price for each picture that is read is not taken over".to_owned());
    }
    if pricing.get("discount").is_some_and(|number| !is_zero(number)) {
        model.stops.push("has a discount, which the prices may or may not contain".to_owned());
    }
    overrides(&mut model, pricing);
    model.check_tokens(true);
    model.notes.push("the price of its cheapest endpoint".to_owned());
    model
}

fn is_zero(number: &PriceNode) -> bool {
    number.digits().is_some_and(|digits| digits.is_zero())
}

/// Later ones win, each for the prices it names: written down, the last comes first.
fn overrides(model: &mut SourceModel, pricing: &PriceNode) {
    let written = pricing.get("overrides").map(PriceNode::list).unwrap_or_default();
    for (number, entry) in written.iter().enumerate().rev() {
        let mut list = Faces::NONE;
        for (field, face, power) in FACES.iter().filter(|(_, face, _)| model.list.has(*face)) {
            if let Some((price, _)) = entry.get(field).and_then(|number| number.digits()?.scaled(*power)) {
                list.set(*face, Some(price));
            }
        }
        let mut conditions = Vec::new();
        conditions.extend(entry.count("min_prompt_tokens").map(|tokens| over(tokens.saturating_sub(1))));
        if let (Some(start), Some(end)) = (entry.text("utc_start"), entry.text("utc_end")) {
            match hours_between(start, end) {
                Some(hours) => conditions.push(utc_hours(&hours)),
                None => return model.cannot("has prices by hours that are not whole"),
            }
        }
        if conditions.is_empty() {
            return model.cannot("has prices under a condition that is not known");
        }
        copy_tools(model, &mut list);
        let name = if written.len() == 1 && conditions.len() == 1 && entry.get("min_prompt_tokens").is_some() {
            "long_context".to_owned()
        } else {
            format!("override_{}", number + 1)
        };
        model.tiers.push(ListedTier { name, when: when(conditions), list });
    }
}

fn facts(model: &mut SourceModel, record: &PriceNode) {
    if let Some(name) = record.text("name") {
        model.fact("description", name);
    }
    let top = record.get("top_provider");
    let context = record.count("context_length").or_else(|| top.and_then(|top| top.count("context_length")));
    model.count("context_window", context);
    let output = top.and_then(|top| top.count("max_completion_tokens"));
    model.count("max_output_tokens", output.map(|output| context.map_or(output, |context| output.min(context))));
    let kinds = record
        .get("architecture")
        .and_then(|about| about.get("input_modalities"))
        .map(PriceNode::list)
        .unwrap_or_default();
    let has_audio = record.get("pricing").and_then(|pricing| pricing.get("audio")).is_some();
    let words: Vec<&str> = kinds
        .iter()
        .filter_map(|word| if let PriceNode::Text(word) = word { Some(word.as_str()) } else { None })
        .filter(|word| ["text", "image", "video", "file"].contains(word) || (*word == "audio" && has_audio))
        .collect();
    model.texts("input_modalities", &words);
}
