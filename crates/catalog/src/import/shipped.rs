//! The models that come with the product: one file for each provider, compiled in, on sale only
//! where an operator switches them on.

use super::lock::digest_of;
use super::{ListedModel, ListedTier};
use crate::form::did_you_mean;
use crate::{Face, Faces};
use toml::{Table, Value};

/// Name of the provider and text of each file of `catalog/models`.
pub const SHIPPED_MODELS: &[(&str, &str)] = &[
    ("alibaba", include_str!("../../../../catalog/models/alibaba.toml")),
    ("anthropic", include_str!("../../../../catalog/models/anthropic.toml")),
    ("baseten", include_str!("../../../../catalog/models/baseten.toml")),
    ("cerebras", include_str!("../../../../catalog/models/cerebras.toml")),
    ("cohere", include_str!("../../../../catalog/models/cohere.toml")),
    ("cohere-chat", include_str!("../../../../catalog/models/cohere-chat.toml")),
    ("deepinfra", include_str!("../../../../catalog/models/deepinfra.toml")),
    ("deepseek", include_str!("../../../../catalog/models/deepseek.toml")),
    ("elevenlabs", include_str!("../../../../catalog/models/elevenlabs.toml")),
    ("fireworks", include_str!("../../../../catalog/models/fireworks.toml")),
    ("friendli", include_str!("../../../../catalog/models/friendli.toml")),
    ("google-ai-studio", include_str!("../../../../catalog/models/google-ai-studio.toml")),
    ("groq", include_str!("../../../../catalog/models/groq.toml")),
    ("minimax", include_str!("../../../../catalog/models/minimax.toml")),
    ("mistral", include_str!("../../../../catalog/models/mistral.toml")),
    ("moonshot", include_str!("../../../../catalog/models/moonshot.toml")),
    ("nebius", include_str!("../../../../catalog/models/nebius.toml")),
    ("novita", include_str!("../../../../catalog/models/novita.toml")),
    ("openai", include_str!("../../../../catalog/models/openai.toml")),
    ("openai-responses", include_str!("../../../../catalog/models/openai-responses.toml")),
    ("perplexity", include_str!("../../../../catalog/models/perplexity.toml")),
    ("together", include_str!("../../../../catalog/models/together.toml")),
    ("voyage", include_str!("../../../../catalog/models/voyage.toml")),
    ("wandb", include_str!("../../../../catalog/models/wandb.toml")),
    ("xai", include_str!("../../../../catalog/models/xai.toml")),
    ("zai", include_str!("../../../../catalog/models/zai.toml")),
];

/// A file of them, read.
#[derive(Clone, Debug)]
pub struct ShippedFile {
    pub provider: String,
    /// The page on which its vendor publishes prices.
    pub source: String,
    pub verified_at: String,
    /// The two collections of prices that were compared.
    pub compared: Vec<String>,
    /// SHA-256 of its text.
    pub digest: String,
    pub models: Vec<ListedModel>,
}

pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED_MODELS.iter().map(|(name, _)| *name)
}

/// The shipped models of a provider, or why there are none.
pub fn shipped(provider: &str) -> Result<ShippedFile, String> {
    let Some((name, text)) = SHIPPED_MODELS.iter().find(|(name, _)| *name == provider) else {
        let hint = did_you_mean(provider, shipped_names());
        return Err(format!("no models of {provider:?} are shipped{hint} (`tollgate catalog list` names all)"));
    };
    ShippedFile::read(name, text)
}

impl ShippedFile {
    pub fn read(provider: &str, text: &str) -> Result<ShippedFile, String> {
        let wrong = |why: String| format!("{provider}: {why}");
        let mut whole: Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let about = table(&mut whole, "shipped").map_err(wrong)?;
        let word = |key: &str| match about.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Datetime(day)) => Ok(day.to_string()),
            _ => Err(wrong(format!("shipped.{key} is missing"))),
        };
        let (source, verified_at) = (word("source")?, word("verified_at")?);
        let mut file = ShippedFile {
            provider: provider.to_owned(),
            source,
            verified_at,
            compared: texts(about.get("compared")),
            digest: digest_of(text),
            models: Vec::new(),
        };
        for (name, value) in table(&mut whole, "model").map_err(wrong)? {
            let Value::Table(entry) = value else { return Err(wrong(format!("{name} is not a table"))) };
            let model = file.model(&name, entry).map_err(|why| wrong(format!("{name}: {why}")))?;
            file.models.push(model);
        }
        Ok(file)
    }

    fn model(&self, name: &str, mut entry: Table) -> Result<ListedModel, String> {
        let mut word = |key: &str, usual: &str| match entry.remove(key) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => usual.to_owned(),
        };
        let (upstream, source) = (word("upstream", name), word("source", &self.source));
        let verified_at = word("verified_at", &self.verified_at);
        let list = entry.remove("list").ok_or("has no list prices")?;
        let unverified = texts(entry.remove("unverified").as_ref());
        let unverified = unverified.iter().map(|face| Face::named(face).ok_or(format!("no face is called {face:?}")));
        let mut tiers = Vec::new();
        if let Some(Value::Array(written)) = entry.remove("tier") {
            for one in written {
                let Value::Table(mut tier) = one else { return Err("a tier is not a table".to_owned()) };
                let name = tier.remove("name").and_then(|name| name.as_str().map(str::to_owned));
                tiers.push(ListedTier {
                    name: name.ok_or("a tier has no name")?,
                    when: tier.remove("when").ok_or("a tier has no conditions")?,
                    list: listed_faces(tier.remove("list").as_ref())?,
                });
            }
        }
        Ok(ListedModel {
            name: name.to_owned(),
            upstream,
            list: listed_faces(Some(&list))?,
            unverified: unverified.collect::<Result<_, _>>()?,
            source,
            verified_at,
            tiers,
            facts: entry,
        })
    }

    /// Writes it as it is shipped.
    pub fn write(&self) -> String {
        let compared: Vec<String> = self.compared.iter().map(|one| super::inline::text(one)).collect();
        let mut text = format!(
            "# Models of {}, switched on by `tollgate catalog enable {}`. Prices are the vendor's list, in micro-USD.\n\
             # Written by `scripts/models`: see docs/models.md.\n\n\
             [shipped]\nsource = {}\nverified_at = {}\ncompared = [{}]\n",
            self.provider,
            self.provider,
            super::inline::text(&self.source),
            self.verified_at,
            compared.join(", ")
        );
        for model in &self.models {
            text.push('\n');
            text.push_str(&model.shipped_page(&self.source, &self.verified_at));
        }
        text
    }
}

/// Face names with whole micro-USD.
pub(super) fn listed_faces(value: Option<&Value>) -> Result<Faces, String> {
    let Some(Value::Table(written)) = value else { return Err("has no table of list prices".to_owned()) };
    let mut faces = Faces::NONE;
    for (name, price) in written {
        let face = Face::named(name).ok_or_else(|| format!("no face is called {name:?}"))?;
        let price = price.as_integer().and_then(|price| u64::try_from(price).ok());
        faces.set(face, Some(price.ok_or_else(|| format!("the list price of {name} is not a whole number"))?));
    }
    Ok(faces)
}

fn table(whole: &mut Table, key: &str) -> Result<Table, String> {
    match whole.remove(key) {
        Some(Value::Table(table)) => Ok(table),
        _ => Err(format!("[{key}] is missing")),
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}
