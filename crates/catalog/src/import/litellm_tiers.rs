//! Other prices under conditions, as LiteLLM's price map writes them: in the names of the fields.

use super::ListedTier;
use super::json::PriceNode;
use super::litellm::{CACHED, PER_TOKEN, TOKENS};
use super::source::{SourceModel, attribute, over, utc_hours, when};
use crate::{Face, Faces};
use std::collections::BTreeSet;

/// Service tiers that a request can ask for, and the ends of their fields.
const SERVICES: [&str; 2] = ["priority", "flex"];

pub(super) fn read(model: &mut SourceModel, record: &PriceNode) {
    let limits = limits(record);
    // The first tier that fits wins: the narrowest come first, the highest limit before lower ones.
    for service in SERVICES.iter().map(|service| Some(*service)).chain([None]) {
        for limit in limits.iter().rev().map(|limit| Some(*limit)).chain([None]) {
            if service.is_some() || limit.is_some() {
                tier(model, record, service, limit);
            }
        }
    }
    ranges(model, record);
    off_peak(model, record);
}

/// The `N` of fields that end in `_above_Nk_tokens`.
fn limits(record: &PriceNode) -> BTreeSet<u64> {
    let limit = |field: &str| {
        let (_, rest) = field.split_once("_above_")?;
        rest.split_once("k_tokens")?.0.parse::<u64>().ok()?.checked_mul(1_000)
    };
    record.map().filter_map(|(field, _)| limit(field)).collect()
}

/// One tier, if any field of it has a price: what it does not say costs what it costs otherwise.
fn tier(model: &mut SourceModel, record: &PriceNode, service: Option<&str>, limit: Option<u64>) {
    let mut end = String::new();
    if let Some(limit) = limit {
        end.push_str(&format!("_above_{}k_tokens", limit / 1_000));
    }
    if let Some(service) = service {
        end.push_str(&format!("_{service}"));
    }
    let mut list = Faces::NONE;
    let mut found = false;
    for (field, face) in TOKENS {
        let Some(base) = model.list.get(face) else { continue };
        let own = record.get(&format!("{field}{end}")).and_then(|number| number.digits()?.scaled(PER_TOKEN));
        found |= own.is_some();
        // A long request at a dearer service costs at least what either of them costs.
        let either = || {
            let limit = limit.and_then(|limit| record.get(&format!("{field}_above_{}k_tokens", limit / 1_000)));
            let service = service.and_then(|service| record.get(&format!("{field}_{service}")));
            let both = [limit, service].into_iter().flatten();
            both.filter_map(|number| number.digits()?.scaled(PER_TOKEN)).map(|(price, _)| price).max()
        };
        list.set(face, Some(own.map(|(price, _)| price).or_else(either).unwrap_or(base)));
        if own.is_none() && model.list.get(Face::Input) == Some(base) {
            // What costs as much as text otherwise costs no less than text here.
            list.set(face, list.get(face).max(list.get(Face::Input)));
        }
    }
    cached_sound(model, record, &end, &mut list);
    copy_tools(model, &mut list);
    // Long requests at a cheap service have no price of their own: the dearer of both holds.
    let has = |end: &str| TOKENS.iter().any(|(field, _)| record.get(&format!("{field}{end}")).is_some());
    let both = limit.zip(service).is_some_and(|(limit, service)| {
        has(&format!("_above_{}k_tokens", limit / 1_000)) && has(&format!("_{service}"))
    });
    if !found && !both {
        return;
    }
    let mut conditions = Vec::new();
    conditions.extend(service.map(|service| attribute("service_tier", service)));
    conditions.extend(limit.map(over));
    let long = match limit {
        Some(_) if model.tiers.iter().any(|tier| tier.name == long_name(service, "")) => {
            limit.map(|limit| format!("_{}k", limit / 1_000)).unwrap_or_default()
        }
        _ => String::new(),
    };
    let name = if limit.is_some() { long_name(service, &long) } else { service.unwrap_or_default().to_owned() };
    model.tiers.push(ListedTier { name, when: when(conditions), list });
}

/// Where cached sound or pictures made cached text dearer, they do so here.
fn cached_sound(model: &SourceModel, record: &PriceNode, end: &str, list: &mut Faces) {
    let Some(base) = model.list.get(Face::CacheRead) else { return };
    for field in CACHED {
        let price = |name: &str| record.get(name).and_then(|number| number.digits()?.scaled(PER_TOKEN));
        if price(field).is_some_and(|(price, _)| price == base) {
            let here = price(&format!("{field}{end}")).map_or(base, |(price, _)| price);
            list.set(Face::CacheRead, list.get(Face::CacheRead).max(Some(here)));
        }
    }
}

fn long_name(service: Option<&str>, end: &str) -> String {
    service.map(|service| format!("{service}_")).unwrap_or_default() + "long_context" + end
}

/// A tier prices the same faces as the base.
pub(super) fn copy_tools(model: &SourceModel, list: &mut Faces) {
    for (face, price) in model.list.iter().filter(|(face, _)| !list.has(*face)).collect::<Vec<_>>() {
        list.set(face, Some(price));
    }
}

