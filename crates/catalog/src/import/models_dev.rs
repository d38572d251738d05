//! models.dev: an object of providers, each with its models; USD per million tokens.

use super::ListedTier;
use super::json::PriceNode;
use super::litellm_tiers::copy_tools;
use super::source::{PriceSource, SourceModel, over, when};
use crate::{Face, Faces};

const FACES: [(&str, Face); 6] = [
    ("input", Face::Input),
    ("output", Face::Output),
    ("cache_read", Face::CacheRead),
    ("cache_write", Face::CacheWrite),
    ("input_audio", Face::AudioInput),
    ("output_audio", Face::AudioOutput),
];
/// USD per million to micro-USD per million.
const PER_MILLION: i32 = 6;

pub(super) fn read(whole: &PriceNode, provider: Option<&str>) -> Result<PriceSource, String> {
    let mut source = PriceSource::default();
    let mut found = false;
    for (id, entry) in whole.map() {
        let Some(models) = entry.get("models") else { continue };
        found = true;
        if provider.is_some_and(|provider| provider != id) {
            continue;
        }
        for (name, record) in models.map() {
            match model(name, record) {
                Ok(mut model) => {
                    model.source = entry.text("doc").map(str::to_owned);
                    source.models.push(model);
                }
                Err(reason) => source.left_out.push((name.to_owned(), reason.to_owned())),
            }
        }
    }
    if found { Ok(source) } else { Err("no provider has `models`".to_owned()) }
}

fn model(name: &str, record: &PriceNode) -> Result<SourceModel, &'static str> {
    if record.text("status") == Some("deprecated") {
        return Err("has ended");
    }
    if name.ends_with("-latest") {
        return Err("is an alias that moves");
    }
    let cost = record.get("cost").ok_or("has no price")?;
    let mut model = SourceModel::named(name);
    facts(&mut model, record);
    for (field, face) in FACES {
        if let Some(number) = cost.get(field) {
            model.price(face, number, PER_MILLION);
        }
    }
    let thoughts = cost.get("reasoning").and_then(|number| number.digits()?.scaled(PER_MILLION));
    if let Some((price, _)) = thoughts.filter(|(price, _)| model.list.get(Face::Output).is_some_and(|own| *price > own))
    {
        model.list.set(Face::Output, Some(price));
        model.stops.push("thinks at a higher price than it answers: the higher one is taken".to_owned());
    }
    tiers(&mut model, cost);
    let writes = model.facts.get("type").is_none();
    model.check_tokens(writes);
    let draws = record.get("modalities").and_then(|both| both.get("output")).map(PriceNode::list).unwrap_or_default();
    if draws.contains(&PriceNode::Text("image".to_owned())) {
        model.cannot("makes pictures, whose price stands as the price of text");
    }
    Ok(model)
}

fn tiers(model: &mut SourceModel, cost: &PriceNode) {
    let sized = cost.get("tiers").map(PriceNode::list).unwrap_or_default().iter();
    let mut found: Vec<(u64, &PriceNode)> =
        sized.filter_map(|tier| Some((tier.get("tier")?.count("size")?, tier))).collect();
    found.extend(cost.get("context_over_200k").filter(|_| found.is_empty()).map(|tier| (200_000, tier)));
    found.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let several = found.len() > 1;
    for (size, tier) in found {
        let mut list = Faces::NONE;
        for (field, face) in FACES.iter().filter(|(_, face)| model.list.has(*face)) {
            if let Some((price, _)) = tier.get(field).and_then(|number| number.digits()?.scaled(PER_MILLION)) {
                list.set(*face, Some(price));
            }
        }
        copy_tools(model, &mut list);
        let name = if several { format!("over_{}k", size / 1_000) } else { "long_context".to_owned() };
        model.tiers.push(ListedTier { name, when: when(vec![over(size)]), list });
    }
}

fn facts(model: &mut SourceModel, record: &PriceNode) {
    if let Some(name) = record.text("name") {
        model.fact("description", name);
    }
    if let Some(limit) = record.get("limit") {
        model.count("context_window", limit.count("context"));
        model.count("max_input_tokens", limit.count("input").filter(|most| limit.count("context") > Some(*most)));
        model.count("max_output_tokens", limit.count("output"));
    }
    if model.name.contains("embed") {
        model.fact("type", "embedding");
        model.texts("supported_endpoint_types", &["embeddings"]);
        return;
    }
    let words = |side: &str| -> Vec<&str> {
        let list = record.get("modalities").and_then(|both| both.get(side)).map(PriceNode::list).unwrap_or_default();
        let known = list.iter().filter_map(|word| match word {
            PriceNode::Text(word) if word == "pdf" => Some("file"),
            PriceNode::Text(word) if ["text", "image", "audio", "video"].contains(&word.as_str()) => {
                Some(word.as_str())
            }
            _ => None,
        });
        known.collect()
    };
    model.texts("input_modalities", &words("input"));
    model.texts("output_modalities", &words("output"));
    let mut tasks = vec!["chat"];
    tasks.extend(record.flag("reasoning").then_some("reasoning"));
    tasks.extend(words("input").contains(&"image").then_some("vision"));
    tasks.extend(record.flag("tool_call").then_some("tools"));
    model.texts("tasks", &tasks);
    let options = record.get("reasoning_options").map(PriceNode::list).unwrap_or_default();
    let efforts = options.iter().find(|option| option.text("type") == Some("effort"));
    let efforts: Vec<&str> = efforts
        .and_then(|option| option.get("values"))
        .map(PriceNode::list)
        .unwrap_or_default()
        .iter()
        .filter_map(|word| if let PriceNode::Text(word) = word { Some(word.as_str()) } else { None })
        .collect();
    model.texts("reasoning_efforts", &efforts);
    if record.get("temperature") == Some(&PriceNode::Bool(false)) {
        let rules = toml::Table::from_iter([("sampling".to_owned(), toml::Value::from(false))]);
        model.fact("chat", rules);
    }
}
