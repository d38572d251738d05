//! What can be typed about models and providers that are not to be used for a while.

use super::Done;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum Pausable {
    /// Begin nothing new with it, on every replica within seconds. What runs goes on; nothing is
    /// deleted.
    Pause(Names),
    /// Use it again.
    Resume(Names),
    /// All of them, and which are paused since when, by whom and why.
    List {
        /// Only paused ones.
        #[arg(long)]
        paused: bool,
    },
}

#[derive(Args)]
pub struct Names {
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub done: Done,
}

#[derive(Args)]
pub struct Log {
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}
