//! `quote …` and `catalog …` on the command line.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub struct QuoteArgs {
    /// The body of the call, as it would be sent.
    pub file: PathBuf,
    /// The path it would be sent to, such as /v1/chat/completions.
    #[arg(long, value_name = "PATH")]
    pub endpoint: String,
    /// The price group.
    #[arg(long, default_value = "default")]
    pub group: String,
    /// At the prices of accounts that have topped up.
    #[arg(long)]
    pub paid: bool,
    /// What the call uses, for an exact price instead of an upper bound: output=120 (repeat the
    /// option).
    #[arg(long = "use", value_name = "COUNTER=N")]
    pub used: Vec<String>,
    /// When, in milliseconds since 1970; now when left out.
    #[arg(long, value_name = "MS")]
    pub at: Option<i64>,
}

#[derive(Subcommand)]
pub enum CatalogCommand {
    /// Say in plain words which prices a new catalog changes. Exits 0 when none, 1 when some, 2
    /// when one of them cannot be read.
    Diff {
        /// The catalog as it is: a folder of .toml files, or one file.
        old: PathBuf,
        /// The catalog as it would be.
        new: PathBuf,
    },
    /// The prices of one model, or of all of them.
    Show {
        /// Its public name.
        model: Option<String>,
        /// A folder of .toml files, or one file, instead of the configured catalog.
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
}
