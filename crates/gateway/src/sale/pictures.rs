//! The `image` tables of the catalog, held to what prices can go by and to what makers do, when a
//! configuration is loaded: a tier that can never apply is a misspelt one, and what it meant would
//! be sold at the base price.

use std::collections::HashMap;
use tollgate_catalog::form::Mistakes;
use tollgate_catalog::{ImageTable, Model, Snapshot};
use tollgate_media::image::{IMAGE_FACTS, Shape};
use tollgate_upstream::{ImageMaker, Provider};

/// What a model that makes pictures must offer.
pub const ENDPOINT_TYPE: &str = "image-generation";

/// Fields of a request that no price can go by.
const NO_FACTS: &[&str] = &["model", "prompt", "aspect_ratio", "response_format", "partial_images", "image", "mask"];
const CLASSES: &[&str] = &["1K", "2K", "4K"];
const AUTO: &str = "auto";

/// Checks them; every mistake is recorded.
pub fn check(catalog: &Snapshot, providers: &HashMap<String, Option<Provider>>, mistakes: &Mistakes) {
    for model in catalog.models.values().filter(|model| model.supports(ENDPOINT_TYPE)) {
        let reader = Reader { model, table: &model.image, mistakes };
        reader.check_sizes();
        reader.check_qualities();
        model.tier_parameters().for_each(|(parameter, value)| reader.check_tier(parameter, value));
        reader.check_routes(providers);
    }
}

/// One table while it is being checked.
struct Reader<'a> {
    model: &'a Model,
    table: &'a ImageTable,
    mistakes: &'a Mistakes,
}

