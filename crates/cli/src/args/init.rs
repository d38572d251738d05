//! `init` on the command line.

use clap::Args;

#[derive(Args)]
pub struct InitArgs {
    /// Where clients connect.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where data is stored: a folder for SQLite, or a PostgreSQL address.
    #[arg(long, value_name = "FOLDER|URL")]
    pub data: Option<String>,
    /// The provider to begin with: a name of `tollgate provider list --all`.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The environment variable with its key; left out: the usual one.
    #[arg(long, value_name = "VARIABLE")]
    pub key_env: Option<String>,
    /// The address of the provider, for a server of your own: http://127.0.0.1:8000/v1.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// What is put on top of list prices: 10%.
    #[arg(long, allow_hyphen_values = true)]
    pub margin: Option<String>,
    /// A model of your own server to sell, by the name that the server has for it.
    #[arg(long, value_name = "NAME", requires = "price")]
    pub model: Option<String>,
    /// Its price in USD per million tokens, input and output: 0.50/1.50.
    #[arg(long, value_name = "IN/OUT", requires = "model")]
    pub price: Option<String>,
    /// Ask nothing: what is not given is as usual.
    #[arg(long)]
    pub yes: bool,
}
