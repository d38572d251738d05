//! The `speech` tables of the catalog, held to what the providers of their models can make when a
//! configuration is loaded.

use super::tier_facts::{TierFact, wrong_tiers};
use std::collections::HashMap;
use tollgate_catalog::form::Mistakes;
use tollgate_catalog::{BillingUnit, Model, Snapshot, SpeechTable};
use tollgate_media::speech::{SpeechFormat, SpeechRequest};
use tollgate_upstream::{Ability, Provider, SpeechMaker};

/// What a model that makes speech must offer.
pub const ENDPOINT_TYPE: &str = "audio-speech";

/// What a maker is asked for so that this format comes of it; nothing, where it makes neither that
/// nor the same samples in another wrapping.
pub fn made(maker: &dyn SpeechMaker, table: &SpeechTable, format: SpeechFormat) -> Option<SpeechFormat> {
    let listed = |one: SpeechFormat| table.made.is_empty() || table.made.iter().any(|name| name == one.name());
    format.made_from(|one| maker.makes(one) && listed(one))
}

/// Checks them; every mistake is recorded.
pub fn check(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) {
    for model in catalog.models.values() {
        match (&model.speech, model.supports(ENDPOINT_TYPE)) {
            (None, false) => {}
            (None, true) => {
                let reason = format!(
                    "is missing: a model that offers {ENDPOINT_TYPE:?} needs `speech = {{ formats = [\"mp3\"], max_characters = 4096 }}`"
                );
                mistakes.push(model.place.mistake(&field(model, "speech"), reason));
            }
            (Some(table), offered) => {
                let reader = Reader { model, table, mistakes };
                if !offered {
                    let reason = format!("is of no use without {ENDPOINT_TYPE:?} in `supported_endpoint_types`");
                    reader.mistake("speech", reason);
                }
                reader.check_own();
                reader.check_routes(providers);
            }
        }
    }
}

fn words(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// What a price may depend on, besides the characters.
fn facts(table: &SpeechTable) -> [TierFact<'_>; 3] {
    [
        if table.voices.is_empty() { TierFact::any("voice") } else { TierFact::one_of("voice", words(&table.voices)) },
        TierFact::one_of("response_format", words(&table.formats)),
        TierFact::one_of("stream_format", vec!["audio", "sse"]),
    ]
}

fn field(model: &Model, key: &str) -> String {
    format!("model.{:?}.{key}", model.name)
}

/// One table while it is being checked.
struct Reader<'a> {
    model: &'a Model,
    table: &'a SpeechTable,
    mistakes: &'a Mistakes,
}

impl Reader<'_> {
    fn mistake(&self, key: &str, reason: String) {
        self.mistakes.push(self.table.place.mistake(&field(self.model, key), reason));
    }

    /// What contradicts itself.
    fn check_own(&self) {
        let (model, table) = (self.model, self.table);
        if model.billing_unit == BillingUnit::Tokens {
            self.mistake("billing_unit", "speech is sold by \"characters\" or \"per_call\", not by tokens".to_owned());
        }
        if let Some(voice) = &model.default_voice
            && !table.voices.is_empty()
            && !table.voices.contains(voice)
        {
            self.mistake("default_voice", format!("{voice:?} is not one of `speech.voices`"));
        }
        if let Some(format) = &model.default_response_format
            && !table.formats.contains(format)
        {
            self.mistake("default_response_format", format!("{format:?} is not one of `speech.formats`"));
        }
        for name in table.extra.iter().filter(|name| SpeechRequest::is_common(name)) {
            self.mistake("speech", format!("every request can have `{name}`: leave it out of `extra`"));
        }
        for reason in wrong_tiers(model, ENDPOINT_TYPE, &facts(table), true) {
            self.mistake("tier.when", reason);
        }
    }

    /// Every route leads to a provider that makes all of it.
    fn check_routes(&self, providers: &HashMap<String, Option<Provider>>) {
        for route in &self.model.routes {
            let Some(Some(provider)) = providers.get(&route.provider) else { continue };
            let Some(maker) = provider.kind.speaker(&route.upstream_model) else {
                if let Some(reason) = provider.lacks(Ability::Speech) {
                    self.mistakes.push(route.place.mistake("route.provider", reason));
                }
                continue;
            };
            for reason in self.lacking(maker) {
                let reason = format!("{:?} is of kind {:?}, which {reason}", provider.name, provider.kind.name);
                self.mistake("speech", reason);
            }
        }
    }

    /// What a maker does not do although the table says so.
    fn lacking(&self, maker: &dyn SpeechMaker) -> Vec<String> {
        let table = self.table;
        let lacks = |name: &&String| SpeechFormat::named(name).and_then(|one| made(maker, table, one)).is_none();
        let formats = table.formats.iter().filter(lacks);
        let asked = [
            ("speed", table.speed.is_some()),
            ("instructions", table.instructions),
            ("extra", !table.extra.is_empty()),
        ];
        let fields = asked.into_iter().filter(|(field, said)| *said && !maker.takes(field));
        let formats = formats.map(|name| format!("does not make {name:?}, nor what could be wrapped so"));
        let fields = fields.map(|(field, _)| format!("does not take `{field}`"));
        let own = table.extra.iter().filter(|name| maker.own().contains(&name.as_str()));
        let own = own.map(|name| format!("is told `{name}` by the gateway: leave it out of `extra`"));
        formats.chain(fields).chain(own).collect()
    }
}
