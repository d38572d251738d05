//! The `music` tables of the catalog, held to what the providers of their models can make when a
//! configuration is loaded.

use super::tier_facts::{FactValues, TierFact, wrong_tiers};
use std::collections::HashMap;
use tollgate_catalog::form::Mistakes;
use tollgate_catalog::{BillingUnit, Model, MusicTable, Snapshot};
use tollgate_media::speech::SpeechFormat;
use tollgate_upstream::{Ability, MusicMaker, Provider};

/// What a model that makes music must offer.
pub const ENDPOINT_TYPE: &str = "music-generation";

/// Checks them; every mistake is recorded.
pub fn check(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) {
    for model in catalog.models.values() {
        let mistake = |table: &MusicTable, key: &str, reason: String| {
            mistakes.push(table.place.mistake(&format!("model.{:?}.{key}", model.name), reason));
        };
        match (&model.music, model.supports(ENDPOINT_TYPE)) {
            (None, false) => {}
            (None, true) => {
                let reason = format!(
                    "is missing: a model that offers {ENDPOINT_TYPE:?} needs `music = {{ formats = [\"mp3\"], max_prompt = 2000 }}`"
                );
                mistakes.push(model.place.mistake(&format!("model.{:?}.music", model.name), reason));
            }
            (Some(table), offered) => {
                if !offered {
                    let reason = format!("is of no use without {ENDPOINT_TYPE:?} in `supported_endpoint_types`");
                    mistake(table, "music", reason);
                }
                for reason in wrong(model, table) {
                    mistake(table, "music", reason);
                }
                for reason in wrong_tiers(model, ENDPOINT_TYPE, &facts(table), false) {
                    mistake(table, "tier.when", reason);
                }
                for route in &model.routes {
                    let Some(Some(provider)) = providers.get(&route.provider) else { continue };
                    match provider.kind.music {
                        None => {
                            if let Some(reason) = provider.lacks(Ability::Music) {
                                mistakes.push(route.place.mistake("route.provider", reason));
                            }
                        }
                        Some(maker) => {
                            for reason in lacking(table, maker) {
                                let (name, kind) = (&provider.name, provider.kind.name);
                                mistake(table, "music", format!("{name:?} is of kind {kind:?}, which {reason}"));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a price may depend on.
fn facts(table: &MusicTable) -> Vec<TierFact<'_>> {
    let mut facts = vec![
        TierFact::flag("instrumental", table.instrumental),
        TierFact::flag("lyrics", table.max_lyrics.is_some()),
        TierFact::flag("lyrics_optimizer", table.max_lyrics.is_some()),
        TierFact::one_of("output", if table.links { vec!["b64_json", "url"] } else { vec!["b64_json"] }),
        TierFact::one_of("response_format", table.formats.iter().map(String::as_str).collect()),
    ];
    if let Some((least, most)) = table.seconds {
        facts.push(TierFact { name: "duration", values: FactValues::Whole(least, most) });
    }
    facts
}

/// What contradicts itself.
fn wrong(model: &Model, table: &MusicTable) -> Vec<String> {
    let mut found = Vec::new();
    match model.billing_unit {
        BillingUnit::PerCall => {}
        BillingUnit::PerSecond if table.seconds.is_some() => {}
        BillingUnit::PerSecond => {
            found.push("is sold by the second: `seconds` says how long its songs can be".to_owned());
        }
        _ => found.push("music is sold \"per_call\" or \"per_second\"".to_owned()),
    }
    if let Some(format) = model.default_response_format.as_ref().filter(|format| !table.formats.contains(format)) {
        found.push(format!("`default_response_format` {format:?} is not one of `music.formats`"));
    }
    found
}

/// What a maker does not do although the table says so.
fn lacking(table: &MusicTable, maker: &dyn MusicMaker) -> Vec<String> {
    let makes = |name: &str| SpeechFormat::named(name).is_some_and(|format| maker.makes(format));
    let formats = table.formats.iter().filter(|name| !makes(name)).map(|name| format!("does not make {name:?}"));
    let asked = [
        ("lyrics", "max_lyrics", table.max_lyrics.is_some()),
        ("duration", "seconds", table.seconds.is_some()),
        ("link", "links", table.links),
    ];
    let fields = asked.into_iter().filter(|(field, _, said)| *said && !maker.takes(field));
    formats.chain(fields.map(|(_, key, _)| format!("does not do what `{key}` says"))).collect()
}
