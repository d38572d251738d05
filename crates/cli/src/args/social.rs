//! `social …` on the command line.

use super::GatewayArgs;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct McpArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,
    /// Only tools of these platforms (repeat the option).
    #[arg(long = "platform", value_name = "PLATFORM")]
    pub platforms: Vec<String>,
    /// Only tools of these capabilities (repeat the option).
    #[arg(long = "capability", value_name = "CAPABILITY")]
    pub capabilities: Vec<String>,
}

#[derive(Args)]
pub struct SocialCallArgs {
    /// A cell such as bilibili/search.
    pub cell: String,
    /// Its parameters, name=value.
    #[arg(value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

#[derive(Args)]
pub struct SocialExportArgs {
    #[command(flatten)]
    pub call: SocialCallArgs,
    /// Where the entries go: one JSON object per line, or CSV when the name ends in .csv. If it is
    /// there already, the export goes on where it stopped.
    #[arg(long, short)]
    pub out: std::path::PathBuf,
    /// Read at most so many pages, this time.
    #[arg(long, default_value_t = 10)]
    pub pages: u32,
    /// Spend at most this much, this time.
    #[arg(long, default_value = "1")]
    pub usd: String,
    /// Where the entries stand in `data`, as a JSON pointer; found by itself when left out.
    #[arg(long)]
    pub items: Option<String>,
}

#[derive(Subcommand)]
pub enum SocialCommand {
    /// One call as a customer, printed as it came.
    Call(SocialCallArgs),
    /// Read a list page by page into a file, each entry once.
    Export(SocialExportArgs),
    /// Pause cells: they answer 503 and are listed as paused, on every replica within seconds.
    Pause(SocialChangeArgs),
    /// Sell paused cells again.
    Resume(SocialChangeArgs),
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
pub struct SocialChangeArgs {
    /// Cells such as douyin/search, or a platform for all of its cells.
    #[arg(required = true, value_name = "CELL")]
    pub cells: Vec<String>,
    /// Why. It is stored with the change.
    #[arg(long)]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
}
