//! What can be typed about models and providers that are not to be used for a while.

use super::ActorArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum PauseCommand {
    /// Begin nothing new with it, on every replica within seconds. What runs goes on; nothing is
    /// deleted.
    Pause(PauseNames),
    /// Use it again.
    Resume(PauseNames),
    /// All of them, and which are paused since when, by whom and why.
    List {
        /// Only paused ones.
        #[arg(long)]
        paused: bool,
    },
}

#[derive(Args)]
pub struct PauseNames {
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub done: ActorArgs,
}

#[derive(Args)]
pub struct LogArgs {
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}
