//! genai-prices: a list of providers, each with models that answer to several names; USD per
//! million, with days and hours from which prices hold.

use super::ListedTier;
use super::clause::Clause;
use super::json::PriceNode;
use super::litellm_tiers::{copy_tools, hours_between};
use super::source::{PriceSource, SourceModel, attribute, over, utc_hours, when};
use crate::{Face, Faces};
use std::collections::BTreeSet;

const FACES: [(&str, Face, i32); 13] = [
    ("input_mchars", Face::Input, 6),
    ("input_mtok", Face::Input, 6),
    ("output_mtok", Face::Output, 6),
    ("cache_read_mtok", Face::CacheRead, 6),
    ("cache_write_mtok", Face::CacheWrite, 6),
    ("cache_write_1h_mtok", Face::CacheWrite1h, 6),
    ("input_audio_mtok", Face::AudioInput, 6),
    ("output_audio_mtok", Face::AudioOutput, 6),
    ("input_image_mtok", Face::ImageInput, 6),
    ("output_image_mtok", Face::ImageOutput, 6),
    ("web_searches_kcount", Face::WebSearch, 3),
    ("storage_searches_kcount", Face::FileSearch, 3),
    ("requests_kcount", Face::PerCall, 3),
];

pub(super) fn read(whole: &PriceNode, provider: Option<&str>, today: &str) -> Result<PriceSource, String> {
    let mut source = PriceSource::default();
    let mut found = false;
    for entry in whole.list() {
        let (Some(id), Some(models)) = (entry.text("id"), entry.get("models")) else { continue };
        found = true;
        if provider.is_some_and(|provider| provider != id) {
            continue;
        }
        let page = entry.get("pricing_urls").and_then(|pages| match pages.list().first()? {
            PriceNode::Text(page) => Some(page.clone()),
            _ => None,
        });
        for record in models.list() {
            let Some(name) = record.text("id") else { continue };
            if record.flag("deprecated") {
                source.left_out.push((name.to_owned(), "has ended".to_owned()));
                continue;
            }
            let mut model = model(name, record, today);
            model.source.clone_from(&page);
            source.models.push(model);
        }
    }
    if found { Ok(source) } else { Err("no provider has `id` and `models`".to_owned()) }
}

fn model(name: &str, record: &PriceNode, today: &str) -> SourceModel {
    let mut model = SourceModel::named(name);
    model.also = record.get("match").map(Clause::read);
    if let Some(words) = record.text("name") {
        model.fact("description", words);
    }
    model.count("context_window", record.count("context_window"));
    let Some(prices) = record.get("prices") else {
        model.cannot("has no price");
        return model;
    };
    if let PriceNode::Map(_) = prices {
        base(&mut model, prices);
    } else {
        dated(&mut model, prices.list(), today);
    }
    let by_characters = |prices: &PriceNode| prices.get("input_mchars").is_some();
    if by_characters(prices) || prices.list().iter().filter_map(|entry| entry.get("prices")).any(by_characters) {
        model.fact("billing_unit", "characters");
        return model;
    }
    variants(&mut model, record, today);
    model.check_tokens(!name.contains("embed") && !name.contains("rerank") && !name.starts_with("voyage"));
    model
}

/// The prices in force today. Those of some hours are dearer: they are the base, and the rest of
/// the day is the exception.
fn dated(model: &mut SourceModel, entries: &[PriceNode], today: &str) {
    let mut in_force = None;
    let mut peaks: Vec<(&PriceNode, Vec<u8>)> = Vec::new();
    for entry in entries {
        let Some(prices) = entry.get("prices") else { continue };
        let Some(constraint) = entry.get("constraint") else {
            in_force = in_force.or(Some(prices));
            continue;
        };
        match (constraint.text("start_date"), constraint.text("start_time"), constraint.text("end_time")) {
            (Some(day), _, _) if day <= today => in_force = Some(prices),
            (Some(day), _, _) => model.notes.push(format!("has other prices from {day} on")),
            (None, Some(start), Some(end)) => match hours_between(start, end) {
                Some(hours) => peaks.push((prices, hours)),
                None => model.cannot("has prices by hours that are not whole"),
            },
            _ => model.cannot("has prices under a condition that is not known"),
        }
    }
    let Some(usual) = in_force else { return model.cannot("has no price that is in force") };
    base(model, usual);
    let Some((dear, _)) = peaks.first() else { return };
    if peaks.iter().any(|(prices, _)| prices != dear) {
        return model.cannot("has different prices at different hours");
    }
    let busy: BTreeSet<u8> = peaks.iter().flat_map(|(_, hours)| hours.iter().copied()).collect();
    let quiet: Vec<u8> = (0..24).filter(|hour| !busy.contains(hour)).collect();
    let cheap = model.list;
    model.list = Faces::NONE;
    model.tiers.clear();
    base(model, dear);
    let fewer = model.list.iter().any(|(face, price)| cheap.get(face).is_some_and(|cheap| cheap > price));
    if fewer || quiet.is_empty() {
        return model.cannot("has hours whose prices are not the dearer ones");
    }
    let mut list = cheap;
    copy_tools(model, &mut list);
    model.tiers.push(ListedTier { name: "off_peak".to_owned(), when: when(vec![utc_hours(&quiet)]), list });
}