impl Reader<'_> {
    fn mistake(&self, key: &str, reason: String) {
        let place = self.table.place.as_ref().unwrap_or(&self.model.place);
        self.mistakes.push(place.mistake(&format!("model.{:?}.{key}", self.model.name), reason));
    }

    fn goes_by(&self, parameter: &str) -> bool {
        self.model.tier_parameters().any(|(name, _)| name == parameter)
    }

    /// Sizes are known by one spelling, which is what a request becomes before it is priced.
    fn check_sizes(&self) {
        let table = self.table;
        for size in &table.sizes {
            if let Some(reason) = misspelt(size) {
                self.mistake("image.sizes", reason);
            }
        }
        let Some(usual) = &table.default_size else { return };
        let Some(shape) = Shape::of(usual) else {
            self.mistake("image.default_size", not_a_size(usual));
            return;
        };
        if !table.sizes.is_empty() && !table.sizes.iter().any(|size| size.eq_ignore_ascii_case(&shape.text)) {
            let reason =
                format!("{usual:?} is not one of `image.sizes`, so that nothing could be asked for without a size");
            self.mistake("image.default_size", reason);
        }
        if shape.class.is_none() && self.goes_by("resolution") {
            let reason =
                format!("{usual:?} says no class, and prices go by it: write pixels, or one of {}", CLASSES.join(", "));
            self.mistake("image.default_size", reason);
        } else if shape.is_auto() && self.goes_by("size") {
            self.mistake("image.default_size", "is \"auto\", which has no price: prices go by the size".to_owned());
        }
    }

    /// One quality has one spelling, which its provider and its price know.
    fn check_qualities(&self) {
        let table = self.table;
        let priced = self.model.tier_parameters().filter(|(name, _)| *name == "quality").map(|(_, value)| value);
        let named = table.qualities.iter().chain(&table.default_quality).map(String::as_str);
        let mut words: Vec<&str> = Vec::new();
        for word in named.chain(priced) {
            match words.iter().find(|own| own.eq_ignore_ascii_case(word)) {
                Some(own) if *own != word => {
                    let reason = format!("{own:?} and {word:?} are one quality: write both alike, in prices too");
                    self.mistake("image.qualities", reason);
                }
                Some(_) => {}
                None => words.push(word),
            }
        }
        let Some(usual) = &table.default_quality else { return };
        if !table.qualities.is_empty() && !table.qualities.iter().any(|own| own.eq_ignore_ascii_case(usual)) {
            self.mistake("image.default_quality", format!("{usual:?} is not one of `image.qualities`"));
        }
        if usual.eq_ignore_ascii_case(AUTO) && self.goes_by("quality") {
            self.mistake(
                "image.default_quality",
                "is \"auto\", which has no price: prices go by the quality".to_owned(),
            );
        }
    }

    /// Whether a tier can ever apply.
    fn check_tier(&self, parameter: &str, value: &str) {
        let table = self.table;
        let most = table.most.unwrap_or(ImageTable::USUAL_MOST);
        let never = |what: String| format!("`{parameter}` is never {value:?} here; {what}");
        let from = |least: u64, most: u64| {
            let good =
                value.parse().is_ok_and(|number: u64| (least..=most).contains(&number) && number.to_string() == value);
            (!good).then(|| never(format!("it is {least} to {most}")))
        };
        let either = || (!["true", "false"].contains(&value)).then(|| never("it is true or false".to_owned()));
        let reason = match parameter {
            "size" => misspelt(value).or_else(|| {
                let sold = table.sizes.is_empty() || table.sizes.iter().any(|size| size.eq_ignore_ascii_case(value));
                (!sold).then(|| never(format!("what is sold: {}", table.sizes.join(", "))))
            }),
            "resolution" => (!CLASSES.contains(&value)).then(|| never(format!("it is one of {}", CLASSES.join(", ")))),
            "quality" => {
                let sold = |own: &String| own.eq_ignore_ascii_case(value);
                let sold = table.qualities.is_empty() || table.qualities.iter().any(sold);
                let what = if value.eq_ignore_ascii_case(AUTO) {
                    Some("it becomes `image.default_quality`".to_owned())
                } else {
                    (!sold).then(|| format!("what is sold: {}", table.qualities.join(", ")))
                };
                what.map(never)
            }
            "n" => from(1, most),
            "images" => from(0, table.edit_images),
            "edit" if value == "true" && table.edit_images == 0 => Some(never("the model has no edits".to_owned())),
            "edit" | "stream" => either(),
            other if NO_FACTS.contains(&other) => {
                let facts = IMAGE_FACTS.join(", ");
                Some(format!("a price cannot depend on {other:?}; it can on {facts}, and on what only providers know"))
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.mistake("tier.when", reason);
        }
    }

    /// Every route leads to a provider that does all of it.
    fn check_routes(&self, providers: &HashMap<String, Option<Provider>>) {
        for route in &self.model.routes {
            let Some(Some(provider)) = providers.get(&route.provider) else { continue };
            // A provider without any pictures is a mistake of the route.
            let Some(maker) = provider.kind.image else { continue };
            for (key, reason) in lacking(self.table, maker, provider) {
                let (name, kind) = (&provider.name, provider.kind.name);
                self.mistake(&format!("image.{key}"), format!("{name:?} is of kind {kind:?}, which {reason}"));
            }
        }
    }
}

/// What a maker does not do although the table says so, each with its key.
fn lacking(table: &ImageTable, maker: &dyn ImageMaker, provider: &Provider) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let ways = maker.ways();
    if !ways.contains(&table.api.as_str()) {
        let ways: Vec<String> = ways.iter().map(|way| format!("{way:?}")).collect();
        found.push(("api", format!("has no way {:?}; it has {}", table.api, ways.join(", "))));
        return found;
    }
    let limits = maker.limits(provider, &table.api);
    if table.most.is_some_and(|most| most > limits.most) {
        found.push(("most", format!("makes at most {} in one call", limits.most)));
    }
    if table.edit_images > limits.sources {
        let reason = match limits.sources {
            0 => "changes no pictures in this way".to_owned(),
            most => format!("takes at most {most} to change"),
        };
        found.push(("edit_images", reason));
    }
    if table.masks && !limits.masks {
        found.push(("masks", "takes no mask".to_owned()));
    }
    if table.streams && !maker.streams(provider) {
        found.push(("streams", "cannot stream".to_owned()));
    }
    found
}

/// Why no request is ever for a size that is written so.
fn misspelt(size: &str) -> Option<String> {
    let Some(shape) = Shape::of(size) else { return Some(not_a_size(size)) };
    (shape.text != size).then(|| format!("{size:?} is known as {:?}: write it so", shape.text))
}

fn not_a_size(size: &str) -> String {
    format!("{size:?} is no size such as \"1024x1024\", \"2K\" or \"16:9\"")
}
