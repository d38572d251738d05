//! What can be typed about providers.

use super::pauses::PauseNames;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum ProviderCommand {
    /// The providers of the configuration, and which are paused; with --all every provider that is
    /// known by name.
    List {
        /// Only paused ones.
        #[arg(long, conflicts_with = "all")]
        paused: bool,
        /// Every provider that is known by name, configured or not.
        #[arg(long)]
        all: bool,
        /// With --all: only those that sell this: chat, embeddings, rerank, images, speech,
        /// transcription, music, video, realtime, social, or an endpoint type of the catalog.
        #[arg(long, value_name = "TYPE", requires = "all")]
        endpoint: Option<String>,
    },
    /// Everything that is known about one of them, and what to set.
    Show {
        /// As `provider list --all` shows it.
        id: String,
    },
    /// Write one that is known by name into the configuration. The rest of the file stays as it is.
    Add(ProviderAddArgs),
    /// Make one cheap call for each thing that is sold of a provider, and say what came of it.
    Test(ProviderTestArgs),
    /// Begin nothing new with it, on every replica within seconds. What runs goes on; nothing is
    /// deleted.
    Pause(PauseNames),
    /// Use it again.
    Resume(PauseNames),
}

#[derive(Args)]
pub struct ProviderAddArgs {
    /// As `provider list --all` shows it.
    pub id: String,
    /// What the configuration calls it; left out: the id.
    #[arg(long)]
    pub name: Option<String>,
    /// The environment variable that holds the key. Never the key itself.
    #[arg(long, value_name = "VARIABLE")]
    pub key_env: Option<String>,
    /// A part of its address, such as region=eu-west-1 (repeat the option).
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Another address than the usual one.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
}

#[derive(Args)]
pub struct ProviderTestArgs {
    /// As the configuration calls it.
    pub name: String,
    /// Only this: chat, embeddings or rerank; with --media: transcription, speech, images, music or
    /// video.
    #[arg(long, value_name = "TYPE")]
    pub endpoint: Option<String>,
    /// The provider's own name for a model; left out: the cheapest of the catalog that is routed to
    /// it.
    #[arg(long)]
    pub model: Option<String>,
    /// Say what would be sent and what it may cost, and send nothing.
    #[arg(long)]
    pub plan: bool,
    /// What costs more than a word: a second written down, a sentence spoken, a picture, a song, a
    /// video. Says what one of each costs.
    #[arg(long, conflicts_with_all = ["plan", "model"])]
    pub media: bool,
    /// With --media: make them. They cost what was said.
    #[arg(long, requires = "media")]
    pub yes: bool,
}