/// `tiered_pricing`: prices by the length of the input. The first range is the base.
fn ranges(model: &mut SourceModel, record: &PriceNode) {
    let Some(written) = record.get("tiered_pricing") else { return };
    let mut ranges: Vec<(u64, Faces)> = Vec::new();
    for range in written.list() {
        let from = range.get("range").and_then(|ends| ends.list().first()?.digits()?.scaled(0));
        let mut list = Faces::NONE;
        for (field, face) in TOKENS {
            if let Some((price, _)) = range.get(field).and_then(|number| number.digits()?.scaled(PER_TOKEN)) {
                list.set(face, Some(price));
            }
        }
        let thoughts =
            range.get("output_cost_per_reasoning_token").and_then(|number| number.digits()?.scaled(PER_TOKEN));
        if let Some((price, _)) = thoughts.filter(|(price, _)| list.get(Face::Output).is_some_and(|own| *price > own)) {
            list.set(Face::Output, Some(price));
            model.stops.push("thinks at a higher price than it answers: the higher one is taken".to_owned());
        }
        match from {
            Some((from, true)) => ranges.push((from, list)),
            _ => return model.cannot("has ranges of prices that cannot be read"),
        }
    }
    ranges.sort_by_key(|(from, _)| *from);
    let Some((_, base)) = ranges.first().copied() else { return };
    for (face, price) in base.iter() {
        model.list.set(face, Some(price));
    }
    for (from, mut list) in ranges.into_iter().skip(1).rev() {
        copy_tools(model, &mut list);
        let name = format!("over_{}k", from / 1_000);
        model.tiers.push(ListedTier { name, when: when(vec![over(from)]), list });
    }
}

/// The map gives the cheap hours: the base is the dear price, so that a hold is never too small.
fn off_peak(model: &mut SourceModel, record: &PriceNode) {
    let Some(written) = record.get("off_peak_pricing") else { return };
    let mut list = Faces::NONE;
    for (field, face) in TOKENS {
        if let Some((price, _)) = written.get(field).and_then(|number| number.digits()?.scaled(PER_TOKEN)) {
            list.set(face, Some(price));
        }
    }
    let windows = written.get("windows").map(PriceNode::list).unwrap_or_default();
    let hours: Option<Vec<u8>> = windows
        .iter()
        .map(|window| hours_between(window.text("start")?, window.text("end")?))
        .collect::<Option<Vec<_>>>()
        .map(|lists| lists.into_iter().flatten().collect::<BTreeSet<u8>>().into_iter().collect());
    match hours.filter(|hours| !hours.is_empty() && !list.is_empty()) {
        Some(hours) => {
            copy_tools(model, &mut list);
            model.tiers.push(ListedTier { name: "off_peak".to_owned(), when: when(vec![utc_hours(&hours)]), list });
        }
        None => model.notes.push("cheaper at some hours, which are not taken over".to_owned()),
    }
}

/// Hours of the day from a time to a time, over midnight if need be; whole hours only.
pub(super) fn hours_between(start: &str, end: &str) -> Option<Vec<u8>> {
    let hour = |text: &str| {
        let digits: String =
            text.trim_end_matches('Z').split('+').next()?.chars().filter(char::is_ascii_digit).collect();
        let (hour, rest) = digits.split_at_checked(2)?;
        (rest.bytes().all(|b| b == b'0')).then(|| hour.parse::<u8>().ok()).flatten().filter(|hour| *hour <= 24)
    };
    let (from, to) = (hour(start)? % 24, hour(end)?);
    let count = (24 + to - from) % 24;
    let count = if count == 0 { 24 } else { count };
    Some((0..count).map(|step| (from + step) % 24).collect())
}

/// `output_cost_per_second_720p` and the like: a tier for each resolution.
pub(super) fn resolutions(model: &mut SourceModel, record: &PriceNode) {
    for (field, number) in record.map() {
        let end = field
            .strip_prefix("output_cost_per_second_")
            .or_else(|| field.strip_prefix("output_cost_per_video_per_second_"));
        let Some(resolution) = end.filter(|end| end.trim_end_matches(['p', 'k']).bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        if let Some((price, _)) = number.digits().and_then(|digits| digits.scaled(6)) {
            let resolution = resolution.to_uppercase();
            let list = Faces::NONE.with(Face::VideoSecond, price);
            let condition = attribute("resolution", &resolution);
            model.tiers.push(ListedTier { name: resolution, when: when(vec![condition]), list });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hours_between;

    #[test]
    fn hours_go_over_midnight_and_are_whole() {
        assert_eq!(hours_between("01:00", "04:00"), Some(vec![1, 2, 3]));
        assert_eq!(hours_between("2200", "0200"), Some(vec![22, 23, 0, 1]));
        assert_eq!(hours_between("16:00:00+00:00", "00:00Z"), Some((16..24).collect()));
        assert_eq!(hours_between("16:30", "18:00"), None);
        assert_eq!(hours_between("soon", "later"), None);
    }
}
