//! The `video` tables of the catalog, held to the rules of the families when a configuration is
//! loaded: what could be sold below its price by a slip of the pen is a mistake with file and line,
//! not a loss.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tollgate_catalog::form::{Mistakes, did_you_mean};
use tollgate_catalog::{BillingUnit, Book, Mistake, Model, Snapshot, VideoTable};
use tollgate_media::video::{FACTS, Offer, Variant};
use tollgate_upstream::{Ability, Provider};

/// What a model that makes videos must offer.
pub const ENDPOINT_TYPE: &str = "openai-video";

/// The rules of every model that makes videos, by its public name.
pub type Offers = HashMap<String, Arc<Offer>>;

/// Reads them; every mistake is recorded.
pub fn read(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) -> Offers {
    let mut offers = Offers::new();
    for model in catalog.models.values() {
        match (&model.video, model.supports(ENDPOINT_TYPE)) {
            (None, false) => {}
            (None, true) => {
                let reason = format!(
                    "is missing: a model that offers {ENDPOINT_TYPE:?} needs `video = {{ variant = \"…\" }}`, the rules its requests are read by"
                );
                mistakes.push(model.place.mistake(&field(model, "video"), reason));
            }
            (Some(video), offered) => {
                if !offered {
                    let reason = format!("is of no use without {ENDPOINT_TYPE:?} in `supported_endpoint_types`");
                    mistakes.push(video.place.mistake(&field(model, "video"), reason));
                }
                if let Some(offer) = (Reader { model, video, mistakes }).offer(providers) {
                    offers.insert(model.name.clone(), Arc::new(offer));
                }
            }
        }
    }
    offers
}

/// The same from a catalog alone, wherever its routes lead: enough for prices.
pub fn of_catalog(catalog: &Snapshot) -> Result<Offers, Vec<Mistake>> {
    let mistakes = Mistakes::default();
    let offers = read(catalog, &HashMap::new(), &mistakes);
    mistakes.result(offers)
}

fn field(model: &Model, key: &str) -> String {
    format!("model.{:?}.{key}", model.name)
}

/// One table while it is being checked.
struct Reader<'a> {
    model: &'a Model,
    video: &'a VideoTable,
    mistakes: &'a Mistakes,
}

