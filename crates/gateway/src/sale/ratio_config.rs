//! The price list as maps from a model to each of its ratios: what older gateways of the new-api
//! family ask a peer for. Read from the records of the list, so that there is no second sum.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Ratios<'r> {
    model_name: String,
    quota_type: u8,
    #[serde(borrow)]
    model_ratio: &'r RawValue,
    #[serde(borrow)]
    model_price: &'r RawValue,
    #[serde(borrow)]
    completion_ratio: Option<&'r RawValue>,
    #[serde(borrow)]
    cache_ratio: Option<&'r RawValue>,
    #[serde(borrow)]
    create_cache_ratio: Option<&'r RawValue>,
}

type RatioMap<'r> = BTreeMap<String, &'r RawValue>;

#[derive(Default, Serialize)]
struct RatioMaps<'r> {
    model_ratio: RatioMap<'r>,
    completion_ratio: RatioMap<'r>,
    cache_ratio: RatioMap<'r>,
    create_cache_ratio: RatioMap<'r>,
    model_price: RatioMap<'r>,
}

#[derive(Serialize)]
struct Reply<'r> {
    success: bool,
    data: RatioMaps<'r>,
}

/// The body, from the records of a list.
pub fn written<'r>(records: impl Iterator<Item = &'r [u8]>) -> Option<Vec<u8>> {
    let mut maps = RatioMaps::default();
    for record in records {
        let one: Ratios<'r> = serde_json::from_slice(record).ok()?;
        let name = one.model_name;
        if one.quota_type == 1 {
            maps.model_price.insert(name, one.model_price);
            continue;
        }
        let optional = [
            (&mut maps.completion_ratio, one.completion_ratio),
            (&mut maps.cache_ratio, one.cache_ratio),
            (&mut maps.create_cache_ratio, one.create_cache_ratio),
        ];
        for (map, ratio) in optional {
            ratio.map(|ratio| map.insert(name.clone(), ratio));
        }
        maps.model_ratio.insert(name, one.model_ratio);
    }
    serde_json::to_vec(&Reply { success: true, data: maps }).ok()
}
