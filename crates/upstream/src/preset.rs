//! Providers that are known by name: `providers.toml`, compiled in. A row says what an operator
//! would otherwise look up: address, kind, the usual variable of its key, and what it does not
//! take.

use crate::{Ability, ProviderKind, kind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tollgate_wire::ChatQuirks;

/// One provider that is known by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub id: String,
    /// For people.
    pub name: String,
    #[serde(rename = "kind")]
    pub kind_name: String,
    /// With names in braces that the operator gives: `https://{region}.example.com`.
    pub base_url: String,
    /// The usual values of these.
    #[serde(default)]
    pub defaults: BTreeMap<String, String>,
    #[serde(default)]
    pub key: KeyNeed,
    /// The variable that usually holds its key.
    pub key_env: String,
    /// The same for the first half, where the key is a pair.
    pub access_env: Option<String>,
    #[serde(rename = "endpoints")]
    pub endpoint_names: Vec<String>,
    /// Whether closing the connection ends the bill; `None`: nobody knows.
    pub stops: Option<bool>,
    #[serde(default = "yes")]
    pub takes_links: bool,
    #[serde(default)]
    pub quirks: ChatQuirks,
    #[serde(default)]
    pub note: String,
    pub address: AddressSource,
    #[serde(default)]
    pub docs: String,
}

/// Whether a provider answers without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyNeed {
    #[default]
    Needed,
    Optional,
}

/// Who says that a provider is at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressSource {
    Documented,
    Listed,
    Unconfirmed,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Table {
    provider: Vec<Preset>,
}

static TABLE: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("../providers.toml")).expect("a test reads the same file");
    table.provider
});

/// Every provider that is known by name, in the order of the file.
pub fn presets() -> &'static [Preset] {
    &TABLE
}

/// The provider with this id.
pub fn preset(id: &str) -> Option<&'static Preset> {
    TABLE.iter().find(|row| row.id == id)
}

impl Preset {
    pub fn kind(&self) -> Option<&'static ProviderKind> {
        kind(&self.kind_name)
    }

    /// What it sells of what its kind can do.
    pub fn endpoints(&self) -> Vec<Ability> {
        Ability::ALL.into_iter().filter(|one| self.endpoint_names.iter().any(|name| name == one.word())).collect()
    }

    /// The names in braces of its address.
    pub fn blanks(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (name, _) in self.base_url.split('{').skip(1).filter_map(|part| part.split_once('}')) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The address with these values in the place of its blanks; the name of the first that is
    /// missing, or that cannot stand in an address.
    pub fn address(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = self.base_url.clone();
        for name in self.blanks() {
            let given = value(name).or_else(|| self.defaults.get(name).cloned());
            let fits = |given: &String| {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
                !given.is_empty() && given.bytes().all(plain)
            };
            let given = given.filter(fits).ok_or_else(|| name.to_owned())?;
            // One host of Google's stands for no region at all.
            let text_of = |given: &str| text.replace(&format!("{{{name}}}"), given);
            text = match (name, given.as_str()) {
                ("region", "global") => text.replace("{region}-", "").replace("{region}", "global"),
                _ => text_of(&given),
            };
        }
        Ok(text)
    }

    /// How its kind takes the key, in words.
    pub fn key_form(&self) -> &'static str {
        match self.kind_name.as_str() {
            "anthropic" => "header x-api-key",
            "gemini" => "header x-goog-api-key",
            "azure" | "azure-responses" => "header api-key, or a bearer token of Entra",
            "elevenlabs" => "header xi-api-key",
            "kling" => "a token signed with a pair, access key and secret",
            "bedrock" => "bearer key, or requests signed with a pair (SigV4)",
            "vertex-gemini" | "vertex-anthropic" | "vertex-openai" => "OAuth token of a service account",
            _ => "header Authorization: Bearer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BaseUrl;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_whole() {
        assert!(presets().len() >= 90, "{}", presets().len());
        let mut seen = HashSet::new();
        for row in presets() {
            let id = &row.id;
            assert!(seen.insert(id.clone()), "{id} is there twice");
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{id}");
            let kind = row.kind().unwrap_or_else(|| panic!("{id}: no kind {:?}", row.kind_name));
            assert_eq!(row.endpoints().len(), row.endpoint_names.len(), "{id}: an unknown endpoint");
            assert!(!row.endpoints().is_empty(), "{id}");
            for ability in row.endpoints() {
                assert!(kind.has(ability), "{id}: {} has no {ability}", kind.name);
            }
            assert_eq!(row.access_env.is_some(), row.kind_name == "kling", "{id}");
            assert!(row.key_env.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'));
            let address = row.address(|_| Some("x".to_owned())).unwrap();
            BaseUrl::parse(&address).unwrap_or_else(|bad| panic!("{id}: {bad}"));
            let own = row.key == KeyNeed::Optional;
            assert_eq!(own, address.starts_with("http://"), "{id}: only servers of one's own are without TLS");
            for (from, to) in &row.quirks.tool_choice {
                for word in [from, to] {
                    assert!(ChatQuirks::CHOICES.contains(&word.as_str()), "{id}: {word}");
                }
            }
            let speaks_chat = kind.chat.is_some_and(|chat| chat.dialect() == tollgate_wire::Dialect::Chat);
            // What a report of usage hides is hidden in every format.
            let asked = ChatQuirks { cost_at: None, hide: Vec::new(), ..row.quirks.clone() };
            assert!(speaks_chat || asked == ChatQuirks::default(), "{id}: quirks are of chat completions");
        }
        assert!(preset("deepseek").is_some() && preset("nobody").is_none());
    }

    #[test]
    fn blanks_are_filled_or_named() {
        let snow = preset("snowflake").unwrap();
        assert_eq!(snow.blanks(), ["account"]);
        assert_eq!(snow.address(|_| None), Err("account".to_owned()));
        assert_eq!(snow.address(|_| Some("a/../b".to_owned())), Err("account".to_owned()));
        let mine = snow.address(|_| Some("mine".to_owned()));
        assert_eq!(mine.as_deref(), Ok("https://mine.snowflakecomputing.com/api/v2/cortex/v1"));
        let row = Preset { base_url: "https://{region}-cloud.example".to_owned(), ..snow.clone() };
        let at = |region: &str| row.address(|_| Some(region.to_owned())).unwrap();
        assert_eq!(at("europe-west4"), "https://europe-west4-cloud.example");
        assert_eq!(at("global"), "https://cloud.example");
        assert_eq!(preset("vertex-gemini").unwrap().blanks(), ["region", "project"]);
        let vertex = preset("vertex-gemini").unwrap().address(|_| Some("global".to_owned()));
        let expected = "https://aiplatform.googleapis.com/v1/projects/global/locations/global";
        assert_eq!(vertex.as_deref(), Ok(expected));
        let own = preset("ollama").unwrap();
        assert_eq!(own.address(|_| None).as_deref(), Ok("http://127.0.0.1:11434/v1"));
    }
}