impl Reader<'_> {
    fn mistake(&self, key: &str, reason: String) {
        self.mistakes.push(self.video.place.mistake(&field(self.model, key), reason));
    }

    fn offer(&self, providers: &HashMap<String, Option<Provider>>) -> Option<Offer> {
        let name = &self.video.variant;
        let Some(variant) = Variant::named(name) else {
            let all: Vec<&str> = Variant::all().map(Variant::name).collect();
            let hint = did_you_mean(name, all.iter().copied());
            self.mistake("video.variant", format!("no variant is called {name:?}{hint}; there are {}", all.join(", ")));
            return None;
        };
        self.check_routes(variant, providers);
        self.check_lists(variant);
        self.check_tiers(variant);
        self.check_length(variant);
        let max_seconds = self.model.max_duration_seconds.and_then(|most| u32::try_from(most).ok());
        let tier_beside_size = self.video.tier_beside_size;
        if tier_beside_size && !variant.writes_size() {
            self.mistake("video.tier_beside_size", format!("{:?} sends no size as it was written", variant.name()));
        }
        Some(Offer { variant, sold: self.video.sold.clone(), max_seconds, tier_beside_size })
    }

    /// Every route leads to a provider that speaks the variant's API.
    fn check_routes(&self, variant: Variant, providers: &HashMap<String, Option<Provider>>) {
        for route in &self.model.routes {
            let Some(Some(provider)) = providers.get(&route.provider) else { continue };
            let reason = match provider.kind.video {
                Some(video) if video.speaks(variant.api()) => continue,
                Some(_) => Some(format!(
                    "{:?} is of kind {:?}, which does not make videos by the rules of {:?}",
                    provider.name,
                    provider.kind.name,
                    variant.name()
                )),
                None => provider.lacks(Ability::Video),
            };
            if let Some(reason) = reason {
                self.mistakes.push(route.place.mistake("route.provider", reason));
            }
        }
    }

    /// What is sold has to be a parameter of the variant; what the public record shows has to be
    /// sold.
    fn check_lists(&self, variant: Variant) {
        let known: Vec<&str> = variant.parameters().collect();
        for parameter in self.video.sold.keys().chain(&self.video.one_price) {
            if !known.contains(&parameter.as_str()) {
                let hint = did_you_mean(parameter, known.iter().copied());
                let reason = format!("{:?} has no parameter {parameter:?}{hint}", variant.name());
                self.mistake("video", reason);
            }
        }
        for resolution in &self.model.resolutions {
            let sold = self.sold(variant, "resolution");
            if !sold.is_empty() && !sold.contains(&resolution.as_str()) {
                let reason = format!("{resolution:?} is not sold; what is sold: {}", sold.join(", "));
                self.mistake("resolutions", reason);
            }
        }
    }

    /// Of a model whose longest video is shorter than any there is nothing could be bought.
    fn check_length(&self, variant: Variant) {
        let shortest = variant.shortest();
        if let Some(most) = self.model.max_duration_seconds.filter(|most| *most < u64::from(shortest)) {
            let reason = format!("is {most}, and {:?} makes no video shorter than {shortest} seconds", variant.name());
            self.mistake("max_duration_seconds", reason);
        }
    }

    /// A tier that can never apply is a misspelt one, and values that share the base price without
    /// a word are sold too cheaply.
    fn check_tiers(&self, variant: Variant) {
        for (parameter, value) in self.model.tier_parameters() {
            if !FACTS.contains(&parameter) {
                let hint = did_you_mean(parameter, FACTS.iter().copied());
                let reason = format!("a price cannot depend on {parameter:?}{hint}; it can on {}", FACTS.join(", "));
                self.mistake("tier.when", reason);
            }
            let sold = self.sold(variant, parameter);
            if !sold.is_empty() && !sold.contains(&value) {
                let reason = format!("`{parameter}` is never {value:?} here; what is sold: {}", sold.join(", "));
                self.mistake("tier.when", reason);
            }
        }
        if self.model.billing_unit == BillingUnit::Tokens {
            // What is larger or longer has more tokens.
            return;
        }
        for (book, parameter) in self.model.books().flat_map(|book| variant.parameters().map(move |one| (book, one))) {
            let at_base = self.at_base(book, variant, parameter);
            let kinds: HashSet<String> = at_base.iter().map(|value| alike(variant, parameter, value)).collect();
            if kinds.len() > 1 && !self.video.one_price.iter().any(|one| one == parameter) {
                let reason = format!(
                    "{} of `{parameter}` would all be sold at the base price: give all but one a tier, take them out of `video.sold`, or put {parameter:?} into `video.one_price` if that is meant",
                    at_base.join(", ")
                );
                self.mistake("video", reason);
            }
        }
    }

    /// The values on sale that have no tier of their own. A size has one also where its resolution
    /// has.
    fn at_base(&self, book: &Book, variant: Variant, parameter: &str) -> Vec<&str> {
        let tiers: Vec<&str> = book.tiers_by(parameter).collect();
        let larger: Vec<&str> = book.tiers_by("resolution").collect();
        let by_size = |value: &str| {
            parameter == "size" && variant.resolution_of(value).is_some_and(|resolution| larger.contains(&resolution))
        };
        self.sold(variant, parameter).into_iter().filter(|value| !tiers.contains(value) && !by_size(value)).collect()
    }

    /// The values of a parameter that are on sale; empty where the variant has no such parameter.
    fn sold(&self, variant: Variant, parameter: &str) -> Vec<&str> {
        match self.video.sold.get(parameter) {
            Some(list) => list.iter().map(String::as_str).collect(),
            None => variant.sells(parameter).to_vec(),
        }
    }
}

/// What costs a maker the same has one name: a size and the same turned on its side, and as many
/// pictures as it does not charge for.
fn alike(variant: Variant, parameter: &str, value: &str) -> String {
    match parameter {
        "size" => {
            let mut sides: Vec<&str> = value.split(['x', '*']).collect();
            sides.sort_unstable();
            sides.join("x")
        }
        "reference_images" if variant.sells(parameter).contains(&value) => "free".to_owned(),
        _ => value.to_owned(),
    }
}
