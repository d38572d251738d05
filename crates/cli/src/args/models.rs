//! `catalog enable`, `import` and `update` on the command line.

use super::admin::ActorArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct EnableArgs {
    /// Whose models: a name of `tollgate catalog list`.
    pub provider: String,
    /// What is put on top of the list price: 10%, 12.5%, -5%.
    #[arg(long, default_value = "0%", allow_hyphen_values = true)]
    pub margin: String,
    /// Only these: * stands for any text (repeat the option).
    #[arg(long = "model", value_name = "GLOB")]
    pub models: Vec<String>,
    /// The provider of the configuration that serves them, where it has another name.
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// Take over a list price that changed by more than a fifth (a model's name, or a pattern;
    /// repeat the option).
    #[arg(long, value_name = "GLOB")]
    pub accept: Vec<String>,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub done: ActorArgs,
}

#[derive(Args)]
pub struct ImportArgs {
    /// The form of the price list, and the file: litellm, models.dev, openrouter, genai-prices or
    /// new-api.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"], required = true)]
    pub from: Vec<String>,
    /// A second list to compare with: prices on which both agree count as verified.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub second: Vec<String>,
    /// Whose models, as the first list calls the provider; needed where it has several.
    #[arg(long)]
    pub provider: Option<String>,
    /// … and as the second list calls it, where that differs.
    #[arg(long, value_name = "NAME", requires = "second")]
    pub second_provider: Option<String>,
    /// Only these: * stands for any text (repeat the option).
    #[arg(long = "model", value_name = "GLOB")]
    pub models: Vec<String>,
    /// Facts that price lists do not have: a file of `[model."GLOB"]` tables as in a catalog
    /// (repeat the option; later ones win).
    #[arg(long, value_name = "FILE")]
    pub facts: Vec<PathBuf>,
    /// Put in front of every name, such as groq/ for a provider that hosts the models of others.
    #[arg(long, default_value = "")]
    pub prefix: String,
    /// Where prices can be looked at; left out: where the list says.
    #[arg(long, value_name = "URL", default_value = "")]
    pub source: String,
    /// What is put on top of the list price: 10%, 12.5%, -5%.
    #[arg(long, default_value = "0%", allow_hyphen_values = true)]
    pub margin: String,
    /// The provider of the configuration that serves them; left out: the name of --provider.
    #[arg(long, value_name = "NAME")]
    pub route: Option<String>,
    /// The catalog file to write; what was changed in it by hand stays. Where the catalog lives in
    /// the database: a name such as mistral.toml.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Go on although this model needs a look (its name, or a pattern; repeat the option).
    #[arg(long, value_name = "GLOB")]
    pub accept: Vec<String>,
    /// Write the file; otherwise only what would be written is shown.
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub done: ActorArgs,
}

#[derive(Args)]
pub struct UpdateArgs {
    /// Only these files of the catalog, by name (openai or openai.toml); left out: all that a
    /// command wrote.
    pub files: Vec<String>,
    /// The new price list of a file that was imported, in its form.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub from: Vec<String>,
    /// … and the second one, if it was imported from two.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub second: Vec<String>,
    /// … with the provider as the second list calls it, where that differs.
    #[arg(long, value_name = "NAME", requires = "second")]
    pub second_provider: Option<String>,
    /// … with the facts and the prefix that it was imported with.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub facts: Vec<PathBuf>,
    /// What was put in front of its names.
    #[arg(long, default_value = "")]
    pub prefix: String,
    /// Go on although this model needs a look (its name, or a pattern; repeat the option).
    #[arg(long, value_name = "GLOB")]
    pub accept: Vec<String>,
    /// Write the changes; otherwise they are only shown.
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub done: ActorArgs,
}
