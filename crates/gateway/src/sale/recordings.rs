//! The `transcription` tables of the catalog, held to what formats there are and to what the
//! providers of a model can do, when a configuration is loaded.

use super::tier_facts::{TierFact, wrong_tiers};
use std::collections::HashMap;
use tollgate_catalog::form::{Mistakes, did_you_mean};
use tollgate_catalog::{Model, Snapshot};
use tollgate_media::transcription::{TranscriptFormat, TranscriptionRequest, UPLOAD_FORMATS};
use tollgate_upstream::{Ability, Provider};

/// What a model that writes recordings down must offer.
pub const ENDPOINT_TYPE: &str = "audio-transcription";

/// Checks all of them; every mistake is recorded.
pub fn check(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) {
    for model in catalog.models.values() {
        match (&model.transcription, model.supports(ENDPOINT_TYPE)) {
            (_, true) => ModelCheck { model, mistakes }.all(providers),
            (Some(table), false) => {
                let reason = format!("is of no use without {ENDPOINT_TYPE:?} in `supported_endpoint_types`");
                mistakes.push(table.place.mistake(&field(model, "transcription"), reason));
            }
            (None, false) => {}
        }
    }
}

fn field(model: &Model, key: &str) -> String {
    format!("model.{:?}.{key}", model.name)
}

struct ModelCheck<'a> {
    model: &'a Model,
    mistakes: &'a Mistakes,
}

impl ModelCheck<'_> {
    fn mistake(&self, key: &str, reason: String) {
        let place = self.model.transcription.as_ref().map_or(&self.model.place, |table| &table.place);
        self.mistakes.push(place.mistake(&field(self.model, key), reason));
    }

    fn all(&self, providers: &HashMap<String, Option<Provider>>) {
        let words: Vec<&str> = UPLOAD_FORMATS.iter().map(|(name, _)| *name).collect();
        for word in &self.model.accepted_upload_formats {
            self.known(word, &words, "accepted_upload_formats");
        }
        let names = TranscriptFormat::ALL.map(TranscriptFormat::name);
        let table = self.model.transcription.as_ref();
        for name in table.map(|table| table.response_formats.as_slice()).unwrap_or_default() {
            self.known(name, &names, "transcription.response_formats");
        }
        for reason in wrong_tiers(self.model, ENDPOINT_TYPE, &self.facts(), false) {
            self.mistake("tier.when", reason);
        }
        for route in &self.model.routes {
            let Some(Some(provider)) = providers.get(&route.provider) else { continue };
            for reason in self.route(provider, &route.upstream_model) {
                self.mistakes.push(route.place.mistake("route.provider", reason));
            }
        }
    }

    /// What a price may depend on, besides the length.
    fn facts(&self) -> Vec<TierFact<'_>> {
        let table = self.model.transcription.as_ref();
        let named = table.map(|table| table.response_formats.iter().map(String::as_str).collect::<Vec<_>>());
        let formats = named.filter(|list| !list.is_empty());
        let formats = formats.unwrap_or_else(|| TranscriptFormat::PLAIN.iter().map(|format| format.name()).collect());
        let mut facts = vec![
            TierFact::one_of("response_format", formats),
            TierFact::flag("stream", true),
            TierFact::flag("translate", table.is_some_and(|table| table.translations)),
        ];
        facts.extend(TranscriptionRequest::scalars().map(TierFact::any));
        facts
    }

    fn known(&self, word: &str, words: &[&str], key: &str) {
        if !words.contains(&word) {
            let hint = did_you_mean(word, words.iter().copied());
            self.mistake(key, format!("no format is called {word:?}{hint}; there are {}", words.join(", ")));
        }
    }

    /// What a provider of the model cannot do of what is sold.
    fn route(&self, provider: &Provider, upstream_model: &str) -> Vec<String> {
        let Some(maker) = provider.kind.transcriber(upstream_model) else {
            return provider.lacks(Ability::Transcription).into_iter().collect();
        };
        let message = |what: &str| format!("{:?} is of kind {:?}, which {what}", provider.name, provider.kind.name);
        let Some(table) = &self.model.transcription else { return Vec::new() };
        let mut reasons = Vec::new();
        let unable =
            |name: &&String| TranscriptFormat::named(name).is_some_and(|format| !maker.formats().contains(&format));
        reasons.extend(table.response_formats.iter().filter(unable).map(|name| message(&format!("gives no {name}"))));
        if table.translations && !maker.translates() {
            reasons.push(message("does not translate"));
        }
        if table.stream && !maker.streams() {
            reasons.push(message("does not stream; leave out `stream`, and the transcript comes in one piece"));
        }
        reasons
    }
}