/// Prices without a condition, and their tiers by the length of the input.
fn base(model: &mut SourceModel, prices: &PriceNode) {
    let (list, tiers) = faces(model, prices);
    model.list = list;
    add_tiers(model, tiers, None);
}

/// By length: the limit, and the prices above it.
type Lengths = Vec<(u64, Faces)>;

fn faces(model: &mut SourceModel, prices: &PriceNode) -> (Faces, Lengths) {
    let mut list = Faces::NONE;
    let mut limits = BTreeSet::new();
    for (field, face, power) in FACES {
        let Some(written) = prices.get(field) else { continue };
        let number = written.get("base").unwrap_or(written);
        let micro = super::source::micro(face.name(), number, power, &mut model.notes, &mut model.stops);
        list.set(face, micro);
        limits.extend(
            written.get("tiers").map(PriceNode::list).unwrap_or_default().iter().filter_map(|tier| tier.count("start")),
        );
    }
    // Cached sound and pictures have no face: the dearest of the cached prices counts.
    for field in ["cache_audio_read_mtok", "cache_image_read_mtok"] {
        let other = prices.get(field).and_then(|number| number.digits()?.scaled(6));
        if let (Some((other, _)), Some(own)) = (other, list.get(Face::CacheRead)) {
            list.set(Face::CacheRead, Some(own.max(other)));
        }
    }
    let above = |limit: u64| {
        let mut list = list;
        for (field, face, power) in FACES {
            let tiers =
                prices.get(field).and_then(|written| written.get("tiers")).map(PriceNode::list).unwrap_or_default();
            let last = tiers.iter().rfind(|tier| tier.count("start").is_some_and(|start| start <= limit));
            if let Some((price, _)) = last.and_then(|tier| tier.get("price")?.digits()?.scaled(power)) {
                list.set(face, Some(price));
            }
        }
        (limit, list)
    };
    let tiers = limits.into_iter().rev().map(above).collect();
    (list, tiers)
}

fn add_tiers(model: &mut SourceModel, tiers: Lengths, service: Option<&str>) {
    let several = tiers.len() > 1;
    for (limit, mut list) in tiers {
        copy_tools(model, &mut list);
        let long = if several { format!("over_{}k", limit / 1_000) } else { "long_context".to_owned() };
        let name = service.map(|service| format!("{service}_{long}")).unwrap_or(long);
        let mut conditions = Vec::new();
        conditions.extend(service.map(|service| attribute("service_tier", service)));
        conditions.push(over(limit));
        model.tiers.push(ListedTier { name, when: when(conditions), list });
    }
}

/// Service tiers that a request can ask for; they come before what holds for all.
fn variants(model: &mut SourceModel, record: &PriceNode, today: &str) {
    let usual = std::mem::take(&mut model.tiers);
    for service in ["priority", "flex"] {
        let named = record.get("price_variants").map(PriceNode::list).unwrap_or_default().iter().rfind(|variant| {
            let start = variant.get("constraint").and_then(|constraint| constraint.text("start_date"));
            variant.get("when").and_then(|when| when.text("service_tier")) == Some(service)
                && start.is_none_or(|day| day <= today)
        });
        let Some(prices) = named.and_then(|variant| variant.get("prices")) else { continue };
        let (mut list, tiers) = faces(model, prices);
        if list.is_empty() {
            continue;
        }
        list = without_strange(model, list);
        add_tiers(
            model,
            tiers.into_iter().map(|(limit, list)| (limit, without_strange(model, list))).collect(),
            Some(service),
        );
        copy_tools(model, &mut list);
        let conditions = when(vec![attribute("service_tier", service)]);
        model.tiers.push(ListedTier { name: service.to_owned(), when: conditions, list });
    }
    model.tiers.extend(usual);
}

/// Only faces that the base has.
fn without_strange(model: &SourceModel, mut list: Faces) -> Faces {
    for face in Face::ALL.into_iter().filter(|face| !model.list.has(*face)) {
        list.set(face, None);
    }
    list
}
