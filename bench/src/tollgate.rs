//! Setting up tollgate for the experiment: configuration, a catalog of the bench models, a funded
//! account and a key. Everything is on, as in production: keys, holds, durable ledger on SQLite,
//! usage rows.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::children;
use crate::live::MODEL;
use crate::media::Media;
use crate::replies::MODELS;
use crate::tongue::Tongue;

/// Between two questions about one video task.
const POLL_EVERY: &str = "1s";

/// Where a tollgate differs from one that is new.
#[derive(Clone, Copy, Default)]
pub struct Grown<'a> {
    /// The ledger is in this database of PostgreSQL instead of on SQLite.
    pub database: Option<&'a str>,
    /// It goes on with this data.
    pub data: Option<&'a Path>,
    /// Models beside those that are asked for.
    pub models: usize,
}

/// Writes `tollgate.toml` and the catalog; returns the path of the former.
pub fn write_config(dir: &Path, listen: SocketAddr, upstream: SocketAddr, grown: Grown<'_>) -> anyhow::Result<PathBuf> {
    let catalog = dir.join("catalog");
    fs::create_dir_all(&catalog)?;
    let more = (0..grown.models).map(|number| format!("model-{number}"));
    let models = MODELS.iter().map(|model| (*model).to_owned()).chain(more).map(|model| {
        format!(
            "[model.\"{model}\"]\ncontext_window = 128_000\nmax_output_tokens = 4_096\n\
             [model.\"{model}\".price]\ninput = 150_000\noutput = 600_000\n\
             [[model.\"{model}\".route]]\nprovider = \"bench\"\nupstream_model = \"{model}\"\n\n"
        )
    });
    let sold = r#"supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]"#;
    let spoken = Tongue::ALL.map(|tongue| {
        let (model, provider) = (tongue.model(), tongue.name());
        format!(
            "[model.\"{model}\"]\ncontext_window = 128_000\nmax_output_tokens = 4_096\n{sold}\n\
             [model.\"{model}\".price]\ninput = 150_000\noutput = 600_000\n\
             [[model.\"{model}\".route]]\nprovider = \"{provider}\"\nupstream_model = \"bench-0-200\"\n\n"
        )
    });
    let media = Media::ALL.map(Media::model);
    let live = format!(
        "[model.\"{MODEL}\"]\ncontext_window = 32_000\nmax_output_tokens = 4_096\n\
         supported_endpoint_types = [\"realtime\"]\n\
         price = {{ input = 1_000_000, output = 2_000_000, audio_input = 4_000_000, audio_output = 8_000_000 }}\n\
         [[model.\"{MODEL}\".route]]\nprovider = \"bench\"\nupstream_model = \"{MODEL}\"\n\n"
    );
    fs::write(catalog.join("bench.toml"), models.chain(spoken).chain(media).chain([live]).collect::<String>())?;
    let database = grown.database.map_or_else(String::new, |url| format!("database = \"{url}\"\n"));
    let data = grown.data.unwrap_or(Path::new("data")).display();
    let config = format!(
        "{database}listen = \"{listen}\"\ndata_dir = \"{data}\"\ncatalog_dir = \"catalog\"\n\n[limits]\nspool_bytes = \"16GiB\"\n\n\
         [realtime]\nsessions_per_key = 10_000\nsessions_per_account = 10_000\nbytes_per_second = \"4GiB\"\n\
         events_per_second = 1_000_000\n\n\
         [provider.bench]\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\npoll_every = \"{POLL_EVERY}\"\n\n\
         [provider.source]\nkind = \"social-source\"\nbase_url = \"http://{upstream}/social\"\nrequests_per_second = 0\n"
    );
    let providers = Tongue::ALL.map(|tongue| {
        let (kind, path) = tongue.provider();
        format!("[provider.{}]\nkind = \"{kind}\"\nbase_url = \"http://{upstream}{path}\"\n", tongue.name())
    });
    let config = config + &providers.concat();
    let path = dir.join("tollgate.toml");
    fs::write(&path, config)?;
    Ok(path)
}

/// Creates a funded account and returns the text of its key.
pub fn create_key(executable: &Path, config: &Path) -> anyhow::Result<String> {
    let config = config.to_str().context("a path in UTF-8")?;
    let cli = |arguments: &[&str]| {
        let all = [arguments, &["--config", config, "--json"]].concat();
        children::ask(executable, &all, None)
    };
    let account = text(&cli(&["account", "create", "bench"])?, &["account_id"])?;
    cli(&["account", "topup", &account, "1000000"])?;
    text(&cli(&["key", "create", &account])?, &["secret"])
}

/// The first of these fields that is text.
fn text(json: &Value, names: &[&str]) -> anyhow::Result<String> {
    let found = names.iter().find_map(|name| json[*name].as_str());
    Ok(found.with_context(|| format!("no {} in the reply of the command", names.join(" or ")))?.to_string())
}
