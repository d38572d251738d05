//! A provider that is known by name as operators see it, on the command line and over HTTP.

use serde_json::{Value, json};
use tollgate_catalog::form::did_you_mean;
use tollgate_upstream::{Ability, AddressSource, KeyNeed, Preset};

/// All that is known of it, and under which names the configuration uses it. There is no secret in
/// it: only the names of variables.
pub fn preset_record(row: &Preset, configured: &[&str]) -> Value {
    let endpoints: Vec<&str> = row.endpoints().iter().map(|one| one.word()).collect();
    let settings: Vec<String> = row
        .blanks()
        .into_iter()
        .map(|name| row.defaults.get(name).map_or_else(|| name.to_owned(), |usual| format!("{name} (usually {usual})")))
        .collect();
    json!({
        "id": row.id,
        "name": row.name,
        "kind": row.kind_name,
        "base_url": row.base_url,
        "settings": settings,
        "key": match row.key {
            KeyNeed::Needed => row.key_form().to_owned(),
            KeyNeed::Optional => format!("{}, if the server wants one", row.key_form()),
        },
        "key_env": row.key_env,
        "access_env": row.access_env,
        "endpoints": endpoints,
        "bill_on_cancel": row.stops.map(|stops| !stops),
        "takes_links": row.takes_links,
        "quirks": row.quirks.words(),
        "address": match row.address {
            AddressSource::Documented => "documented by the provider",
            AddressSource::Listed => "listed by others: try it with `provider test`",
            AddressSource::Unconfirmed => "not confirmed: try it with `provider test`",
        },
        "docs": row.docs,
        "note": row.note,
        "configured": configured,
        "next": format!("tollgate provider add {}", row.id),
    })
}

/// What a provider sells, by our word for it or by an endpoint type of the catalog.
pub fn ability_named(word: &str) -> Result<Ability, String> {
    let by_word = Ability::ALL.into_iter().find(|one| one.word() == word);
    by_word.or_else(|| Ability::of_endpoint_type(word)).ok_or_else(|| {
        let words: Vec<&str> = Ability::ALL.iter().map(|one| one.word()).collect();
        format!("{word:?} is not one of {}{}", words.join(", "), did_you_mean(word, words.iter().copied()))
    })
}
