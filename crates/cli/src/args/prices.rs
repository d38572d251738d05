//! `quote …` and `catalog …` on the command line.

use super::admin::ActorArgs;
use super::models::{EnableArgs, ImportArgs, UpdateArgs};
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
        /// The catalog as it is: a folder of .toml files, one file, or `published` for what is on
        /// sale out of the database.
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
    /// The models that come with the product, with their vendors' list prices.
    List {
        /// Of one provider; left out: how many there are of each.
        provider: Option<String>,
        /// Only these: * stands for any text (repeat the option).
        #[arg(long = "model", value_name = "GLOB")]
        models: Vec<String>,
        /// Prices that were verified longer ago than this many days are stale.
        #[arg(long, value_name = "DAYS", default_value_t = 90)]
        stale_after: u32,
    },
    /// Fold price changes of the past into the prices of their models.
    Tidy {
        /// Show what would be folded, and write nothing.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Sell the shipped models of a provider: list price times margin, served by the provider of
    /// that name in the configuration.
    Enable(EnableArgs),
    /// Stop selling what `enable` wrote; models that were changed by hand stay.
    Disable {
        /// The provider whose models go.
        provider: String,
        /// Only these: * stands for any text (repeat the option).
        #[arg(long = "model", value_name = "GLOB")]
        models: Vec<String>,
        /// Show what would be done, and do nothing.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Write a catalog file from price lists that others publish. Shows what it would write; exits
    /// 1 when something has to be looked at first.
    Import(ImportArgs),
    /// Compare what was enabled or imported with the list of today: what the vendor changed and
    /// what was changed by hand. Exits 1 when something has to be looked at first.
    Update(UpdateArgs),
}
