//! LiteLLM's price map: one object, a flat record for each model, USD per token.

use super::json::PriceNode;
use super::source::{PriceSource, SourceModel};
use super::{litellm_facts as facts, litellm_tiers as tiers};
use crate::Face;

/// Fields of prices by the token, and their faces.
pub(super) const TOKENS: [(&str, Face); 9] = [
    ("input_cost_per_token", Face::Input),
    ("output_cost_per_token", Face::Output),
    ("cache_read_input_token_cost", Face::CacheRead),
    ("cache_creation_input_token_cost", Face::CacheWrite),
    ("cache_creation_input_token_cost_above_1hr", Face::CacheWrite1h),
    ("input_cost_per_audio_token", Face::AudioInput),
    ("output_cost_per_audio_token", Face::AudioOutput),
    ("input_cost_per_image_token", Face::ImageInput),
    ("output_cost_per_image_token", Face::ImageOutput),
];
/// Cached sound and pictures, which have no face of their own.
pub(super) const CACHED: [&str; 2] = ["cache_read_input_audio_token_cost", "cache_read_input_image_token_cost"];
/// USD per token to micro-USD per million.
pub(super) const PER_TOKEN: i32 = 12;
const USD: i32 = 6;
const REGIONS: [&str; 8] = ["us", "eu", "apac", "global", "jp", "au", "us-gov", "ca"];

pub(super) fn read(whole: &PriceNode, provider: Option<&str>, today: &str) -> Result<PriceSource, String> {
    let mut source = PriceSource::default();
    let mut records = 0;
    for (key, record) in whole.map() {
        let Some(whose) = record.text("litellm_provider") else { continue };
        records += 1;
        if provider.is_some_and(|provider| provider != whose) || key == "sample_spec" {
            continue;
        }
        match model(key, whose, record, today) {
            Ok(model) => source.models.push(model),
            Err(reason) => source.left_out.push((key.to_owned(), reason.to_owned())),
        }
    }
    if records == 0 { Err("no entry has a `litellm_provider`".to_owned()) } else { Ok(source) }
}

fn model(key: &str, whose: &str, record: &PriceNode, today: &str) -> Result<SourceModel, &'static str> {
    let name = key.strip_prefix(whose).and_then(|rest| rest.strip_prefix('/')).unwrap_or(key);
    if record.text("deprecation_date").is_some_and(|day| day <= today) {
        return Err("has ended");
    }
    if name.ends_with("-latest") || name.ends_with(":latest") {
        return Err("is an alias that moves");
    }
    if name.split(['.', '/']).next().is_some_and(|first| REGIONS.contains(&first)) {
        return Err("is the same model in one region");
    }
    if name.split('/').any(|part| part.contains("-x-") || part.contains("max-x")) {
        return Err("is one size of a model that makes pictures");
    }
    if !record.map().any(|(field, number)| field.contains("cost") && number.digits().is_some()) {
        return Err("has no price");
    }
    let mut model = SourceModel::named(name);
    model.source = record.text("source").map(str::to_owned);
    match record.text("mode").unwrap_or("chat") {
        "chat" | "responses" => chat(&mut model, record),
        "realtime" => realtime(&mut model, record),
        "embedding" => {
            facts::kind(&mut model, "embedding", &["embeddings"]);
            facts::limits(&mut model, record, false);
            tokens(&mut model, record);
            model.check_tokens(false);
        }
        "rerank" => rerank(&mut model, record),
        "image_generation" => picture(&mut model, record),
        "audio_transcription" => transcription(&mut model, record),
        "audio_speech" => speech(&mut model, record),
        "video_generation" => video(&mut model, record),
        _ => return Err("is for no endpoint of this gateway"),
    }
    if let Some(day) = record.text("deprecation_date") {
        model.notes.push(format!("ends on {day}"));
    }
    if record.get("provider_specific_entry").is_some() || record.map().any(|(field, _)| field.contains("uplift")) {
        model.notes.push("costs more in some regions or at some speeds, which is not taken over".to_owned());
    }
    Ok(model)
}

fn chat(model: &mut SourceModel, record: &PriceNode) {
    if facts::responses_only(record) {
        model.texts("supported_endpoint_types", &["openai-response"]);
    }
    facts::limits(model, record, true);
    tokens(model, record);
    facts::chat(model, record);
    fees(model, record);
    tiers::read(model, record);
    model.check_tokens(true);
}

fn realtime(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "voice", &["realtime"]);
    facts::limits(model, record, true);
    tokens(model, record);
    let images = model.list.has(Face::ImageInput).then_some("image");
    model.texts("input_modalities", &["text", "audio"].into_iter().chain(images).collect::<Vec<_>>());
    model.texts("output_modalities", &["text", "audio"]);
    model.check_tokens(true);
    for face in [Face::AudioInput, Face::AudioOutput] {
        if !model.list.has(face) {
            model.cannot(format!("has no price of {}", face.name()));
        }
    }
}

