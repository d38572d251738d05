//! `social …` on the command line.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum Social {
    /// Pause cells: they answer 503 and are listed as paused, on every replica within seconds.
    Pause(SocialChange),
    /// Sell paused cells again.
    Resume(SocialChange),
    /// All cells with price, cost and status.
    List {
        /// Only this platform.
        #[arg(long)]
        platform: Option<String>,
        /// Only paused ones.
        #[arg(long)]
        paused: bool,
    },
    /// Who paused and resumed what, when and why; newest first.
    Log {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// What was used of a day's capacity.
    Day {
        /// So many days ago.
        #[arg(long, default_value_t = 0)]
        back: u32,
    },
}

#[derive(Args)]
pub struct SocialChange {
    /// Cells such as douyin/search, or a platform for all of its cells.
    #[arg(required = true, value_name = "CELL")]
    pub cells: Vec<String>,
    /// Why. It is kept with the change.
    #[arg(long)]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
}
