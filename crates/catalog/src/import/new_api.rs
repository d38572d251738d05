//! new-api's price list: ratios. A ratio of 1 is 2 USD per million input tokens; the others are
//! multiples of the input price. Its two forms are a list of models and a map for each ratio.

use super::digits::Digits;
use super::json::PriceNode;
use super::source::{PriceSource, SourceModel};
use crate::Face;

/// What the server answers for a model nobody has set a price for.
const UNSET: &str = "37.5";
const FACES: [(&str, Face); 5] = [
    ("completion_ratio", Face::Output),
    ("cache_ratio", Face::CacheRead),
    ("create_cache_ratio", Face::CacheWrite),
    ("image_ratio", Face::ImageInput),
    ("audio_ratio", Face::AudioInput),
];

pub(super) fn read(whole: &PriceNode) -> Result<PriceSource, String> {
    let data = whole.get("data").ok_or("it has no `data`")?;
    let mut source = PriceSource::default();
    for record in data.list() {
        if let Some(name) = record.text("model_name") {
            source.models.push(model(name, |field| record.get(field)));
        }
    }
    if let (PriceNode::Map(_), Some(ratios)) = (data, data.get("model_ratio")) {
        let of = |field: &str, name: &str| data.get(field).and_then(|map| map.get(name));
        source.models.extend(ratios.map().map(|(name, _)| model(name, |field| of(field, name))));
        let priced = data.get("model_price").into_iter().flat_map(PriceNode::map);
        let more = priced.filter(|(name, _)| ratios.get(name).is_none());
        source.models.extend(more.map(|(name, _)| model(name, |field| of(field, name))));
    }
    Ok(source)
}

fn model<'n>(name: &str, field: impl Fn(&str) -> Option<&'n PriceNode>) -> SourceModel {
    let mut model = SourceModel::named(name);
    let number = |key: &str| field(key).and_then(PriceNode::digits);
    if field("billing_expr").is_some_and(|text| *text != PriceNode::Text(String::new())) {
        model.cannot("has a price that is a formula");
        return model;
    }
    let by_call = number("quota_type").is_some_and(|kind| kind.scaled(0) == Some((1, true)));
    if by_call || (field("model_ratio").is_none() && field("model_price").is_some()) {
        model.fact("billing_unit", "per_call");
        if let Some(price) = field("model_price") {
            model.price(Face::PerCall, price, 6);
        }
        model.stops.push("has a price whose unit is not said: it is taken for one call".to_owned());
        if model.list.get(Face::PerCall).unwrap_or(0) == 0 {
            model.cannot("has no price");
        }
        return model;
    }
    let (Some(ratio), Some(two)) = (number("model_ratio"), Digits::parse("2")) else {
        model.cannot("has no price");
        return model;
    };
    if Some(ratio) == Digits::parse(UNSET) {
        model.stops.push("has the ratio of a model without a price".to_owned());
    }
    let input = ratio.times(two);
    let set = |model: &mut SourceModel, face: Face, price: Option<Digits>| match price.and_then(|price| price.scaled(6))
    {
        Some((micro, exact)) => {
            model.list.set(face, Some(micro));
            if !exact {
                model.notes.push(format!("{} is rounded up to a whole micro-USD", face.name()));
            }
        }
        None => model.cannot(format!("the price of {} cannot be read", face.name())),
    };
    set(&mut model, Face::Input, input);
    for (key, face) in FACES {
        if let Some(ratio) = number(key) {
            set(&mut model, face, input.and_then(|input| input.times(ratio)));
        }
    }
    if let (Some(audio), Some(more)) = (number("audio_ratio"), number("audio_completion_ratio")) {
        let price = input.and_then(|input| input.times(audio)?.times(more));
        set(&mut model, Face::AudioOutput, price);
    }
    model.check_tokens(true);
    model
}