/// Prices by the token. Cached sound and pictures have no face: the dearest of the cached prices
/// counts. So do thoughts where they are dearer than answers, once a person has looked.
fn tokens(model: &mut SourceModel, record: &PriceNode) {
    for (field, face) in TOKENS {
        if let Some(number) = record.get(field) {
            model.price(face, number, PER_TOKEN);
        }
    }
    for field in CACHED {
        dearer(model, Face::CacheRead, record.get(field));
    }
    let output = model.list.get(Face::Output);
    dearer(model, Face::Output, record.get("output_cost_per_reasoning_token"));
    if output != model.list.get(Face::Output) {
        model.stops.push("thinks at a higher price than it answers: the higher one is taken".to_owned());
    }
}

fn dearer(model: &mut SourceModel, face: Face, number: Option<&PriceNode>) {
    let Some((other, _)) = number.and_then(|number| number.digits()?.scaled(PER_TOKEN)) else { return };
    if model.list.get(face).is_some_and(|price| other > price) {
        model.list.set(face, Some(other));
        model.notes.push(format!("{}: the dearest of several prices", face.name()));
    }
}

/// Tools that run at the provider, at the dearest of their prices.
fn fees(model: &mut SourceModel, record: &PriceNode) {
    let searches = record.get("search_context_cost_per_query").into_iter().flat_map(PriceNode::map);
    let dearest = searches.filter_map(|(_, number)| number.digits()?.scaled(USD)).max();
    if let Some((price, _)) = dearest.filter(|(price, _)| *price > 0) {
        model.list.set(Face::WebSearch, Some(price));
    }
    for (field, face, power) in [
        ("google_maps_grounding_cost_per_query", Face::Maps, USD),
        ("file_search_cost_per_1k_calls", Face::FileSearch, USD - 3),
    ] {
        if let Some(number) = record.get(field).filter(|number| number.digits().is_some_and(|digits| !digits.is_zero()))
        {
            model.price(face, number, power);
        }
    }
}

fn rerank(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "rerank", &["jina-rerank"]);
    facts::limits(model, record, false);
    match record.get("input_cost_per_query").filter(|number| number.digits().is_some_and(|digits| !digits.is_zero())) {
        Some(number) => {
            model.fact("billing_unit", "per_call");
            model.price(Face::PerCall, number, USD);
        }
        None => {
            tokens(model, record);
            model.check_tokens(false);
        }
    }
}

fn picture(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "image", &["image-generation"]);
    model.fact("billing_unit", "per_call");
    let by_picture = record.get("output_cost_per_image").or_else(|| record.get("input_cost_per_image"));
    match by_picture {
        Some(number) => model.price(Face::PerCall, number, USD),
        None => return model.cannot("is billed by tokens or pixels, and pictures are sold by the piece"),
    }
    if model.list.get(Face::PerCall) == Some(0) {
        model.stops.push("has a price of zero".to_owned());
    }
}

/// A thousand tokens are a minute: USD per second times 60,000 million are micro-USD per million.
fn transcription(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "asr", &["audio-transcription"]);
    model.texts("input_modalities", &["audio"]);
    model.texts("output_modalities", &["text"]);
    match record.get("input_cost_per_second").and_then(|number| number.digits()) {
        Some(per_second) => {
            model.fact("billing_unit", "audio_duration");
            let sixty = super::digits::Digits::parse("60");
            match sixty.and_then(|sixty| per_second.times(sixty)?.scaled(9)) {
                Some((price, _)) => {
                    model.list.set(Face::Input, Some(price));
                    if price == 0 {
                        model.stops.push("has a price of zero".to_owned());
                    }
                }
                None => model.cannot("has a price that cannot be read"),
            }
        }
        None => {
            tokens(model, record);
            model.check_tokens(true);
            if !model.list.has(Face::AudioInput) {
                model.cannot("has no price of audio_input");
            }
        }
    }
}

fn speech(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "tts", &["audio-speech"]);
    model.texts("input_modalities", &["text"]);
    model.texts("output_modalities", &["audio"]);
    match record.get("input_cost_per_character") {
        Some(number) => {
            model.fact("billing_unit", "characters");
            model.price(Face::Input, number, PER_TOKEN);
            if model.list.get(Face::Input) == Some(0) {
                model.stops.push("has a price of zero".to_owned());
            }
        }
        None => model.cannot("is billed by tokens, and speech is sold by characters"),
    }
}

fn video(model: &mut SourceModel, record: &PriceNode) {
    facts::kind(model, "video", &["openai-video"]);
    model.fact("billing_unit", "per_second");
    let base = record.get("output_cost_per_video_per_second").or_else(|| record.get("output_cost_per_second"));
    match base {
        Some(number) => model.price(Face::VideoSecond, number, USD),
        None => return model.cannot("has no price by the second"),
    }
    tiers::resolutions(model, record);
    if model.list.get(Face::VideoSecond) == Some(0) {
        model.stops.push("has a price of zero".to_owned());
    }
}
